"""A PostgreSQL database as JSON, for fingerprints and for people.

The same for equal states, however they came about: rows stand by their primary key, or
are a set where there is none. Numbers other than whole ones stay text, as they are. ::

    {"tables": {"orders": {"7": {"id": 7, "paid": true}}},
     "sequences": {"orders_id_seq": 7},
     "schema": ["CREATE TABLE public.orders (", ...]}
"""

import json
from collections.abc import Iterator
from typing import Any

from pydantic import JsonValue

from chaoskit.world.postgres.dump import SETTINGS, Snapshot, Table

_NULL = "\\N"
_ESCAPED = {"b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
_WHOLE = ("smallint", "integer", "bigint")
_JSON = ("json", "jsonb")


def view(snapshot: Snapshot) -> dict[str, JsonValue]:
    """What a snapshot holds."""
    schema = f"{snapshot.before_rows}\n{snapshot.after_rows}".splitlines()
    return {
        "tables": {table.shown: _rows(table) for table in snapshot.tables},
        "sequences": {
            f"{each.schema}.{each.name}".removeprefix("public."): (
                each.last if each.called else f"not before {each.last}"
            )
            for each in snapshot.sequences
        },
        "schema": [line for line in schema if _says_something(line)],
    }


def _says_something(line: str) -> bool:
    return bool(line) and not line.startswith("--") and line not in SETTINGS


def _rows(table: Table) -> JsonValue:
    rows = list(_read(table))
    if not table.identity:
        shown = sorted(rows, key=lambda row: json.dumps(row, sort_keys=True))
        return {"type": "set", "value": [*shown]}
    return {
        " ".join(str(row.get(column)) for column in table.identity): row
        for row in sorted(rows, key=lambda row: _place(table, row))
    }


def _place(table: Table, row: dict[str, JsonValue]) -> list[tuple[bool, Any]]:
    return [_order(row.get(column)) for column in table.identity]


def _order(value: Any) -> tuple[bool, Any]:
    return (False, value) if isinstance(value, int) else (True, str(value))


def _read(table: Table) -> Iterator[dict[str, JsonValue]]:
    for line in table.rows.decode().split("\n")[:-1]:
        fields = zip(table.columns, table.types, line.split("\t"), strict=True)
        yield {name: _value(kind, text) for name, kind, text in fields}


def _value(kind: str, text: str) -> JsonValue:
    if text == _NULL:
        return None
    if kind in _WHOLE:
        return int(text)
    if kind == "boolean":
        return text == "t"
    text = _unescaped(text) if "\\" in text else text
    if kind in _JSON:
        return _json(text)
    return text


def _json(text: str) -> JsonValue:
    try:
        value: JsonValue = json.loads(text)
    except (ValueError, RecursionError):
        return text
    return value


def _unescaped(text: str) -> str:
    first, *rest = text.split("\\")
    pieces, at = [first], 0
    while at < len(rest):
        piece = rest[at]
        if not piece:  # two in a row are one
            at += 1
            pieces.append("\\" + (rest[at] if at < len(rest) else ""))
        else:
            pieces.append(_ESCAPED.get(piece[0], piece[0]) + piece[1:])
        at += 1
    return "".join(pieces)
