"""A repeated question is answered differently, in each run in the same order."""

import json

import openai
import pytest

from chaoskit.world.llm import Llm

USER = {"role": "user", "content": "Book a flight to NYC"}
TOOLS = {"train": "keyed", "bus": "keyed"}
SCRIPT = [
    {
        "call": [{"tool": "train", "args": {"to": "NYC"}, "or": [{"to": "nyc"}]}],
        "or": [[{"tool": "bus", "args": {"to": "NYC"}}]],
    },
    {"say": "Booked."},
]


@pytest.fixture
def scenario(make_scenario):
    def make(wobble):
        llm = {"script": SCRIPT, "wobble": wobble}
        return make_scenario(tools=TOOLS, llm=llm)

    return make


async def _first_step(client, messages=(USER,)):
    reply = await client.chat.completions.create(model="m", messages=[*messages])
    said = reply.choices[0].message
    calls = [(c.function.name, c.function.arguments) for c in said.tool_calls or ()]
    return calls[0] if calls else said.content


TRAIN = ("train", '{"to":"NYC"}')
OTHERS = {"arguments": ("train", '{"to":"nyc"}'), "choice": ("bus", '{"to":"NYC"}')}


@pytest.mark.parametrize("wobble", ["none", *OTHERS])
async def test_asked_again_it_answers_otherwise(
    serve, make_gate, scenario, wobble, openai_at
):
    other = OTHERS.get(wobble, TRAIN)
    for _ in range(2):
        served = serve(Llm(), make_gate(), scenario(wobble))
        async with served as env, openai_at(env) as client:
            told = [await _first_step(client) for _ in range(3)]
        assert told == [TRAIN, other, TRAIN]


async def test_both_dialects_ask_the_same_model(serve, make_gate, scenario, openai_at):
    served = serve(Llm(), make_gate(), scenario("choice"))
    async with served as env, openai_at(env) as client:
        assert await _first_step(client) == TRAIN
        reply = await client.responses.create(model="m", input=USER["content"])
    assert reply.output[0].name == "bus"


@pytest.mark.parametrize(("edge", "told"), [("before", TRAIN), ("after", None)])
async def test_an_answer_that_was_lost_counts_and_a_question_that_was_lost_does_not(
    serve, make_gate, scenario, edge, told, openai_at
):
    gate = make_gate(f"kill@0:llm.chat#1:{edge}")
    llm = Llm()
    async with serve(llm, gate, scenario("choice")) as env:
        async with openai_at(env) as client:
            with pytest.raises(openai.APIConnectionError):
                await _first_step(client)
        await llm.close(0)
        async with openai_at(await llm.open(1)) as client:
            assert await _first_step(client) == (told or OTHERS["choice"])


async def test_whichever_step_was_taken_the_conversation_goes_on(
    serve, make_gate, scenario, openai_at
):
    served = serve(Llm(), make_gate(), scenario("choice"))
    async with served as env, openai_at(env) as client:
        await _first_step(client)
        reply = await client.chat.completions.create(model="m", messages=[USER])
        said = reply.choices[0].message
        call = said.tool_calls[0]
        result = {"role": "tool", "tool_call_id": call.id, "content": "ok"}
        messages = [USER, said.model_dump(exclude_none=True), result]
        assert call.function.name == "bus"
        assert await _first_step(client, messages) == "Booked."


async def test_how_often_it_was_asked_is_part_of_the_world(
    serve, make_gate, scenario, openai_at
):
    """A restored world gives the answer that the first one would have given."""
    llm = Llm()
    async with serve(llm, make_gate(), scenario("choice")) as env:
        views = [await llm.view()]
        async with openai_at(env) as client:
            for _ in range(2):
                await _first_step(client)
                views.append(await llm.view())
            saved = await llm.snapshot()
            await _first_step(client)
        await llm.reset(make_gate(), scenario("choice"))
        await llm.restore(saved)
        async with openai_at(await llm.open(0)) as client:
            assert await _first_step(client) == TRAIN
            assert await _first_step(client) == OTHERS["choice"]
    assert views == [None, {"0": 1}, None], "as many states as there are answers"
    assert json.dumps(views)
