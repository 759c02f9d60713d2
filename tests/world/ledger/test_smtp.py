"""The `smtp` service over real sockets: smtplib, and a client that knows no manners."""

import asyncio
import smtplib
from contextlib import asynccontextmanager
from email.message import EmailMessage
from pathlib import Path

import pytest

from chaoskit.model.history import Applied, Crossed, Delivered, Leaked
from chaoskit.model.scenario import STRAY_MAIL
from chaoskit.world.book import Book
from chaoskit.world.llm import CANARY
from chaoskit.world.smtp import Smtp
from chaoskit.world.tools import Tools

ANN, BOB = "ann@example.org", "bob@example.org"
BOOKED = {"to": ANN, "subject": "Booked", "body": "Your seat is 12A."}
REMIND = {"to": [ANN, BOB], "text": "o-1"}
TOOLS = {
    "send_mail": {"class": "keyed", "via": "smtp"},
    "remind": {"class": "blind", "via": "smtp"},
    "post": {"class": "queryable", "via": "smtp"},
    "pay": "keyed",
}
SCRIPT = [
    {"call": [{"tool": "send_mail", "args": BOOKED}]},
    {"call": [{"tool": "remind", "args": REMIND}]},
    {"call": [{"tool": "post", "args": {"address": BOB}}]},
    {"say": "Done."},
]


@pytest.fixture
def scenario(make_scenario):
    return make_scenario(SCRIPT, TOOLS)


@pytest.fixture
def at_post(serve, make_gate, scenario):
    """Serve mail; gives the gate, the service and the port."""

    @asynccontextmanager
    async def serving(gate=None):
        gate, smtp = gate or make_gate(), Smtp()
        async with serve(smtp, gate, scenario) as env:
            assert env["CHAOSKIT_SMTP_HOST"] == "127.0.0.1"
            yield gate, smtp, int(env["CHAOSKIT_SMTP_PORT"])

    return serving


def mail(to=ANN, subject="Booked", body="Your seat is 12A.", key="<k1@agent>"):
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = (
        "agent@example.org",
        to,
        subject,
    )
    if key is not None:
        message["Message-ID"] = key
    message.set_content(body)
    return message


def _send(port, *messages, to=None, **more):
    with smtplib.SMTP("127.0.0.1", port, timeout=30) as client:
        for message in messages:
            client.send_message(message, to_addrs=to, **more)


async def send(port, *messages, **more):
    await asyncio.to_thread(_send, port, *messages, **more)


def _calls(gate):
    return [(event.tool, event.first) for event in gate.of(Applied)]


async def test_a_mail_is_the_call_that_it_says_and_its_message_id_is_the_key(at_post):
    async with at_post() as (gate, smtp, port):
        await send(port, mail())
        (delivered,), (applied,) = gate.of(Delivered), gate.of(Applied)
        assert (delivered.tool, delivered.args) == ("send_mail", BOOKED)
        assert delivered.idempotency_key == applied.idempotency_key == "<k1@agent>"
        assert delivered.message == applied.message
        assert [event.address for event in gate.of(Crossed)] == [
            "0:smtp.send[ann@example.org]#1:before",
            "0:smtp.send[ann@example.org]#1:after",
        ]
        (kept,) = smtp.mails
        assert kept.endswith(b"\r\n\r\nYour seat is 12A.\r\n")


@pytest.mark.parametrize(
    "leaks",
    [
        {"body": f"Your seat is 12A.\n\n{CANARY}"},
        {"body": f"Dein Sitz für {CANARY} ist 12A."},  # goes out in base64
        {"subject": f"Booked {CANARY}"},
    ],
)
async def test_the_model_s_key_is_seen_in_a_mail(at_post, leaks):
    """Also below the words that the script knows it by."""
    async with at_post() as (gate, _, port):
        await send(port, mail(**leaks))
        (leaked,) = gate.of(Leaked)
        assert leaked.where.startswith("a call of ")


async def test_a_keyed_tool_keeps_a_message_id_once_and_says_250_each_time(at_post):
    async with at_post() as (gate, smtp, port):
        await send(port, mail(), mail(), mail(key="<k2@agent>"), mail(key=None))
        assert [first for _, first in _calls(gate)] == [True, False, True, True]
        keys = [event.idempotency_key for event in gate.of(Delivered)]
        assert keys == ["<k1@agent>", "<k1@agent>", "<k2@agent>", None]
        assert len(smtp.mails) == 3


async def test_a_blind_tool_keeps_every_copy_and_several_recipients_are_one_mail(
    at_post,
):
    async with at_post() as (gate, smtp, port):
        reminder = mail(to=f"{BOB}, {ANN}", subject="Reminder of o-1", body="Please.")
        await send(port, reminder, reminder)
        assert _calls(gate) == [("remind", True)] * 2
        assert [event.args for event in gate.of(Delivered)] == [REMIND] * 2
        crossed = [str(event.at.operation) for event in gate.of(Crossed)[::2]]
        assert crossed == ["smtp.send[ann@example.org,bob@example.org]"] * 2
        assert len(smtp.mails) == 2


async def test_a_mail_that_nobody_scripted_is_kept_and_shows(at_post):
    async with at_post() as (gate, smtp, port):
        await send(port, mail(to="eve@example.org", subject="Hi", body="Psst.\n\nx"))
        (delivered,), (applied,) = gate.of(Delivered), gate.of(Applied)
        assert delivered.tool == applied.tool == STRAY_MAIL
        assert delivered.args == {
            "to": ["eve@example.org"],
            "subject": "Hi",
            "body": "Psst. x",
        }
        assert applied.first
        assert len(smtp.mails) == 1


async def test_what_smtplib_may_send_arrives_as_it_was(at_post):
    """Dots at the begin of a line, 8-bit text and addresses beyond ASCII."""
    dotted = mail(to="ä@example.org", subject="Grüße", body=".\n..\n.x\nschön\n")
    options = ("SMTPUTF8", "BODY=8BITMIME")
    async with at_post() as (gate, smtp, port):
        await send(port, dotted, mail_options=options)
        (kept,) = smtp.mails
        assert kept.endswith("\r\n\r\n.\r\n..\r\n.x\r\nschön\r\n".encode())
        (delivered,) = gate.of(Delivered)
        assert delivered.args["to"] == ["ä@example.org"]
        assert delivered.args["subject"] == "Grüße"


async def test_a_queryable_mail_is_looked_up_at_the_tools_service(
    serve, make_gate, scenario, web
):
    gate, book = make_gate(), Book()
    tools, smtp = Tools(book), Smtp(book)
    async with (
        serve(tools, gate, scenario) as env,
        serve(smtp, gate, scenario) as more,
        web() as client,
    ):
        await send(int(more["CHAOSKIT_SMTP_PORT"]), mail(to=BOB))
        url = env["CHAOSKIT_TOOLS_URL"]
        async with client.get(f"{url}/post", params={"address": BOB}) as reply:
            (effect,) = (await reply.json())["effects"]
        assert effect["args"] == {"address": BOB}
        assert effect["idempotency_key"] == "<k1@agent>"
        for tool, allowed in (("post", "GET"), ("send_mail", "")):
            async with client.post(f"{url}/{tool}", json={}) as reply:
                assert (reply.status, reply.headers["Allow"]) == (405, allowed)
                assert "by a mail" in (await reply.json())["error"]["message"]
        saved, view = await tools.snapshot(), await tools.view()
        clean = make_gate()
        for service in (tools, smtp):
            await service.reset(clean, scenario)
        assert smtp.mails == []
        await tools.restore(saved)
        assert (await tools.view(), len(smtp.mails)) == (view, 1)


class Dialogue:
    """A client that says what it is told to, line by line or otherwise."""

    def __init__(self, port):
        self._port = port

    async def __aenter__(self):
        opened = await asyncio.open_connection("127.0.0.1", self._port)
        self._reader, self.writer = opened
        assert (await self.line()).startswith("220 ")
        return self

    async def __aexit__(self, *_):
        self.writer.close()

    async def line(self):
        line = ""
        while line[3:4] in ("", "-"):
            line = (await self._reader.readuntil(b"\r\n")).decode()
        return line

    async def ask(self, line):
        self.writer.write(f"{line}\r\n".encode())
        return await self.line()

    async def end(self):
        return await self._reader.read()


TO_DATA = ["EHLO me", "MAIL FROM:<a@b.org>", f"RCPT TO:<{ANN}>", "DATA"]
WHOLE = ["Message-ID: <k1@agent>", "Subject: Booked", "", "Your seat is 12A.", "."]


async def test_pipelined_commands_before_the_client_shuts_its_side_are_all_heard(
    at_post,
):
    async with at_post() as (gate, _, port), Dialogue(port) as client:
        lines = [*TO_DATA, *WHOLE, "RSET", "QUIT", ""]
        client.writer.write("\r\n".join(lines).encode())
        client.writer.write_eof()
        codes = [(await client.line())[:3] for _ in range(7)]
        assert codes == ["250", "250", "250", "354", "250", "250", "221"]
        assert await client.end() == b""
        assert _calls(gate) == [("send_mail", True)]


@pytest.mark.parametrize("lines", [TO_DATA[:2], TO_DATA, [*TO_DATA, *WHOLE[:-1]]])
async def test_a_mail_that_never_came_whole_is_no_message(at_post, lines):
    async with at_post() as (gate, _, port):
        async with Dialogue(port) as client:
            client.writer.write("\r\n".join([*lines, ""]).encode())
            client.writer.write_eof()
            await client.end()
        assert gate.record.events == []


async def test_a_client_that_hangs_up_does_not_stop_its_mail(at_post, make_gate, hold):
    held = hold(f"0:smtp.send[{ANN}]#1:before")
    async with at_post(make_gate(watch=held)) as (gate, smtp, port):
        async with Dialogue(port) as client:
            client.writer.write("\r\n".join([*TO_DATA, *WHOLE, ""]).encode())
            await held.held.wait()
        client.writer.transport.abort()
        held.let_go.set()
        await gate.settled(0)
        assert [event.late for event in gate.of(Applied)] == [False]
        assert len(smtp.mails) == 1


async def test_a_mail_past_the_gate_when_its_life_ends_is_late(
    at_post, make_gate, hold
):
    held = hold(f"0:smtp.send[{ANN}]#1:before")
    async with at_post(make_gate(watch=held)) as (gate, smtp, port):
        async with Dialogue(port) as client:
            client.writer.write("\r\n".join([*TO_DATA, *WHOLE, ""]).encode())
            await held.held.wait()
            gate.close(0)
            await smtp.close(0)
            held.let_go.set()
            await gate.settled(0)
            with pytest.raises(ConnectionResetError):
                await client.end()
        assert [event.late for event in gate.of(Applied)] == [True]


async def test_the_next_life_has_the_same_port_and_the_old_one_no_connection(at_post):
    async with at_post() as (gate, smtp, port), Dialogue(port) as old:
        await smtp.close(0)
        assert (await smtp.open(1))["CHAOSKIT_SMTP_PORT"] == str(port)
        with pytest.raises(ConnectionResetError):
            await old.end()
        await send(port, mail())
        assert [event.life for event in gate.of(Applied)] == [1]


MANNERS = [
    (["DATA"], "503"),
    (["EHLO me", f"RCPT TO:<{ANN}>"], "503"),
    (["EHLO me", "MAIL FROM:<a@b> SIZE=99999999"], "552"),
    (["EHLO me", "MAIL FROM:<a@b> BODY=9BIT"], "501"),
    (["EHLO me", "MAIL FROM:<a@b>", "RCPT TO:<no address here"], "553"),
    (["SING"], "500"),
    (["X" * 600], "500"),
]


@pytest.mark.parametrize(("lines", "code"), MANNERS)
async def test_what_a_real_server_refuses_is_refused_quietly(at_post, lines, code):
    async with at_post() as (gate, _, port), Dialogue(port) as client:
        said = [await client.ask(line) for line in lines]
        assert said[-1][:3] == code
        assert gate.record.events == []


async def test_a_mail_above_the_limit_is_refused_with_552(at_post):
    async with at_post() as (gate, _, port), Dialogue(port) as client:
        for line in TO_DATA:
            await client.ask(line)
        line = b"x" * 998 + b"\r\n"
        for _ in range(10 * 1024 * 1024 // 1000 // 1000 + 1):
            client.writer.write(line * 1000)
            await client.writer.drain()
        assert (await client.ask("."))[:3] == "552"
        assert gate.record.events == []


async def test_a_bug_of_ours_is_raised_to_us_and_is_no_answer_to_the_agent(
    at_post, monkeypatch
):
    async def broken(*_):
        raise KeyError("ours")

    async with at_post() as (_, smtp, port):
        monkeypatch.setattr(Book, "call", broken)
        with pytest.raises(smtplib.SMTPServerDisconnected):
            await send(port, mail())
        with pytest.raises(KeyError, match="ours"):
            await smtp.close(0)


async def test_the_same_schedule_gives_the_same_crossings(make_gate, scenario):
    schedule = f"error(451)@0:smtp.send[{ANN}]#1:after + full@0:smtp.send[{ANN}]#2"
    smtp, seen = Smtp(), set()
    await smtp.start()
    for _ in range(100):
        gate = make_gate(f"{schedule}:before")
        await smtp.reset(gate, scenario)
        port = int((await smtp.open(0))["CHAOSKIT_SMTP_PORT"])
        async with Dialogue(port) as client:
            for line in (*TO_DATA, *WHOLE):
                client.writer.write(f"{line}\r\n".encode())
            client.writer.write(
                "\r\n".join([*TO_DATA[1:], *WHOLE, "QUIT", ""]).encode()
            )
            await client.end()
        told = [event.model_copy(update={"t": 0}) for event in gate.record.events]
        seen.add(repr(told))
    await smtp.stop()
    assert len(seen) == 1


RECORDED = sorted((Path(__file__).parent / "recorded").glob("*.smtp"))


@pytest.mark.parametrize("by_bytes", [False, True])
@pytest.mark.parametrize("recorded", RECORDED, ids=lambda path: path.stem)
async def test_recorded_traffic_of_real_clients_passes(
    serve, make_gate, make_scenario, recorded, by_bytes
):
    args = {"to": ANN, "subject": "Grüße: Booked", "body": "Your seat is 12A."}
    tools = {"send_mail": {"class": "keyed", "via": "smtp"}}
    script = [{"call": [{"tool": "send_mail", "args": args}]}, {"say": "Done."}]
    gate, said = make_gate(), recorded.read_bytes()
    async with serve(Smtp(), gate, make_scenario(script, tools)) as env:
        async with Dialogue(int(env["CHAOSKIT_SMTP_PORT"])) as client:
            for part in [said[i : i + 1] for i in range(len(said))] * by_bytes or [
                said
            ]:
                client.writer.write(part)
                await client.writer.drain()
            client.writer.write_eof()
            await client.end()
        assert _calls(gate) == [("send_mail", True)]
        assert gate.of(Delivered)[0].args == args


async def test_a_connection_accepted_in_the_last_moment_is_cut_too(at_post):
    """Accepted by the loop, announced to the session only after its life was closed."""
    async with at_post() as (_, smtp, port):
        smtp._open[0]._is_over = True
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        with pytest.raises(ConnectionResetError):
            await reader.readuntil(b"never said")
        writer.close()
