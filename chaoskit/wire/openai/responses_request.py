"""What a Responses request must look like: its fields, one by one.

Its items are `chaoskit.wire.openai.responses_input`'s. What would need machinery that
is not here is refused, in words of our own: background runs, and conversations and
prompts that the service keeps.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from chaoskit.wire.openai.errors import NO_MODEL, Refusal, unknown_parameter
from chaoskit.wire.openai.responses_input import check_input
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
    one_of,
    string,
)

_ABOUT_INPUT = (
    "One of \"input\" or \"previous_response_id\" or 'prompt' or 'conversation_id' "
    "must be provided."
)
_MOVED = {"messages": "input", "response_format": "text.format"}
_TOO_MUCH = ("background", "conversation", "prompt")


def check_fields(body: Mapping[str, Any]) -> Refusals:
    """What is wrong with the fields of a request; only the first counts."""
    if not body.get("model"):
        yield NO_MODEL
    for field in body:
        if field in _MOVED:
            yield _has_moved(field)
        if field not in RULES:
            yield unknown_parameter(field)
    if body.get("input") is None and body.get("previous_response_id") is None:
        yield Refusal(_ABOUT_INPUT, "input", "missing_required_parameter")
    for field, rule in RULES.items():
        if body.get(field) is not None:
            yield from rule(field, body[field])
    yield from _between_fields(body)


def _has_moved(field: str) -> Refusal:
    return Refusal(
        f"Unsupported parameter: '{field}'. In the Responses API, this parameter has "
        f"moved to '{_MOVED[field]}'. Try again with the new parameter. See the API "
        "documentation for more information: "
        "https://platform.openai.com/docs/api-reference/responses/create.",
        code="unsupported_parameter",
    )


def _between_fields(body: Mapping[str, Any]) -> Refusals:
    for field in _TOO_MUCH:
        if body.get(field):
            yield Refusal(
                f"'{field}' is not served by chaoskit's llm service.",
                field,
                "unsupported_parameter",
            )
    if body.get("stream_options") is not None and not body.get("stream"):
        rule = "parameter is only allowed when 'stream' is enabled."
        yield Refusal(f"The 'stream_options' {rule}", "stream_options")


def _tool(path: str, value: Any) -> Refusals:
    yield from fields(path, value, {"type": string})
    if value["type"] == "function":
        yield from function(path, value)


def _tools(path: str, value: Any) -> Refusals:
    """Unlike in Chat Completions the list may be empty."""
    if value != []:
        yield from array(path, value, "objects", _tool)


def _tool_choice(path: str, value: Any) -> Refusals:
    if isinstance(value, str):
        yield from one_of(path, value, ("none", "auto", "required"))
    else:
        yield from fields(path, value, {"type": string})


def _include(path: str, value: Any) -> Refusals:
    """What the reply should hold besides, by name; any name will do."""
    if value != []:
        yield from array(path, value, "strings", string)


def _reasoning(path: str, value: Any) -> Refusals:
    yield from mapping(path, value)
    for field in ("effort", "summary", "generate_summary"):
        if value.get(field) is not None:
            yield from string(f"{path}.{field}", value[field])


def _text(path: str, value: Any) -> Refusals:
    yield from mapping(path, value)
    form = value.get("format")
    if form is not None:
        known = ("json_object", "json_schema", "text")
        kind = partial(one_of, known=known)
        yield from fields(f"{path}.format", form, {"type": kind})


def _response_id(path: str, value: Any) -> Refusals:
    yield from string(path, value)
    if not value.startswith("resp"):
        yield Refusal(
            f"Invalid '{path}': '{value}'. Expected an ID that begins with 'resp'.",
            path,
            "invalid_value",
        )


RULES: Mapping[str, Rule] = {
    "input": check_input,
    "model": string,
    "instructions": string,
    "previous_response_id": _response_id,
    "tools": _tools,
    "tool_choice": _tool_choice,
    "parallel_tool_calls": boolean,
    "max_output_tokens": partial(integer, low=16),
    "max_tool_calls": partial(integer, low=1),
    "temperature": partial(decimal, low=0.0, high=2.0),
    "top_p": partial(decimal, low=0.0, high=1.0),
    "top_logprobs": partial(integer, low=0, high=20),
    "reasoning": _reasoning,
    "text": _text,
    "truncation": partial(one_of, known=("auto", "disabled")),
    "include": _include,
    "store": boolean,
    "stream": boolean,
    "stream_options": mapping,
    "metadata": metadata,
    "user": string,
    "safety_identifier": string,
    "service_tier": string,
    "prompt_cache_key": string,
    "prompt_cache_options": mapping,
    "prompt_cache_retention": string,
    "context_management": anything,
    "moderation": mapping,
    "background": boolean,
    "background_options": mapping,
    "conversation": anything,
    "prompt": mapping,
    "access_programs": mapping,
    "image": mapping,
}
"""The fields of a request, in the order in which the API looks at them."""
