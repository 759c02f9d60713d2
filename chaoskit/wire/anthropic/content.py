"""Blocks of content in a Messages request: which there are, and what each must hold."""

from collections.abc import Mapping
from functools import partial
from typing import Any

from chaoskit.wire.anthropic.errors import Refusals, expected
from chaoskit.wire.anthropic.rules import (
    Rule,
    anything,
    array,
    boolean,
    mapping,
    one_of,
    optional,
    pattern,
    record,
    string,
    tagged,
)

ID = r"^[a-zA-Z0-9_-]+$"
_TYPED: Mapping[str, Rule] = {"type": anything}


def _cache_control(path: str, value: Any) -> Refusals:
    yield from _EPHEMERAL(path, value)


_EPHEMERAL = partial(
    tagged,
    kinds={
        "ephemeral": partial(
            record,
            required={},
            allowed={**_TYPED, "ttl": partial(one_of, known=("5m", "1h"))},
        )
    },
)

CACHE_CONTROL: Rule = optional(_cache_control)
"""The mark of a block that ends a prefix to be cached."""


def _block(required: Mapping[str, Rule], **allowed: Rule) -> Rule:
    marked = {**_TYPED, "cache_control": CACHE_CONTROL, **allowed}
    return partial(record, required=required, allowed=marked)


def _any_of(*kinds: str) -> Mapping[str, Rule]:
    """Blocks of the API's own tools; taken as they are."""
    return dict.fromkeys(kinds, anything)


def _result_content(path: str, value: Any) -> Refusals:
    if isinstance(value, list):
        yield from array(path, value, partial(tagged, kinds=_IN_RESULTS))
    elif not isinstance(value, str):
        yield expected(path, "a valid list")


_TEXT = _block({"text": string}, citations=anything)
_IMAGE = _block({"source": mapping}, transformations=anything)
_DOCUMENT = _block(
    {"source": mapping},
    citations=anything,
    context=optional(string),
    title=optional(string),
)
_IN_RESULTS: Mapping[str, Rule] = {
    "text": _TEXT,
    "image": _IMAGE,
    "document": _DOCUMENT,
    **_any_of("browser_state", "search_result", "tool_reference"),
}
_TOOL_USE = _block(
    {
        "id": partial(pattern, like=ID),
        "name": partial(string, low=1, high=200),
        "input": mapping,
    },
    caller=optional(mapping),
    toolset_name=optional(string),
)
_TOOL_RESULT = _block(
    {"tool_use_id": partial(pattern, like=ID)},
    content=optional(_result_content),
    is_error=optional(boolean),
    toolset_name=optional(string),
)

BLOCKS: Mapping[str, Rule] = {
    **_IN_RESULTS,
    "tool_use": _TOOL_USE,
    "tool_result": _TOOL_RESULT,
    "thinking": partial(
        record, required={"thinking": string, "signature": string}, allowed=_TYPED
    ),
    "redacted_thinking": partial(record, required={"data": string}, allowed=_TYPED),
    **_any_of(
        *("container_upload", "server_tool_use", "web_search_tool_result"),
        *("web_fetch_tool_result", "code_execution_tool_result"),
        *("bash_code_execution_tool_result", "tool_search_tool_result"),
        "text_editor_code_execution_tool_result",
    ),
}
"""Every type of block that a message may hold."""

SYSTEM_BLOCK: Rule = partial(tagged, kinds={"text": _TEXT})
"""A block of a system prompt: text and nothing else."""


def content(path: str, value: Any) -> Refusals:
    """What a message says: a text, or a list of blocks."""
    if isinstance(value, list):
        yield from array(path, value, partial(tagged, kinds=BLOCKS))
    elif not isinstance(value, str):
        yield expected(path, "a valid list")
