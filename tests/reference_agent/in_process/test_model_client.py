"""The model client acts on whole replies only, sends once, and says what went wrong."""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable
from typing import Any

import httpcore2
import httpx
import pytest
import respx

from reference_agent.model_client import ModelTrouble, OpenAIModel
from reference_agent.transitions import Reply

Make = Callable[..., OpenAIModel]

GOAL = {"role": "user", "content": "Book a flight to NYC"}
SCRIPT: list[dict[str, Any]] = [
    {"call": [{"tool": "search", "args": {"to": "NYC"}}]},
    {
        "call": [
            {"tool": "hold", "args": {"order": "o-1", "seat": "12A"}},
            {"tool": "pay", "args": {"order": "o-1", "cents": 42000}},
        ]
    },
    {"say": "Booked, and paid."},
]
PARALLEL = [SCRIPT[1], SCRIPT[2]]
CALLED = [call["args"] for call in SCRIPT[1]["call"]]
MODES = [pytest.param(False, id="whole"), pytest.param(True, id="streamed")]
both = pytest.mark.parametrize("stream", MODES)


def ask(model: OpenAIModel, *messages: Any, endpoint: int = 0) -> Reply:
    asked = messages or (GOAL,)
    return model.ask(asked, run_id="r1", step=1, endpoint=endpoint)


def trouble(model: OpenAIModel, *messages: Any, endpoint: int = 0) -> ModelTrouble:
    with pytest.raises(ModelTrouble) as raised:
        ask(model, *messages, endpoint=endpoint)
    assert raised.value.__cause__ is None
    return raised.value


def kind(trouble: ModelTrouble) -> tuple[bool, bool]:
    return trouble.passing, trouble.elsewhere


def converse(model: OpenAIModel) -> list[dict[str, Any]]:
    """Everything said until the model calls nothing more."""
    messages = [GOAL]
    while True:
        said = ask(model, *messages).message
        messages.append(said)
        if not (calls := said.get("tool_calls")):
            return messages
        for call in calls:
            result = {"role": "tool", "tool_call_id": call["id"], "content": "ok"}
            messages.append(result)


def called(message: dict[str, Any]) -> list[tuple[str, Any]]:
    functions = [call["function"] for call in message.get("tool_calls", ())]
    return [(each["name"], json.loads(each["arguments"])) for each in functions]


def completion(**changes: Any) -> dict[str, Any]:
    """A whole reply; changes are of its one choice or, for a message, of that."""
    message = {"role": "assistant", "content": "Booked."}
    message |= changes.pop("message", {})
    choice: dict[str, Any] = {"index": 0, "finish_reason": "stop", "message": message}
    choice |= changes
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    return {"id": "c-1", "choices": [choice], "usage": usage}


def chunks(*deltas: dict[str, Any], end: str | None = "stop") -> str:
    """A stream of one choice; without an end it just stops."""
    said = [(delta, None) for delta in deltas]
    ends = [*said, ({}, end)] if end else said
    choices = [
        {"index": 0, "delta": delta, "finish_reason": reason} for delta, reason in ends
    ]
    events = [json.dumps({"id": "c-1", "choices": [choice]}) for choice in choices]
    return "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"])


def said(text: str, status: int = 200, **headers: str) -> httpx.Response:
    kind = "text/event-stream" if text.startswith("data:") else "application/json"
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    return httpx.Response(status, text=text, headers={"content-type": kind} | named)


# The mock itself


def test_nothing_leaves_the_process(http: respx.MockRouter, make_model: Make) -> None:
    """A request without a route fails the test, so the mock is where requests pass."""
    http.routes.clear()
    with pytest.raises(respx.models.AllMockedAssertionError):
        ask(make_model())


def test_requests_are_counted_by_their_route(
    http: respx.MockRouter, make_model: Make
) -> None:
    ask(make_model())
    assert http["engine"].call_count == 1


# Whole conversations


@both
def test_a_conversation_goes_to_its_end(
    engine: Any, make_model: Make, *, stream: bool
) -> None:
    engine.play(SCRIPT)
    messages = converse(make_model(stream=stream))
    assert [called(m) for m in messages if m["role"] == "assistant"] == [
        [("search", {"to": "NYC"})],
        [("hold", CALLED[0]), ("pay", CALLED[1])],
        [],
    ]
    assert messages[-1] == {"role": "assistant", "content": "Booked, and paid."}
    assert [asked.carried for asked in engine.asked] == [
        (),
        ("0.0",),
        ("0.0", "1.0", "1.1"),
    ]


@both
def test_tokens_and_the_id_are_told(
    engine: Any, make_model: Make, *, stream: bool
) -> None:
    reply = ask(make_model(stream=stream))
    assert reply.id.startswith("chatcmpl-t0-")
    (asked,) = engine.asked
    paid = (reply.prompt_tokens, reply.completion_tokens)
    assert paid == (asked.prompt_tokens, asked.completion_tokens)
    assert min(paid) > 0


def test_tools_are_offered(engine: Any, make_model: Make) -> None:
    tool = {"type": "function", "function": {"name": "hold", "parameters": {}}}
    ask(make_model([tool]))
    assert json.loads(engine.requests[0].content)["tools"] == [tool]


# The API's own errors, and broken connections


@both
@pytest.mark.parametrize("error", ["500", "503", "529", "429"])
@pytest.mark.parametrize("edge", ["before", "after"])
def test_an_error_may_pass_and_the_sdk_does_not_retry_unseen(
    engine: Any, make_model: Make, *, error: str, edge: str, stream: bool
) -> None:
    engine.play(SCRIPT, f"error({error})@0:llm.chat#1:{edge}")
    model = make_model(stream=stream)
    found = trouble(model)
    assert (str(found), *kind(found)) == (f"it answered {error}", True, False)
    assert found.retry_after == (1.0 if error == "429" else None)
    assert engine.questions == 1
    assert called(ask(model).message) == [("search", {"to": "NYC"})]


@both
@pytest.mark.parametrize(
    ("kind_of", "edge"), [("refuse", "before"), ("drop_reply", "after")]
)
def test_a_reset_connection_may_pass(
    engine: Any, make_model: Make, *, kind_of: str, edge: str, stream: bool
) -> None:
    fault = f"{kind_of}@0:llm.chat#1:{edge}"
    engine.play(SCRIPT, fault)
    found = trouble(make_model(stream=stream))
    assert (str(found), *kind(found)) == ("no connection, or it broke", True, False)
    assert (engine.questions, engine.fired) == (1, [fault])


@both
@pytest.mark.parametrize(
    "error",
    [httpcore2.ConnectError("x"), httpcore2.RemoteProtocolError("x")],
    ids=["refused", "no http"],
)
def test_no_connection_may_pass(
    engine: Any, make_model: Make, *, error: Exception, stream: bool
) -> None:
    engine.instead = [error]
    assert kind(trouble(make_model(stream=stream))) == (True, False)


def pieces_of_the_parallel_reply() -> int:
    """Role; two calls, each announced, then in three pieces; the end, usage, [DONE]."""
    return 1 + 2 * 4 + 3


@pytest.mark.parametrize("part", range(1, pieces_of_the_parallel_reply()))
@pytest.mark.parametrize("fault", ["tear", "error(500)", "error(429)"])
def test_a_stream_is_not_acted_on_wherever_it_breaks(
    engine: Any, make_model: Make, *, fault: str, part: int
) -> None:
    """Between any two pieces, even after everything was said but the last word."""
    schedule = f"{fault}@0:llm.chat#1:part:{part}"
    engine.play(PARALLEL, schedule)
    model = make_model(stream=True)
    assert kind(trouble(model)) == (True, False)
    assert (engine.questions, engine.fired) == (1, [schedule])
    again = [("hold", CALLED[0]), ("pay", CALLED[1])]
    assert called(ask(model).message) == again


def test_the_parallel_reply_has_no_more_pieces(engine: Any, make_model: Make) -> None:
    """So the test above breaks it everywhere."""
    last = pieces_of_the_parallel_reply()
    engine.play(PARALLEL, f"tear@0:llm.chat#1:part:{last}")
    ask(make_model(stream=True))
    assert engine.fired == []


def test_a_whole_reply_that_breaks_in_its_middle_is_none(
    engine: Any, make_model: Make
) -> None:
    engine.play(PARALLEL, "tear@0:llm.chat#1:part:1")
    assert kind(trouble(make_model())) == (True, False)


@pytest.mark.parametrize("turn", [PARALLEL, [SCRIPT[2]]], ids=["calls", "words"])
@pytest.mark.parametrize("edge", ["before", "part:2", "part:4"])
@both
def test_a_reply_at_its_limit_is_no_reply(
    engine: Any, make_model: Make, *, turn: Any, edge: str, stream: bool
) -> None:
    if edge != "before" and not stream:
        edge = "after"
    engine.play(turn, f"error(length)@0:llm.chat#1:{edge}")
    found = trouble(make_model(stream=stream))
    words = "its reply was cut off by the limit on tokens"
    assert (str(found), *kind(found)) == (words, True, False)


# Replies that are none


CALL = {"id": "k1", "type": "function", "function": {"name": "pay", "arguments": "{}"}}
CUSTOM = {"id": "k1", "type": "custom", "custom": {"name": "pay", "input": ""}}
ODD = {"name": "pay", "arguments": {"cents": 1}}
NO_REPLY: list[tuple[str, dict[str, Any], str, bool]] = [
    ("no end", {"finish_reason": None}, "cut off", True),
    ("an end nobody knows", {"finish_reason": "error"}, "unknown end", True),
    ("an old kind of call", {"finish_reason": "function_call"}, "unknown end", True),
    ("filtered", {"finish_reason": "content_filter"}, "refuses", False),
    ("refused", {"message": {"content": None, "refusal": "No."}}, "refuses", False),
    ("nothing said", {"message": {"content": None}}, "empty", True),
    ("no words", {"message": {"content": ""}}, "empty", True),
    ("calls that are not there", {"finish_reason": "tool_calls"}, "empty", True),
    ("no id", {"message": {"tool_calls": [CALL | {"id": None}]}}, "ids", True),
    ("an empty id", {"message": {"tool_calls": [CALL | {"id": ""}]}}, "ids", True),
    (
        "no name",
        {"message": {"tool_calls": [CALL | {"function": {"arguments": "{}"}}]}},
        "",
        True,
    ),
    (
        "no function",
        {"message": {"tool_calls": [{"id": "k1", "type": "function"}]}},
        "",
        True,
    ),
    ("one id twice", {"message": {"tool_calls": [CALL, CALL]}}, "ids", True),
    ("a call of another kind", {"message": {"tool_calls": [CUSTOM]}}, "", True),
    (
        "arguments that are no text",
        {"message": {"tool_calls": [CALL | {"function": ODD}]}},
        "no completion",
        True,
    ),
    ("half a character", {"message": {"content": "\ud83d"}}, "Unicode", True),
    ("a number for words", {"message": {"content": 7}}, "no completion", True),
]


@pytest.mark.parametrize(
    ("changes", "words", "passing"),
    [case[1:] for case in NO_REPLY],
    ids=[case[0] for case in NO_REPLY],
)
def test_what_is_no_reply_is_not_acted_on(
    engine: Any, make_model: Make, *, changes: Any, words: str, passing: bool
) -> None:
    engine.instead = [said(json.dumps(completion(**changes)))]
    found = trouble(make_model())
    assert words in str(found)
    assert kind(found) == (passing, False)


def test_the_reply_that_those_spoil_is_one(engine: Any, make_model: Make) -> None:
    """So they are told apart by what is wrong with them, and by nothing else."""
    calls = {"tool_calls": [CALL], "content": None}
    engine.instead = [
        said(json.dumps(completion())),
        said(json.dumps(completion(message=calls))),
        said(chunks({"tool_calls": [{"index": 0, **CALL}]})),
    ]
    model = make_model()
    assert ask(model) == Reply("c-1", {"role": "assistant", "content": "Booked."}, 7, 3)
    expected = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    assert ask(model).message == expected
    assert ask(make_model(stream=True)).message == expected


def test_no_id_of_the_whole_is_trouble(engine: Any, make_model: Make) -> None:
    engine.instead = [said(json.dumps(completion() | {"id": None}))]
    assert kind(trouble(make_model())) == (True, False)


BODIES = [
    *("", "{}", '{"choices": []}', '{"choices": [1]}', "[1]", '"words"', "{", "null"),
    *('{"error": {"message": "busy"}}', "<html>", "[" * 20_000),
]


@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
@both
def test_a_body_that_is_no_completion_is_trouble(
    engine: Any, make_model: Make, *, body: str, stream: bool
) -> None:
    engine.instead = [said(body)]
    assert kind(trouble(make_model(stream=stream))) == (True, False)


def first(**call: Any) -> dict[str, Any]:
    return {"tool_calls": [{"index": 0, **call}]}


STREAMS = {
    "not one event": ["data: [DONE]\n\n"],
    "no end": [chunks({"content": "Booked"}, end=None)],
    "filtered": [chunks({"content": "Boo"}, end="content_filter")],
    "refused": [chunks({"refusal": "No"}, {"refusal": "."})],
    "nothing said": [chunks({"role": "assistant", "content": ""})],
    "an event that is no chunk": ["data: [1]\n\n", "data: 7\n\n", 'data: "x"\n\n'],
    "an event that is no JSON": ["data: {\n\n"],
    "a call without a name": [chunks(first(id="k", function={"arguments": "{}"}))],
    "a call without an id": [chunks(first(function={"name": "f", "arguments": "{}"}))],
    "two calls in one place": [
        chunks(first(**CALL), first(**(CALL | {"id": "k2"}))),
        chunks(first(**CALL), first(id="k1", function={"name": "hold"})),
    ],
    "a call nowhere": [
        chunks({"tool_calls": [CALL]}, {"tool_calls": [CALL | {"id": "k2"}]})
    ],
}


@pytest.mark.parametrize("name", STREAMS)
def test_what_is_no_stream_of_a_reply_is_not_acted_on(
    engine: Any, make_model: Make, name: str
) -> None:
    engine.instead = [said(text) for text in STREAMS[name]]
    for _ in STREAMS[name]:
        found = trouble(make_model(stream=True))
        assert kind(found) == (name not in ("refused", "filtered"), False)


def test_a_stream_in_odd_order_is_put_together(engine: Any, make_model: Make) -> None:
    """Calls in turns, chunks without an id (as Azure sends), a late usage."""
    one = {"index": 0, "id": "a", "function": {"name": "f", "arguments": '{"x"'}}
    two = {"index": 1, "id": "b", "function": {"name": "g", "arguments": "{"}}
    more = {"index": 0, "id": "a", "function": {"arguments": ": 1}"}}
    last = {"index": 1, "function": {"name": None, "arguments": "}"}}
    azure = 'data: {"id": "", "choices": [], "usage": null}\n\n'
    calls = [two], [one, last], [more]
    stream = chunks(*({"tool_calls": each} for each in calls), end="tool_calls")
    idle = chunks({}, end=None).partition("data: [")[0]
    usage = 'data: {"id": "c-1", "choices": [], "usage": {"prompt_tokens": 5}}\n\n'
    ends = stream.replace("data: [DONE]", usage + "data: [DONE]")
    engine.instead = [
        said(azure + ends.replace("data: [DONE]", azure + idle + "data: [DONE]"))
    ]
    reply = ask(make_model(stream=True))
    assert called(reply.message) == [("f", {"x": 1}), ("g", {})]
    assert (reply.id, reply.prompt_tokens, reply.completion_tokens) == ("c-1", 5, 0)


# Time


class Dripping(httpx.AsyncByteStream):
    """A good reply, but for a long while bytes come that say nothing."""

    def __init__(self, drop: str, reply: str) -> None:
        self.drop, self.reply = drop.encode(), reply.encode()
        self.is_open = False

    async def __aiter__(self) -> AsyncIterator[bytes]:
        self.is_open = True
        loop = asyncio.get_running_loop()
        until = loop.time() + 5
        while loop.time() < until:
            await asyncio.sleep(0)
            yield self.drop
        yield self.reply

    async def aclose(self) -> None:
        self.is_open = False


@pytest.mark.parametrize(
    ("stream", "drop", "reply"),
    [
        pytest.param(False, " ", json.dumps(completion()), id="whole"),
        pytest.param(True, ": wait\n\n", chunks({"content": "Ok"}), id="streamed"),
    ],
)
def test_a_reply_that_drips_is_given_up(
    engine: Any, make_model: Make, *, stream: bool, drop: str, reply: str
) -> None:
    """The gaps are short; the whole is what is bounded. The connection is closed."""
    body = Dripping(drop, reply)
    named = {"content-type": "text/event-stream" if stream else "application/json"}
    engine.instead = [httpx.Response(200, stream=body, headers=named)]
    found = trouble(make_model(stream=stream, timeout_seconds=0.2))
    words = "no whole reply within 0.2 s"
    assert (str(found), *kind(found), body.is_open) == (words, True, False, False)


@both
@pytest.mark.parametrize("error", [httpcore2.ConnectTimeout, httpcore2.ReadTimeout])
def test_a_timeout_below_is_one_here(
    engine: Any, make_model: Make, *, error: type[Exception], stream: bool
) -> None:
    engine.instead = [error()]
    found = trouble(make_model(stream=stream))
    assert str(found) == "no whole reply within 60 s"
    assert kind(found) == (True, False)


def test_a_server_that_says_nothing_is_given_up(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Over a real socket, which takes the question and is never read."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        monkeypatch.setenv("OPENAI_BASE_URL", f"http://127.0.0.1:{port}/v1")
        monkeypatch.setenv("OPENAI_API_KEY", "sk-any")
        found = trouble(OpenAIModel([], timeout_seconds=0.1))
    assert str(found) == "no whole reply within 0.1 s"


# What a refusal means, and what of it is told


@pytest.mark.parametrize(
    ("status", "passing", "elsewhere"),
    [
        *((400, False, False), (413, False, False), (422, False, False)),
        *((401, False, True), (402, False, True), (403, False, True)),
        *((404, False, True), (405, False, True)),
        *((408, True, False), (409, True, False), (504, True, False)),
    ],
)
def test_a_refusal_is_of_the_question_the_endpoint_or_the_moment(
    engine: Any, make_model: Make, *, status: int, passing: bool, elsewhere: bool
) -> None:
    engine.instead = [said('{"error": {"message": "sk-canary Book"}}', status)]
    found = trouble(make_model())
    assert kind(found) == (passing, elsewhere)
    assert str(found) == f"it answered {status}"


@both
def test_a_spent_quota_is_not_waited_for(
    engine: Any, make_model: Make, *, stream: bool
) -> None:
    """OpenAI says it with 429, like a limit that passes; and inside streams."""
    body = '{"error": {"code": "insufficient_quota", "message": "Book"}}'
    inside = said(f"data: {body}\n\n")
    engine.instead = [inside if stream else said(body, 429, retry_after="1")]
    found = trouble(make_model(stream=stream))
    assert (str(found), *kind(found)) == ("its quota is used up", False, True)


def test_a_wrong_key_is_refused_by_the_endpoint_itself(
    engine: Any, make_model: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-another")
    found = trouble(make_model())
    assert (str(found), *kind(found)) == ("it answered 401", False, True)
    engine.play(SCRIPT)  # which takes the problem with it


def test_a_question_that_cannot_be_sent_is_no_fault_of_the_endpoint(
    engine: Any, make_model: Make
) -> None:
    found = trouble(make_model(), GOAL | {"content": "\ud800"})
    assert kind(found) == (False, False)
    assert engine.requests == []


# Endpoints, and what travels with a question


def test_each_endpoint_is_asked_with_its_own_key_and_model(
    engine: Any, make_model: Make, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = engine.key
    listed = [
        {"base_url": "https://b.example/v1", "model": "b", "api_key_env": "B_KEY"},
        {"base_url": "http://c.example/v1/", "model": "c", "api_key_env": "C_KEY"},
    ]
    monkeypatch.setenv("OPENAI_MODEL", "a")
    monkeypatch.setenv("OPENAI_FALLBACKS", json.dumps(listed))
    for name in ("B_KEY", "C_KEY"):
        monkeypatch.setenv(name, f"sk-{name}")
    model = make_model()
    assert model.endpoints == 3
    ok = json.dumps(completion())
    engine.instead = [said(ok), said(ok), said(ok)]
    for endpoint in range(3):
        ask(model, endpoint=endpoint)
    asked = [
        (
            str(request.url),
            request.headers["authorization"],
            json.loads(request.content)["model"],
        )
        for request in engine.requests
    ]
    path = "chat/completions"
    assert asked == [
        (f"http://127.0.0.1:9/v1/{path}", f"Bearer {key}", "a"),
        (f"https://b.example/v1/{path}", "Bearer sk-B_KEY", "b"),
        (f"http://c.example/v1/{path}", "Bearer sk-C_KEY", "c"),
    ]


@pytest.mark.parametrize(
    ("run_id", "name"),
    [
        ("r1", "r1/7"),
        ("flug/nach münchen", "flug%2Fnach%20m%C3%BCnchen/7"),
        ("x" * 600, "x" * 510 + "/7"),
    ],
)
@both
def test_the_run_and_the_step_travel_with_a_question(
    engine: Any, make_model: Make, *, run_id: str, name: str, stream: bool
) -> None:
    """In a header that is printable ASCII of at most 512, and never as metadata, which
    the engine refuses as the real API does."""
    make_model(stream=stream).ask((GOAL,), run_id=run_id, step=7, endpoint=0)
    (request,) = engine.requests
    assert request.headers["x-client-request-id"] == name
    assert "metadata" not in json.loads(request.content)


def test_the_text_of_a_trouble_and_of_the_client_hold_no_key(
    engine: Any, make_model: Make
) -> None:
    model = make_model()
    engine.instead = [said("{", 500)]
    assert engine.key not in f"{trouble(model)!r}{vars(model)}"


@pytest.mark.parametrize("field", ["id", "call"])
def test_a_reply_whose_ids_are_no_texts_is_no_completion(
    make_model: Make, engine: Any, field: str
) -> None:
    """It could be stored, and never be read again."""
    call = {"id": 7, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    message = {"role": "assistant", "content": None, "tool_calls": [call]}
    if field == "id":
        call["id"] = "call_1"
    body = {
        "id": 7 if field == "id" else "c-1",
        "choices": [{"index": 0, "message": message, "finish_reason": "tool_calls"}],
    }
    engine.instead = [httpx.Response(200, json=body)]
    assert kind(trouble(make_model())) == (True, False)
