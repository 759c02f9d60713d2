"""State <-> JSON: a checkpoint is read back exactly as it was written, or refused.

Damage must never pass for a first run, nor be repaired by guessing: every field is
checked against the type that `state` declares for it.
"""

import json
from collections.abc import Mapping
from dataclasses import asdict, is_dataclass
from enum import StrEnum
from hashlib import sha256
from types import UnionType
from typing import Any, cast, get_args, get_origin, get_type_hints

from reference_agent.state import SCHEMA, State


class UnreadableCheckpoint(Exception):
    """A checkpoint is there and cannot be used; it must stay as it is."""

    def __init__(self, reason: str, *, step: int = 0, checkpoint_id: int = 0) -> None:
        super().__init__(reason)
        self.step = step
        self.checkpoint_id = checkpoint_id


def dump(state: State) -> str:
    """The state as JSON, in ASCII. Raises ValueError for what JSON cannot hold."""
    return json.dumps(asdict(state), allow_nan=False, separators=(",", ":"))


def load(document: bytes | str) -> State:
    """The state that `dump` wrote. Raises UnreadableCheckpoint for anything else."""
    try:
        fields = json.loads(document)
    except (ValueError, RecursionError) as error:
        raise UnreadableCheckpoint("it is not JSON; was it cut off?") from error
    if not isinstance(fields, dict):
        raise UnreadableCheckpoint("it is JSON, but not an object")
    if fields.get("schema") != SCHEMA:
        raise _unreadable(
            fields,
            f"its schema is {fields.get('schema')!r} and this agent reads {SCHEMA}; "
            "resume it with the version that wrote it",
        )
    try:
        return cast("State", _read(State, fields, "$"))
    except (TypeError, ValueError) as error:
        raise _unreadable(fields, str(error)) from error


def fingerprint(value: object) -> str:
    """A short hash of a JSON value, to name content where content must not appear."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _unreadable(fields: Mapping[str, Any], reason: str) -> UnreadableCheckpoint:
    known = {
        name: value
        for name in ("step", "checkpoint_id")
        if type(value := fields.get(name)) is int
    }
    return UnreadableCheckpoint(reason, **known)


def _read(hint: Any, value: Any, path: str) -> Any:
    """The value as the type that was declared for it, or TypeError, ValueError."""
    kind = get_origin(hint) or hint
    if kind is UnionType:
        return None if value is None else _read(get_args(hint)[0], value, path)
    if kind is tuple:
        items = enumerate(_exactly(list, value, path))
        return tuple(_read(get_args(hint)[0], v, f"{path}[{i}]") for i, v in items)
    if is_dataclass(kind):
        return _read_fields(kind, _exactly(dict, value, path), path)
    if issubclass(kind, StrEnum):
        return kind(value)
    return _exactly(kind, value, path)


def _read_fields(kind: Any, value: dict[str, Any], path: str) -> Any:
    hints = get_type_hints(kind)
    if odd := hints.keys() ^ value.keys():
        raise TypeError(f"{path}: missing or unknown: {', '.join(sorted(odd))}")
    return kind(**{n: _read(h, value[n], f"{path}.{n}") for n, h in hints.items()})


def _exactly(kind: type, value: Any, path: str) -> Any:
    if type(value) is not kind:
        found = type(value).__name__
        raise TypeError(f"{path}: expected {kind.__name__}, found {found}")
    return value
