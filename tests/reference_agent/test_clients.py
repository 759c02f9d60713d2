"""The two HTTP clients send once, and know what an answer means."""

import socket
from typing import Any

import pytest

from reference_agent.effects import NoLookUp, Trouble
from reference_agent.model_client import ModelTrouble, OpenAIModel
from reference_agent.tool_client import HttpTools

MESSAGES = ({"role": "user", "content": "goal"},)
ARGUMENTS = {"to": "ann", "cents": 3}


@pytest.fixture
def tools(world: Any, world_url: str) -> HttpTools:
    world.promises = {"send_mail": "queryable", "hold_seat": "keyed"}
    return HttpTools(f"{world_url}/tools")


@pytest.fixture
def model(world: Any, world_url: str, monkeypatch: pytest.MonkeyPatch) -> OpenAIModel:
    monkeypatch.setenv("OPENAI_BASE_URL", f"{world_url}/v1")
    monkeypatch.setenv("OPENAI_API_KEY", "sk-canary")
    world.script = ["Booked."]
    return OpenAIModel("any", [])


def test_the_key_travels_in_its_header(tools: HttpTools, world: Any) -> None:
    outcome = tools.do("hold_seat", ARGUMENTS, "r1/1/0/hold_seat")
    assert outcome.applied
    assert outcome.text == '{"status": "applied", "tool": "hold_seat"}'
    assert world.applied == [("hold_seat", ARGUMENTS, "r1/1/0/hold_seat")]


def test_a_look_up_finds_exactly_equal_arguments(tools: HttpTools, world: Any) -> None:
    tools.do("send_mail", ARGUMENTS, None)
    tools.do("send_mail", ARGUMENTS | {"cents": "3"}, None)
    assert len(tools.done("send_mail", ARGUMENTS)) == 1
    assert tools.done("send_mail", ARGUMENTS | {"to": "bob"}) == []


def test_a_service_without_a_look_up_says_so(tools: HttpTools) -> None:
    with pytest.raises(NoLookUp):
        tools.done("hold_seat", ARGUMENTS)


def test_a_refusal_is_an_outcome_for_the_model(tools: HttpTools, world: Any) -> None:
    world.errors = {"hold_seat#1": (422, "no such seat")}
    outcome = tools.do("hold_seat", ARGUMENTS, None)
    assert (outcome.text, outcome.applied) == ("Error 422: no such seat", False)


@pytest.mark.parametrize(
    ("status", "body", "sent"),
    [(500, "", True), (503, "", True), (429, "", False), (200, "<html>", True)],
)
def test_trouble_says_whether_the_service_may_have_acted(
    tools: HttpTools, world: Any, status: int, body: str, *, sent: bool
) -> None:
    world.errors = {"hold_seat#1": (status, body)}
    with pytest.raises(Trouble) as trouble:
        tools.do("hold_seat", ARGUMENTS, None)
    assert trouble.value.sent is sent
    assert world.seen["hold_seat"] == 1


def test_a_refused_connection_was_not_sent() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(Trouble, match="no connection") as trouble:
        HttpTools(f"http://127.0.0.1:{port}").do("hold_seat", ARGUMENTS, None)
    assert trouble.value.sent is False


def test_the_model_replies(model: OpenAIModel) -> None:
    reply = model.ask(MESSAGES)
    assert reply.message == {"role": "assistant", "content": "Booked."}
    assert (reply.prompt_tokens, reply.completion_tokens) == (7, 3)


@pytest.mark.parametrize(
    ("status", "passing"), [(500, True), (529, True), (429, True), (400, False)]
)
def test_the_sdk_does_not_retry_unseen(
    model: OpenAIModel, world: Any, status: int, *, passing: bool
) -> None:
    world.errors = {"model#1": (status, '{"error": {"message": "sk-canary goal"}}')}
    with pytest.raises(ModelTrouble) as trouble:
        model.ask(MESSAGES)
    assert world.seen["model"] == 1
    assert trouble.value.passing is passing
    assert str(trouble.value) == f"it answered {status}"


@pytest.mark.parametrize("body", ["{}", '{"choices": []}', "[1]", '"words"', "{"])
def test_a_reply_that_is_no_completion_is_trouble(
    model: OpenAIModel, world: Any, body: str
) -> None:
    world.errors = {"model#1": (200, body)}
    with pytest.raises(ModelTrouble) as trouble:
        model.ask(MESSAGES)
    assert trouble.value.passing


def test_a_reply_that_was_cut_off_is_no_answer(model: OpenAIModel, world: Any) -> None:
    body = (
        '{"id": "c", "choices": [{"index": 0, "finish_reason": "length",'
        ' "message": {"role": "assistant", "content": "Boo"}}]}'
    )
    world.errors = {"model#1": (200, body)}
    with pytest.raises(ModelTrouble, match="cut off"):
        model.ask(MESSAGES)
