"""The `tools` service over real sockets: classes, look-ups, errors."""

import asyncio
import io
from base64 import b64encode

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from chaoskit.model.history import Applied, Crossed, Delivered, Leaked
from chaoskit.world.book import Book
from chaoskit.world.http import Request
from chaoskit.world.llm import CANARY
from chaoskit.world.tools import Tools, _Counter

TOOLS = {
    "search": "read",
    "hold": "keyed",
    "charge_card": "queryable",
    "send": "blind",
    "quote": {"class": "read", "result": [1, 2]},
    "seat": {"class": "keyed", "result": {"seat": "12A"}},
}
BASIC = "Basic " + b64encode(f"agent:{CANARY}".encode()).decode()
SCRIPT = [
    {"call": [{"tool": "charge_card", "args": {"order": "o-1", "cents": 42000}}]},
    {"call": [{"tool": "send", "args": {}}]},
    {"say": "Done."},
]


@pytest.fixture
def scenario(make_scenario):
    return make_scenario(SCRIPT, TOOLS)


@pytest.fixture
def at_counter(serve, make_gate, scenario, web):
    """Run a test body with a caller of tools and the gate that saw the calls."""

    async def run(body, gate=None):
        gate = gate or make_gate()
        async with serve(Tools(), gate, scenario) as env, web() as client:

            async def call(tool, args=None, key=None, method="POST", more=(), **rest):
                headers = {"Idempotency-Key": key} if key is not None else {}
                headers.update(more)
                url = f"{env['CHAOSKIT_TOOLS_URL']}/{tool}"
                if method == "POST" and "data" not in rest:
                    rest["json"] = args or {}
                sent = client.request(method, url, headers=headers, **rest)
                async with sent as reply:
                    return reply.status, await reply.json()

            await body(call, gate)

    return run


async def test_a_read_answers_crosses_and_leaves_no_entry(at_counter):
    async def body(call, gate):
        assert await call("search", {"to": "NYC"}) == (
            200,
            {"result": {"status": "ok"}},
        )
        assert await call("quote") == (200, {"result": [1, 2]})
        assert gate.of(Applied) == []
        assert [d.tool for d in gate.of(Delivered)] == ["search", "quote"]
        assert gate.addresses()[0] == "0:tools.search[NYC]#1:before"
        assert gate.addresses()[-1] == "0:tools.quote#1:after"

    await at_counter(body)


async def test_a_keyed_tool_repeats_the_first_answer_of_a_key(at_counter):
    async def body(call, gate):
        first = await call("hold", {"order": "o-1"}, key="k1")
        assert first == (200, {"result": {"status": "applied", "id": "hold[o-1]#1"}})
        assert await call("hold", {"order": "o-1"}, key="k1") == first
        assert await call("hold", {"order": "o-2"}, key="k1") == first
        second = await call("hold", {"order": "o-1"}, key="k2")
        third = await call("hold", {"order": "o-1"})
        ids = [reply[1]["result"]["id"] for reply in (second, third)]
        assert ids == ["hold[o-1]#2", "hold[o-1]#3"]
        assert [a.first for a in gate.of(Applied)] == [True, False, False, True, True]
        keys = ["k1", "k1", "k1", "k2", None]
        assert [d.idempotency_key for d in gate.of(Delivered)] == keys

    await at_counter(body)


@pytest.mark.parametrize("order", [(42000, 1), (1, 42000)])
async def test_a_receipt_does_not_tell_what_was_done_before(at_counter, order):
    """Of two calls that are made side by side, either may come first."""

    async def body(call, gate):
        async def charge(cents):
            reply = await call("charge_card", {"cents": cents, "order": "o-1"})
            return reply[1]["result"]["id"]

        ids = {cents: await charge(cents) for cents in order}
        assert ids[42000] == "charge_card[o-1]#1"
        assert ids[1] == "charge_card[o-1]~d7d16bde#1"
        assert await charge(1.0) == "charge_card[o-1]~d7d16bde#2"

    await at_counter(body)


async def test_a_key_is_known_to_its_own_tool_only(at_counter):
    async def body(call, gate):
        await call("hold", {"order": "o-1"}, key="k1")
        assert await call("seat", {"n": 1}, key="k1") == (
            200,
            {"result": {"seat": "12A"}},
        )
        assert [a.first for a in gate.of(Applied)] == [True, True]

    await at_counter(body)


@pytest.mark.parametrize("tool", ["charge_card", "send"])
async def test_tools_that_ignore_keys_apply_every_time(at_counter, tool):
    async def body(call, gate):
        for _ in range(2):
            await call(tool, {"order": "o-1"}, key="k1")
        applied = gate.of(Applied)
        assert [a.first for a in applied] == [True, True]
        assert [a.idempotency_key for a in applied] == ["k1", "k1"]

    await at_counter(body)


async def test_a_delivery_and_its_application_share_a_message_number(at_counter):
    async def body(call, gate):
        await call("charge_card", {"cents": 1, "order": "o-1"}, key="k")
        (delivered,), (applied,) = gate.of(Delivered), gate.of(Applied)
        assert delivered.message == applied.message
        assert delivered.args == applied.args == {"cents": 1, "order": "o-1"}
        kinds = [type(event) for event in gate.record.events]
        assert kinds == [Delivered, Crossed, Applied, Crossed]

    await at_counter(body)


async def test_the_key_of_a_crossing_is_the_first_argument_of_the_script(at_counter):
    async def body(call, gate):
        await call("charge_card", {"cents": 1, "order": "o-1"})
        await call("charge_card", {"order": {"id": [1, "x"]}})
        await call("charge_card", {"order": "x" * 65})
        await call("charge_card", {"cents": 1})
        await call("send", {"to": "a"})
        await call("hold", {"b": True, "a": 1})
        keys = [e.at.operation.key for e in gate.of(Crossed)[::2]]
        assert keys[:2] == ["o-1", '{"id":[1,"x"]}']
        assert (
            keys[2] == "x" * 48 + "~7ce100971f64e7"[:9]
            or keys[2][:49] == "x" * 48 + "~"
        )
        assert len(keys[2]) == 57
        assert keys[3:] == [None, None, "true"]

    await at_counter(body)


LOOK_UPS = [
    ({}, 3),
    ({"order": "o-1"}, 2),
    ({"order": "o-1", "cents": "42000"}, 1),
    ({"cents": "42000.0"}, 0),
    ({"paid": "true"}, 1),
    ({"note": "null"}, 1),
    ({"nested": '{"a":[1,2]}'}, 1),
    ({"missing": ""}, 0),
]


@pytest.mark.parametrize(("query", "count"), LOOK_UPS)
async def test_a_look_up_compares_arguments_as_text(at_counter, query, count):
    async def body(call, gate):
        await call("charge_card", {"order": "o-1", "cents": 42000}, key="k1")
        await call("charge_card", {"order": "o-1", "paid": True, "note": None})
        await call("charge_card", {"order": 2, "nested": {"a": [1, 2]}})
        status, found = await call("charge_card", method="GET", params=query)
        assert status == 200
        assert len(found["effects"]) == count

    await at_counter(body)


async def test_a_look_up_shows_effects_and_crosses_as_its_own_operation(at_counter):
    async def body(call, gate):
        args = {"order": "o-1", "cents": 42000}
        _, applied = await call("charge_card", args, key="k1")
        _, found = await call("charge_card", method="GET", params={"order": "o-1"})
        effect = {"args": args, "result": applied["result"], "idempotency_key": "k1"}
        assert found == {"effects": [effect]}
        await call("charge_card", method="GET", params={"cents": "42000"})
        assert gate.addresses()[2::2] == [
            "0:tools.charge_card?[o-1]#1:before",
            "0:tools.charge_card?#1:before",
        ]
        assert len(gate.of(Delivered)) == 1

    await at_counter(body)


ERRORS = [
    ("nothing", {}, 404, "not_found", "charge_card"),
    ("hold/x", {}, 404, "not_found", "search"),
    ("hold", {"method": "GET"}, 404, "not_found", "only queryable"),
    ("send", {"method": "GET"}, 404, "not_found", "only queryable"),
    ("search", {"method": "GET"}, 404, "not_found", "only queryable"),
    ("hold", {"method": "PUT"}, 405, "method_not_allowed", "POST"),
    ("charge_card", {"method": "DELETE"}, 405, "method_not_allowed", "POST, GET"),
    ("hold", {"data": b"{"}, 400, "bad_request", "JSON object"),
    ("hold", {"data": b""}, 400, "bad_request", "JSON object"),
    ("hold", {"data": b"[1]"}, 400, "bad_request", "list"),
    ("hold", {"data": b'{"a": NaN}'}, 400, "bad_request", "NaN"),
    ("hold", {"key": ""}, 400, "bad_request", "1 to 255"),
    ("hold", {"key": "k" * 256}, 400, "bad_request", "1 to 255"),
    ("hold", {"key": "schlüssel"}, 400, "bad_request", "printable ASCII"),
    ("hold", {"data": io.BytesIO(b" " * 2**20 + b"{}")}, 413, "too_large", "1048576"),
]


@pytest.mark.parametrize(("tool", "sent", "status", "kind", "says"), ERRORS)
async def test_an_error_says_what_was_expected_and_crosses_nothing(
    at_counter, tool, sent, status, kind, says
):
    async def body(call, gate):
        got, reply = await call(tool, **sent)
        assert (got, reply["error"]["type"]) == (status, kind)
        assert says in reply["error"]["message"]
        unknown = tool not in TOOLS
        assert [type(e) for e in gate.record.events] == [Delivered] * unknown

    await at_counter(body)


async def test_the_longest_key_is_taken(at_counter):
    async def body(call, gate):
        assert (await call("hold", key="k" * 255))[0] == 200

    await at_counter(body)


TEXT = st.text(max_size=20)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    method=st.sampled_from(["GET", "POST", "PUT"]),
    path=st.sampled_from([f"/tools/{name}" for name in TOOLS]) | TEXT,
    query=st.lists(st.tuples(TEXT, TEXT)),
    headers=st.lists(st.tuples(st.sampled_from(["Idempotency-Key", "X"]), TEXT)),
    body=st.binary() | st.sampled_from([b"{}", b'{"order": [1e300, {"a": null}]}']),
)
def test_no_request_makes_the_counter_fail(
    make_gate, scenario, method, path, query, headers, body
):
    book = Book()
    book.begin(make_gate(), scenario)
    counter = _Counter(book)
    request = Request(method, path, tuple(query), tuple(headers), body)
    reply = asyncio.run(counter.serve(0, request))
    assert reply.status in (200, 400, 404, 405)
    assert list(reply.body) in (["result"], ["effects"], ["error"])


async def test_the_same_schedule_gives_the_same_crossings(make_gate, scenario, web):
    schedule = "error(503)@0:tools.hold#1:after + duplicate@0:tools.send#1:before"
    tools, seen = Tools(), set()
    await tools.start()
    for _ in range(100):
        gate = make_gate(schedule)
        await tools.reset(gate, scenario)
        url = (await tools.open(0))["CHAOSKIT_TOOLS_URL"]
        async with web() as client:
            for tool in ("hold", "hold", "send"):
                async with client.post(f"{url}/{tool}", json={}):
                    pass
        told = [event.model_copy(update={"t": 0}) for event in gate.record.events]
        seen.add(repr(told))
    await tools.stop()
    assert len(seen) == 1


@pytest.mark.parametrize(
    ("method", "path", "headers", "where"),
    [
        ("POST", "hold", {"Authorization": f"Bearer {CANARY}"}, "hold"),
        ("POST", "hold", {"Authorization": BASIC}, "hold"),
        ("POST", "hold", {"Cookie": f"session={CANARY}"}, "hold"),
        ("POST", f"hold?api_key={CANARY}", {}, "hold"),
        ("GET", f"charge_card?order={CANARY}", {}, "charge_card"),
        ("GET", "charge_card", {"X-Key": CANARY}, "charge_card"),
        ("POST", "nope", {"X-Key": CANARY}, "a tool that is not there"),
        ("POST", CANARY, {}, "a tool that is not there"),
    ],
)
async def test_the_model_s_key_is_seen_in_every_part_of_a_request(
    at_counter, method, path, headers, where
):
    """One client with one default header for all that it calls is common."""

    async def body(call, gate):
        await call(path, method=method, data=b"{}", more=headers)
        assert [event.where for event in gate.of(Leaked)] == [f"a call of {where}"]
        assert all(CANARY not in event.where for event in gate.of(Leaked))

    await at_counter(body)


async def test_a_request_without_the_model_s_key_leaks_nothing(at_counter):
    async def body(call, gate):
        await call("hold", {"order": "o-1"}, "k1")
        assert gate.of(Leaked) == []

    await at_counter(body)


async def test_a_call_of_a_tool_that_is_not_there_shows_and_crosses_nothing(at_counter):
    """No real service has it, and the model never asked for it."""

    async def body(call, gate):
        assert (await call("delete_account", {"id": "a-1"}))[0] == 404
        assert (await call("health", method="GET"))[0] == 404
        (delivered,) = gate.of(Delivered)
        assert (delivered.tool, delivered.args) == ("delete_account", {"id": "a-1"})
        assert gate.of(Applied) == gate.of(Crossed) == []

    await at_counter(body)
