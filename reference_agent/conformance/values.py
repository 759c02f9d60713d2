"""Hard values come back equal and of the same type, or are refused before anything."""

from collections import OrderedDict
from datetime import UTC, datetime, timedelta, timezone
from decimal import Decimal
from enum import IntEnum
from fractions import Fraction
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from reference_agent.conformance.bench import (
    Bench,
    Opener,
    everything,
    loaded,
    same,
    taken,
)
from reference_agent.stores.base import Store


class Grade(IntEnum):
    """A number that is not only a number."""

    GOOD = 1


def nested(depth: int) -> list[Any]:
    """A list in a list in a list."""
    value: list[Any] = []
    for _ in range(depth):
        value = [value]
    return value


JSON: dict[str, Any] = {
    "nothing": None,
    "true": True,
    "one": 1,
    "one as a float": 1.0,
    "zero": 0,
    "false": False,
    "minus zero": -0.0,
    "a tenth": 0.1,
    "a sum": 0.1 + 0.2,
    "the largest float": 1.7976931348623157e308,
    "the smallest float": 5e-324,
    "past a double": 2**53 + 1,
    "past 64 bits": -(2**64) - 1,
    "a thousand digits": 10**999 + 7,
    "no text": "",
    "a number as text": "1",
    "null as text": "null",
    "NUL": "a\0b",
    "control": "".join(map(chr, range(32))) + "\x7f\x85",
    "lines": "\n\r\n\u2028\u2029",
    "quotes": "\"'\\`$%{}",
    "beyond the plane": "\U0001f600\U0010ffff",
    "composed and not": ["\u00e9", "e\u0301"],
    "no character": "\ufffe\uffff\ufeff",
    "lone surrogate": "\ud800",
    "surrogates in a row": "\udc00\ud800",
    "surrogates escape": b"\xff\xfe".decode("ascii", "surrogateescape"),
    "empty": [[], {}, [[]], [{}], {"": {}}],
    "mixed": [1, True, 1.0, "1", None, 0, False, -0.0, ""],
    "names": {"": 1, "\0": 2, "\ud800": 3, "$ref": 4, "a.b": 5, "1": 6, "null": 7},
    "names apart": {"é": 1, "e\u0301": 2, "A": 3, "a": 4, " a": 5},
    "deep": nested(100),
    "large": "0123456789 abcdé" * (5 * 1024 * 1024 // 17),
    "long": [*range(20_000)],
    "wide": {f"name {number}": number for number in range(5_000)},
}
"""What JSON can hold, by name: it must come back."""

OTHER: dict[str, Any] = {
    "time in a zone": datetime(2024, 2, 29, 12, tzinfo=timezone(timedelta(hours=2))),
    "time in UTC": datetime(2024, 2, 29, 12, 0, 0, 1, tzinfo=UTC),
    "time in no zone": datetime(2024, 2, 29, 12),
    "time span": timedelta(days=-1, microseconds=1),
    "decimal": Decimal("1.10"),
    "decimal nothing": Decimal("NaN"),
    "fraction": Fraction(1, 3),
    "bytes": b"\xff\0",
    "bytearray": bytearray(b"x"),
    "tuple": (1, 2),
    "set": {1, 2},
    "complex": 1j,
    "not a number": float("nan"),
    "infinity": float("inf"),
    "minus infinity": float("-inf"),
    "enum": Grade.GOOD,
    "path": Path("a"),
    "uuid": UUID(int=7),
    "ordered": OrderedDict(a=1),
    "object": object(),
    "number as a name": {1: "a"},
    "nothing as a name": {None: "a"},
    "truth as a name": {True: "a"},
    "float as a name": {1.5: "a"},
    "bytes as a name": {b"a": "a"},
    "tuple as a name": {(1, 2): "a"},
    "names that meet": {1: "a", "1": "b"},
    "too many digits": 10**5000,
    "very deep": nested(5000),
}
"""What JSON cannot hold, or no reader of it would take: refused, or as it was."""


class Values(Bench):
    """Documents with values that many stores change under way."""

    @pytest.mark.parametrize("name", JSON)
    def test_json_comes_back(self, store: Store, opened: Opener, name: str) -> None:
        """From create and from save, in a member, in a list and deeper."""
        value = JSON[name]
        document = {"value": value, "deeper": [{"value": value}], name: None}
        store.create("created", document)
        store.create("saved", {"value": "another"})
        store.save("saved", taken(store, "saved", "a").token, document)
        for handle in (store, opened()):
            for run_id in ("created", "saved"):
                found = loaded(handle, run_id).document
                assert same(found, document), f"it came back as {found!r:.200}"

    @pytest.mark.parametrize("name", OTHER)
    def test_others_are_refused_or_come_back(self, store: Store, name: str) -> None:
        """ValueError before anything has changed: there is no third way."""
        document = {"fine": 1, "value": [OTHER[name]]}
        try:
            store.create("created", document)
        except ValueError:
            assert everything(store, "created") == (None, [])
        else:
            assert same(loaded(store, "created").document, document)
        self._refused_or_saved(store, document)

    def _refused_or_saved(self, store: Store, document: Any) -> None:
        store.create("saved", {"n": 0})
        token = taken(store, "saved", "a").token
        before = everything(store, "saved")
        try:
            store.save("saved", token, document, wake_at=None, keep=False)
        except ValueError:
            assert everything(store, "saved") == before
            store.save("saved", token, {"n": 1})
            assert loaded(store, "saved").document == {"n": 1}
        else:
            assert same(loaded(store, "saved").document, document)

    @pytest.mark.parametrize("document", [[], None, "text", 1, [["a", 1]]], ids=repr)
    def test_a_document_is_an_object(self, store: Store, document: Any) -> None:
        """Anything else is refused, or no reader could tell it from foreign data."""
        with pytest.raises(ValueError, match=r".+"):
            store.create("r", document)
        assert everything(store, "r") == (None, [])
