"""The state of a Redis server: emptied, copied, put back, and looked at.

A **snapshot** holds every key as the server itself dumps it, with what is left of its
time to live, the functions and scripts the server knows, and what was configured
otherwise than at the start. A **view** shows the same as JSON, for fingerprints and
people::

    {"0": {"agent:log": {"type": "list", "value": ["a", "b"], "expires": false}}}
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

from pydantic import JsonValue

from chaoskit.world.redis.link import Command, Link, Refusal
from chaoskit.world.redis.snapshot import (
    FIELDS_MAY_EXPIRE,
    NO_EXPIRY,
    Key,
    Snapshot,
    fields_of,
    is_there,
    kept,
    restoring,
)
from chaoskit.world.redis.view import LOOKS, OPAQUE, as_text, library, texts

EMPTY: tuple[Command, ...] = (
    ("FLUSHALL",),
    ("SCRIPT", "FLUSH"),
    ("FUNCTION", "FLUSH"),
)
"""Empties a server; one before version 7 refuses the last, having no functions."""


class RedisState:
    """The state of the server at the other end of a link that is ours alone.

    ``scripts`` are the scripts that the server was seen to learn: it does not tell
    them, and whether it knows a script is something that an agent can notice.
    ``field_expiry``: the server can let single fields of a hash expire.
    """

    def __init__(self, link: Link, *, field_expiry: bool) -> None:
        self.link = link
        self._field_expiry = field_expiry
        self.scripts: set[bytes] = set()
        self._config: dict[bytes, bytes] | None = None

    def take_up(self, link: Link) -> None:
        """The server was started again: it knows what it kept, and no scripts."""
        self.link = link
        self.scripts.clear()

    async def reset(self) -> None:
        """Empty it of everything that an agent may have left."""
        self.scripts.clear()
        *others, functions = EMPTY
        await self.link.do(*others)
        await self.link.ask(functions)
        if self._config is None:
            self._config = await self._configured()
        await self._configure(await self._configured_otherwise(), self._config)

    async def snapshot(self) -> Snapshot:
        """All of it."""
        functions, found = await self._found(("FUNCTION", "DUMP"))
        keys: list[Key] = []
        for db, names in found:
            each = (((b"DUMP", name), (b"PTTL", name)) for name in names)
            told = await self._in(db, [command for pair in each for command in pair])
            keys += await self._with_fields(db, list(kept(db, names, told)))
        dump = b"" if isinstance(functions, Refusal) else bytes(functions)
        config = await self._configured_otherwise()
        return Snapshot(tuple(keys), dump, frozenset(self.scripts), config)

    async def restore(self, snapshot: Snapshot) -> None:
        """Bring an empty server to an earlier state."""
        commands: list[Command] = [("SCRIPT", "LOAD", s) for s in snapshot.scripts]
        if snapshot.functions:
            commands.append(("FUNCTION", "RESTORE", snapshot.functions, "FLUSH"))
        db = None
        for key in snapshot.keys:
            if key.db != db:
                db = key.db
                commands.append(("SELECT", db))
            commands += restoring(key)
        await self.link.do(*commands)
        await self._configure(snapshot.config, snapshot.config)
        self.scripts.update(snapshot.scripts)

    async def view(self) -> dict[str, JsonValue]:
        """All of it as JSON, see the module's docstring."""
        functions, found = await self._found(("FUNCTION", "LIST", "WITHCODE"))
        seen: dict[str, JsonValue] = {}
        for db, names in found:
            seen[str(db)] = await self._view_of(db, names)
        if functions and not isinstance(functions, Refusal):
            seen["functions"] = dict(map(library, functions))
        return seen

    async def _configured(self) -> dict[bytes, bytes]:
        (told,) = await self.link.ask(("CONFIG", "GET", "*"))
        # Where that is not allowed, an agent cannot configure anything either.
        return {} if isinstance(told, Refusal) else _pairs(told)

    async def _configured_otherwise(self) -> dict[bytes, bytes]:
        now, at_start = await self._configured(), self._config or {}
        return {n: value for n, value in now.items() if at_start.get(n, value) != value}

    async def _configure(
        self, names: Iterable[bytes], values: Mapping[bytes, bytes]
    ) -> None:
        await self.link.do(*(("CONFIG", "SET", name, values[name]) for name in names))

    async def _found(self, also: Command) -> tuple[Any, list[tuple[int, list[bytes]]]]:
        """The reply to one more command, and the names of all keys by database."""
        first = await self.link.ask(also, ("INFO", "keyspace"), *_names_in(0))
        extra, keyspace, names = first[0], first[1], {0: sorted(first[-1])}
        others = [db for db in keys_held(keyspace) if db != 0]
        for db in others:
            names[db] = sorted((await self.link.do(*_names_in(db)))[-1])
        return extra, [(db, names[db]) for db in sorted(names) if names[db]]

    async def _view_of(self, db: int, names: list[bytes]) -> dict[str, JsonValue]:
        each = (((b"TYPE", name), (b"PTTL", name)) for name in names)
        told = await self._in(db, [command for pair in each for command in pair])
        kinds = [bytes(kind).decode() for kind in told[::2]]
        looks = [LOOKS.get(kind, OPAQUE) for kind in kinds]
        asked = [look.ask(name) for look, name in zip(looks, names, strict=True)]
        values = await self._in(db, asked)
        seen: dict[str, JsonValue] = {}
        for name, kind, look, value, left_ms in zip(
            names, kinds, looks, values, told[1::2], strict=True
        ):
            if is_there(value):
                shown = {"type": kind, "value": look.show(value)}
                shown["expires"] = left_ms != NO_EXPIRY
                if kind == "hash" and self._field_expiry:
                    shown["expiring_fields"] = await self._expiring(db, name, value)
                seen[as_text(name)] = shown
        return seen

    async def _with_fields(self, db: int, keys: list[Key]) -> list[Key]:
        """The keys, with the fields of hashes whose fields expire one by one."""
        if not self._field_expiry:
            return keys
        hashes = [key.name for key in keys if key.dump[0] in FIELDS_MAY_EXPIRE]
        held = await self._in(db, [(b"HGETALL", name) for name in hashes])
        there = [pair for pair in zip(hashes, held, strict=True) if is_there(pair[1])]
        ask = [(b"HPTTL", n, b"FIELDS", len(f) // 2, *f[::2]) for n, f in there]
        told = zip(there, await self._in(db, ask), strict=True)
        fields = {
            name: tuple(fields_of(flat, left))
            for (name, flat), left in told
            if is_there(left)
        }
        return [replace(key, fields=fields.get(key.name, ())) for key in keys]

    async def _expiring(self, db: int, key: bytes, flat: list[bytes]) -> JsonValue:
        fields = sorted(flat[::2])
        ask: Command = (b"HPTTL", key, b"FIELDS", len(fields), *fields)
        (told,) = await self._in(db, [ask])
        left = told if is_there(told) else [NO_EXPIRY] * len(fields)
        return texts([f for f, ms in zip(fields, left, strict=True) if ms >= 0])

    async def _in(self, db: int, commands: Sequence[Command]) -> list[Any]:
        return (await self.link.ask(("SELECT", db), *commands))[1:]


def keys_held(keyspace: bytes) -> dict[int, int]:
    """Database number -> number of keys, from the reply to ``INFO keyspace``."""
    lines = (line.partition(b":keys=") for line in keyspace.splitlines())
    return {
        int(db.removeprefix(b"db")): int(keys.partition(b",")[0])
        for db, separator, keys in lines
        if separator
    }


def _names_in(db: int) -> tuple[Command, Command]:
    # A worker's server is its own, so that KEYS keeps nobody waiting.
    return ("SELECT", db), ("KEYS", "*")


def _pairs(flat: Sequence[bytes]) -> dict[bytes, bytes]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
