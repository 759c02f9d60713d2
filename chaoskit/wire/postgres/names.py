"""What the names of one connection mean: prepared statements, and portals."""

from collections.abc import Iterator

from chaoskit.wire.postgres.framing import words
from chaoskit.wire.postgres.meaning import Kind, Meaning
from chaoskit.wire.postgres.sql import Classifier
from chaoskit.wire.postgres.steps import Answer

Meanings = tuple[Meaning, ...]


class Names:
    """Follows what is parsed, bound and prepared; what fails was never named."""

    def __init__(self, classifier: Classifier) -> None:
        self._classifier = classifier
        self._statements: dict[str, Meanings] = {}
        self._portals: dict[bytes, Meanings] = {}
        self._parsing: list[tuple[str, Meanings | None]] = []

    def queried(self, message: bytes) -> Meanings:
        """What a simple query does, with that of a statement for each EXECUTE."""
        sql = words(message, 1)[0]
        return tuple(self._resolved(self._classifier.meanings(sql)))

    def executed(self, message: bytes) -> Meanings:
        """What an Execute does, likewise."""
        portal = words(message, 1)[0]
        return tuple(self._resolved(self._portals.get(portal, ())))

    def parse(self, message: bytes) -> None:
        """A Parse names a statement."""
        name, sql = words(message, 2)
        text = _text(name)
        self._parsing.append((text, self._statements.get(text)))
        self._statements[text] = self._classifier.meanings(sql)

    def bind(self, message: bytes) -> None:
        """A Bind names a portal."""
        portal, name = words(message, 2)
        self._portals[portal] = self._statements.get(_text(name), ())

    def prepare(self, each: Meaning) -> None:
        """A PREPARE names a statement."""
        if each.of is not None:
            self._statements[each.name] = (each.of,)

    def answered(self, answer: Answer) -> None:
        """Some Parse have been answered; where one failed the rest have, too."""
        for name, before in self._parsing[answer.parsed :] if answer.failed else ():
            if before is None:
                self._statements.pop(name, None)
            else:
                self._statements[name] = before
        del self._parsing[: len(self._parsing) if answer.failed else answer.parsed]

    def rolled_back(self) -> None:
        """What was being parsed has not been."""
        for name, _ in self._parsing:
            self._statements.pop(name, None)
        self._parsing.clear()

    def _resolved(self, meanings: Meanings) -> Iterator[Meaning]:
        for each in meanings:
            if each.kind is Kind.EXECUTE:
                yield from self._statements.get(each.name, ())
            else:
                yield each


def _text(name: bytes) -> str:
    return name.decode("utf-8", "replace")
