"""State <-> document: a checkpoint is read back exactly as it was written, or refused.

Damage must never pass for a first run, nor be repaired by guessing: every field is
checked against the type that `state` declares for it.
"""

import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import StrEnum
from hashlib import sha256
from types import UnionType
from typing import Any, cast, get_args, get_origin, get_type_hints

from reference_agent.state import SCHEMA, State
from reference_agent.stores.base import Document, UnreadableCheckpoint


def dump(state: State) -> Document:
    """The state as what JSON can hold."""
    return cast("Document", _plain(state))


def load(document: Document, run_id: str | None = None) -> State:
    """The state that `dump` made, of that run if one is named.

    Raises UnreadableCheckpoint for anything else.
    """
    if document.get("schema") != SCHEMA:
        raise _unreadable(
            document,
            f"its schema is {document.get('schema')!r} and this agent reads {SCHEMA}; "
            "resume it with the version that wrote it",
        )
    try:
        state = cast("State", _read(State, document, "$"))
    except (TypeError, ValueError) as error:
        raise _unreadable(document, str(error)) from error
    if run_id not in (None, state.run_id):
        raise _unreadable(document, "it is of another run")
    return state


def fingerprint(value: object) -> str:
    """A short hash of a JSON value, to name content where content must not appear."""
    return sha256(json.dumps(value, sort_keys=True).encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    """Our own types as JSON has them; what came from JSON is left as it is."""
    if isinstance(value, tuple):
        return [_plain(item) for item in value]
    if is_dataclass(value):
        return {each.name: _plain(getattr(value, each.name)) for each in fields(value)}
    return value.value if isinstance(value, StrEnum) else value


def _unreadable(document: Mapping[str, Any], reason: str) -> UnreadableCheckpoint:
    known = {
        name: value
        for name in ("step", "checkpoint_id")
        if type(value := document.get(name)) is int
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
