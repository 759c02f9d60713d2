"""What a Messages request must look like: its fields, one by one.

The conversation as a whole is `chaoskit.wire.anthropic.conversation`'s. Strict where
the API is: a field it does not know is refused at any depth. What only some models
refuse (a kind of `thinking`) is taken: any model is served.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from chaoskit.wire.anthropic.content import (
    CACHE_CONTROL,
    SYSTEM_BLOCK,
    content,
)
from chaoskit.wire.anthropic.errors import Refusal, Refusals, at, expected
from chaoskit.wire.anthropic.rules import (
    Rule,
    anything,
    array,
    boolean,
    integer,
    mapping,
    number,
    one_of,
    optional,
    record,
    string,
    tagged,
)
from chaoskit.wire.anthropic.terms import Terms
from chaoskit.wire.anthropic.tools import check_tools, tool, tool_choice

CACHE_CONTROLS_MAX = 4
BUDGET_TOKENS_MIN = 1024


def check_fields(body: Mapping[str, Any], terms: Terms) -> Refusals:
    """What is wrong with a request for an answer; only the first counts."""
    yield from record("", body, REQUIRED, _taken(ALLOWED, terms))
    yield from _between_fields(body)


def check_count_fields(body: Mapping[str, Any], terms: Terms) -> Refusals:
    """The same for a request to count tokens."""
    required = {field: REQUIRED[field] for field in ("model", "messages")}
    allowed = {field: ALLOWED[field] for field in _COUNTED}
    yield from record("", body, required, _taken(allowed, terms))
    yield from _between_fields(body)


def _taken(allowed: Mapping[str, Rule], terms: Terms) -> Mapping[str, Rule]:
    """The optional fields, on these terms."""
    betas = BETA if terms.beta else {}
    gone = SAMPLING if terms.newest else ()
    kept = {field: rule for field, rule in allowed.items() if field not in gone}
    return {**kept, **betas}


def _between_fields(body: Mapping[str, Any]) -> Refusals:
    if not body["messages"]:
        yield at("messages", "at least one message is required")
    yield from check_tools(body)
    yield from _thinking_fits(body)
    marked = cache_controls(body)
    if marked > CACHE_CONTROLS_MAX:
        yield Refusal(
            f"A maximum of {CACHE_CONTROLS_MAX} blocks with cache_control may be "
            f"provided. Found {marked}."
        )


def _thinking_fits(body: Mapping[str, Any]) -> Refusals:
    thinking = body.get("thinking") or {}
    budget = thinking.get("budget_tokens")
    if budget is None:
        return
    if "max_tokens" in body and budget >= body["max_tokens"]:
        yield Refusal("`max_tokens` must be greater than `thinking.budget_tokens`")
    if (body.get("tool_choice") or {}).get("type") in ("any", "tool"):
        yield Refusal("Thinking may not be enabled when tool_choice forces tool use.")


def cache_controls(value: object) -> int:
    """How many blocks ask to be cached, anywhere in the request."""
    if isinstance(value, list):
        return sum(map(cache_controls, value))
    if not isinstance(value, dict):
        return 0
    inner = (v for k, v in value.items() if k not in ("input", "input_schema"))
    return bool(value.get("cache_control")) + sum(map(cache_controls, inner))


def _max_tokens(path: str, value: Any) -> Refusals:
    yield from integer(path, value)
    if value < 1:
        yield at(path, "must be greater than or equal to 1")


def _message(path: str, value: Any) -> Refusals:
    yield from mapping(path, value)
    role = value.get("role")
    if "role" in value and role not in ("user", "assistant", "system"):
        yield _unexpected_role(role)
    yield from record(path, value, {"role": anything, "content": content}, {})


def _unexpected_role(role: object) -> Refusal:
    hint = (
        " For instructions on how to use tools, see the documentation of tool use."
        if role == "tool"
        else ""
    )
    return at(
        "messages",
        f'Unexpected role "{role}". Allowed roles are "user" or "assistant".{hint}',
    )


def _stop_sequence(path: str, value: Any) -> Refusals:
    yield from string(path, value)
    if not value.strip():
        problem = "each stop sequence must contain non-whitespace"
        yield at(path.partition(".")[0], problem)


def _system(path: str, value: Any) -> Refusals:
    if isinstance(value, list):
        yield from array(path, value, SYSTEM_BLOCK)
    elif not isinstance(value, str):
        yield expected(path, "a valid list")


_METADATA = partial(
    record, required={}, allowed={"user_id": optional(partial(string, high=512))}
)


def _metadata(path: str, value: Any) -> Refusals:
    yield from mapping(path, value)
    yield from _METADATA(path, value)


_DISPLAY = {"display": optional(partial(one_of, known=("summarized", "omitted")))}
_TYPED: Mapping[str, Rule] = {"type": anything}
_THINKING = partial(
    tagged,
    kinds={
        "enabled": partial(
            record,
            required={"budget_tokens": partial(integer, low=BUDGET_TOKENS_MIN)},
            allowed={**_TYPED, **_DISPLAY},
        ),
        "disabled": partial(record, required={}, allowed=_TYPED),
        "adaptive": partial(record, required={}, allowed={**_TYPED, **_DISPLAY}),
        "between_tools": partial(record, required={}, allowed=_TYPED),
    },
)

REQUIRED: Mapping[str, Rule] = {
    "model": partial(string, low=1, high=256),
    "messages": partial(array, each=_message),
    "max_tokens": _max_tokens,
}
"""The fields of a request that must be there."""

ALLOWED: Mapping[str, Rule] = {
    "cache_control": CACHE_CONTROL,
    "container": anything,
    "diagnostics": anything,
    "inference_geo": optional(string),
    "metadata": _metadata,
    "output_config": mapping,
    "service_tier": partial(one_of, known=("auto", "standard_only")),
    "speed": optional(partial(one_of, known=("standard", "fast"))),
    "stop_sequences": partial(array, each=_stop_sequence),
    "stream": boolean,
    "system": _system,
    "temperature": partial(number, low=0, high=1),
    "thinking": _THINKING,
    "tool_choice": tool_choice,
    "tools": partial(array, each=tool),
    "top_k": partial(integer, low=0),
    "top_p": partial(number, low=0, high=1),
    "user_profile_id": string,
}
"""The fields that may be there."""

SAMPLING = ("temperature", "top_k", "top_p")
"""Fields that the newest version has no more."""

BETA: Mapping[str, Rule] = dict.fromkeys(
    ("compaction", "context_management", "fallbacks", "mcp_servers", "output_format"),
    anything,
)
"""Fields that the API takes with an ``anthropic-beta`` header; not looked into."""

_COUNTED = (
    *("cache_control", "output_config", "speed", "system", "thinking"),
    *("tool_choice", "tools", "user_profile_id"),
)
