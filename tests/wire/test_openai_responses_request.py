"""Each broken part of a Responses request gets the real API's error."""

import pytest

from chaoskit.wire.openai.responses import refusal

USER = {"role": "user", "content": "ping"}
CALL = {"type": "function_call", "call_id": "c", "name": "f", "arguments": "{}"}
RESULT = {"type": "function_call_output", "call_id": "c", "output": "ok"}
THOUGHT = {"type": "reasoning", "id": "rs_1", "summary": []}
TOOL = {"type": "function", "name": "f", "parameters": {"type": "object"}}


def _body(**changes):
    body = {"model": "any", "input": "ping"} | changes
    return {name: value for name, value in body.items() if value is not ...}


def _missing(path):
    sentence = f"Missing required parameter: '{path}'."
    return path, "missing_required_parameter", sentence


def _unknown(path):
    return path, "unknown_parameter", f"Unknown parameter: '{path}'."


def _type(path, expected, got):
    sentence = f"Invalid type for '{path}': expected {expected}, but got {got} instead."
    return path, "invalid_type", sentence


def _value(path, value, known):
    sentence = f"Invalid value: '{value}'. Supported values are: {known}."
    return path, "invalid_value", sentence


def _between(message):
    return "input", None, message


CHAT_TOOL = {"type": "function", "function": {"name": "f"}}
ASKED = {"role": "assistant", "content": [{"type": "input_text", "text": "x"}]}
TYPED = {"role": "user", "content": [{"type": "text", "text": "x"}]}

REFUSED = [
    ("no model", {"model": ...}, (None, None, "you must provide a model parameter")),
    (
        "no input",
        {"input": ...},
        (
            "input",
            "missing_required_parameter",
            (
                'One of "input" or "previous_response_id" or \'prompt\' or '
                "'conversation_id' must be provided."
            ),
        ),
    ),
    (
        "numeric input",
        {"input": 7},
        _type("input", "one of an array of objects or string", "an integer"),
    ),
    (
        "include that is no list",
        {"include": True},
        _type("include", "an array of strings", "a boolean"),
    ),
    ("unknown field", {"max_tokens": 5}, _unknown("max_tokens")),
    (
        "messages",
        {"messages": [USER], "input": ...},
        (
            None,
            "unsupported_parameter",
            (
                "Unsupported parameter: 'messages'. In the Responses API, this "
                "parameter has moved to 'input'. Try again with the new parameter. See "
                "the API documentation for more information: "
                "https://platform.openai.com/docs/api-reference/responses/create."
            ),
        ),
    ),
    ("a chat tool", {"tools": [CHAT_TOOL]}, _missing("tools[0].name")),
    (
        "a role of chat",
        {"input": [{"role": "tool", "content": "x"}]},
        _value(
            "input[0].role", "tool", "'assistant', 'system', 'developer', and 'user'"
        ),
    ),
    (
        "a part of chat",
        {"input": [TYPED]},
        _value(
            "input[0].content[0]",
            "text",
            "'input_text', 'input_image', and 'input_file'",
        ),
    ),
    (
        "an input part said by the model",
        {"input": [USER, ASKED]},
        _value("input[1].content[0]", "input_text", "'output_text' and 'refusal'"),
    ),
    (
        "a field of the client's own",
        {"input": [USER, {**CALL, "parsed_arguments": {}}, RESULT]},
        _unknown("input[1].parsed_arguments"),
    ),
    (
        "the status of a thought",
        {"input": [USER, {**THOUGHT, "status": None}]},
        _unknown("input[1].status"),
    ),
    (
        "no call id",
        {"input": [{"type": "function_call_output", "output": "x"}]},
        _missing("input[0].call_id"),
    ),
    (
        "a made-up id",
        {"input": [{**CALL, "id": "__fake_id__"}]},
        (
            "input[0].id",
            "invalid_value",
            (
                "Invalid 'input[0].id': '__fake_id__'. Expected an ID that begins "
                "with 'fc'."
            ),
        ),
    ),
    (
        "a call without its result",
        {"input": [USER, CALL]},
        _between("No tool output found for function call c."),
    ),
    (
        "a result without its call",
        {"input": [USER, RESULT]},
        _between("No tool call found for function call output with call_id c."),
    ),
    (
        "an item twice",
        {"input": [USER, {**CALL, "id": "fc_1"}, {**CALL, "id": "fc_1"}, RESULT]},
        _between(
            "Duplicate item found with id fc_1. Remove duplicate items from your input "
            "and try again."
        ),
    ),
    (
        "a thought that nothing came of",
        {"input": [USER, THOUGHT]},
        _between(
            "Item 'rs_1' of type 'reasoning' was provided without its required "
            "following item."
        ),
    ),
    (
        "an answer that never was",
        {"previous_response_id": "resp_1"},
        (
            "previous_response_id",
            "previous_response_not_found",
            "Previous response with id 'resp_1' not found.",
        ),
    ),
    (
        "few tokens",
        {"max_output_tokens": 1},
        (
            "max_output_tokens",
            "integer_below_min_value",
            (
                "Invalid 'max_output_tokens': integer below minimum value. "
                "Expected a value >= 16, but got 1 instead."
            ),
        ),
    ),
]


@pytest.mark.parametrize(
    ("changes", "expected"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_a_broken_part_gets_the_real_error(changes, expected):
    found = refusal(_body(**changes), {})
    assert found is not None
    assert (found.param, found.code, found.message) == expected
    assert found.status == 400
    assert found.body()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize("field", ["background", "conversation", "prompt"])
def test_what_is_not_here_is_said_to_be_not_here(field):
    value = True if field == "background" else {"id": "x"}
    found = refusal(_body(**{field: value}), {})
    assert found is not None
    assert "not served by chaoskit" in found.message


SAID = {
    "type": "message",
    "id": "msg_1",
    "role": "assistant",
    "status": "completed",
    "content": [
        {"type": "output_text", "text": "x", "annotations": [], "logprobs": []}
    ],
}


@pytest.mark.parametrize(
    "changes",
    [
        {"input": [USER, CALL, RESULT], "tools": [TOOL], "tool_choice": "required"},
        {
            "input": [
                USER,
                CALL,
                {**CALL, "call_id": "d"},
                {**RESULT, "call_id": "d"},
                RESULT,
            ]
        },
        {"input": [USER, SAID, {**THOUGHT, "encrypted_content": "x"}, CALL, RESULT]},
        {"input": [{"role": "developer", "content": "x"}, USER]},
        {"input": [{**RESULT, "output": [{"type": "input_text", "text": "x"}]}, CALL]},
        {"input": [{"type": "web_search_call", "id": "ws_1", "anything": 1}]},
        {"input": [], "instructions": "x", "metadata": {"k": "v"}, "store": False},
        {"tools": [], "tools_choice": ..., "temperature": 0, "stream": True},
        {"reasoning": {"effort": "low"}, "text": {"format": {"type": "json_object"}}},
    ],
)
def test_what_the_real_api_takes_is_taken(changes):
    assert refusal(_body(**changes), {}) is None
