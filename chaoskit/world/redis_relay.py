"""The relay between one client and the real Redis server.

Each connection of an agent has one of its own to the server, so that transactions,
subscriptions and blocking reads are the server's business. A client's commands are
carried out one after the other, and replies keep their order:

- a write goes through the gate; its reply is withheld until the gate gives it back;
- what is not counted passes, with all that has arrived behind it of its kind;
- what the server pushes passes at once.

Who hangs up has still sent what had arrived: those commands are carried out. Only a
blocking command ends with its client, as it does in the server.
"""

import asyncio
from dataclasses import dataclass
from typing import Protocol

from chaoskit.gate import Dropped, Gate
from chaoskit.model.address import Operation
from chaoskit.wire.redis import CommandTable, Kind
from chaoskit.wire.redis_dialogue import OURS, Dialogue, Step
from chaoskit.wire.resp import WireError
from chaoskit.world.redis_client import ClientConnection
from chaoskit.world.redis_link import Connector, packed
from chaoskit.world.redis_upstream import Upstream

SERVICE = "redis"

# An unknown command makes the server refuse the transaction that it stands in.
_SPOILS_TRANSACTION = packed(("REFUSED-BY-CHAOSKIT",))


@dataclass
class Opened:
    """A life that may connect, until it is closed."""

    life: int
    gate: Gate
    is_closed: bool = False

    @property
    def is_over(self) -> bool:
        """Whether nothing more is to be begun for it."""
        return self.is_closed or self.gate.is_over(self.life)


class Host(Protocol):
    """What a session needs of the service it belongs to."""

    @property
    def server(self) -> Connector:
        """The real server."""

    @property
    def table(self) -> CommandTable:
        """Its commands."""

    def learned(self, script: bytes) -> None:
        """The server knows this script from here on."""

    async def end(self, *numbers: int) -> None:
        """Have the server drop connections, and wait until it has."""

    def began(self, session: "Session") -> None:
        """A client has connected."""

    def ended(self, session: "Session", bug: Exception | None) -> None:
        """The session is over; an error of ours may have ended it."""


class Session(ClientConnection):
    """One client's connection, and what becomes of its commands.

    ``crossing`` is true while a message of it is at the gate: then its connection to
    the server must stay, as the message may have to be applied still.
    """

    def __init__(self, opened: Opened, host: Host) -> None:
        super().__init__()
        self.opened = opened
        self.crossing = False
        self.task: asyncio.Task[None]
        self._host = host
        self._dialogue = Dialogue(host.table)
        self.upstream = Upstream(self, self._dialogue)
        self._held: Step | None = None
        self._is_blocked = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's part of the deal."""
        super().connection_made(transport)
        if self.opened.is_over:  # accepted in the last moment before the end
            self.abort()
            return
        self._host.began(self)
        self.task = asyncio.get_running_loop().create_task(self._live())

    def pause_writing(self) -> None:
        """asyncio's part of the deal: the client reads too slowly."""
        super().pause_writing()
        self.upstream.pause()

    def resume_writing(self) -> None:
        """asyncio's part of the deal."""
        super().resume_writing()
        self.upstream.resume()

    def hung_up(self) -> None:
        """The client will send nothing more, and waits for nothing."""
        super().hung_up()
        if self._is_blocked:
            self.upstream.abort()

    async def _live(self) -> None:
        bug: Exception | None = None
        try:
            await self._connect()
            while (step := await self._next()) is not None:
                await self._carry_out(step)
        except Dropped:
            self.abort()
        except WireError as wrong:
            self.send(f"-ERR Protocol error: {wrong}\r\n".encode())
        except OSError:
            pass  # the server has closed the connection: do as it does
        except Exception as error:
            bug = error
        await self._leave()
        self._host.ended(self, bug)

    async def _connect(self) -> None:
        await self._host.server.connect(self.upstream)
        hello = (*self._host.server.login, ("CLIENT", "ID"))
        reply = await self.upstream.ask(OURS, packed(*hello), len(hello), passing=False)
        self.upstream.number = int(reply[1:])

    async def _leave(self) -> None:
        self.upstream.abort()
        if self._is_blocked:  # lest the server gives something to who has left
            await self._host.end(self.upstream.number)
        self.close()

    async def _next(self) -> Step | None:
        """The next command when its turn has come, or None when there will be none."""
        while True:
            await self.drained()
            if self.opened.is_over:
                raise Dropped
            step, self._held = self._held or self._read(), None
            if step is not None:
                return step
            if self.has_left or self.upstream.is_lost:
                return None
            await self.more()

    def _read(self) -> Step | None:
        command = self.take()
        return None if command is None else self._dialogue.read(command)

    async def _carry_out(self, step: Step) -> None:
        match step.kind:
            case Kind.WRITE:
                await self._cross(step)
            case Kind.REFUSED:
                await self._refuse(step)
            case Kind.BLOCKING:
                await self._block(step)
            case Kind.PLAIN if step.replies:
                await self._pass(*self._run(step))
            case Kind.PLAIN:
                self.upstream.tell(step.raw)
            case _:
                await self._pass(step)

    async def _cross(self, step: Step) -> None:
        operation = Operation(SERVICE, step.meaning.op, step.meaning.key)
        gate = self.opened.gate
        crossing = gate.arrive(self.opened.life, operation)
        self.crossing = True
        try:
            self.send(await gate.cross(crossing, lambda: self._apply(step)))
        finally:
            self.crossing = False

    async def _apply(self, step: Step) -> bytes:
        self._learn(step)
        return await self.upstream.ask(step, step.raw, step.replies, passing=False)

    async def _pass(self, *run: Step) -> None:
        last = run[-1]
        raw = b"".join(step.raw for step in run)
        replies = sum(step.replies for step in run)
        for step in run:
            self._learn(step)
        reply = await self.upstream.ask(last, raw, replies, passing=True)
        self._dialogue.answered(last, reply)

    def _run(self, step: Step) -> list[Step]:
        """The step, and all that has arrived behind it and needs no more care."""
        run = [step]
        while (following := self._read_on()) and following.kind is Kind.PLAIN:
            run.append(following)
        self._held = following
        return run

    def _read_on(self) -> Step | None:
        try:
            return self._read()
        except WireError:
            return None  # its turn comes after what is before it

    async def _block(self, step: Step) -> None:
        self._is_blocked = True
        if self.has_left:
            self.upstream.tell(step.raw)
            raise ConnectionError("nobody waits for it")
        await self._pass(step)
        self._is_blocked = False

    async def _refuse(self, step: Step) -> None:
        if self._dialogue.queueing:
            await self.upstream.ask(OURS, _SPOILS_TRANSACTION, 1, passing=False)
        op, why = step.meaning.op.upper().replace("|", " "), step.meaning.why
        self.send(f"-ERR chaoskit does not pass on {op}: {why}\r\n".encode())

    def _learn(self, step: Step) -> None:
        if step.meaning.script is not None:
            self._host.learned(step.meaning.script)
