"""Each broken field of a Chat Completions request gets the real API's error."""

import pytest

from chaoskit.wire.openai.chat import refusal

USER = {"role": "user", "content": "ping"}
TOOL = {"type": "function", "function": {"name": "f", "parameters": {"type": "object"}}}


def _call(**changes):
    call = {"id": "c", "type": "function", "function": {"name": "f", "arguments": ""}}
    return {"role": "assistant", "content": None, "tool_calls": [call | changes]}


def _body(**changes):
    body = {"model": "any", "messages": [USER]} | changes
    return {name: value for name, value in body.items() if value is not ...}


def _missing(path):
    sentence = f"Missing required parameter: '{path}'."
    return path, "missing_required_parameter", sentence


def _type(path, expected, got):
    sentence = f"Invalid type for '{path}': expected {expected}, but got {got} instead."
    return path, "invalid_type", sentence


def _empty(path):
    sentence = (
        f"Invalid '{path}': empty array. Expected an array with minimum length 1, "
        "but got an empty array instead."
    )
    return path, "empty_array", sentence


ROLES = "'system', 'assistant', 'user', 'function', 'tool', and 'developer'"

REFUSED = [
    ("no model", {"model": ...}, (None, None, "you must provide a model parameter")),
    ("empty model", {"model": ""}, (None, None, "you must provide a model parameter")),
    ("numeric model", {"model": 7}, _type("model", "a string", "an integer")),
    ("no messages", {"messages": ...}, _missing("messages")),
    (
        "null messages",
        {"messages": None},
        _type("messages", "an array of objects", "null"),
    ),
    ("empty messages", {"messages": []}, _empty("messages")),
    (
        "text messages",
        {"messages": "hi"},
        _type("messages", "an array of objects", "a string"),
    ),
    (
        "text message",
        {"messages": ["hi"]},
        _type("messages[0]", "an object", "a string"),
    ),
    ("no role", {"messages": [{"content": "x"}]}, _missing("messages[0].role")),
    (
        "unknown role",
        {"messages": [USER, {"role": "robot", "content": "x"}]},
        (
            "messages[1].role",
            "invalid_value",
            f"Invalid value: 'robot'. Supported values are: {ROLES}.",
        ),
    ),
    (
        "numeric content",
        {"messages": [{"role": "user", "content": 7}]},
        _type(
            "messages[0].content", "one of a string or array of objects", "an integer"
        ),
    ),
    (
        "content part without type",
        {"messages": [{"role": "user", "content": [{"text": "x"}]}]},
        _missing("messages[0].content[0].type"),
    ),
    (
        "text part without text",
        {"messages": [{"role": "user", "content": [{"type": "text"}]}]},
        _missing("messages[0].content[0].text"),
    ),
    (
        "null content of a developer",
        {"messages": [{"role": "developer", "content": None}, USER]},
        _type("messages[0].content", "one of a string or array of objects", "null"),
    ),
    (
        "null content of a user",
        {"messages": [{"role": "user", "content": None}]},
        (
            "messages.[0].content",
            None,
            "Invalid value for 'content': expected a string, got null.",
        ),
    ),
    (
        "null content without calls",
        {"messages": [USER, {"role": "assistant", "content": None}]},
        (
            "messages.[1].content",
            None,
            "Invalid value for 'content': expected a string, got null.",
        ),
    ),
    (
        "empty tool_calls",
        {"messages": [USER, {"role": "assistant", "content": "x", "tool_calls": []}]},
        _empty("messages[1].tool_calls"),
    ),
    (
        "null call id",
        {"messages": [USER, _call(id=None)]},
        _type("messages[1].tool_calls[0].id", "a string", "null"),
    ),
    (
        "long call id",
        {"messages": [USER, _call(id="c" * 41)]},
        (
            "messages[1].tool_calls[0].id",
            "string_above_max_length",
            (
                "Invalid 'messages[1].tool_calls[0].id': string too long. Expected a "
                "string with maximum length 40, but got a string with length 41 "
                "instead."
            ),
        ),
    ),
    (
        "arguments as an object",
        {"messages": [USER, _call(function={"name": "f", "arguments": {}})]},
        _type("messages[1].tool_calls[0].function.arguments", "a string", "an object"),
    ),
    (
        "no arguments",
        {"messages": [USER, _call(function={"name": "f"})]},
        _missing("messages[1].tool_calls[0].function.arguments"),
    ),
    (
        "unknown field",
        {"max_token": 5},
        ("max_token", "unknown_parameter", "Unknown parameter: 'max_token'."),
    ),
    ("text n", {"n": "2"}, _type("n", "an integer", "a string")),
    ("true n", {"n": True}, _type("n", "an integer", "a boolean")),
    (
        "n of 0",
        {"n": 0},
        (
            "n",
            "integer_below_min_value",
            (
                "Invalid 'n': integer below minimum value. "
                "Expected a value >= 1, but got 0 instead."
            ),
        ),
    ),
    (
        "hot",
        {"temperature": 2.5},
        (
            "temperature",
            "decimal_above_max_value",
            (
                "Invalid 'temperature': decimal above maximum value. "
                "Expected a value <= 2, but got 2.5 instead."
            ),
        ),
    ),
    ("text seed", {"seed": 1.5}, _type("seed", "an integer", "a decimal number")),
    ("no tools", {"tools": []}, _empty("tools")),
    ("bare tool", {"tools": [{"type": "function"}]}, _missing("tools[0].function")),
    (
        "nameless tool",
        {"tools": [{"type": "function", "function": {}}]},
        _missing("tools[0].function.name"),
    ),
    (
        "bad tool name",
        {"tools": [{"type": "function", "function": {"name": "a.b"}}]},
        (
            "tools[0].function.name",
            "invalid_value",
            (
                "Invalid 'tools[0].function.name': string does not match pattern. "
                "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."
            ),
        ),
    ),
    (
        "schema that is no object's",
        {
            "tools": [
                {
                    "type": "function",
                    "function": {"name": "f", "parameters": {"type": "array"}},
                }
            ]
        },
        (
            "tools[0].function.parameters",
            "invalid_function_parameters",
            (
                "Invalid schema for function 'f': schema must be a JSON Schema of "
                "'type: \"object\"', got 'type: \"array\"'."
            ),
        ),
    ),
    (
        "choice without tools",
        {"tool_choice": "auto"},
        (
            "tool_choice",
            None,
            (
                "Invalid value for 'tool_choice': 'tool_choice' is only allowed when "
                "'tools' are specified."
            ),
        ),
    ),
    (
        "unknown choice",
        {"tools": [TOOL], "tool_choice": "maybe"},
        (
            "tool_choice",
            "invalid_value",
            (
                "Invalid value: 'maybe'. Supported values are: 'none', 'auto', and "
                "'required'."
            ),
        ),
    ),
    (
        "choice of an undeclared function",
        {
            "tools": [TOOL],
            "tool_choice": {"type": "function", "function": {"name": "g"}},
        },
        (
            "function_call",
            None,
            (
                "Invalid value for 'function_call': no function named 'g' was "
                "specified in the 'functions' parameter."
            ),
        ),
    ),
    (
        "stream options without a stream",
        {"stream_options": {"include_usage": True}},
        (
            "stream_options",
            None,
            "The 'stream_options' parameter is only allowed when 'stream' is enabled.",
        ),
    ),
    (
        "an unknown stream option",
        {"stream": True, "stream_options": {"usage": True}},
        (
            "stream_options.usage",
            "unknown_parameter",
            "Unknown parameter: 'stream_options.usage'.",
        ),
    ),
    (
        "numeric metadata",
        {"metadata": {"k": 7}},
        _type("metadata.k", "a string", "an integer"),
    ),
    (
        "too much metadata",
        {"metadata": {str(n): "v" for n in range(17)}, "store": True},
        (
            "metadata",
            "object_above_max_properties",
            (
                "Invalid 'metadata': too many properties. Expected an object with at "
                "most 16 properties, but got an object with 17 properties instead."
            ),
        ),
    ),
    (
        "metadata that is not to be stored",
        {"metadata": {"run": "r1"}},
        (
            "metadata",
            None,
            "The 'metadata' parameter is only allowed when 'store' is enabled.",
        ),
    ),
]


@pytest.mark.parametrize(
    ("changes", "expected"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_a_broken_field_gets_the_real_error(changes, expected):
    found = refusal(_body(**changes))
    assert found is not None
    assert (found.param, found.code, found.message) == expected
    assert found.status == 400
    assert found.body()["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "changes",
    [
        {"temperature": 2, "top_p": 0.0, "presence_penalty": -2, "n": 128},
        {"tools": [TOOL], "tool_choice": "required", "parallel_tool_calls": False},
        {
            "tools": [TOOL],
            "tool_choice": {"type": "function", "function": {"name": "f"}},
        },
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        {"tools": [{"type": "function", "function": {"name": "f", "parameters": {}}}]},
        {"tools": None, "n": None, "stream": None, "stop": None},
        {"stream": False, "stop": ["x"], "max_tokens": 5, "user": "u", "seed": 1},
        {"response_format": {"type": "json_object"}, "metadata": None},
        {"metadata": {str(n): "v" for n in range(16)}, "store": True},
        {"messages": [{"role": "system", "content": "x"}, USER]},
        {"messages": [{"role": "user", "content": ""}]},
        {"messages": [{"role": "user", "content": [{"type": "text", "text": "x"}]}]},
        {"messages": [USER, {"role": "assistant", "content": None, "refusal": "no"}]},
        {"messages": [{**USER, "extra": 1}]},
        {"stream": True, "stream_options": {"include_usage": True}},
        {"messages": [USER, {"role": "function", "name": "f", "content": "x"}]},
    ],
)
def test_what_the_real_api_takes_is_taken(changes):
    assert refusal(_body(**changes)) is None


@pytest.mark.parametrize(
    ("changes", "param"),
    [
        ({"model": ..., "zzz": 1}, None),
        ({"messages": ..., "zzz": 1}, "messages"),
        ({"messages": [], "zzz": 1}, "zzz"),
        ({"n": "abc", "messages": [7]}, "messages[0]"),
        (
            {"messages": [{"role": "user"}, {"role": "x", "content": ""}]},
            "messages[1].role",
        ),
        ({"messages": [{"role": "user"}], "n": 0}, "n"),
    ],
)
def test_of_two_faults_the_one_the_api_sees_first_is_told(changes, param):
    found = refusal(_body(**changes))
    assert found is not None
    assert found.param == param
