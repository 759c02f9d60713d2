"""How each type of Redis value is asked for, and shown as JSON.

Text stays as it is; what is not text is ``base64:...``. Sets are sorted, a stream's
clocks (when a message was delivered, a consumer seen) are left out.
"""

import base64
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from chaoskit.world.redis.link import Command

_BINARY = "base64:"


def as_text(value: bytes) -> str:
    """Text as it is, anything else in base64; no two values look the same."""
    try:
        text = value.decode()
    except UnicodeDecodeError:
        text = _BINARY
    if text.startswith(_BINARY):
        return _BINARY + base64.b64encode(value).decode()
    return text


@dataclass(frozen=True, slots=True)
class Look:
    """How to ask for a value of one type, and how to show the reply."""

    ask: Callable[[bytes], Command]
    show: Callable[[Any], JsonValue]


def _pairs(flat: Sequence[Any]) -> Iterable[tuple[Any, Any]]:
    return zip(flat[::2], flat[1::2], strict=True)


def texts(values: Sequence[bytes]) -> JsonValue:
    """Each value by `as_text`."""
    return [as_text(value) for value in values]


def _fields(flat: Sequence[bytes]) -> JsonValue:
    return {as_text(name): as_text(value) for name, value in sorted(_pairs(flat))}


def _stream(flat: Sequence[Any]) -> JsonValue:
    told = dict(_pairs(flat))
    return {
        "last_id": as_text(told[b"last-generated-id"]),
        "entries": [[as_text(i), texts(entry)] for i, entry in told[b"entries"]],
        "groups": dict(map(_group, told[b"groups"])),
    }


def _group(flat: Sequence[Any]) -> tuple[str, JsonValue]:
    told = dict(_pairs(flat))
    consumers = (dict(_pairs(consumer))[b"name"] for consumer in told[b"consumers"])
    return as_text(told[b"name"]), {
        "last_delivered_id": as_text(told[b"last-delivered-id"]),
        "consumers": texts(sorted(consumers)),
        "pending": [
            {"id": as_text(i), "consumer": as_text(consumer), "deliveries": times}
            for i, consumer, _, times in told[b"pending"]
        ],
    }


def library(flat: Sequence[Any]) -> tuple[str, JsonValue]:
    """Name and code of a library of functions, from ``FUNCTION LIST WITHCODE``."""
    told = dict(_pairs(flat))
    return as_text(told[b"library_name"]), as_text(told[b"library_code"])


LOOKS: Mapping[str, Look] = {
    "string": Look(lambda key: (b"GET", key), as_text),
    "list": Look(lambda key: (b"LRANGE", key, 0, -1), texts),
    "set": Look(lambda key: (b"SMEMBERS", key), lambda told: texts(sorted(told))),
    "zset": Look(
        lambda key: (b"ZRANGE", key, 0, -1, b"WITHSCORES"),
        lambda told: [[as_text(member), as_text(s)] for member, s in _pairs(told)],
    ),
    "hash": Look(lambda key: (b"HGETALL", key), _fields),
    "stream": Look(
        lambda key: (b"XINFO", b"STREAM", key, b"FULL", b"COUNT", 0), _stream
    ),
}
# A type of a module, which only the module can read.
OPAQUE = Look(lambda key: (b"DUMP", key), as_text)
