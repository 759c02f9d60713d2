"""How long a server asks to be left alone, by the headers of its answer.

RFC 9110, section 10.2.3: Retry-After is a number of seconds or a date. OpenAI and those
who copy it say it more finely in retry-after-ms, which then counts.
"""

import calendar
import math
import time
from collections.abc import Mapping
from email.utils import parsedate_tz


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds from now, zero or more; None where nothing is said that can be read.

    Names of headers are in lower case, or the mapping ignores their case.
    """
    if (milliseconds := _number(headers.get("retry-after-ms"))) is not None:
        return milliseconds / 1000
    said = headers.get("retry-after")
    if (seconds := _number(said)) is not None:
        return seconds
    if (until := _date(said)) is None:
        return None
    # By the server's own clock where it tells it: ours may be wrong.
    now = _date(headers.get("date"))
    return max(0.0, until - (time.time() if now is None else now))


def _number(text: str | None) -> float | None:
    try:
        number = float(text or "")
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None


def _date(text: str | None) -> float | None:
    """An HTTP date, which is always in UTC, in seconds since the epoch."""
    try:
        parts = parsedate_tz(text or "")
        return None if parts is None else calendar.timegm(parts[:9]) - (parts[9] or 0)
    except (ValueError, OverflowError, IndexError):
        return None
