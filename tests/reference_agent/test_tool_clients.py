"""The tools over HTTP and MCP and mail over SMTP: sent once, and never told wrongly.

The other side is chaoskit's own world: its ledger is what was done, and its faults are
what can go wrong on the way.
"""

import asyncio
import smtplib
import socket
import struct
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from threading import Thread
from typing import Any

import pytest

from chaoskit.gate import FreshNames, Gate, Recorder
from chaoskit.model.history import Cause, Crossed, FaultFired
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule
from chaoskit.world.book import Book
from chaoskit.world.mcp import Mcp
from chaoskit.world.smtp import Smtp
from chaoskit.world.tools import Tools
from reference_agent import tool_clients
from reference_agent.effects import Effect, NoLookUp, ToolFailed, Trouble
from reference_agent.settings import WrongSetting
from reference_agent.tool_clients.http import HttpTools
from reference_agent.tool_clients.mail import Letter
from reference_agent.tool_clients.smtp import SmtpMail
from reference_agent.tool_clients.smtp import _hand_in as hand_in
from reference_agent.tools import TOOLS, Promise
from reference_agent.transitions import Outcome

PAY = {"order": "o-1", "cents": 3}
MAIL = {"to": "ann@example.org", "subject": "Grüße, Ann", "body": ".\nSee you, 你好.\n"}
KEY = "run%2F1/2/0/pay"
SCRIPT = [
    {"call": [{"tool": "pay", "args": PAY}]},
    {"call": [{"tool": "post", "args": {"order": "o-1"}}]},
    {"call": [{"tool": "send_mail", "args": MAIL}]},
    {"say": "Done."},
]
CLASSES = {
    "pay": {"class": "keyed"},
    "post": {"class": "queryable"},
    "send_mail": {"class": "blind", "via": "smtp"},
}
RESULT = '{"status": "applied", "id": "pay[o-1]#1"}'


class World:
    """Chaoskit's services, served by a thread, with the faults of a schedule."""

    def __init__(self, schedule: str) -> None:
        book, self.record = Book(), Recorder()
        self.tools, self.smtp = Tools(book), Smtp(book)
        self.services = (self.tools, Mcp(book), self.smtp)
        names, parsed = FreshNames("run"), Schedule.parse(schedule)
        self.gate = Gate(self.record, names, parsed, self._end_life)
        self.loop = asyncio.new_event_loop()

    async def open(self, scenario: Scenario) -> dict[str, str]:
        variables: dict[str, str] = {}
        for service in self.services:
            await service.start()
            await service.reset(self.gate, scenario)
            variables |= await service.open(0)
        return variables

    async def stop(self) -> None:
        for service in self.services:
            await service.stop()

    def run(self, course: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(course, self.loop).result(10)

    @property
    def done(self) -> list[tuple[str, Any, str | None]]:
        effects = self.run(self.tools.snapshot())
        return [(each.tool, each.args, each.idempotency_key) for each in effects]

    @property
    def crossed(self) -> list[str]:
        addresses = [e.address for e in self.record.events if isinstance(e, Crossed)]
        return [each[:-7] for each in addresses if each.endswith(":before")]

    @property
    def struck(self) -> bool:
        return any(isinstance(event, FaultFired) for event in self.record.events)

    async def _end_life(self, life: int, cause: Cause) -> None:
        raise AssertionError("no life ends here")


Serve = Callable[[str], Any]


@pytest.fixture
def serve(monkeypatch: pytest.MonkeyPatch) -> Serve:
    """Serve a world, and point the environment at it: `serve(schedule)`."""
    scenario = Scenario.model_validate(
        {
            "name": "test",
            "agent": "agent.yaml",
            "task": {"goal": "Pay"},
            "llm": {"script": SCRIPT},
            "tools": CLASSES,
        }
    )

    @contextmanager
    def serving(schedule: str = "") -> Iterator[World]:
        world = World(schedule)
        thread = Thread(target=world.loop.run_forever)
        thread.start()
        try:
            for name, value in world.run(world.open(scenario)).items():
                monkeypatch.setenv(name, value)
            yield world
        finally:
            world.run(world.stop())
            world.loop.call_soon_threadsafe(world.loop.stop)
            thread.join()
            world.loop.close()

    return serving


@pytest.mark.parametrize("way", ["http", "mcp"])
def test_the_key_travels_and_the_result_comes_back(serve: Serve, way: str) -> None:
    with serve("") as world:
        service = tool_clients.connect(way)
        assert service.do("pay", PAY, KEY) == Outcome(RESULT, applied=True)
        assert service.do("pay", PAY, KEY) == Outcome(RESULT, applied=True)
        assert world.done == [("pay", PAY, KEY)]


@pytest.mark.parametrize("way", ["http", "mcp"])
def test_a_look_up_finds_exactly_equal_arguments(serve: Serve, way: str) -> None:
    posted = {"order": "o 1&2", "n": 1, "to": "Zoë"}
    with serve(""):
        service = tool_clients.connect(way)
        answer = service.do("post", posted, "k1")
        service.do("post", posted | {"n": "1"}, "k2")
        assert service.done("post", posted) == [Effect(answer.text, True, "k1")]
        assert service.done("post", {"order": "o-2"}) == []


@pytest.mark.parametrize("way", ["http", "mcp"])
def test_a_service_without_a_look_up_says_so(serve: Serve, way: str) -> None:
    with serve(""), pytest.raises(NoLookUp):
        tool_clients.connect(way).done("pay", PAY)


@pytest.mark.parametrize(
    ("way", "says"), [("http", "Error 404: "), ("mcp", "Error: Unknown tool")]
)
def test_a_refusal_is_an_outcome_for_the_model(
    serve: Serve, way: str, says: str
) -> None:
    with serve("") as world:
        outcome = tool_clients.connect(way).do("fly", {}, KEY)
        assert outcome.text.startswith(says)
        assert not outcome.applied
        assert world.done == []


@pytest.mark.parametrize(
    ("status", "body", "sent"),
    [(408, "", True), (409, "in use", True), (429, "", False), (200, "<html>", True)],
)
def test_an_answer_that_settles_nothing_is_trouble(
    world: Any, world_url: str, status: int, body: str, *, sent: bool
) -> None:
    """A key may be in use because its first attempt is still under way."""
    world.errors = {"pay#1": (status, body)}
    with pytest.raises(Trouble) as trouble:
        HttpTools(f"{world_url}/tools").do("pay", PAY, KEY)
    assert trouble.value.sent is sent
    assert world.seen["pay"] == 1


@pytest.mark.parametrize("body", ["{", "[]", '{"effects": [3]}', '{"effects": [{}]}'])
def test_a_look_up_that_cannot_be_read_is_trouble(
    world: Any, world_url: str, body: str
) -> None:
    """It must not pass for one that found nothing."""
    world.errors = {"post?#1": (200, body)}
    with pytest.raises(Trouble):
        HttpTools(f"{world_url}/tools").done("post", PAY)


# What strikes a message, whether it was done, and whether the client must doubt it.
HTTP = [
    ("refuse", "before", 0, True),
    ("drop_reply", "after", 1, True),
    ("tear", "part:1", 1, True),
    ("error(429)", "before", 0, False),
    ("error(503)", "before", 0, True),
    ("error(503)", "after", 1, True),
]
OVER_HTTP = [*HTTP, ("error(500)", "after", 1, True), ("error(504)", "after", 1, True)]
OVER_MCP = [*HTTP, ("error(-32603)", "before", 0, True)]
OVER_MCP += [("error(-32603)", "after", 1, True)]
BY_MAIL = [
    ("refuse", "before", 0, True),
    ("drop_reply", "after", 1, True),
    ("tear", "part:1", 1, True),
    ("error(451)", "before", 0, False),
    ("error(421)", "before", 0, False),
    ("full", "before", 0, False),
]
STRIKES = [
    *(("http", "pay", "tools.pay[o-1]", *strike) for strike in OVER_HTTP),
    *(("mcp", "pay", "mcp.pay[o-1]", *strike) for strike in OVER_MCP),
    *(("smtp", "send_mail", "smtp.send[ann@example.org]", *each) for each in BY_MAIL),
]


@pytest.mark.parametrize(
    ("way", "tool", "at", "fault", "edge", "count", "sent"), STRIKES
)
def test_trouble_is_never_sent_again_and_says_whether_it_may_be_done(
    serve: Serve,
    way: str,
    tool: str,
    at: str,
    fault: str,
    edge: str,
    count: int,
    *,
    sent: bool,
) -> None:
    with serve(f"{fault}@0:{at}#1:{edge}") as world:
        service = connected(way)
        with pytest.raises(Trouble) as trouble:
            service.do(tool, MAIL if tool == "send_mail" else PAY, KEY)
        assert trouble.value.sent is sent
        assert world.struck
        assert world.crossed == [f"0:{at}#1"]
        assert len(world.done) == count


@pytest.mark.parametrize("way", ["http", "mcp"])
@pytest.mark.parametrize("fault", ["drop_reply", "refuse", "error(429)", "error(503)"])
def test_a_look_up_that_fails_leaves_no_doubt(
    serve: Serve, way: str, fault: str
) -> None:
    """It does nothing, so whoever cannot look is no worse off than before."""
    service_name = "tools" if way == "http" else way
    edge = "after" if fault == "drop_reply" else "before"
    with serve(f"{fault}@0:{service_name}.post?[o-1]#1:{edge}") as world:
        with pytest.raises(Trouble) as trouble:
            tool_clients.connect(way).done("post", {"order": "o-1"})
        assert trouble.value.sent is False
        assert world.struck


@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
def test_a_tool_that_says_it_failed_is_told_from_a_refusal(
    serve: Serve, edge: str, count: int
) -> None:
    with serve(f"error(isError)@0:mcp.pay[o-1]#1:{edge}") as world:
        with pytest.raises(ToolFailed, match="pay failed inside"):
            tool_clients.connect("mcp").do("pay", PAY, KEY)
        assert len(world.done) == count


@pytest.mark.parametrize("way", ["http", "mcp", "smtp"])
def test_a_refused_connection_was_not_sent(
    monkeypatch: pytest.MonkeyPatch, way: str
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    for name in ("CHAOSKIT_TOOLS_URL", "CHAOSKIT_MCP_URL"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{port}/mcp")
    monkeypatch.setenv("CHAOSKIT_SMTP_HOST", "127.0.0.1")
    monkeypatch.setenv("CHAOSKIT_SMTP_PORT", str(port))
    with pytest.raises(Trouble, match="no connection") as trouble:
        connected(way).do("send_mail", MAIL, KEY)
    assert trouble.value.sent is False


def test_a_mail_says_what_it_was_told_and_keeps_its_identity(serve: Serve) -> None:
    """Both copies are kept, which is what makes it blind, under one Message-ID."""
    with serve("") as world:
        service = connected("smtp")
        first, again = (
            service.do("send_mail", MAIL, KEY),
            service.do("send_mail", MAIL, KEY),
        )
        other = service.do("send_mail", MAIL, "another")
        assert first == again != other
        assert [(tool, args) for tool, args, _ in world.done] == [
            ("send_mail", MAIL)
        ] * 3
        ids = [message_id for *_, message_id in world.done]
        assert first.text == f"Sent as {ids[0]}."
        assert ids[0] == ids[1] != ids[2]


def test_a_mail_goes_to_all_its_recipients(serve: Serve) -> None:
    to = "Ann <ann@example.org>, bob@example.org"
    with serve("") as world:
        assert connected("smtp").do("send_mail", MAIL | {"to": to}, KEY).applied
        assert world.crossed == ["0:smtp.send[ann@example.org,bob@example.org]#1"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"to": "ann@example.org\nBcc: eve@example.org"},
        {"to": "ann@example.org\r\n\r\nhello"},
        {"to": "ann@example.org\x85Bcc: eve@example.org"},
        {"to": ""},
        {"to": "ann"},
        {"to": "ann@"},
        {"to": "ann@example.org>\0"},
        {"to": "ann@example.org, bob"},
        {"to": "änn@example.org"},
        {"to": ["ann@example.org"]},
        {"subject": "Hi\nBcc: eve@example.org"},
        {"subject": "Hi\r"},
        {"subject": None},
        {"body": 3},
    ],
)
def test_what_is_no_mail_is_refused_in_words_and_not_sent(
    serve: Serve, wrong: dict[str, Any]
) -> None:
    with serve("") as world:
        outcome = connected("smtp").do("send_mail", MAIL | wrong, KEY)
        assert outcome.text.startswith(f"Error: {next(iter(wrong))} ")
        assert not outcome.applied
        assert world.crossed == []


def test_a_mail_that_is_refused_is_an_outcome(serve: Serve) -> None:
    with serve("error(550)@0:smtp.send[ann@example.org]#1:before") as world:
        outcome = connected("smtp").do("send_mail", MAIL, KEY)
        text = "Error: 550 5.7.1 The message is refused"
        assert outcome == Outcome(text, applied=False)
        assert world.done == []


def test_a_mail_cannot_be_looked_up(serve: Serve) -> None:
    with serve(""), pytest.raises(NoLookUp):
        connected("smtp").done("send_mail", MAIL)


GREETING, HELLO, SENDER, RECIPIENT = "220 me", "250 me", "250 ok", "250 ok"


@contextmanager
def scripted(*answers: str) -> Iterator[int]:
    """A mail server that gives these answers, one a line, then cuts the connection."""

    def serve() -> None:
        client, _ = server.accept()
        with client, client.makefile("rwb") as stream:
            for number, answer in enumerate(answers):
                if number and answers[number - 1].startswith("354"):
                    while stream.readline() != b".\r\n":
                        pass
                elif number:
                    stream.readline()
                stream.write(f"{answer}\r\n".encode())
                stream.flush()
            stream.readline()
            linger = struct.pack("ii", 1, 0)  # close with a reset
            client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = Thread(target=serve)
        thread.start()
        yield server.getsockname()[1]
        thread.join()


@pytest.mark.parametrize(
    "answers",
    [
        ["421 busy"],
        ["554 no mail here"],
        [GREETING],
        [GREETING, HELLO],
        [GREETING, HELLO, "451 later"],
        [GREETING, HELLO, SENDER],
        [GREETING, HELLO, SENDER, "450 later"],
        [GREETING, HELLO, SENDER, RECIPIENT],
        [GREETING, HELLO, SENDER, RECIPIENT, "452 full"],
        [GREETING, HELLO, SENDER, RECIPIENT, "nonsense"],
    ],
)
def test_a_mail_that_did_not_come_to_its_end_was_not_sent(answers: list[str]) -> None:
    with scripted(*answers) as port:
        with pytest.raises(Trouble) as trouble:
            SmtpMail("127.0.0.1", port).do("send_mail", MAIL, KEY)
        assert trouble.value.sent is False


def test_an_answer_that_makes_no_sense_leaves_the_mail_in_doubt() -> None:
    answers = [GREETING, HELLO, SENDER, RECIPIENT, "354 go on", "nonsense"]
    with scripted(*answers) as port:
        with pytest.raises(Trouble, match="makes no sense") as trouble:
            SmtpMail("127.0.0.1", port).do("send_mail", MAIL, KEY)
        assert trouble.value.sent is True


def test_a_mail_that_was_cut_inside_was_not_sent() -> None:
    """It is larger than what the system takes in, so its end never leaves."""
    body = "\r\n".join(["x" * 70] * 2**18)
    letter = Letter("a@example.org", ("b@example.org",), "<k@me>", body.encode())
    answers = [GREETING, HELLO, SENDER, RECIPIENT, "354 go on"]
    with scripted(*answers) as port, closing(smtplib.SMTP("127.0.0.1", port)) as client:
        with pytest.raises(Trouble) as trouble:
            hand_in(client, letter)
        assert trouble.value.sent is False


@pytest.mark.parametrize("number", [2, 3, 4])
def test_a_mail_that_is_refused_on_the_way_is_an_outcome(number: int) -> None:
    answers = [GREETING, HELLO, SENDER, RECIPIENT][:number]
    with scripted(*answers, "550 not to him") as port:
        outcome = SmtpMail("127.0.0.1", port).do("send_mail", MAIL, KEY)
        assert outcome == Outcome("Error: 550 not to him", applied=False)


def test_mail_goes_its_own_way_and_the_rest_goes_the_other(serve: Serve) -> None:
    with serve("") as world:
        service = tool_clients.connect("mcp", "smtp")
        service.do("pay", PAY, KEY)
        service.do("send_mail", MAIL, KEY)
        assert [each.partition("[")[0] for each in world.crossed] == [
            "0:mcp.pay",
            "0:smtp.send",
        ]


def test_a_mail_over_smtp_is_blind() -> None:
    """Whatever the table says of it when it goes another way."""
    assert tool_clients.tool_table("http") == TOOLS
    table = tool_clients.tool_table("smtp")
    assert table["send_mail"].promise is Promise.BLIND
    assert {**table, "send_mail": TOOLS["send_mail"]} == TOOLS


@pytest.mark.parametrize(
    ("way", "name", "value"),
    [
        ("http", "CHAOSKIT_TOOLS_URL", ""),
        ("http", "CHAOSKIT_TOOLS_URL", "foo"),
        ("http", "CHAOSKIT_TOOLS_URL", "http://[bad"),
        ("mcp", "CHAOSKIT_MCP_URL", ""),
        ("mcp", "CHAOSKIT_MCP_URL", "redis://127.0.0.1"),
        ("smtp", "CHAOSKIT_SMTP_HOST", ""),
        ("smtp", "CHAOSKIT_SMTP_PORT", "smtp"),
        ("smtp", "CHAOSKIT_SMTP_PORT", "70000"),
    ],
)
def test_a_setting_that_is_no_use_is_named_before_anything_is_begun(
    monkeypatch: pytest.MonkeyPatch, way: str, name: str, value: str
) -> None:
    """In the middle of a call it would look like a lost life, or an outage."""
    monkeypatch.setenv("CHAOSKIT_TOOLS_URL", "http://127.0.0.1:9/tools")
    monkeypatch.setenv("CHAOSKIT_SMTP_HOST", "127.0.0.1")
    monkeypatch.setenv(name, value)
    with pytest.raises(WrongSetting, match=f"{name} is"):
        connected(way)


def connected(way: str) -> Any:
    """The service for `send_mail`, and for all others where it is not by mail."""
    if way == "smtp":
        return tool_clients.connect("http", "smtp")
    return tool_clients.connect(way)
