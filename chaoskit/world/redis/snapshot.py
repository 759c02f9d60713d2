"""What a snapshot of a Redis server consists of, and the way back from it.

Keys are kept as the server dumps them. A dump says when the fields of a hash expire by
the clock, and a snapshot may be used much later than it was taken: such a hash is kept
field by field, with what is left of the time of each.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

from chaoskit.world.redis.link import Command, Refusal

NO_EXPIRY = -1
FIELDS_MAY_EXPIRE = frozenset({22, 23, 24, 25})
"""First bytes of the dumps of such hashes (``RDB_TYPE_HASH_...`` in ``rdb.h``)."""


@dataclass(frozen=True, slots=True)
class Field:
    """One field of a hash: what is left of its life, or 0 where it has no end."""

    name: bytes
    value: bytes
    left_ms: int


@dataclass(frozen=True, slots=True)
class Key:
    """One key: what is left of its life, in milliseconds, or 0 where it has no end.

    ``fields`` stand for the dump of a hash some of whose fields expire.
    """

    db: int
    name: bytes
    left_ms: int
    dump: bytes
    fields: tuple[Field, ...] = ()


@dataclass(frozen=True)
class Snapshot:
    """Everything that the next life could find in the server."""

    keys: tuple[Key, ...]
    functions: bytes
    scripts: frozenset[bytes]
    config: dict[bytes, bytes]

    def aged(self, ms: int) -> "Snapshot":
        """What would be left of it after so many milliseconds."""
        return replace(self, keys=tuple(_aged(self.keys, ms)))


def restoring(key: Key) -> list[Command]:
    """Commands that bring a key back that is not there."""
    if not key.fields:
        return [("RESTORE", key.name, key.left_ms, key.dump)]
    flat = [part for field in key.fields for part in (field.name, field.value)]
    commands: list[Command] = [("HSET", key.name, *flat)]
    commands += [
        ("HPEXPIRE", key.name, field.left_ms, "FIELDS", 1, field.name)
        for field in key.fields
        if field.left_ms
    ]
    return commands + ([("PEXPIRE", key.name, key.left_ms)] if key.left_ms else [])


def is_there(value: object) -> bool:
    """False where the key expired since we asked for its name."""
    return value not in (None, []) and not isinstance(value, Refusal)


def kept(db: int, names: list[bytes], told: list[Any]) -> Iterable[Key]:
    """The keys of one database, from the replies to DUMP and PTTL of each."""
    for name, dump, left_ms in zip(names, told[::2], told[1::2], strict=True):
        if is_there(dump):
            # 0 would mean no end; a key in its last millisecond has one.
            yield Key(db, name, 0 if left_ms == NO_EXPIRY else max(1, left_ms), dump)


def fields_of(flat: list[bytes], left: list[int]) -> Iterable[Field]:
    """The fields of a hash, from the replies to HGETALL and HPTTL."""
    for name, value, ms in zip(flat[::2], flat[1::2], left, strict=True):
        if ms == NO_EXPIRY:
            yield Field(name, value, 0)
        elif ms >= 0:
            yield Field(name, value, max(1, ms))


def _aged(keys: Iterable[Key], ms: int) -> Iterable[Key]:
    for key in keys:
        fields = tuple(
            replace(field, left_ms=max(1, field.left_ms - ms))
            if field.left_ms
            else field
            for field in key.fields
        )
        left = max(1, key.left_ms - ms) if key.left_ms else 0
        yield replace(key, left_ms=left, fields=fields)
