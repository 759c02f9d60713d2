"""The `smtp` service: a mail server that keeps what it accepts.

``CHAOSKIT_SMTP_HOST`` and ``CHAOSKIT_SMTP_PORT`` take mail without a log-in (RFC 5321,
with 8BITMIME, SMTPUTF8 and SIZE). A message is the operation ``send``, its key the
recipients of the envelope, in alphabetical order with commas between them. It crosses
at the end of DATA: ``before`` means that the whole message is here and nothing is kept,
``after`` that it is kept and the 250 withheld; ``part:1`` is the middle of the reply.
Everything else in the dialogue crosses nothing.

A tool that the scenario declares ``via: smtp`` is called by mail. Which call of the
script a mail is, its recipients, subject and body say (see `chaoskit.wire.mail`); the
``Message-ID`` is its idempotency key. Of a keyed tool a ``Message-ID`` is kept once,
and 250 is answered each time; of a queryable or a blind one every copy is kept. What a
queryable one has sent can be looked up by ``GET $CHAOSKIT_TOOLS_URL/TOOL``. A mail that
is no call of the script is kept as an effect of its own, which nobody asked for.

The faults: ``error(451)``, ``error(452)``, ``error(550)`` and ``error(421)``, which
also closes the connection, are the reply to DATA; ``full`` is 452. The dialogue is
aiosmtpd's. Its transport is our own to reset, tear and withhold; what it does on its
own when a client goes away is kept from messages that have come whole (`smtp_session`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, ClassVar

from chaoskit.gate import Dropped, Failed, Gate
from chaoskit.model.address import Operation
from chaoskit.model.faults import FaultKind
from chaoskit.model.scenario import STRAY_MAIL, Scenario, Via
from chaoskit.model.scenario import Call as Scripted
from chaoskit.model.schedule import Fault
from chaoskit.wire.mail import Mail, scripted
from chaoskit.wire.pieces import halves
from chaoskit.world.book import Answered, Book, Call
from chaoskit.world.ledger import forms, shortened
from chaoskit.world.listener import LOOPBACK, LifePort, reset

if TYPE_CHECKING:
    from chaoskit.world.smtp_session import Session

ACCEPTED = "250 2.0.0 Ok: kept"
_REPLIES = {
    "421": "421 4.3.2 Shutting down; the connection ends here",
    "451": "451 4.3.0 Not now; try again later",
    "452": "452 4.3.1 No space for the message",
    "550": "550 5.7.1 The message is refused",
}


class Smtp:
    """See the module's docstring. One per worker process; `Tools` keeps its book."""

    name = "smtp"
    variables: ClassVar[Mapping[str, str]] = {
        "CHAOSKIT_SMTP_HOST": "a mail server that keeps what it accepts",
        "CHAOSKIT_SMTP_PORT": "its port",
    }

    def __init__(self, book: Book | None = None) -> None:
        self._book = book or Book()
        self._port: LifePort | None = None
        self._desk: _Desk | None = None
        self._open: dict[int, _Life] = {}

    async def start(self) -> None:
        """Take a port for the campaign."""
        self._port = LifePort()

    async def reset(self, gate: Gate, scenario: Scenario) -> None:
        """Empty the mailbox."""
        for life in tuple(self._open):
            await self.close(life)
        self._book.begin(gate, scenario)
        self._desk = _Desk(self._book, gate, _by_mail(scenario))

    async def open(self, life: int) -> dict[str, str]:
        """Fresh sockets for a life, and the variables that name them."""
        assert self._port is not None, "start comes first"
        assert self._desk is not None, "reset comes first"
        served = _Life(life, self._desk)
        await self._port.open(life, served.session, self._desk.gate.whose)
        self._open[life] = served
        port = str(self._port.port)
        return {"CHAOSKIT_SMTP_HOST": LOOPBACK, "CHAOSKIT_SMTP_PORT": port}

    async def close(self, life: int) -> None:
        """Drop every connection of a life; whole messages go on to their end."""
        if self._port is not None and life in self._open:
            self._port.close(life)
            self._open.pop(life).end()

    async def stop(self) -> None:
        """Give the port back."""
        for life in tuple(self._open):
            await self.close(life)
        if self._port is not None:
            self._port.stop()

    @property
    def mails(self) -> list[bytes]:
        """Every message that was kept, word for word."""
        effects = self._book.ledger.effects
        return [effect.raw for effect in effects if effect.raw is not None]


def _by_mail(scenario: Scenario) -> tuple[Scripted, ...]:
    tools = scenario.tools
    return tuple(c for c in forms(scenario) if tools[c.tool].via is Via.SMTP)


@dataclass(frozen=True)
class _Desk:
    """Where the mail of one trial is handed in."""

    book: Book
    gate: Gate
    calls: tuple[Scripted, ...]
    bugs: list[Exception] = field(default_factory=list)

    async def take(self, life: int, mail: Mail, session: "Session") -> str | None:
        """The reply to a message; None where the connection was cut."""
        try:
            return await self._reply(life, mail, session)
        except Failed as failed:
            return _refusal(failed.fault)
        except Dropped:
            reset(session.transport)
        except Exception as bug:
            self.bugs.append(bug)
            reset(session.transport)
        return None

    async def _reply(self, life: int, mail: Mail, session: "Session") -> str:
        done = await self._keep(life, mail)
        if not self.gate.is_cut(done.crossing):
            return ACCEPTED
        pieces = halves(ACCEPTED.encode())
        await self.gate.deliver(done.crossing, pieces, session.send)
        return ""  # the end of the line is still to come

    async def _keep(self, life: int, mail: Mail) -> Answered:
        known = scripted(mail, self.calls)
        tool, args = (known.tool, known.args) if known else (STRAY_MAIL, mail.args)
        envelope = (mail.sender, *mail.recipients)
        self.book.hear(life, tool, (*envelope, mail.subject, mail.text, mail.raw))
        to = ",".join(sorted({each.lower() for each in mail.recipients}))
        operation = Operation(Smtp.name, "send", shortened(to))
        call = Call(tool, args, mail.message_id, mail.raw)
        return await self.book.call(life, operation, call)


def _refusal(fault: Fault) -> str:
    code = "452" if fault.kind is FaultKind.FULL else fault.chosen
    return _REPLIES[code or ""]


class _Life:
    """The connections of one life."""

    def __init__(self, life: int, desk: _Desk) -> None:
        self._take = partial(desk.take, life)
        self._desk = desk
        self._sessions: list[Session] = []
        self._is_over = False

    def session(self) -> "Session":
        """One more connection."""
        # Slow to import, and most worlds have nobody who sends mail.
        from chaoskit.world.smtp_session import Session

        session = Session(self._take, lambda: self._is_over)
        self._sessions.append(session)
        return session

    def end(self) -> None:
        """Cut every connection."""
        self._is_over = True
        for session in self._sessions:
            reset(session.transport)
        if self._desk.bugs:
            raise self._desk.bugs.pop(0)
