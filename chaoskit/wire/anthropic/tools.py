"""Tools in a Messages request: how they are declared, and how one is forced."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from chaoskit.wire.anthropic.content import CACHE_CONTROL
from chaoskit.wire.anthropic.errors import Refusal, Refusals, at, expected, missing
from chaoskit.wire.anthropic.rules import (
    Rule,
    anything,
    array,
    boolean,
    mapping,
    optional,
    pattern,
    record,
    string,
    tagged,
)

NAME = r"^[a-zA-Z0-9_-]{1,128}$"
_TYPED: Mapping[str, Rule] = {"type": anything}


def _input_schema(path: str, value: Any) -> Refusals:
    yield from mapping(path, value)
    if "type" not in value:
        yield missing(f"{path}.type")
    if value["type"] != "object":
        yield expected(f"{path}.type", "'object'")


_CUSTOM = partial(
    record,
    required={"name": partial(pattern, like=NAME), "input_schema": _input_schema},
    allowed={
        **_TYPED,
        "allowed_callers": partial(array, each=string),
        "cache_control": CACHE_CONTROL,
        "defer_loading": boolean,
        "description": string,
        "eager_input_streaming": optional(boolean),
        "input_examples": partial(array, each=mapping),
        "strict": boolean,
    },
)

KINDS: Mapping[str, Rule] = {
    "custom": _CUSTOM,
    **dict.fromkeys(
        (
            *("bash_20250124", "memory_20250818"),
            *("browser_toolset_20260801", "computer_toolset_20260801"),
            *("code_execution_20250522", "code_execution_20250825"),
            *("code_execution_20260120", "code_execution_20260521"),
            *("text_editor_20250124", "text_editor_20250429", "text_editor_20250728"),
            *("tool_search_tool_bm25", "tool_search_tool_bm25_20251119"),
            *("tool_search_tool_regex", "tool_search_tool_regex_20251119"),
            *("web_fetch_20250910", "web_fetch_20260209", "web_fetch_20260309"),
            *("web_fetch_20260318", "web_search_20250305", "web_search_20260209"),
            "web_search_20260318",
        ),
        anything,
    ),
}
"""Every type of tool that may be declared; those of the API itself are not used."""

tool: Rule = partial(tagged, kinds=KINDS, without="custom")

_ALONE: Mapping[str, Rule] = {**_TYPED, "disable_parallel_tool_use": boolean}

tool_choice: Rule = partial(
    tagged,
    kinds={
        "auto": partial(record, required={}, allowed=_ALONE),
        "any": partial(record, required={}, allowed=_ALONE),
        "none": partial(record, required={}, allowed=_TYPED),
        "tool": partial(record, required={"name": string}, allowed=_ALONE),
    },
)


def check_tools(body: Mapping[str, Any]) -> Refusals:
    """What is wrong between the tools of a request, each of which is in order."""
    names = [declared.get("name") for declared in body.get("tools") or ()]
    if any(names.count(name) > 1 for name in names if name is not None):
        yield at("tools", "Tool names must be unique.")
    choice = body.get("tool_choice")
    if choice is None or choice["type"] == "none":
        return
    if not names:
        yield at("tool_choice", "may only be specified while providing tools.")
    if choice["type"] == "tool" and choice["name"] not in names:
        yield Refusal(f"Tool '{choice['name']}' not found in provided tools")
