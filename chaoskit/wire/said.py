"""What the scripted model says at one place, before any API gives it a shape.

Here is what all dialects share: the words and calls of a turn, their price in tokens,
and ids that carry their place.
"""

import re
from dataclasses import dataclass, replace

CHARACTERS_PER_TOKEN = 4
FRESH_LENGTH = 16

_OURS = re.compile(r"[a-z]+_t(\d{1,6})p(\d{1,6})_[0-9a-z]+")


def tokens(text: str) -> int:
    """A steady stand-in for a tokenizer: each four characters begun are one."""
    return -(-len(text) // CHARACTERS_PER_TOKEN)


@dataclass(frozen=True)
class Said:
    """What the model says at one place of the script, before it gets its ids."""

    turn: int
    content: str | None
    called: tuple[tuple[str, str], ...] = ()
    """Tools and the JSON text of their arguments."""
    cut: bool = False
    """Whether it was ended by the limit on tokens, in the middle."""

    @property
    def tokens(self) -> int:
        """The price of this answer."""
        made = sum(tokens(tool) + tokens(arguments) for tool, arguments in self.called)
        return tokens(self.content or "") + made

    def cut_short(self) -> "Said":
        """The same, ended at half of its last part, as a limit on tokens ends it."""
        if not self.called:
            return replace(self, content=_half(self.content or ""), cut=True)
        *whole, (tool, arguments) = self.called
        return replace(self, called=(*whole, (tool, _half(arguments))), cut=True)


def _half(text: str) -> str:
    return text[: len(text) // 2]


@dataclass(frozen=True)
class Ids:
    """The ids of one answer; ``fresh`` has a part for each alternative asked for."""

    turn: int
    fresh: tuple[str, ...]

    def at(self, kind: str, position: int, choice: int = 0) -> str:
        """An id that carries its place: ``call_t2p0_f3a9``. At most 40 characters."""
        return placed_id(kind, self.turn, position, self.fresh[choice])

    @property
    def request(self) -> str:
        """The id that the service gives to the request."""
        return f"req_{self.fresh[0]}"


def placed_id(kind: str, turn: int, position: int, fresh: str) -> str:
    """An id of a part of an answer: its kind, its place, and what makes it new."""
    return f"{kind}_t{turn}p{position}_{fresh}"


def issued(identity: object) -> tuple[int, int] | None:
    """Turn and position of an id that we gave; None for anything else."""
    found = _OURS.fullmatch(identity) if isinstance(identity, str) else None
    return None if found is None else (int(found[1]), int(found[2]))


def without_fresh_part(text: str) -> str:
    """The text with our ids cut down to their places: the same in every run."""
    return _OURS.sub(lambda found: found[0].rpartition("_")[0], text)


def pieces_of(text: str, count: int = 3) -> tuple[str, ...]:
    """A text in so many pieces, none of them empty; what a stream sends of it."""
    size = max(1, -(-len(text) // count))
    return tuple(text[at : at + size] for at in range(0, len(text), size))
