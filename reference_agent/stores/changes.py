"""What changed between two documents, and lines that prove to be whole.

Both logs (`redis-log` and `files`) append one event for each save. An event holds only
what changed, so what a save writes does not grow with the run. A change is one of

    {"=": value}                                  another value takes the place
    {"in": {name: change}, "drop": [name]}        an object: members
    {"in": {index: change}, "at": 7, "cut": 1, "add": [item]}
                                                  a list: items, then a cut and a paste

where what is empty is left out; {} is no change. A list that grew costs what was added.

An event's line is JSON, in ASCII and without a line's end, and its checksum is last:

    {"number": 7, "event": {...}, "check": "0f1e2d3c4b5a6978"}

The checksum covers all that comes before it, the number too: a line that was moved is
as damaged as one that was cut off.
"""

import json
from collections.abc import Iterable
from hashlib import blake2b
from itertools import takewhile
from operator import not_
from typing import Any

from reference_agent.stores.base import Document

Event = dict[str, Any]

CHECK = ',"check":"'

DEPTH_MAX = 6
"""Deeper down, what changed is written whole: an event nests twice as deep."""


def difference(old: Document, new: Document) -> Event:
    """The change that makes ``new`` of ``old``; `apply` makes it.

    True, 1 and 1.0 are different values; the order of members is not kept.
    """
    return _change(old, new, DEPTH_MAX)


def apply(document: Document, event: Event) -> Document:
    """The document after the event; the one before stays as it was.

    Raises ValueError for an event of another document.
    """
    try:
        after = _changed(document, event)
    except (LookupError, TypeError, AttributeError) as error:
        raise ValueError("the event is about another document") from error
    if not isinstance(after, dict):
        raise ValueError("the event leaves no document")
    return after


def encode_event(number: int, event: Event) -> str:
    """The event's line. Raises ValueError for what JSON cannot hold."""
    line = {"number": number, "event": event}
    try:
        text = json.dumps(line, allow_nan=False, separators=(",", ":"))
    except RecursionError as error:
        raise ValueError("it is nested too deep") from error
    return _checked(text[:-1])


def decode_event(line: bytes | str) -> tuple[int, Event]:
    """The number and the event. Raises ValueError, in words."""
    text = line if isinstance(line, str) else line.decode("ascii", "replace")
    begin, mark, _ = text.rpartition(CHECK)
    if not mark:
        raise ValueError("it does not end with a checksum, as an event does")
    if text != _checked(begin):
        raise ValueError("its checksum is wrong: it was changed, or cut off")
    try:
        told = json.loads(text)
        number, event = int(told["number"]), dict(told["event"])
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise ValueError("its checksum is right, but it is no event") from error
    return number, event


def _checked(begin: str) -> str:
    raw = begin.encode("utf-8", "surrogatepass")
    return f'{begin}{CHECK}{blake2b(raw, digest_size=8).hexdigest()}"}}'


def _change(old: Any, new: Any, depth: int) -> Event:
    if _same(old, new):
        return {}
    if depth and type(old) is type(new) is dict:
        return _change_of_members(old, new, depth - 1)
    if depth and type(old) is type(new) is list:
        return _change_of_items(old, new, depth - 1)
    return {"=": new}


def _change_of_members(old: Document, new: Document, depth: int) -> Event:
    changes = {
        name: _change(old[name], value, depth) if name in old else {"=": value}
        for name, value in new.items()
    }
    drop = [name for name in old if name not in new]
    return _without_empty({"in": _without_empty(changes), "drop": drop})


def _change_of_items(old: list[Any], new: list[Any], depth: int) -> Event:
    """What both begin and end with stays; between, item by item as far as both go."""
    start = _alike(old, new)
    end = _alike(old[start:][::-1], new[start:][::-1])
    at = min(len(old), len(new)) - end
    changes = {
        str(place): _change(old[place], new[place], depth) for place in range(start, at)
    }
    event: Event = {"in": _without_empty(changes)}
    cut, add = len(old) - end - at, new[at : len(new) - end]
    if cut or add:
        event |= {"at": at, "cut": cut, "add": add}
    return _without_empty(event)


def _alike(old: list[Any], new: list[Any]) -> int:
    """How many items are the same, from the first on."""
    count = _until(one != other for one, other in zip(old, new, strict=False))
    old, new = old[:count], new[:count]
    # Two long texts are made much faster than many short ones, and mostly suffice.
    if json.dumps(old) == json.dumps(new):
        return count
    return _until(not _same(one, other) for one, other in zip(old, new, strict=True))


def _until(ends: Iterable[bool]) -> int:
    """How many come before the first that is true; all, if none is."""
    return sum(1 for _ in takewhile(not_, ends))


def _same(old: Any, new: Any) -> bool:
    # The texts tell 1 from True and from 1.0, which are equal in Python.
    return bool(old == new) and json.dumps(old) == json.dumps(new)


def _without_empty(event: Event) -> Event:
    return {name: value for name, value in event.items() if value not in ({}, [], 0)}


def _changed(value: Any, event: Event) -> Any:
    if "=" in event:
        return event["="]
    if not event:
        return value
    return (_list if isinstance(value, list) else _object)(value, event)


def _object(old: Document, event: Event) -> Document:
    new = {name: old[name] for name in old if name not in event.get("drop", ())}
    for name, change in event.get("in", {}).items():
        new[name] = change["="] if "=" in change else _changed(old[name], change)
    return new


def _list(old: list[Any], event: Event) -> list[Any]:
    new = list(old)
    for place, change in event.get("in", {}).items():
        new[int(place)] = _changed(old[int(place)], change)
    at, cut = event.get("at", 0), event.get("cut", 0)
    if at + cut > len(old):
        raise LookupError("the list was longer")
    new[at : at + cut] = event.get("add", ())
    return new
