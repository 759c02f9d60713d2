"""Each broken field of a Messages request gets the real API's error."""

import pytest

from chaoskit.wire.anthropic.replies import count_refusal, refusal
from chaoskit.wire.anthropic.terms import Terms

USER = {"role": "user", "content": "ping"}
TOOL = {"name": "f", "input_schema": {"type": "object"}}
MARK = {"type": "ephemeral"}


def _body(**changes):
    body = {"model": "any", "max_tokens": 9, "messages": [USER]} | changes
    return {name: value for name, value in body.items() if value is not ...}


def _said(*blocks, role="user"):
    return {"messages": [{"role": role, "content": list(blocks)}]}


def _used(**changes):
    block = {"type": "tool_use", "id": "c", "name": "f", "input": {}} | changes
    return {name: value for name, value in block.items() if value is not ...}


TAGGED = "does not match any of the expected tags"

REFUSED = [
    ("no model", {"model": ...}, "model: Field required"),
    ("null model", {"model": None}, "model: Input should be a valid string"),
    (
        "empty model",
        {"model": ""},
        "model: String should have at least 1 character",
    ),
    ("no max_tokens", {"max_tokens": ...}, "max_tokens: Field required"),
    (
        "no room",
        {"max_tokens": 0},
        "max_tokens: must be greater than or equal to 1",
    ),
    (
        "text for a number",
        {"max_tokens": "9"},
        "max_tokens: Input should be a valid integer",
    ),
    (
        "a flag for a number",
        {"max_tokens": True},
        "max_tokens: Input should be a valid integer",
    ),
    ("no messages", {"messages": ...}, "messages: Field required"),
    ("text messages", {"messages": "hi"}, "messages: Input should be a valid list"),
    (
        "empty messages",
        {"messages": []},
        "messages: at least one message is required",
    ),
    ("text message", {"messages": ["x"]}, "messages.0: Input should be an object"),
    ("no role", {"messages": [{"content": "x"}]}, "messages.0.role: Field required"),
    (
        "unknown role",
        {"messages": [{"role": "robot", "content": "x"}]},
        'messages: Unexpected role "robot". Allowed roles are "user" or "assistant".',
    ),
    (
        "role of another API",
        {"messages": [USER, {"role": "tool", "tool_call_id": "c", "content": "x"}]},
        (
            'messages: Unexpected role "tool". Allowed roles are "user" or '
            '"assistant". For instructions on how to use tools, see the '
        ),
    ),
    ("no content", {"messages": [{"role": "user"}]}, "messages.0.content: Field requ"),
    (
        "null content",
        {"messages": [{"role": "user", "content": None}]},
        "messages.0.content: Input should be a valid list",
    ),
    (
        "field of another API",
        {"messages": [{**USER, "name": "x"}]},
        "messages.0.name: Extra inputs are not permitted",
    ),
    ("unknown field", {"foo": 1}, "foo: Extra inputs are not permitted"),
    (
        "field that needs a beta header",
        {"context_management": {}},
        "context_management: Extra inputs are not permitted",
    ),
    ("block no object", _said("x"), "messages.0.content.0: Input should be an obj"),
    ("block with no type", _said({"text": "x"}), "messages.0.content.0.type: Field"),
    (
        "unknown block",
        _said({"type": "input_text", "text": "x"}),
        (
            "messages.0.content.0: Input tag 'input_text' found using 'type' "
            f"{TAGGED}: 'bash_code_execution_tool_result', 'browser_state', "
        ),
    ),
    (
        "no text",
        _said({"type": "text"}),
        "messages.0.content.0.text.text: Field required",
    ),
    (
        "what a client adds for itself",
        _said({"type": "text", "text": "x", "parsed_output": None}),
        "messages.0.content.0.text.parsed_output: Extra inputs are not permitted",
    ),
    (
        "call without id",
        _said(_used(id=...), role="assistant"),
        "messages.0.content.0.tool_use.id: Field required",
    ),
    (
        "id of another shape",
        _said(_used(id="Bash:1"), role="assistant"),
        (
            "messages.0.content.0.tool_use.id: String should match pattern "
            "'^[a-zA-Z0-9_-]+$'"
        ),
    ),
    (
        "input as text",
        _said(_used(input="{}"), role="assistant"),
        "messages.0.content.0.tool_use.input: Input should be an object",
    ),
    (
        "result without id",
        _said({"type": "tool_result", "content": "x"}),
        "messages.0.content.0.tool_result.tool_use_id: Field required",
    ),
    (
        "object in a result",
        _said({"type": "tool_result", "tool_use_id": "c", "content": {"a": 1}}),
        "messages.0.content.0.tool_result.content: Input should be a valid list",
    ),
    (
        "unknown block in a result",
        _said({"type": "tool_result", "tool_use_id": "c", "content": [_used()]}),
        "messages.0.content.0.tool_result.content.0: Input tag 'tool_use' found",
    ),
    (
        "unsigned thinking",
        _said({"type": "thinking", "thinking": "x"}, role="assistant"),
        "messages.0.content.0.thinking.signature: Field required",
    ),
    (
        "unknown lifetime",
        _said({"type": "text", "text": "x", "cache_control": {**MARK, "ttl": "9m"}}),
        (
            "messages.0.content.0.text.cache_control.ephemeral.ttl: Input should be "
            "'5m' or '1h'"
        ),
    ),
    (
        "too many marks",
        {"system": [{"type": "text", "text": "x", "cache_control": MARK}] * 5},
        "A maximum of 4 blocks with cache_control may be provided. Found 5.",
    ),
    ("null system", {"system": None}, "system: Input should be a valid list"),
    (
        "picture as system",
        {"system": [{"type": "image", "source": {}}]},
        f"system.0: Input tag 'image' found using 'type' {TAGGED}: 'text'",
    ),
    (
        "empty system text",
        {"system": [{"type": "text", "text": ""}]},
        "system: text content blocks must be non-empty",
    ),
    ("stream", {"stream": "yes"}, "stream: Input should be a valid boolean"),
    (
        "tier",
        {"service_tier": "gold"},
        "service_tier: Input should be 'auto' or 'standard_only'",
    ),
    ("stop", {"stop_sequences": [" "]}, "stop_sequences: each stop sequence must con"),
    ("metadata", {"metadata": {"a": 1}}, "metadata.a: Extra inputs are not permitted"),
    (
        "tool of another API",
        {"tools": [{"type": "function", "function": {"name": "f"}}]},
        f"tools.0: Input tag 'function' found using 'type' {TAGGED}: 'bash_20250124'",
    ),
    (
        "tool without schema",
        {"tools": [{"name": "f"}]},
        "tools.0.custom.input_schema: Field required",
    ),
    (
        "tool with a bare schema",
        {"tools": [{"name": "f", "input_schema": {}}]},
        "tools.0.custom.input_schema.type: Field required",
    ),
    (
        "tool whose input is no object",
        {"tools": [{"name": "f", "input_schema": {"type": "string"}}]},
        "tools.0.custom.input_schema.type: Input should be 'object'",
    ),
    (
        "tool's name",
        {"tools": [{**TOOL, "name": "a b"}]},
        "tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
    ),
    ("tools alike", {"tools": [TOOL, TOOL]}, "tools: Tool names must be unique."),
    (
        "choice without tools",
        {"tool_choice": {"type": "auto"}},
        "tool_choice: may only be specified while providing tools.",
    ),
    (
        "choice as a word",
        {"tools": [TOOL], "tool_choice": "auto"},
        "tool_choice: Input should be an object",
    ),
    (
        "choice of another tool",
        {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "g"}},
        "Tool 'g' not found in provided tools",
    ),
    (
        "little thought",
        {"thinking": {"type": "enabled", "budget_tokens": 5}},
        "thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
    ),
    (
        "more thought than room",
        {"thinking": {"type": "enabled", "budget_tokens": 1024}},
        "`max_tokens` must be greater than `thinking.budget_tokens`",
    ),
    (
        "thought and force",
        {
            "thinking": {"type": "enabled", "budget_tokens": 1024},
            "max_tokens": 2000,
            "tools": [TOOL],
            "tool_choice": {"type": "any"},
        },
        "Thinking may not be enabled when tool_choice forces tool use.",
    ),
]


@pytest.mark.parametrize(
    ("changes", "message"), [case[1:] for case in REFUSED], ids=[c[0] for c in REFUSED]
)
def test_a_broken_field_is_refused_in_the_words_of_the_api(changes, message):
    found = refusal(_body(**changes))
    assert found is not None
    assert found.message.startswith(message)
    assert (found.status, found.kind) == (400, "invalid_request_error")


TAKEN = [
    ("least", {}),
    ("any model", {"model": "claude-nine-20990101"}),
    ("everything", {"stream": True, "inference_geo": "us", "container": None}),
    ("system text", {"system": "Be brief."}),
    ("system blocks", {"system": [{"type": "text", "text": "x"}]}),
    (
        "marks",
        {
            "cache_control": MARK,
            "system": [
                {"type": "text", "text": "x", "cache_control": {**MARK, "ttl": "1h"}}
            ],
        },
    ),
    ("tools", {"tools": [TOOL, {"type": "web_search_20250305", "name": "w"}]}),
    ("typed tool", {"tools": [{**TOOL, "type": "custom", "strict": True}]}),
    ("choice", {"tools": [TOOL], "tool_choice": {"type": "tool", "name": "f"}}),
    ("no tools at all", {"tool_choice": {"type": "none"}}),
    ("metadata", {"metadata": {"user_id": None}}),
    ("thought", {"thinking": {"type": "adaptive", "display": "omitted"}}),
    ("picture", _said({"type": "image", "source": {"type": "url", "url": "u"}})),
    ("stop", {"stop_sequences": ["END"], "service_tier": "auto", "speed": None}),
]


@pytest.mark.parametrize(
    "changes", [case[1] for case in TAKEN], ids=[case[0] for case in TAKEN]
)
def test_what_the_api_takes_is_taken(changes):
    assert refusal(_body(**changes)) is None


def test_a_beta_header_opens_the_fields_of_betas():
    body = _body(context_management={"edits": []})
    assert refusal(body, Terms(beta=True)) is None
    assert refusal({**body, "foo": 1}, Terms(beta=True)) is not None


def test_a_count_of_tokens_needs_no_room_and_takes_none():
    counted = {"model": "any", "messages": [USER], "tools": [TOOL]}
    assert count_refusal(counted) is None
    refused = count_refusal({**counted, "max_tokens": 9})
    assert refused.message == "max_tokens: Extra inputs are not permitted"
    assert count_refusal({"model": "any"}).message == "messages: Field required"


SAMPLED = [
    ({"temperature": 1.5}, "temperature: Input should be less than or equal to 1"),
    ({"temperature": -1}, "temperature: Input should be greater than or equal to 0"),
    ({"top_p": "x"}, "top_p: Input should be a valid number"),
    ({"top_k": 0.5}, "top_k: Input should be a valid integer"),
]


@pytest.mark.parametrize(("changes", "message"), SAMPLED)
def test_sampling_is_looked_at_in_the_versions_that_have_it(changes, message):
    assert refusal(_body(**changes), Terms("2023-06-01")).message == message


def test_the_newest_version_has_no_sampling_at_all():
    for field in ("temperature", "top_p", "top_k"):
        body = _body(**{field: 1})
        assert refusal(body, Terms("2023-06-01")) is None
        refused = refusal(body)
        assert refused.message == f"{field}: Extra inputs are not permitted"


def test_the_newest_version_has_documents_and_citations_in_their_places_only():
    document = {"type": "document", "source": {}}
    cited = {"type": "text", "text": "x", "citations": [{"type": "char_location"}]}
    spoken = {"role": "assistant", "content": [document]}
    quoted = {"role": "user", "content": [cited]}
    before = Terms("2023-06-01")
    assert refusal(_body(messages=[USER, spoken, USER]), before) is None
    assert refusal(_body(messages=[quoted]), before) is None
    assert refusal(_body(messages=[USER, spoken, USER])).message == (
        "messages.1: `document` blocks can only be in `user` messages"
    )
    assert refusal(_body(messages=[quoted])).message.startswith(
        "messages.0.content.0.text.citations: "
    )
    answered = {"role": "assistant", "content": [cited]}
    assert refusal(_body(messages=[USER, answered, USER])) is None
