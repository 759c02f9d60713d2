"""On what terms a request comes: the API's version, and whether it opens betas.

Protocol: Anthropic API, versions 2023-01-01, 2023-06-01 and 2026-10-21. The newest one
has no sampling parameters, and is stricter about where documents and citations stand.
"""

from dataclasses import dataclass

VERSIONS = ("2023-01-01", "2023-06-01", "2026-10-21")


@dataclass(frozen=True)
class Terms:
    """What the headers of a request say about how it is to be read."""

    version: str = VERSIONS[-1]
    beta: bool = False
    """Whether it came with an ``anthropic-beta`` header."""

    @property
    def newest(self) -> bool:
        """Whether it asks for the version with the stricter rules."""
        return self.version == VERSIONS[-1]


NEWEST = Terms()
