"""What a Chat Completions request must look like: its fields, one by one.

Its messages are `chaoskit.wire.openai.chat_messages`'s. Lenient where the API is: null
for an optional field. What only some models refuse (`stop`, `max_tokens`, a
`temperature`) is taken: any model is served.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from chaoskit.wire.openai.chat_messages import message
from chaoskit.wire.openai.errors import (
    NO_MODEL,
    Refusal,
    listed,
    missing,
    unknown_parameter,
    wrong_type,
)
from chaoskit.wire.openai.rules import (
    Refusals,
    Rule,
    anything,
    array,
    boolean,
    decimal,
    fields,
    function,
    integer,
    mapping,
    metadata,
    name,
    one_of,
    string,
)


def check_fields(body: Mapping[str, Any]) -> Refusals:
    """What is wrong with the fields of a request; only the first counts."""
    if not body.get("model"):
        yield NO_MODEL
    if "messages" not in body:
        yield missing("messages")
    for field in body:
        if field not in RULES:
            yield unknown_parameter(field)
    for field, rule in RULES.items():
        if body.get(field) is not None or field == "messages":
            yield from rule(field, body[field])
    yield from _between_fields(body)


_SWITCHED = {
    "stream_options": "stream",
    "top_logprobs": "logprobs",
    "metadata": "store",
}
"""Fields that are only taken beside a switch that is on."""


def _between_fields(body: Mapping[str, Any]) -> Refusals:
    for field in ("tool_choice", "parallel_tool_calls"):
        if body.get(field) is not None and not body.get("tools"):
            rule = f"'{field}' is only allowed when 'tools' are specified."
            yield Refusal(f"Invalid value for '{field}': {rule}", field)
    for field, switch in _SWITCHED.items():
        if body.get(field) is not None and not body.get(switch):
            rule = f"parameter is only allowed when '{switch}' is enabled."
            yield Refusal(f"The '{field}' {rule}", field)
    yield from _forced_tool(body)


def _forced_tool(body: Mapping[str, Any]) -> Refusals:
    choice = body.get("tool_choice")
    if not isinstance(choice, dict) or choice["type"] != "function":
        return
    forced = choice["function"]["name"]
    if forced not in {tool.get("function", {}).get("name") for tool in body["tools"]}:
        # The API itself still speaks of the fields that these two replaced.
        yield Refusal(
            f"Invalid value for 'function_call': no function named '{forced}' was "
            "specified in the 'functions' parameter.",
            "function_call",
        )


def _tool(path: str, value: Any) -> Refusals:
    known = ("function", "custom")
    yield from fields(path, value, {"type": partial(one_of, known=known)})
    if value["type"] == "function":
        yield from fields(path, value, {"function": function})


def _tool_choice(path: str, value: Any) -> Refusals:
    words = ("none", "auto", "required")
    if isinstance(value, str):
        yield from one_of(path, value, words)
    elif not isinstance(value, dict):
        yield wrong_type(path, f"one of one of {listed(words, 'or')} or object", value)
    elif value.get("type") not in ("custom", "allowed_tools"):
        named = partial(fields, rules={"name": string})
        kind = partial(one_of, known=("function", "custom", "allowed_tools"))
        yield from fields(path, value, {"function": named, "type": kind})


def _stream_options(path: str, value: Any) -> Refusals:
    yield from mapping(path, value)
    for option, switch in value.items():
        if option not in ("include_usage", "include_obfuscation"):
            yield unknown_parameter(f"{path}.{option}")
        yield from boolean(f"{path}.{option}", switch)


def _response_format(path: str, value: Any) -> Refusals:
    known = ("json_object", "json_schema", "text")
    yield from fields(path, value, {"type": partial(one_of, known=known)})
    if value["type"] == "json_schema":
        named = partial(fields, rules={"name": name})
        yield from fields(path, value, {"json_schema": named})


RULES: Mapping[str, Rule] = {
    "messages": partial(array, items="objects", each=message),
    "model": string,
    "functions": partial(array, items="function definitions", each=function),
    "function_call": anything,
    "tools": partial(array, items="objects", each=_tool),
    "tool_choice": _tool_choice,
    "parallel_tool_calls": boolean,
    "max_completion_tokens": partial(integer, low=1),
    "max_tokens": partial(integer, low=1),
    "n": partial(integer, low=1, high=128),
    "temperature": partial(decimal, low=0.0, high=2.0),
    "top_p": partial(decimal, low=0.0, high=1.0),
    "presence_penalty": partial(decimal, low=-2.0, high=2.0),
    "frequency_penalty": partial(decimal, low=-2.0, high=2.0),
    "logprobs": boolean,
    "top_logprobs": partial(integer, low=0, high=20),
    "user": string,
    "seed": integer,
    "safety_identifier": string,
    "prompt_cache_key": string,
    "prompt_cache_options": mapping,
    "prompt_cache_retention": string,
    "service_tier": string,
    "stream": boolean,
    "stream_options": _stream_options,
    "store": boolean,
    "metadata": metadata,
    "moderation": mapping,
    "verbosity": partial(one_of, known=("low", "medium", "high")),
    "reasoning_effort": string,
    "response_format": _response_format,
    "stop": anything,
    "logit_bias": mapping,
    "modalities": anything,
    "audio": mapping,
    "prediction": mapping,
    "web_search_options": mapping,
}
"""The fields of a request, in the order in which the API looks at them."""
