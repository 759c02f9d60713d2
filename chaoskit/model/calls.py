"""Logical calls as seen from outside: recognised by tool and arguments."""

import json

from pydantic import JsonValue

from chaoskit.model.history import Applied, Delivered
from chaoskit.model.scenario import LogicalCall

Identity = tuple[str, str]
"""A tool and the canonical text of its arguments."""


def canonical(args: object) -> str:
    """JSON with sorted keys and without a difference between 2 and 2.0."""
    return json.dumps(_plain(args), sort_keys=True, ensure_ascii=False)


def _plain(value: object) -> object:
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    return value


def identity(call: LogicalCall | Delivered | Applied) -> Identity:
    """What a call is recognised by."""
    return call.tool, canonical(call.args)


def identities(call: LogicalCall) -> frozenset[Identity]:
    """What a call of the script is recognised by: each of its variants."""
    forms = {(form.tool, canonical(form.args)) for form in call.variants}
    return frozenset({identity(call), *forms})


def spoken(tool: str, args: dict[str, JsonValue]) -> str:
    """The call as a person would write it: ``charge_card(order='o-1')``."""
    return f"{tool}({', '.join(f'{name}={value!r}' for name, value in args.items())})"
