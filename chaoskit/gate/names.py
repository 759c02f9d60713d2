"""Names that are the same in every run, for what is fresh in each."""

import re
from dataclasses import dataclass, field

from chaoskit.gate.blots import Blots

# What is fresh in each run and may stand in a key: UUIDs, ULIDs, clock readings, and
# long words that mix letters with digits.
_FRESH = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(?<![0-9A-Za-z])"
    r"(?:(?=[A-Za-z]*[0-9])[0-9A-Za-z]{16,}|[0-9a-fA-F]{16,}|[0-9]{10,})"
    r"(?![0-9A-Za-z])"
)


@dataclass
class FreshNames:
    """Renames what is fresh in each run, in order of first sight.

    The run's id becomes ``{run}``; words that look random become ``{1}``, ``{2}``, so
    that the address of a message is the same in every run. A word that stands in
    ``said``, the scenario's own text, is not fresh however it looks. ``patterns`` are
    of whole keys, with groups around words known to be fresh (`explore.fresh`);
    ``blots`` are secrets that no address may hold.
    """

    run_id: str
    known: dict[str, str] = field(default_factory=dict)
    said: str = ""
    patterns: tuple[str, ...] = ()
    blots: Blots | None = None

    def __call__(self, text: str) -> str:
        """The text with its fresh parts renamed."""
        text = text.replace(self.run_id, "{run}")
        if self.blots is not None:
            text = self.blots.text(text)
        for pattern in self.patterns:
            if found := re.fullmatch(pattern, text):
                text = self._rename_groups(found)
        return _FRESH.sub(lambda found: self._rename(found[0]), text)

    def _rename(self, word: str) -> str:
        whole = rf"(?<![0-9A-Za-z]){re.escape(word)}(?![0-9A-Za-z])"
        if re.search(whole, self.said):
            return word
        return self.known.setdefault(word, f"{{{len(self.known) + 1}}}")

    def _rename_groups(self, found: re.Match[str]) -> str:
        parts, at = [], 0
        for number in range(1, len(found.groups()) + 1):
            start, end = found.span(number)
            parts += [found.string[at:start], self._rename(found[number])]
            at = end
        return "".join([*parts, found.string[at:]])
