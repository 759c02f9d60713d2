"""The Messages API of the `llm` service, asked by the official client."""

import asyncio
import json
from contextlib import asynccontextmanager

import anthropic
import httpx2
import pytest

from chaoskit.model.history import Asked, Crossed, to_line
from chaoskit.model.script import Wobble
from chaoskit.world.llm.service import CANARY, Llm

GOAL = "Book a flight to NYC"
USER = {"role": "user", "content": GOAL}
ROOM = {"model": "any-model", "max_tokens": 500}


async def _whole(client, messages):
    return await client.messages.create(messages=messages, **ROOM)


async def _streamed(client, messages):
    async with client.messages.stream(messages=messages, **ROOM) as stream:
        return await stream.get_final_message()


def _with_results(messages, said):
    results = [
        {
            "type": "tool_result",
            "tool_use_id": block.id,
            "content": f"did {block.name}",
        }
        for block in said.content
        if block.type == "tool_use"
    ]
    answered = {"role": "assistant", "content": said.content}
    return [*messages, answered, {"role": "user", "content": results}]


async def _converse(client, turns, ask=_whole):
    """Go on from the goal for some turns; returns conversation and replies."""
    messages, replies = [USER], []
    for _ in range(turns):
        said = await ask(client, messages)
        replies.append(said)
        messages = _with_results(messages, said)
    return messages, replies


def _told(replies):
    """What was said, without ids."""
    return [
        [(b.name, b.input) if b.type == "tool_use" else b.text for b in reply.content]
        for reply in replies
    ]


TOLD = [
    [("search", {"to": "NYC"})],
    [("hold", {"order": "o-1"}), ("pay", {"order": "o-1", "cents": 42000})],
    [("ask_human", {"question": "Approve?"})],
    [("wait", {"seconds": 0.5})],
    ["Booked."],
]


async def test_each_result_is_recorded_when_the_model_is_told_of_it_in_new_words(
    serve, make_gate, scenario, anthropic_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, anthropic_at(env) as client:
        messages, _ = await _converse(client, 2)
        await _whole(client, messages)
        await _whole(client, messages)
        (result,) = messages[2]["content"]
        parts = [{"type": "text", "text": "none"}, {"type": "text", "text": "left"}]
        messages[2]["content"] = [{**result, "content": parts, "is_error": True}]
        await _whole(client, messages)
    assert [event.results for event in gate.of(Asked)] == [
        {},
        {"0.0": "did search"},
        {"1.0": "did hold", "1.1": "did pay"},
        {},
        {"0.0": "none\nleft"},
    ]


@pytest.mark.parametrize("ask", [_whole, _streamed])
async def test_a_whole_conversation_follows_the_script(
    serve, make_gate, scenario, ask, anthropic_at
):
    async with serve(Llm(), make_gate(), scenario) as env, anthropic_at(env) as client:
        _, replies = await _converse(client, 5, ask)
    assert _told(replies) == TOLD
    assert [reply.stop_reason for reply in replies] == ["tool_use"] * 4 + ["end_turn"]
    assert {reply.model for reply in replies} == {"any-model"}


def _converse_in_threads(env):
    messages, replies = [USER], []
    plain = httpx2.Client(verify=False, trust_env=False)
    with anthropic.Anthropic(
        base_url=env["ANTHROPIC_BASE_URL"],
        api_key=env["ANTHROPIC_API_KEY"],
        max_retries=0,
        timeout=30,
        http_client=plain,
    ) as client:
        for turn in range(5):
            if turn % 2:
                said = client.messages.create(messages=messages, **ROOM)
            else:
                with client.messages.stream(messages=messages, **ROOM) as stream:
                    said = stream.get_final_message()
            replies.append(said)
            messages = _with_results(messages, said)
    return replies


async def test_the_client_without_asyncio_is_told_the_same(serve, make_gate, scenario):
    async with serve(Llm(), make_gate(), scenario) as env:
        replies = await asyncio.to_thread(_converse_in_threads, env)
    assert _told(replies) == TOLD


async def test_a_stream_holds_every_event_that_the_client_knows(
    serve, make_gate, scenario, anthropic_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, anthropic_at(env) as client:
        raw = await client.messages.create(messages=[USER], stream=True, **ROOM)
        kinds = [event.type async for event in raw]
        assert gate.of(Asked)[-1].whole == gate.of(Crossed)[-1].pieces - 1
        async with client.messages.stream(messages=[USER], **ROOM) as stream:
            helped = [event.type async for event in stream]
        messages, _ = await _converse(client, 4)
        async with client.messages.stream(messages=messages, **ROOM) as stream:
            words = [text async for text in stream.text_stream]
    assert list(dict.fromkeys(kinds)) == [
        "message_start",
        "content_block_start",
        "content_block_delta",
        "content_block_stop",
        "message_delta",
        "message_stop",
    ]
    assert "input_json" in helped
    assert len(words) > 1
    assert "".join(words) == "Booked."


async def test_each_request_is_recorded_with_its_place_and_its_news(
    serve, make_gate, scenario, anthropic_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, anthropic_at(env) as client:
        _, replies = await _converse(client, 3)
    asked = gate.of(Asked)
    assert [event.turn for event in asked] == [0, 1, 2]
    assert [e.carried for e in asked] == [(), ("0.0",), ("0.0", "1.0", "1.1")]
    news = [(GOAL,), ("did search",), ("did hold", "did pay")]
    assert [event.contents for event in asked] == news
    for event, reply in zip(asked, replies, strict=True):
        assert event.prompt_tokens == reply.usage.input_tokens > 0
        assert event.completion_tokens == reply.usage.output_tokens > 0
    crossed = gate.of(Crossed)
    assert [e.address for e in crossed][:3] == [
        "0:llm.messages#1:before",
        "0:llm.messages#1:after",
        "0:llm.messages#2:before",
    ]


async def test_a_stream_says_beforehand_where_it_can_be_cut(
    serve, make_gate, scenario, anthropic_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, anthropic_at(env) as client:
        raw = await client.messages.create(messages=[USER], stream=True, **ROOM)
        events = [event async for event in raw]
    crossed = next(e for e in gate.record.events if isinstance(e, Crossed))
    assert crossed.pieces == len(events) + 1  # the client keeps the ping to itself


async def test_ids_are_new_each_time_and_say_where_they_belong(
    serve, make_gate, scenario, anthropic_at
):
    async with serve(Llm(), make_gate(), scenario) as env, anthropic_at(env) as client:
        messages, replies = await _converse(client, 2)
        again = [await _whole(client, messages[:n]) for n in (1, 3, 1)]
    assert _told(again) == [TOLD[0], TOLD[1], TOLD[0]]
    ids = [block.id for reply in [*replies, *again] for block in reply.content]
    assert len(set(ids)) == len(ids) == 7
    assert [identity.rpartition("_")[0] for identity in ids[:3]] == [
        "toolu_t0p0",
        "toolu_t1p0",
        "toolu_t1p1",
    ]
    assert len({reply.id for reply in [*replies, *again]}) == 5


async def test_ids_are_steady_where_the_scenario_wants_them_so(
    serve, make_gate, make_booking, anthropic_at
):
    steady = make_booking(fresh_ids=False)
    async with serve(Llm(), make_gate(), steady) as env, anthropic_at(env) as client:
        one, two = [await _whole(client, [USER]) for _ in range(2)]
    assert one == two


@pytest.mark.parametrize("dump", ["to_dict", "model_dump"])
async def test_a_conversation_kept_as_json_is_taken_back(
    serve, make_gate, scenario, dump, anthropic_at
):
    async with serve(Llm(), make_gate(), scenario) as env, anthropic_at(env) as client:
        messages, replies = await _converse(client, 4)
        stored = [
            {**m, "content": [getattr(b, dump)() for b in m["content"]]}
            if m["role"] == "assistant"
            else m
            for m in messages
        ]
        last = await _whole(client, json.loads(json.dumps(stored)))
    assert last.content[0].text == "Booked."
    assert len(replies) == 4


async def test_past_its_end_the_script_repeats_itself_and_it_is_noted(
    serve, make_gate, scenario, anthropic_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, anthropic_at(env) as client:
        messages, replies = await _converse(client, 4)
        said = await _whole(client, messages)
        more = {"role": "user", "content": "Thanks. Anything else?"}
        answered = {"role": "assistant", "content": said.content}
        again = await _whole(client, [*messages, answered, more])
    assert again.content[0].text == "Booked."
    assert [event.past_end for event in gate.of(Asked)] == [False] * 5 + [True]
    assert len(replies) == 4


async def test_every_answer_names_its_request(serve, make_gate, scenario, anthropic_at):
    async with serve(Llm(), make_gate(), scenario) as env, anthropic_at(env) as client:
        said = await _whole(client, [USER])
        with pytest.raises(anthropic.BadRequestError) as refused:
            await _whole(client, [])
        listed = await client.models.with_raw_response.list()
    assert said._request_id.startswith("req_")
    assert refused.value.request_id == refused.value.body["request_id"]
    assert refused.value.response.headers["x-should-retry"] == "false"
    assert listed.headers["request-id"].startswith("req_")


async def test_a_broken_history_is_refused_and_recorded(
    serve, make_gate, scenario, anthropic_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, anthropic_at(env) as client:
        said = await _whole(client, [USER])
        broken = [USER, {"role": "assistant", "content": said.content}, USER]
        with pytest.raises(anthropic.BadRequestError) as refused:
            await _whole(client, broken)
    assert refused.value.type == "invalid_request_error"
    assert refused.value.api_message == (
        "messages.1: `tool_use` ids were found without `tool_result` blocks "
        f"immediately after: {said.content[0].id}. Each `tool_use` block must have a "
        "corresponding `tool_result` block in the next message."
    )
    problem = gate.of(Asked)[1].problem
    assert "immediately after: toolu_t0p0. Each" in problem
    assert gate.of(Asked)[1].prompt_tokens == 0
    crossed = gate.addresses()
    assert crossed[-1] == "0:llm.messages#2:after"


KEYS = [
    ({"x-api-key": "sk-mine"}, "invalid x-api-key"),
    ({"authorization": "Bearer sk-mine"}, "Invalid bearer token"),
    ({"authorization": f"Basic {CANARY}"}, "Invalid bearer token"),
    ({}, "x-api-key header is required"),
]


@pytest.mark.parametrize(("headers", "message"), KEYS)
async def test_only_the_canary_opens_it(
    serve, make_gate, scenario, web, headers, message
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, web() as client:
        url = f"{env['ANTHROPIC_BASE_URL']}/v1/messages"
        body = {"messages": [USER], **ROOM}
        async with client.post(url, json=body, headers=headers) as reply:
            error = (await reply.json())["error"]
            assert reply.status == 401
    assert error["type"] == "authentication_error"
    assert error["message"].startswith(message)
    written = "".join(map(to_line, gate.record.events))
    assert "sk-mine" not in written
    assert CANARY not in written


async def test_the_canary_is_taken_as_a_key_or_as_a_bearer_token(
    serve, make_gate, scenario, web, anthropic_at
):
    async with serve(Llm(), make_gate(), scenario) as env, web() as client:
        url = f"{env['ANTHROPIC_BASE_URL']}/v1/messages"
        for key in ({"x-api-key": CANARY}, {"authorization": f"bearer {CANARY}"}):
            headers = {"anthropic-version": "2023-06-01", **key}
            body = {"messages": [USER], **ROOM}
            async with client.post(url, json=body, headers=headers) as reply:
                assert reply.status == 200
        token = anthropic_at(env, api_key=None, auth_token=CANARY)
        async with token:
            assert (await _whole(token, [USER])).stop_reason == "tool_use"


@pytest.mark.parametrize(
    ("version", "message"),
    [
        ({}, "anthropic-version: header is required"),
        (
            {"anthropic-version": "2"},
            'anthropic-version: "2" is not a valid version',
        ),
    ],
)
async def test_the_version_must_be_named(
    serve, make_gate, scenario, web, version, message
):
    async with serve(Llm(), make_gate(), scenario) as env, web() as client:
        url = f"{env['ANTHROPIC_BASE_URL']}/v1/messages"
        headers = {"x-api-key": CANARY, **version}
        async with client.post(url, json={}, headers=headers) as reply:
            assert reply.status == 400
            assert (await reply.json())["error"]["message"] == message


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'{"model": NaN}', b"\xff"])
async def test_what_is_no_json_object_is_refused(serve, make_gate, scenario, web, body):
    async with serve(Llm(), make_gate(), scenario) as env, web() as client:
        url = f"{env['ANTHROPIC_BASE_URL']}/v1/messages"
        headers = {"x-api-key": CANARY, "anthropic-version": "2023-06-01"}
        async with client.post(url, data=body, headers=headers) as reply:
            error = (await reply.json())["error"]
            assert reply.status == 400
    assert error["type"] == "invalid_request_error"
    assert error["message"].startswith("The request body is not valid JSON: ")


@pytest.mark.parametrize(
    ("method", "path", "status", "kind"),
    [
        ("GET", "/v1/nothing", 404, "not_found_error"),
        ("POST", "/v1/complete", 404, "not_found_error"),
        ("POST", "/messages", 404, "not_found_error"),
        ("GET", "/v1/models/", 404, "not_found_error"),
        ("GET", "/v1/messages", 405, "invalid_request_error"),
        ("DELETE", "/v1/models/m", 405, "invalid_request_error"),
        ("GET", "/v1/messages/count_tokens", 405, "invalid_request_error"),
    ],
)
async def test_what_is_not_served_is_told_in_the_apis_way(
    serve, make_gate, scenario, web, method, path, status, kind
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, web() as client:
        url = f"{env['ANTHROPIC_BASE_URL']}{path}"
        headers = {"x-api-key": CANARY, "anthropic-version": "2026-10-21"}
        async with client.request(method, url, headers=headers) as reply:
            assert reply.status == status
            assert (await reply.json())["error"]["type"] == kind
    assert gate.record.events == []


async def test_models_and_counts_cross_nothing(
    serve, make_gate, scenario, anthropic_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, anthropic_at(env) as client:
        names = [model.id async for model in client.models.list()]
        one = await client.models.retrieve("any-name")
        counted = await client.messages.count_tokens(messages=[USER], model="m")
        with pytest.raises(anthropic.BadRequestError):
            await client.messages.count_tokens(messages=[], model="m")
        assert gate.record.events == []
        said = await _whole(client, [USER])
    assert (names, one.id) == (["chaoskit-scripted"], "any-name")
    assert counted.input_tokens == said.usage.input_tokens


async def test_look_ups_need_the_key_too(serve, make_gate, scenario, anthropic_at):
    async with (
        serve(Llm(), make_gate(), scenario) as env,
        anthropic_at(env, api_key="sk-mine") as client,
    ):
        with pytest.raises(anthropic.AuthenticationError):
            await client.models.retrieve("m")
        with pytest.raises(anthropic.AuthenticationError):
            await client.messages.count_tokens(messages=[USER], model="m")


async def test_what_is_cached_is_told(serve, make_gate, scenario, anthropic_at):
    marked = {**ROOM, "cache_control": {"type": "ephemeral"}}
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, anthropic_at(env) as client:
        first = await client.messages.create(messages=[USER], **marked)
        messages = _with_results([USER], first)
        async with client.messages.stream(messages=messages, **marked) as stream:
            second = await stream.get_final_message()
    one, two = first.usage, second.usage
    assert (one.input_tokens, one.cache_read_input_tokens) == (0, 0)
    assert two.cache_read_input_tokens == one.cache_creation_input_tokens > 0
    assert two.cache_creation_input_tokens > 0
    paid = two.cache_read_input_tokens + two.cache_creation_input_tokens
    assert gate.of(Asked)[1].prompt_tokens == paid


async def test_a_question_told_again_may_be_worded_otherwise(
    serve, make_gate, make_scenario, anthropic_at
):
    wobbling = make_scenario([{"say": "Done."}])
    llm = wobbling.llm.model_copy(update={"wobble": Wobble.WORDING})
    wobbling = wobbling.model_copy(update={"llm": llm})
    async with serve(Llm(), make_gate(), wobbling) as env, anthropic_at(env) as client:
        one = await _whole(client, [USER])
        two = await _streamed(client, [USER])
    assert one.content[0].text == "Done."
    assert two.content[0].text != "Done."


@asynccontextmanager
async def _socket(env):
    port = int(env["ANTHROPIC_BASE_URL"].split(":")[2].split("/")[0])
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        yield reader, writer
    finally:
        writer.close()
        await writer.wait_closed()


async def _exchange(env, portions):
    async with _socket(env) as (reader, writer):
        for portion in portions:
            writer.write(portion)
            await writer.drain()
            await asyncio.sleep(0)  # so that each portion is a read of its own
        return await reader.read()


@pytest.mark.parametrize("stream", [True, False])
async def test_a_request_sent_a_byte_at_a_time_is_answered_alike(
    serve, make_gate, make_booking, stream
):
    steady = make_booking(fresh_ids=False)
    body = json.dumps({"messages": [USER], "stream": stream, **ROOM}).encode()
    head = (
        "POST /anthropic/v1/messages HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
        f"x-api-key: {CANARY}\r\nanthropic-version: 2023-06-01\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    ).encode()
    request = head + body
    async with serve(Llm(), make_gate(), steady) as env:
        whole = await _exchange(env, [request])
        bytewise = await _exchange(env, [bytes([byte]) for byte in request])
    assert _without_date(whole) == _without_date(bytewise)
    assert b"toolu_t0p0_" in whole


def _without_date(reply):
    return [line for line in reply.split(b"\r\n") if not line.startswith(b"Date:")]


async def test_a_beta_of_the_client_is_served_too(
    serve, make_gate, scenario, anthropic_at
):
    async with serve(Llm(), make_gate(), scenario) as env, anthropic_at(env) as client:
        said = await client.beta.messages.create(
            messages=[USER],
            betas=["context-management-2025-06-27"],
            context_management={"edits": []},
            **ROOM,
        )
    assert said.content[0].name == "search"
