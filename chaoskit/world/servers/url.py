"""The URL at which a user gives a server of his own."""

import re
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from chaoskit.world.servers import MissingServer


@dataclass(frozen=True)
class Place:
    """Where a user names a server: the variable, and what may stand in it."""

    variable: str
    server: str
    schemes: tuple[str, ...]
    expected: str

    def split(self, url: str) -> SplitResult:
        """The parts of a URL.

        Raises:
            MissingServer: it is none.
        """
        try:
            parts = urlsplit(url)
            _ = parts.port  # raises where it is no number
        except ValueError as problem:
            raise self.no_url(url, f" ({problem})") from None
        if parts.scheme not in self.schemes:
            raise self.no_url(url)
        return parts

    def no_url(self, url: str, why: str = "") -> MissingServer:
        """The error for what makes no sense as a URL."""
        return MissingServer(
            f"{self.variable}: {without_password(url)!r} is no URL of a {self.server}"
            f"{why}; expected {self.expected}"
        )


def without_password(url: str) -> str:
    """What may be shown to everybody."""
    return re.sub(r"(?<=://)[^/]*@", "", url)
