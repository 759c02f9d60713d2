"""Readings of the clock in a world: known by being close to the campaign's own time."""

import re
from dataclasses import dataclass
from datetime import datetime

TIME = "<time>"
"""What stands for any reading."""

HOUR = 3600.0
DAY = 24 * HOUR

_ISO_TIME = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
)
_NUMBER = re.compile(r"(?<![\w.-])\d{10,19}(?:\.\d+)?(?![\w.])")
_UNITS = (1.0, 1e3, 1e6, 1e9)


@dataclass(frozen=True)
class Clock:
    """A campaign began at ``since``, in seconds of the epoch.

    Readings from an hour before that to eight days after it are times: agents note
    when something was, and when something shall be.
    """

    since: float

    def masked(self, text: str) -> str:
        """Text without readings of the clock."""
        return _NUMBER.sub(self._number, _ISO_TIME.sub(self._iso, text))

    def is_time(self, number: float) -> bool:
        """Whether a number is a time in seconds, or in ms, us or ns."""
        early, late = self.since - HOUR, self.since + 8 * DAY
        return any(early * unit <= number <= late * unit for unit in _UNITS)

    def _number(self, found: re.Match[str]) -> str:
        return TIME if self.is_time(float(found[0])) else found[0]

    def _iso(self, found: re.Match[str]) -> str:
        try:
            moment = datetime.fromisoformat(found[0].replace(",", ".")).timestamp()
        except (ValueError, OverflowError):
            return found[0]
        # A reading without a zone may be up to half a day from UTC.
        near = self.since - DAY <= moment <= self.since + 9 * DAY
        return TIME if near else found[0]
