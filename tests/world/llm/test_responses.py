"""Responses, asked by the official client over real sockets."""

import json

import openai
import pytest

from chaoskit.model.history import Asked, to_line
from chaoskit.world.llm import Llm

GOAL = "Book a flight to NYC"
DECLARED = [{"type": "function", "name": "search", "parameters": {"type": "object"}}]


@pytest.fixture
def scenario(make_booking):
    return make_booking(waits=False)


def _results(reply):
    return [
        {"type": "function_call_output", "call_id": i.call_id, "output": "ok"}
        for i in reply.output
        if i.type == "function_call"
    ]


async def _ask(client, given=GOAL, **more):
    return await client.responses.create(model="any-model", input=given, **more)


async def _converse(client, turns, **more):
    """Go on from the goal for some turns, with items; gives items and replies."""
    items, replies = [{"role": "user", "content": GOAL}], []
    for _ in range(turns):
        reply = await _ask(client, items, **more)
        replies.append(reply)
        items = [*items, *reply.output, *_results(reply)]
    return items, replies


async def test_each_result_is_recorded_when_the_model_is_told_of_it_in_new_words(
    serve, make_gate, scenario, openai_at
):
    """Also where it stands behind an answer that the service has kept."""
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        first = await _ask(client)
        told = {"previous_response_id": first.id}
        second = await _ask(client, _results(first), **told)
        told = {"previous_response_id": second.id}
        await _ask(client, _results(second), **told)
        await _ask(client, _results(second), **told)
        (result,) = _results(first)
        parts = [{"type": "input_text", "text": "none"}]
        changed = [{"role": "user", "content": GOAL}, *first.output]
        await _ask(client, [*changed, {**result, "output": parts}])
    assert [event.results for event in gate.of(Asked)] == [
        {},
        {"0.0": "ok"},
        {"1.0": "ok", "1.1": "ok"},
        {},
        {"0.0": "none"},
    ]


async def test_a_conversation_by_items_follows_the_script(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        _, replies = await _converse(client, 3, tools=DECLARED, instructions="Book.")
    made = [
        [(i.name, json.loads(i.arguments)) for i in r.output if i.type != "message"]
        for r in replies
    ]
    assert made == [
        [("search", {"to": "NYC"})],
        [("hold", {"order": "o-1"}), ("pay", {"order": "o-1", "cents": 42000})],
        [],
    ]
    assert replies[-1].output_text == "Booked."
    assert {reply.status for reply in replies} == {"completed"}
    assert [e.turn for e in gate.of(Asked)] == [0, 1, 2]
    assert [e.carried for e in gate.of(Asked)] == [(), ("0.0",), ("0.0", "1.0", "1.1")]
    assert gate.of(Asked)[0].contents == ("Book.", GOAL)
    for event, reply in zip(gate.of(Asked), replies, strict=True):
        assert event.prompt_tokens == reply.usage.input_tokens > 0
        assert event.completion_tokens == reply.usage.output_tokens > 0
    crossed = gate.addresses()
    assert crossed[1] == "0:llm.responses#1:after"


async def test_a_conversation_by_previous_response_follows_the_script(
    serve, make_gate, scenario, openai_at
):
    gate, llm = make_gate(), Llm()
    async with serve(llm, gate, scenario) as env, openai_at(env) as client:
        first = await _ask(client)
        second = await _ask(client, _results(first), previous_response_id=first.id)
        saved = await llm.snapshot()
        third = await _ask(client, _results(second), previous_response_id=second.id)
        kept = await client.responses.retrieve(second.id)
        with pytest.raises(openai.NotFoundError, match="'resp_x' not found"):
            await client.responses.retrieve("resp_x")
    assert third.output_text == "Booked."
    assert third.previous_response_id == second.id
    assert kept.output == second.output
    assert [e.turn for e in gate.of(Asked)] == [0, 1, 2]
    assert gate.of(Asked)[2].carried == ("0.0", "1.0", "1.1")
    llm = Llm()
    async with serve(llm, make_gate(), scenario) as env:
        await llm.restore(saved)
        async with openai_at(env) as client:
            again = await _ask(client, _results(second), previous_response_id=second.id)
    assert again.output_text == "Booked."


async def test_what_is_not_stored_cannot_be_referred_to(
    serve, make_gate, scenario, openai_at
):
    async with serve(Llm(), make_gate(), scenario) as env, openai_at(env) as client:
        first = await _ask(client, store=False)
        with pytest.raises(openai.BadRequestError) as refused:
            await _ask(client, _results(first), previous_response_id=first.id)
        item = {"type": "item_reference", "id": first.output[0].id}
        with pytest.raises(openai.NotFoundError, match="Items are not persisted"):
            await _ask(client, [item, *_results(first)])
        kept = await _ask(client)
        item = {"type": "item_reference", "id": kept.output[0].id}
        user = {"role": "user", "content": GOAL}
        second = await _ask(client, [user, item, *_results(kept)])
    assert refused.value.code == "previous_response_not_found"
    assert refused.value.param == "previous_response_id"
    assert [item.name for item in second.output] == ["hold", "pay"]


async def test_a_history_that_was_summed_up_finds_its_place_by_ids(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        items, _ = await _converse(client, 2)
        summary = {"role": "user", "content": f"So far ({GOAL}): a search."}
        reply = await _ask(client, [summary, *items[3:]])
    assert reply.output_text == "Booked."


async def test_ids_are_fresh_and_carry_their_place(
    serve, make_gate, scenario, openai_at
):
    async with serve(Llm(), make_gate(), scenario) as env, openai_at(env) as client:
        one, other = await _ask(client), await _ask(client)
    ids = [(r.id, r.output[0].id, r.output[0].call_id) for r in (one, other)]
    assert len({identity for each in ids for identity in each}) == 6
    for reply, item, call in ids:
        assert reply.startswith("resp_t0p0_")
        assert item.startswith("fc_t0p0_")
        assert call.startswith("call_t0p0_")


async def test_thoughts_are_shown_paid_for_and_sealed_where_asked_for(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        thinking = {"effort": "low", "summary": "auto"}
        sealed = ["reasoning.encrypted_content"]
        reply = await _ask(client, reasoning=thinking, include=sealed)
        given = [{"role": "user", "content": GOAL}, *reply.output, *_results(reply)]
        assert (await _ask(client, given)).output[0].name == "hold"
        with pytest.raises(openai.BadRequestError, match="required 'reasoning' item"):
            await _ask(client, [given[0], *given[2:]])
        with pytest.raises(openai.BadRequestError, match="required following item"):
            await _ask(client, given[:2])
    thought, call = reply.output
    assert (thought.type, call.type) == ("reasoning", "function_call")
    assert thought.summary[0].text
    assert thought.encrypted_content
    assert reply.usage.output_tokens_details.reasoning_tokens == 64
    assert gate.of(Asked)[0].completion_tokens == reply.usage.output_tokens > 64


async def test_streamed_it_has_every_event_in_order_and_the_same_answer(
    serve, make_gate, make_booking, openai_at
):
    scenario = make_booking(waits=False, fresh_ids=False)
    async with serve(Llm(), make_gate(), scenario) as env, openai_at(env) as client:
        items, _ = await _converse(client, 2)
        for given in (GOAL, items):
            whole = await _ask(client, given)
            asked = {"model": "any-model", "input": given}
            async with client.responses.stream(**asked) as stream:
                events = [event async for event in stream]
                final = await stream.get_final_response()
            assert final.to_dict(mode="json", exclude_none=True) == {
                **whole.to_dict(mode="json", exclude_none=True),
                "output": final.to_dict(mode="json", exclude_none=True)["output"],
            }
            assert [i.id for i in final.output] == [i.id for i in whole.output]
            assert [e.sequence_number for e in events] == list(range(len(events)))
            kinds = list(dict.fromkeys(event.type for event in events))
            inner = _CALL_EVENTS if given is GOAL else _MESSAGE_EVENTS
            assert kinds == [*_BEGIN, *inner, "response.output_item.done", *_END]


_BEGIN = ("response.created", "response.in_progress", "response.output_item.added")
_END = ("response.completed",)
_CALL_EVENTS = (
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
)
_MESSAGE_EVENTS = (
    "response.content_part.added",
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
)
_THOUGHT_EVENTS = (
    "response.reasoning_summary_part.added",
    "response.reasoning_summary_text.delta",
    "response.reasoning_summary_text.done",
    "response.reasoning_summary_part.done",
)


async def test_thoughts_are_streamed_too(serve, make_gate, scenario, openai_at):
    async with serve(Llm(), make_gate(), scenario) as env, openai_at(env) as client:
        thinking = {"effort": "high", "summary": "detailed"}
        stream = await _ask(client, reasoning=thinking, stream=True)
        kinds = [event.type async for event in stream]
    assert [k for k in dict.fromkeys(kinds) if "reasoning" in k] == [*_THOUGHT_EVENTS]


async def test_an_error_in_the_middle_is_an_event_and_a_failed_answer(
    serve, make_gate, scenario, web, openai_at
):
    gate = make_gate(
        "error(500)@0:llm.responses#1:part:4 + error(429)@0:llm.responses#2:part:4"
    )
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        with pytest.raises(openai.APIError, match="An error occurred"):
            async for _ in await _ask(client, stream=True):
                pass
        raw = client.responses.with_raw_response
        reply = await raw.create(model="m", input=GOAL, stream=True)
        text = (await reply.http_response.aread()).decode()
    lines = (line.removeprefix("data: ") for line in text.splitlines())
    events = [json.loads(line) for line in lines if line.startswith("{")]
    assert [event["sequence_number"] for event in events] == list(range(6))
    assert events[4]["type"] == "error"
    assert events[4]["error"]["code"] == "rate_limit_exceeded"
    failed = events[5]["response"]
    assert (failed["status"], failed["error"]["code"]) == (
        "failed",
        "rate_limit_exceeded",
    )
    (item,) = failed["output"]
    assert item["status"] == "incomplete"
    assert 0 < len(item["arguments"]) < len('{"to":"NYC"}')


@pytest.mark.parametrize("at", ["after", "part:4"])
async def test_an_answer_at_its_limit_is_incomplete_streamed_or_not(
    serve, make_gate, scenario, at, openai_at
):
    gate = make_gate(f"error(length)@0:llm.responses#1:{at}")
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        events = [event async for event in await _ask(client, stream=True)]
    last = events[-1]
    assert last.type == "response.incomplete"
    assert last.response.status == "incomplete"
    assert last.response.incomplete_details.reason == "max_output_tokens"
    assert last.response.output[0].status == "incomplete"
    with pytest.raises(json.JSONDecodeError):
        json.loads(last.response.output[0].arguments)


async def test_refusals_are_recorded_without_fresh_ids(
    serve, make_gate, scenario, openai_at
):
    gate = make_gate()
    async with serve(Llm(), gate, scenario) as env, openai_at(env) as client:
        first = await _ask(client)
        with pytest.raises(openai.BadRequestError) as refused:
            await _ask(client, "and?", previous_response_id=first.id)
    call = first.output[0].call_id
    sentence = "No tool output found for function call"
    assert refused.value.body["message"] == f"{sentence} {call}."
    assert gate.of(Asked)[-1].problem == f"{sentence} call_t0p0."
    assert env["OPENAI_API_KEY"] not in "".join(map(to_line, gate.record.events))
