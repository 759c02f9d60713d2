"""What each fault is on `smtp`, seen by smtplib and by a raw socket."""

import asyncio
import smtplib
import socket
import time
from contextlib import asynccontextmanager

import pytest

from chaoskit.model.history import Applied, Delivered
from chaoskit.world.smtp import ACCEPTED, Smtp

ANN = "ann@example.org"
AT = f"0:smtp.send[{ANN}]#1"
MAIL = "Message-ID: <k@agent>\r\nSubject: Booked\r\n\r\nSee you.\r\n"
SCRIPT = [
    {"call": [{"tool": "send_mail", "args": {"to": ANN, "subject": "Booked"}}]},
    {"say": "Done."},
]


def _send(port, to=ANN):
    """One mail: the code and the text that end it."""
    client = smtplib.SMTP("127.0.0.1", port, timeout=30)
    try:
        client.ehlo()
        client.mail("agent@example.org")
        client.rcpt(to)
        code, text = client.data(MAIL)
        return code, text.decode(), client
    except smtplib.SMTPServerDisconnected as cut:
        # smtplib makes this of a reset; the raw socket below tells it from an end.
        raise ConnectionResetError from cut
    finally:
        client.close()


async def send(port, **more):
    code, text, _ = await asyncio.to_thread(_send, port, **more)
    return f"{code} {text}"


def _raw(port):
    """What the end of a message is answered, until the connection is reset or ends."""
    lines = ["EHLO me", "MAIL FROM:<a@b>", f"RCPT TO:<{ANN}>", "DATA", f"{MAIL}."]
    got = b""
    with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
        client.sendall("\r\n".join([*lines, ""]).encode())
        try:
            while data := client.recv(4096):
                got += data
            end = "end"
        except ConnectionResetError:
            end = "reset"
    assert b"354 " in got, (got, end)
    return got.split(b"354 ", 1)[1].partition(b"\r\n")[2], end


async def raw(port):
    return await asyncio.to_thread(_raw, port)


@pytest.fixture
def trial(faulted, make_scenario):
    @asynccontextmanager
    async def run(schedule, killed=None, cls="blind"):
        async def clean(env):
            assert await send(int(env["CHAOSKIT_SMTP_PORT"])) == ACCEPTED
            assert len(smtp.mails) == 1

        tools = {"send_mail": {"class": cls, "via": "smtp"}}
        scenario, smtp = make_scenario(SCRIPT, tools), Smtp()
        async with faulted(smtp, scenario, schedule, clean, killed) as (gate, env):
            yield gate, smtp, int(env["CHAOSKIT_SMTP_PORT"])

    return run


@pytest.mark.proves("agent.kill")
@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
async def test_kill(trial, edge, count):
    killed = []
    async with trial(f"kill@{AT}:{edge}", killed) as (_, smtp, port):
        assert await raw(port) == (b"", "reset")
        assert (killed, len(smtp.mails)) == ([0], count)


@pytest.mark.proves("smtp.refuse")
async def test_refuse(trial):
    async with trial(f"refuse@{AT}:before") as (_, smtp, port):
        assert await raw(port) == (b"", "reset")
        assert smtp.mails == []
        assert await send(port) == ACCEPTED


@pytest.mark.proves("smtp.drop_reply")
async def test_drop_reply(trial):
    async with trial(f"drop_reply@{AT}:after") as (_, smtp, port):
        with pytest.raises(ConnectionResetError):
            await send(port)
        assert len(smtp.mails) == 1
        assert await send(port) == ACCEPTED
        assert len(smtp.mails) == 2


@pytest.mark.proves("smtp.error")
@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
@pytest.mark.parametrize("code", ["451", "452", "550"])
async def test_error(trial, edge, count, code):
    async with trial(f"error({code})@{AT}:{edge}") as (_, smtp, port):
        assert (await send(port)).startswith(f"{code} {code[0]}.")
        assert len(smtp.mails) == count
        assert await send(port) == ACCEPTED


@pytest.mark.proves("smtp.error")
@pytest.mark.parametrize(("edge", "count"), [("before", 0), ("after", 1)])
async def test_421_ends_the_connection_in_good_order(trial, edge, count):
    async with trial(f"error(421)@{AT}:{edge}") as (_, smtp, port):
        said, end = await raw(port)
        assert said.startswith(b"421 4.3.2 ")
        assert (said.count(b"\r\n"), end) == (1, "end")
        assert len(smtp.mails) == count


@pytest.mark.proves("smtp.full")
async def test_full(trial):
    async with trial(f"full@{AT}:before") as (_, smtp, port):
        assert (await send(port)).startswith("452 4.3.1 ")
        assert smtp.mails == []


@pytest.mark.proves("smtp.delay")
@pytest.mark.parametrize("edge", ["before", "after"])
async def test_delay(trial, edge):
    async with trial(f"delay(0.2)@{AT}:{edge}") as (gate, _, port):
        began = time.monotonic()
        slow = asyncio.create_task(send(port))
        await gate.record.sink.seen("fault")
        assert await send(port, to="bob@example.org") == ACCEPTED
        assert not slow.done(), "others pass meanwhile"
        assert await slow == ACCEPTED
        assert time.monotonic() - began >= 0.2


@pytest.mark.proves("smtp.tear", "agent.kill")
@pytest.mark.parametrize("kind", ["tear", "kill"])
async def test_tear(trial, kind):
    async with trial(f"{kind}@{AT}:part:1") as (gate, smtp, port):
        half = ACCEPTED[: len(ACCEPTED) // 2].encode()
        assert await raw(port) == (half, "reset")
        assert gate.edges() == ["before", "after", "part:1"]
        assert len(smtp.mails) == 1


@pytest.mark.proves("smtp.duplicate")
@pytest.mark.parametrize(("cls", "count"), [("blind", 2), ("keyed", 1)])
async def test_duplicate(trial, cls, count):
    async with trial(f"duplicate@{AT}:before", cls=cls) as (gate, smtp, port):
        assert await send(port) == ACCEPTED
        assert len(smtp.mails) == count
        assert [d.duplicate for d in gate.of(Delivered)] == [False, True]
        applied = [(a.first, a.duplicate) for a in gate.of(Applied)]
        assert applied == [(True, False), (cls == "blind", True)]
