"""Answers of the Messages endpoint: what the script says, in the real API's shapes.

Streams are read by the official client's own decoder and accumulator.
"""

from typing import get_args

import pytest
from anthropic._streaming import SSEDecoder
from anthropic.lib.streaming._messages import accumulate_event
from anthropic.types import Message, ModelInfo, RawMessageStreamEvent
from anthropic.types.shared import ErrorType
from pydantic import TypeAdapter

from chaoskit.wire import sse
from chaoskit.wire.anthropic.errors import FAILURES
from chaoskit.wire.anthropic.replies import answer, model, models
from chaoskit.wire.anthropic.usage import usage
from chaoskit.wire.said import Ids, Said

BODY = {
    "model": "claude-9",
    "max_tokens": 9,
    "messages": [{"role": "user", "content": "12345"}],
}
IDS = Ids(0, ("f0",))
CALLS = (("hold", '{"b":1,"a":"ü"}'), ("pay", "{}"))
SAID = [
    Said(0, None, CALLS),
    Said(0, "Booked for you, at noon."),
    Said(0, "One moment.", CALLS),
    Said(0, "x"),
    Said(0, "Half of a wo", cut=True),
    Said(0, None, (("hold", '{"b":1'),), cut=True),
]
_EVENT: TypeAdapter[RawMessageStreamEvent] = TypeAdapter(RawMessageStreamEvent)


def _written(said):
    return [sse.event(e, e["type"]) for e in answer(BODY, said, IDS).events()]


def _read(chunks):
    return [(e.event, e.json()) for e in SSEDecoder().iter_bytes(iter(chunks))]


def _accumulated(events):
    whole, buffers = None, {}
    for _, data in events:
        if data["type"] != "ping":
            event = _EVENT.validate_python(data)
            whole = accumulate_event(
                event=event, current_snapshot=whole, json_bufs=buffers
            )
    return whole


def test_calls_carry_turn_and_position():
    said = answer(BODY, SAID[2], Ids(3, ("f0",))).message()
    assert [block.get("id") for block in said["content"]] == [
        None,
        "toolu_t3p0_f0",
        "toolu_t3p1_f0",
    ]
    assert said["content"][1]["input"] == {"b": 1, "a": "ü"}
    assert said["id"] == "msg_t3p0_f0"


@pytest.mark.parametrize(
    ("said", "reason"),
    [(SAID[0], "tool_use"), (SAID[1], "end_turn"), (SAID[4], "max_tokens")],
)
def test_a_message_is_one_of_the_official_client(said, reason):
    whole = answer(BODY, said, IDS).message()
    parsed = Message.model_validate(whole, strict=True)
    assert (parsed.stop_reason, parsed.model, parsed.role) == (
        reason,
        "claude-9",
        "assistant",
    )
    assert parsed.usage.output_tokens == said.tokens
    assert not parsed.model_extra


@pytest.mark.parametrize("said", SAID)
def test_a_stream_adds_up_to_the_whole_answer(said):
    added = _accumulated(_read(_written(said)))
    whole = answer(BODY, said, IDS).message()
    assert (added.id, added.stop_reason) == (whole["id"], whole["stop_reason"])
    if not said.cut:
        added_up = [block.to_dict() for block in added.content]
        assert added_up == whole["content"]
    assert added.usage.to_dict() == {
        k: v for k, v in whole["usage"].items() if v is not None
    } | {"server_tool_use": None}


def test_the_order_of_events_is_the_real_ones():
    kinds = [name for name, _ in _read(_written(SAID[2]))]
    text = ["content_block_start", "ping", *["content_block_delta"] * 3]
    call = ["content_block_start", *["content_block_delta"] * 4, "content_block_stop"]
    short = ["content_block_start", *["content_block_delta"] * 3, "content_block_stop"]
    assert kinds == [
        *("message_start", *text, "content_block_stop", *call, *short),
        *("message_delta", "message_stop"),
    ]


def test_arguments_are_sent_in_pieces_that_are_no_json_alone():
    deltas = [
        data["delta"]["partial_json"]
        for name, data in _read(_written(SAID[0]))
        if name == "content_block_delta" and data["index"] == 0
    ]
    assert deltas[0] == ""
    assert "".join(deltas) == CALLS[0][1]
    assert len(deltas) == 4


@pytest.mark.parametrize("said", SAID)
def test_a_stream_read_a_byte_at_a_time_is_the_same(said):
    written = b"".join(_written(said))
    alone = [written[i : i + 1] for i in range(len(written))]
    assert _read(alone) == _read([written])
    reader = sse.Reader()
    ours = [event for byte in alone for event in reader.feed(byte)]
    assert ours == list(sse.Reader().feed(written))
    assert [event.name for event in ours] == [name for name, _ in _read([written])]


def test_a_stream_at_its_limit_ends_in_order_wherever_it_is():
    whole = answer(BODY, SAID[2], IDS)
    for sent in range(1, len(whole.events())):
        rest = whole.ended_after(whole.events()[:sent])
        kinds = [event["type"] for event in [*whole.events()[:sent], *rest]]
        starts = kinds.count("content_block_start")
        assert starts == kinds.count("content_block_stop")
        assert kinds[-2:] == ["message_delta", "message_stop"]
        assert kinds.count("message_delta") == 1
        events = [*whole.events()[:sent], *rest]
        ended = _accumulated([(e["type"], e) for e in events])
        if "message_delta" in [e["type"] for e in rest]:
            assert ended.stop_reason == "max_tokens"


def test_errors_are_of_the_clients_own_kinds():
    kinds = {
        "429": "rate_limit_error",
        "500": "api_error",
        "503": "api_error",
        "529": "overloaded_error",
    }
    assert set(FAILURES) == set(kinds)
    for argument, kind in kinds.items():
        body = FAILURES[argument].body("req_1")
        assert kind in get_args(ErrorType)
        assert (body["type"], body["error"]["type"]) == ("error", kind)
        assert body["request_id"] == "req_1"
        headers = FAILURES[argument].headers("req_1")
        assert headers["x-should-retry"] == "true"
        assert ("retry-after" in headers) == (argument == "429")


def _system(*marks):
    return [{"type": "text", "text": "12345678", **mark} for mark in marks]


def test_without_marks_nothing_is_cached():
    spent = usage({**BODY, "system": "1234", "tools": [{"name": "f"}]})
    assert (spent.plain, spent.written, spent.read) == (3 + 2 + 1 + 3, 0, 0)
    assert spent.whole(1)["cache_creation"] == {
        "ephemeral_5m_input_tokens": 0,
        "ephemeral_1h_input_tokens": 0,
    }


def test_a_marked_prefix_is_written_once_and_read_from_then_on():
    mark = {"cache_control": {"type": "ephemeral", "ttl": "1h"}}
    first = {**BODY, "system": _system(mark, {})}
    assert usage(first).whole(1)["cache_creation"]["ephemeral_1h_input_tokens"] == 2
    assert (usage(first).plain, usage(first).written, usage(first).read) == (7, 2, 0)
    said = {"role": "assistant", "content": "1234"}
    more = {**first, "messages": [*BODY["messages"], said, *BODY["messages"]]}
    assert (usage(more).plain, usage(more).written, usage(more).read) == (16, 0, 2)


def test_a_mark_on_the_whole_request_moves_with_the_conversation():
    said = {"role": "assistant", "content": "1234"}
    marked = {**BODY, "cache_control": {"type": "ephemeral"}}
    more = {**marked, "messages": [*BODY["messages"], said, *BODY["messages"]]}
    assert (usage(marked).plain, usage(marked).written, usage(marked).read) == (0, 5, 0)
    assert (usage(more).plain, usage(more).written, usage(more).read) == (0, 9, 5)
    assert usage(more).prompt == usage({**more, "cache_control": None}).prompt == 14


def test_calls_and_results_are_paid_for():
    use = {"type": "tool_use", "id": "a", "name": "hold", "input": {"a": 1}}
    result = {"type": "tool_result", "tool_use_id": "a", "content": "12345678"}
    more = [
        *BODY["messages"],
        {"role": "assistant", "content": [use]},
        {"role": "user", "content": [result]},
    ]
    assert usage({**BODY, "messages": more}).prompt == 5 + (3 + 1 + 2) + (3 + 2)


def test_models_are_listed_as_the_real_api_lists_them():
    page = models("m")
    assert (page["first_id"], page["last_id"], page["has_more"]) == ("m", "m", False)
    assert ModelInfo.model_validate(page["data"][0]).id == "m"
    assert ModelInfo.model_validate(model("x")).lifecycle == "active"
