"""The input of a Responses request: its items, one by one.

The conversation as a whole is `chaoskit.wire.openai.responses_items`'s. Items of kinds
that a scripted model never makes (searches, images) are taken unseen; of the others
the API takes no field that it does not know.
"""

from collections.abc import Mapping
from functools import partial
from typing import Any

from chaoskit.wire.openai.errors import (
    Refusal,
    missing,
    unknown_parameter,
)
from chaoskit.wire.openai.rules import (
    Refusals,
    Rule,
    anything,
    boolean,
    fields,
    mapping,
    one_of,
    string,
    text_or_array,
)

ROLES = ("assistant", "system", "developer", "user")
INPUT_PARTS = ("input_text", "input_image", "input_file")
OUTPUT_PARTS = ("output_text", "refusal")
ID_LENGTH_MAX = 64
MESSAGE, CALL, RESULT = "message", "function_call", "function_call_output"
REASONING, REFERENCE = "reasoning", "item_reference"

OTHER_ITEMS = (
    *("file_search_call", "computer_call", "computer_call_output", "web_search_call"),
    *("image_generation_call", "code_interpreter_call", "local_shell_call"),
    *("local_shell_call_output", "shell_call", "shell_call_output"),
    *("apply_patch_call", "apply_patch_call_output", "mcp_list_tools", "mcp_call"),
    *("mcp_approval_request", "mcp_approval_response", "custom_tool_call"),
    *("custom_tool_call_output", "tool_search_call", "tool_search_output"),
    *("compaction", "additional_tools", "program", "program_output"),
    *("compaction_trigger", "configuration_update"),
)
"""Kinds of item that are taken unseen."""
Rules = Mapping[str, Rule]
_TEXT_OR_ARRAY = "one of an array of objects or string"


def check_input(path: str, value: Any) -> Refusals:
    """A text, or items."""
    yield from text_or_array(path, value, _TEXT_OR_ARRAY, _item)


def _item(path: str, value: Any) -> Refusals:
    yield from mapping(path, value)
    kind = value.get("type", MESSAGE)
    yield from one_of(f"{path}.type", kind, (*_ITEMS, *OTHER_ITEMS))
    if kind in _ITEMS:
        yield from _fields(path, value, *_ITEMS[kind])
    if kind == MESSAGE:
        yield from _content(f"{path}.content", value["content"], value["role"])


def _fields(path: str, value: Any, required: Rules, optional: Rules) -> Refusals:
    for field in value:
        if field not in required and field not in optional:
            yield unknown_parameter(f"{path}.{field}")
    for field in required:
        if field not in value:
            yield missing(f"{path}.{field}")
    for field, rule in {**required, **optional}.items():
        if field in required or value.get(field) is not None:
            yield from rule(f"{path}.{field}", value[field])


def _content(path: str, value: Any, role: str) -> Refusals:
    known = OUTPUT_PARTS if role == "assistant" else INPUT_PARTS
    part = partial(_part, known=known)
    yield from text_or_array(path, value, _TEXT_OR_ARRAY, part)


def _part(path: str, part: Any, known: tuple[str, ...]) -> Refusals:
    yield from mapping(path, part)
    if "type" not in part:
        yield missing(f"{path}.type")
    yield from one_of(path, part["type"], known)
    if part["type"] in ("input_text", "output_text"):
        yield from fields(path, part, {"text": string})


def _output(path: str, value: Any) -> Refusals:
    part = partial(_part, known=INPUT_PARTS)
    yield from text_or_array(path, value, _TEXT_OR_ARRAY, part)


def _id(path: str, value: Any, prefix: str) -> Refusals:
    yield from string(path, value, ID_LENGTH_MAX)
    if not value.startswith(prefix):
        yield Refusal(
            f"Invalid '{path}': '{value}'. Expected an ID that begins with '{prefix}'.",
            path,
            "invalid_value",
        )


def _call_id(path: str, value: Any) -> Refusals:
    yield from string(path, value, ID_LENGTH_MAX)


_STATUS = partial(one_of, known=("in_progress", "completed", "incomplete"))
_ITEMS: Mapping[str, tuple[Rules, Rules]] = {
    MESSAGE: (
        {"role": partial(one_of, known=ROLES), "content": anything},
        {
            "type": anything,
            "id": partial(_id, prefix="msg"),
            "status": _STATUS,
            "phase": partial(one_of, known=("commentary", "final_answer")),
        },
    ),
    CALL: (
        {"call_id": _call_id, "name": string, "arguments": string},
        {
            "type": anything,
            "id": partial(_id, prefix="fc"),
            "status": _STATUS,
            "namespace": string,
            "caller": mapping,
            "async": boolean,
        },
    ),
    RESULT: (
        {"call_id": _call_id, "output": _output},
        {"type": anything, "id": _call_id, "status": _STATUS, "caller": mapping},
    ),
    REASONING: (
        {"id": partial(_id, prefix="rs"), "summary": anything},
        {"type": anything, "content": anything, "encrypted_content": string},
    ),
    REFERENCE: ({"id": string}, {"type": anything}),
}
"""By kind of item, the fields that it must have and those that it may have."""
