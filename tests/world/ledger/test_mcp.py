"""The `mcp` service, spoken to by the official client and by plain HTTP."""

import asyncio
import http.client
import json
import re
import socket
import subprocess
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import urlsplit

import httpx2
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mcp import MCPError
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from chaoskit.model.history import Applied, Delivered, Leaked
from chaoskit.wire.mcp.messages import LEGACY, META_CAPABILITIES, META_VERSION, MODERN
from chaoskit.world.book import Book
from chaoskit.world.http import Request
from chaoskit.world.llm import CANARY
from chaoskit.world.mcp import Mcp
from chaoskit.world.mcp_server import Server
from chaoskit.world.tools import Tools

TOOLS = {
    "search": "read",
    "hold": "keyed",
    "charge_card": "queryable",
    "send": "blind",
    "quote": {"class": "read", "result": [1, 2]},
    "send_mail": {"class": "keyed", "via": "smtp"},
}
SCRIPT = [
    {"call": [{"tool": "charge_card", "args": {"order": "o-1", "cents": 42000}}]},
    {"call": [{"tool": "charge_card", "args": {"order": None}}]},
    {"call": [{"tool": "send", "args": {}}]},
    {"say": "Done."},
]
CHARGE = {"order": "o-1", "cents": 42000}
ERAS = ["legacy", *MODERN_PROTOCOL_VERSIONS]


@pytest.fixture
def scenario(make_scenario):
    return make_scenario(SCRIPT, TOOLS)


@pytest.fixture
def at_server(serve, make_gate, scenario):
    """Serve; gives the gate and the URL."""

    @asynccontextmanager
    async def serving(gate=None, service=None):
        gate = gate or make_gate()
        async with serve(service or Mcp(), gate, scenario) as env:
            yield gate, env["CHAOSKIT_MCP_URL"]

    return serving


@asynccontextmanager
async def official(url, era):
    """The official client, without the TLS context that takes its time."""
    async with httpx2.AsyncClient(verify=False, timeout=30) as http:
        transport = streamable_http_client(url, http_client=http)
        async with Client(transport, mode=era) as client:
            yield client


def test_every_released_revision_is_served():
    """A new one in the SDK is a reason to read what it says."""
    assert LEGACY == HANDSHAKE_PROTOCOL_VERSIONS
    assert MODERN == MODERN_PROTOCOL_VERSIONS


def test_a_world_without_mcp_does_not_pay_for_it():
    code = "import sys, chaoskit.world.mcp; sys.exit('mcp_types' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("era", [*ERAS, "auto"])
async def test_the_official_client_lists_calls_and_looks_up(at_server, era):
    async with at_server() as (gate, url), official(url, era) as client:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == list(TOOLS)[:-1]
        assert gate.record.events == []
        done = await client.call_tool(
            "charge_card", CHARGE, meta={"idempotency_key": "k1"}
        )
        answer = {"result": {"status": "applied", "id": "charge_card[o-1]#1"}}
        assert done.structured_content == answer
        assert json.loads(done.content[0].text) == answer
        assert not done.is_error
        read = await client.read_resource("effects:///charge_card?order=o-1")
        effect = {"args": CHARGE, "idempotency_key": "k1", **answer}
        assert json.loads(read.contents[0].text) == {"effects": [effect]}
        assert gate.addresses() == [
            "0:mcp.charge_card[o-1]#1:before",
            "0:mcp.charge_card[o-1]#1:after",
            "0:mcp.charge_card?[o-1]#1:before",
            "0:mcp.charge_card?[o-1]#1:after",
        ]
        (delivered,), (applied,) = gate.of(Delivered), gate.of(Applied)
        assert delivered.args == applied.args == CHARGE
        assert delivered.idempotency_key == applied.idempotency_key == "k1"
        assert delivered.message == applied.message


async def test_the_model_s_key_is_seen_in_what_a_call_carries_beside_its_words(
    at_server,
):
    async with at_server() as (gate, url), official(url, "legacy") as client:
        await client.call_tool("send", {}, meta={"auth": CANARY})
        (leaked,) = gate.of(Leaked)
        assert leaked.where == "a call of a tool over MCP"


async def _unknown(client):
    await client.call_tool("nope", {})


async def _a_mail(client):
    await client.call_tool("send_mail", {})


async def _long_key(client):
    await client.call_tool("hold", {}, meta={"idempotency_key": "k" * 256})


async def _no_look_up(client):
    await client.read_resource("effects:///hold?order=o-1")


async def _elsewhere(client):
    await client.read_resource("https://example.org/")


async def _second_page(client):
    await client.list_tools(cursor="x")


WRONG = [
    (_unknown, -32602, "Unknown tool: nope; there are: search"),
    (_a_mail, -32602, "Unknown tool: send_mail"),
    (_long_key, -32602, "expected one key of 1 to 255"),
    (_no_look_up, {"legacy": -32002}, "only queryable tools"),
    (_elsewhere, {"legacy": -32002}, "https://example.org/"),
    (_second_page, -32602, "'x'"),
]


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize(("ask", "code", "says"), WRONG)
async def test_an_error_names_what_is_wrong_and_crosses_nothing(
    at_server, era, ask, code, says
):
    expected = code if isinstance(code, int) else code.get(era, -32602)
    async with at_server() as (gate, url), official(url, era) as client:
        with pytest.raises(MCPError) as wrong:
            await ask(client)
        assert wrong.value.code == expected
        assert says in str(wrong.value)
        unknown = ask is _unknown
        assert [type(e) for e in gate.record.events] == [Delivered] * unknown


@pytest.mark.parametrize("era", ERAS)
async def test_a_call_that_asks_for_progress_is_answered_by_a_stream(at_server, era):
    heard = []

    async def hear(progress, total, message):
        heard.append((progress, total))

    async with at_server() as (_, url), official(url, era) as client:
        done = await client.call_tool("quote", {}, progress_callback=hear)
        assert done.structured_content == {"result": [1, 2]}
        assert heard == [(1, 1)]


async def test_schemas_are_made_from_the_script_and_refuse_nothing(at_server):
    async with at_server() as (_, url), official(url, "legacy") as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        schema = tools["charge_card"].input_schema
        assert schema["properties"] == {
            "order": {"type": ["string", "null"]},
            "cents": {"type": "integer"},
        }
        assert schema["required"] == ["order"]
        assert tools["hold"].input_schema == {"type": "object"}
        assert tools["search"].annotations.read_only_hint
        assert not tools["send"].annotations.read_only_hint
        found = await client.list_resource_templates()
        shown = [template.uri_template for template in found.resource_templates]
        assert shown == ["effects:///charge_card{?order,cents}"]
        unasked = await client.call_tool("charge_card", {"order": 3, "more": [1]})
        assert not unasked.is_error


async def test_the_ledger_is_the_one_of_the_tools_service(serve, make_gate, scenario):
    """A key is known to a tool whichever way it came, and a look-up sees it all."""
    gate, book = make_gate(), Book()
    tools, server = Tools(book), Mcp(book)
    async with (
        serve(tools, gate, scenario) as env,
        serve(server, gate, scenario) as more,
        official(more["CHAOSKIT_MCP_URL"], "legacy") as client,
        httpx2.AsyncClient(verify=False) as web,
    ):
        url = f"{env['CHAOSKIT_TOOLS_URL']}/hold"
        first = await web.post(url, json={}, headers={"Idempotency-Key": "k"})
        again = await client.call_tool("hold", {}, meta={"idempotency_key": "k"})
        assert again.structured_content == first.json()
        assert [event.first for event in gate.of(Applied)] == [True, False]
        assert len(await tools.snapshot()) == 1


ACCEPT = "application/json, text/event-stream"
PLAIN = {"accept": ACCEPT, "content-type": "application/json"}
LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
NOTICE = {"jsonrpc": "2.0", "method": "notifications/initialized"}
META = {META_VERSION: "2026-07-28", META_CAPABILITIES: {}}
NEW = {"mcp-protocol-version": "2026-07-28", "mcp-method": "tools/list"}


def modern(**meta):
    return {**LIST, "params": {"_meta": {**META, **meta}}}


POSTS = [
    ({"accept": "application/json"}, LIST, 406, -32600, "text/event-stream"),
    ({"accept": "text/*"}, LIST, 406, -32600, "application/json"),
    ({"content-type": "text/plain"}, LIST, 415, -32600, "text/plain"),
    ({"origin": "https://evil.example"}, LIST, 403, -32600, "evil.example"),
    ({}, b"{", 400, -32700, "no JSON"),
    ({}, {**LIST, "jsonrpc": "1.0"}, 400, -32600, "'1.0'"),
    ({}, {**LIST, "id": None}, 400, -32600, "None"),
    ({}, {**LIST, "id": True}, 400, -32600, "True"),
    ({}, {**LIST, "method": 3}, 400, -32600, "3"),
    ({}, {**LIST, "params": [1]}, 400, -32600, "[1]"),
    ({}, [], 400, -32600, "empty"),
    ({}, [{**LIST, "method": "initialize"}], 400, -32600, "initialize"),
    ({"mcp-protocol-version": "2025-06-18"}, [LIST], 400, -32600, "2025-06-18"),
    ({"mcp-protocol-version": "1900-01-01"}, LIST, 400, -32022, "1900-01-01"),
    ({}, {**LIST, "method": "prompts/list"}, 200, -32601, "prompts/list"),
    ({}, {**LIST, "method": "server/discover"}, 200, -32601, "server/discover"),
    ({}, {**LIST, "method": "tools/call"}, 200, -32602, "params"),
    (NEW, LIST, 400, -32602, META_VERSION),
    ({}, modern(), 400, -32020, "mcp-protocol-version was missing"),
    ({**NEW, "mcp-method": "ping"}, modern(), 400, -32020, "'ping'"),
    (NEW, modern(**{META_VERSION: "2025-11-25"}), 400, -32020, "2025-11-25"),
    (
        {**NEW, "mcp-protocol-version": "2099-01-01"},
        modern(**{META_VERSION: "2099-01-01"}),
        400,
        -32022,
        "2099-01-01",
    ),
    (
        {**NEW, "mcp-method": "ping"},
        {**modern(), "method": "ping"},
        404,
        -32601,
        "ping",
    ),
    (NEW, {"jsonrpc": "2.0", "id": 1, "result": {}}, 400, -32600, "responses"),
]


@pytest.mark.parametrize(("headers", "said", "status", "code", "says"), POSTS)
async def test_what_a_real_server_refuses_is_refused(
    at_server, headers, said, status, code, says
):
    content = said if isinstance(said, bytes) else json.dumps(said)
    async with (
        at_server() as (gate, url),
        httpx2.AsyncClient(verify=False, timeout=30) as web,
    ):
        reply = await web.post(url, content=content, headers={**PLAIN, **headers})
        body = reply.json()
        assert (reply.status_code, body["error"]["code"]) == (status, code)
        assert says in body["error"]["message"]
        assert body["id"] in (None, 1)
        if code == -32022:
            assert body["error"]["data"]["supported"] == [*LEGACY, *MODERN]
        assert gate.record.events == []


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
async def test_there_are_no_streams_and_no_sessions(at_server, method):
    async with at_server() as (_, url), httpx2.AsyncClient(verify=False) as web:
        reply = await web.request(method, url, headers=PLAIN)
        assert (reply.status_code, reply.headers["allow"]) == (405, "POST")
        assert (await web.post(f"{url}/x", json=LIST)).status_code == 404


@pytest.mark.parametrize("version", [None, *LEGACY, *MODERN])
async def test_a_notification_is_taken_and_not_answered(at_server, version):
    headers = {"mcp-protocol-version": version} if version else {}
    async with at_server() as (_, url), httpx2.AsyncClient(verify=False) as web:
        reply = await web.post(url, json=NOTICE, headers={**PLAIN, **headers})
        assert (reply.status_code, reply.content) == (202, b"")


@pytest.mark.parametrize("asked", [*LEGACY, "1999-01-01", *MODERN])
async def test_initialize_agrees_on_a_revision(at_server, asked):
    params = {"protocolVersion": asked, "capabilities": {}}
    params["clientInfo"] = {"name": "probe", "version": "1"}
    said = {"jsonrpc": "2.0", "id": "a", "method": "initialize", "params": params}
    async with at_server() as (_, url), httpx2.AsyncClient(verify=False) as web:
        reply = await web.post(url, json=said, headers=PLAIN)
        result = reply.json()["result"]
        assert result["protocolVersion"] == (asked if asked in LEGACY else LEGACY[-1])
        assert "mcp-session-id" not in reply.headers


def _call(number, tool, **args):
    params = {"name": tool, "arguments": args}
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": params}


async def test_calls_of_a_batch_cross_by_themselves_in_order(at_server):
    batch = [_call(1, "send", n=1), NOTICE, _call(2, "nope"), _call(3, "send", n=2)]
    async with at_server() as (gate, url), httpx2.AsyncClient(verify=False) as web:
        reply = (await web.post(url, json=batch, headers=PLAIN)).json()
        assert [each["id"] for each in reply] == [1, 2, 3]
        assert ["error" in each for each in reply] == [False, True, False]
        assert [event.args["n"] for event in gate.of(Applied)] == [1, 2]


async def test_the_same_schedule_gives_the_same_crossings(make_gate, scenario):
    schedule = "error(503)@0:mcp.hold#1:after + duplicate@0:mcp.send#1:before"
    server, seen = Mcp(), set()
    await server.start()
    async with httpx2.AsyncClient(verify=False) as web:
        for _ in range(100):
            gate = make_gate(schedule)
            await server.reset(gate, scenario)
            url = (await server.open(0))["CHAOSKIT_MCP_URL"]
            for said in (_call(1, "hold"), _call(2, "hold"), _call(3, "send")):
                await web.post(url, json=said, headers={**PLAIN, "connection": "close"})
            told = [e.model_copy(update={"t": 0}) for e in gate.record.events]
            seen.add(repr(told))
    await server.stop()
    assert len(seen) == 1


RECORDED = sorted((Path(__file__).parent / "recorded").glob("mcp-*.http"))


def _requests(recorded):
    while recorded:
        head, rest = recorded.split(b"\r\n\r\n", 1)
        length = re.search(rb"(?i)content-length: *(\d+)", head)
        size = int(length[1]) if length else 0
        yield head + b"\r\n\r\n" + rest[:size]
        recorded = rest[size:]


def _replayed(url, request, *, by_bytes):
    """The status and the body that a recorded request is answered with."""
    at = urlsplit(url)
    with socket.create_connection((at.hostname, at.port), timeout=30) as client:
        for part in [request[i : i + 1] for i in range(len(request))] or [request]:
            client.sendall(part if by_bytes else request)
            if not by_bytes:
                break
        reply = http.client.HTTPResponse(client)
        reply.begin()
        return reply.status, reply.read()


@pytest.mark.parametrize("by_bytes", [False, True])
@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
async def test_recorded_traffic_of_real_clients_passes(
    serve, make_gate, make_scenario, recorded, by_bytes
):
    tools = {"charge_card": "queryable", "hold": "keyed"}
    scenario = make_scenario(SCRIPT[:1] + SCRIPT[-1:], tools)
    gate = make_gate()
    async with serve(Mcp(), gate, scenario) as env:
        url, answered = env["CHAOSKIT_MCP_URL"], []
        for request in _requests(recorded.read_bytes()):
            status, body = await asyncio.to_thread(
                _replayed, url, request, by_bytes=by_bytes
            )
            unknown = b'"nope"' in request
            assert (b'"error"' in body) == (unknown or request.startswith(b"GET"))
            answered.append(status)
        assert set(answered) <= {200, 202, 400, 405}
        assert [(a.tool, a.idempotency_key) for a in gate.of(Applied)] == [
            ("charge_card", "k1"),
            ("hold", None),
        ]
        assert gate.addresses()[-1] == "0:mcp.charge_card?[o-1]#1:after"


ANY_JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(max_size=5), inner),
    max_leaves=5,
)
METHODS = st.sampled_from(["initialize", "tools/call", "resources/read", "x", ""])
SAID = st.fixed_dictionaries(
    {"jsonrpc": st.just("2.0") | ANY_JSON},
    optional={
        "id": st.integers() | ANY_JSON,
        "method": METHODS | ANY_JSON,
        "params": st.dictionaries(
            st.sampled_from(["name", "arguments", "_meta", "uri", "protocolVersion"]),
            st.sampled_from(["hold", "effects:///charge_card?a=b&c"])
            | st.just({**META, "progressToken": 1, "idempotency_key": "k"})
            | ANY_JSON,
        ),
    },
)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    said=SAID | st.lists(SAID) | ANY_JSON,
    headers=st.dictionaries(
        st.sampled_from(["mcp-protocol-version", "mcp-method", "mcp-name"]),
        st.sampled_from(["2026-07-28", "tools/call", "hold", "=?base64?aG9sZA==?="]),
    ),
)
def test_no_post_makes_the_server_fail(make_gate, scenario, said, headers):
    book = Book()
    book.begin(make_gate(), scenario)
    sent = tuple({**PLAIN, **headers}.items())
    request = Request("POST", "/mcp", (), sent, json.dumps(said).encode())
    answer = asyncio.run(Server(book, scenario, 0).serve(request))
    assert answer.status in (200, 202, 400, 404)
