"""How long to wait is read from every form in which servers say it, or not at all."""

import time
from email.utils import formatdate

import pytest

from reference_agent.retry_after import retry_after

DATE = "Sun, 06 Nov 1994 08:49:37 GMT"


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"retry-after": "20"}, 20.0),
        ({"retry-after": "1.5"}, 1.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after": "-3"}, 0.0),
        ({"retry-after-ms": "250"}, 0.25),
        ({"retry-after-ms": "250", "retry-after": "1"}, 0.25),
        ({"retry-after-ms": "soon", "retry-after": "1"}, 1.0),
    ],
)
def test_numbers(headers: dict[str, str], seconds: float) -> None:
    assert retry_after(headers) == seconds


@pytest.mark.parametrize(
    ("until", "seconds"),
    [
        ("Sun, 06 Nov 1994 08:50:07 GMT", 30.0),
        ("Sunday, 06-Nov-94 08:50:07 GMT", 30.0),
        ("Sun Nov  6 08:50:07 1994", 30.0),
        ("Sun, 06 Nov 1994 08:49:07 GMT", 0.0),
    ],
)
def test_dates_count_by_the_clock_of_the_server(until: str, seconds: float) -> None:
    """All three forms of RFC 9110, section 5.6.7; our clock is decades ahead."""
    assert retry_after({"retry-after": until, "date": DATE}) == seconds


def test_a_date_alone_counts_by_our_clock() -> None:
    until = formatdate(time.time() + 3600, usegmt=True)
    found = retry_after({"retry-after": until})
    assert found is not None
    assert 3000 < found <= 3600


@pytest.mark.parametrize(
    "text", ["", "soon", "nan", "inf", "1e999", "Sun, 99 Foo 1994", "0x10", "1 2"]
)
def test_what_cannot_be_read_is_not_heeded(text: str) -> None:
    assert retry_after({"retry-after": text, "date": DATE}) is None


def test_nothing_said_is_nothing() -> None:
    assert retry_after({}) is None
