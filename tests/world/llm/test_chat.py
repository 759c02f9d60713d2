"""The `llm` service, asked by the official client over real sockets."""

import json

import openai
import pytest

from chaoskit.model.history import Asked, to_line
from chaoskit.world.llm.service import CANARY, Llm

GOAL = "Book a flight to NYC"
USER = {"role": "user", "content": GOAL}


async def _ask(client, messages, **more):
    return await client.chat.completions.create(
        model="any-model", messages=messages, **more
    )


async def _converse(client, turns):
    """Go on from the goal for some turns; returns conversation and replies."""
    messages, replies = [USER], []
    for _ in range(turns):
        reply = await _ask(client, messages)
        replies.append(reply)
        said = reply.choices[0].message
        messages.append(said.model_dump(exclude_none=True))
        messages += [
            {"role": "tool", "tool_call_id": call.id, "content": f"did {call.id}"}
            for call in said.tool_calls or ()
        ]
    return messages, replies


async def test_a_whole_conversation_follows_the_script(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        _, replies = await _converse(client, 5)
    called = [
        [(c.function.name, json.loads(c.function.arguments)) for c in calls]
        for calls in (r.choices[0].message.tool_calls or () for r in replies)
    ]
    assert called == [
        [("search", {"to": "NYC"})],
        [("hold", {"order": "o-1"}), ("pay", {"order": "o-1", "cents": 42000})],
        [("ask_human", {"question": "Approve?"})],
        [("wait", {"seconds": 0.5})],
        [],
    ]
    last = replies[-1].choices[0]
    assert (last.message.content, last.finish_reason) == ("Booked.", "stop")
    assert replies[0].choices[0].finish_reason == "tool_calls"
    assert replies[0].model == "any-model"


async def test_each_request_is_recorded_with_its_place_and_its_news(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        _, replies = await _converse(client, 3)
    asked = gate.of(Asked)
    assert [event.turn for event in asked] == [0, 1, 2]
    assert [e.carried for e in asked] == [(), ("0.0",), ("0.0", "1.0", "1.1")]
    ids = [c.id for r in replies[:2] for c in r.choices[0].message.tool_calls]
    news = [(GOAL,), (f"did {ids[0]}",), (f"did {ids[1]}", f"did {ids[2]}")]
    assert [event.contents for event in asked] == news
    for event, reply in zip(asked, replies, strict=True):
        assert event.prompt_tokens == reply.usage.prompt_tokens > 0
        assert event.completion_tokens == reply.usage.completion_tokens > 0
    crossed = gate.addresses()
    assert crossed[:3] == [
        "0:llm.chat#1:before",
        "0:llm.chat#1:after",
        "0:llm.chat#2:before",
    ]


def _with_result(messages, said, *texts):
    made = said.tool_calls
    answered = [
        {"role": "tool", "tool_call_id": call.id, "content": text}
        for call, text in zip(made, texts, strict=True)
    ]
    return [*messages, said.model_dump(exclude_none=True), *answered]


async def test_each_result_is_recorded_when_the_model_is_told_of_it_in_new_words(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        first = (await _ask(client, [USER])).choices[0].message
        found = _with_result([USER], first, [{"type": "text", "text": "KS-12"}])
        second = (await _ask(client, found)).choices[0].message
        await _ask(client, _with_result(found, second, "held", "paid"))
        await _ask(client, _with_result(found, second, "held", "paid"))
        changed = _with_result([USER], first, "none")
        await _ask(client, _with_result(changed, second, "held", f"paid: {CANARY}"))
    assert [event.results for event in gate.of(Asked)] == [
        {},
        {"0.0": "KS-12"},
        {"1.0": "held", "1.1": "paid"},
        {},
        {"0.0": "none", "1.1": "paid: {canary}"},
    ]


async def test_a_request_that_is_refused_has_told_the_model_nothing(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        first = (await _ask(client, [USER])).choices[0].message
        found = _with_result([USER], first, "KS-12")
        with pytest.raises(openai.BadRequestError):
            await _ask(client, [*found, found[-1]])
        await _ask(client, found)
    asked = gate.of(Asked)
    assert [event.problem is None for event in asked] == [True, False, True]
    assert [event.results for event in asked] == [{}, {}, {"0.0": "KS-12"}]


async def test_the_reply_hangs_on_the_conversation_not_on_a_counter(
    serve, make_gate, scenario, openai_at
):
    async with serve(Llm(), make_gate(), scenario) as env, openai_at(env) as client:
        messages, replies = await _converse(client, 2)
        again = [await _ask(client, messages[:n]) for n in (1, 3, 1)]
    names = [r.choices[0].message.tool_calls[0].function.name for r in again]
    assert names == ["search", "hold", "search"]
    ids = {r.id for r in [*replies, *again]}
    ids |= {r.choices[0].message.tool_calls[0].id for r in [*replies, *again]}
    assert len(ids) == 10, "every reply has ids of its own"


async def test_ids_are_the_same_each_time_where_the_scenario_says_so(
    serve, make_gate, make_booking, openai_at
):
    scenario = make_booking(fresh_ids=False)
    async with serve(Llm(), make_gate(), scenario) as env, openai_at(env) as client:
        one, other = await _ask(client, [USER]), await _ask(client, [USER])
    assert one.model_dump() == other.model_dump()


async def test_two_runs_have_different_ids_and_one_run_the_same(
    serve, make_gate, scenario, openai_at
):
    ids = []
    for run in ("run-a", "run-a", "run-b"):
        gate = make_gate(run_id=run)
        async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
            ids.append((await _ask(client, [USER])).id)
    assert ids[0] == ids[1] != ids[2]


async def test_a_restored_model_gives_no_id_twice(
    serve, make_gate, scenario, openai_at
):
    llm = Llm()
    async with serve(llm, make_gate(), scenario) as env:
        async with openai_at(env) as client:
            first = await _ask(client, [USER])
        saved = await llm.snapshot()
        await llm.reset(make_gate(), scenario)
        await llm.restore(saved)
        async with openai_at(await llm.open(0)) as client:
            second = await _ask(client, [USER])
    assert first.id != second.id


async def test_a_history_that_was_summed_up_finds_its_place_by_ids(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        messages, _ = await _converse(client, 2)
        summary = {"role": "user", "content": f"So far ({GOAL}): a search."}
        reply = await _ask(client, [summary, *messages[3:]])
    assert reply.choices[0].message.tool_calls[0].function.name == "ask_human"
    assert gate.of(Asked)[-1].turn == 2


async def test_past_the_end_the_last_word_is_repeated_and_noted(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        messages, _ = await _converse(client, 5)
        reply = await _ask(client, [*messages, {"role": "user", "content": "more"}])
    assert reply.choices[0].message.content == "Booked."
    assert [e.past_end for e in gate.of(Asked)] == [False] * 5 + [True]


async def test_a_refusal_is_the_real_one_and_is_recorded_without_fresh_ids(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        messages, _ = await _converse(client, 1)
        with pytest.raises(openai.BadRequestError) as refused:
            await _ask(client, messages[:-1])
    body = refused.value.body
    identity = messages[1]["tool_calls"][0]["id"]
    assert body["message"].endswith(f"did not have response messages: {identity}")
    assert body["type"] == "invalid_request_error"
    asked = gate.of(Asked)[-1]
    assert asked.problem is not None
    assert asked.problem.endswith("did not have response messages: call_t0p0")
    assert (asked.turn, asked.prompt_tokens, asked.completion_tokens) == (1, 0, 0)
    crossed = gate.addresses()
    assert crossed[-1] == "0:llm.chat#2:after"


async def test_without_the_key_there_is_no_answer_and_the_key_sent_is_not_repeated(
    serve, make_gate, scenario, web, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env:
        async with openai_at(env, api_key="sk-real-secret") as client:
            with pytest.raises(openai.AuthenticationError) as refused:
                await _ask(client, [USER])
            with pytest.raises(openai.AuthenticationError):
                await client.models.list()
        async with web() as bare:
            url = f"{env['OPENAI_BASE_URL']}/chat/completions"
            async with bare.post(url, data=b"{") as reply:
                assert reply.status == 401
                error = (await reply.json())["error"]
                assert "didn't provide an API key" in error["message"]
    assert refused.value.code == "invalid_api_key"
    assert "secret" not in str(refused.value.body)
    assert [e.problem is None for e in gate.of(Asked)] == [False, False]


async def test_the_canary_is_in_no_history_even_if_the_agent_sends_it(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        await _ask(client, [USER, {"role": "user", "content": f"key {CANARY}"}])
        with pytest.raises(openai.BadRequestError):
            await _ask(client, [{"role": CANARY, "content": "x"}])
    assert CANARY not in "".join(map(to_line, gate.record.events))
    assert "key {canary}" in gate.of(Asked)[0].contents


async def test_models_are_listed_and_any_name_is_known(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        assert [m.id async for m in client.models.list()] == ["chaoskit-scripted"]
        assert (await client.models.retrieve("org/model-9")).id == "org/model-9"
    assert gate.record.events == [], "looking at models is no crossing"


@pytest.mark.parametrize(
    ("method", "path", "status", "message"),
    [
        ("PUT", "/responses", 405, "Not allowed to PUT on /v1/responses"),
        ("GET", "/nothing", 404, "Invalid URL (GET /v1/nothing)"),
        ("GET", "/chat/completions", 405, "Not allowed to GET on /v1/chat/completions"),
        ("POST", "/models", 405, "Not allowed to POST on /v1/models"),
    ],
)
async def test_other_urls_get_the_apis_own_error(
    serve, make_gate, scenario, web, method, path, status, message
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, web() as client:
        url = env["OPENAI_BASE_URL"] + path
        async with client.request(method, url) as reply:
            assert reply.status == status
            error = (await reply.json())["error"]
    assert error["message"].startswith(message)
    assert error["type"] == "invalid_request_error"
    assert gate.record.events == []


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"\xff", b'{"a": NaN}'])
async def test_what_is_no_json_object_is_refused_and_recorded(
    serve, make_gate, scenario, web, body
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, web() as client:
        url = f"{env['OPENAI_BASE_URL']}/chat/completions"
        headers = {"Authorization": f"Bearer {env['OPENAI_API_KEY']}"}
        async with client.post(url, data=body, headers=headers) as reply:
            assert reply.status == 400
            error = (await reply.json())["error"]
    assert error["message"].startswith("We could not parse the JSON body")
    assert gate.of(Asked)[0].problem == error["message"]


async def test_alternatives_are_paid_for(serve, make_gate, scenario, openai_at):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        reply = await _ask(client, [USER], n=2)
    assert len(reply.choices) == 2
    assert gate.of(Asked)[0].completion_tokens == reply.usage.completion_tokens
