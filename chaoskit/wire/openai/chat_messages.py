"""The messages of a Chat Completions request, one by one.

The conversation as a whole is `chaoskit.wire.openai.chat_conversation`'s. As in the API
a message may hold fields that nobody knows.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from chaoskit.wire.openai.rules import (
    Refusals,
    Rule,
    array,
    fields,
    one_of,
    string,
    text_or_array,
)

ROLES = ("system", "assistant", "user", "function", "tool", "developer")
PART_TYPES = ("text", "image_url", "input_audio", "refusal", "audio", "file")
ID_LENGTH_MAX = 40


def _tool_call(path: str, value: Any) -> Refusals:
    known = partial(one_of, known=("function", "custom"))
    identity = partial(string, length_max=ID_LENGTH_MAX)
    yield from fields(path, value, {"id": identity, "type": known})
    if value["type"] == "function":
        yield from fields(path, value, {"function": _called})


_called = partial(fields, rules={"name": string, "arguments": string})


def _part(path: str, value: Any) -> Refusals:
    yield from fields(path, value, {"type": partial(one_of, known=PART_TYPES)})
    if value["type"] in ("text", "refusal"):
        yield from fields(path, value, {value["type"]: string})


def _content(path: str, value: Any) -> Refusals:
    yield from text_or_array(path, value, "one of a string or array of objects", _part)


def message(path: str, value: Any) -> Refusals:
    """One message of a conversation."""
    yield from fields(path, value, {"role": partial(one_of, known=ROLES)})
    if value["role"] == "developer":
        yield from fields(path, value, {"content": _content})
    for field, rule in _RULES.items():
        if value.get(field) is not None:
            yield from rule(f"{path}.{field}", value[field])


_RULES: Mapping[str, Rule] = {
    "content": _content,
    "name": string,
    "tool_calls": partial(array, items="objects", each=_tool_call),
    "tool_call_id": partial(string, length_max=ID_LENGTH_MAX),
    "refusal": string,
    "function_call": _called,
}
