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
import socket
from typing import Protocol, cast

from chaoskit.gate import Dropped, Gate
from chaoskit.model.address import Operation
from chaoskit.wire.redis import CommandTable, Kind
from chaoskit.wire.redis_dialogue import OURS, Dialogue, Step
from chaoskit.wire.resp import Commands, WireError
from chaoskit.world.redis_link import Connector, packed
from chaoskit.world.redis_upstream import Upstream

SERVICE = "redis"
WAITING_BYTES_MAX = 1024 * 1024
"""Above this nothing more is read from a client until its commands are done."""

# An unknown command makes the server refuse the transaction that it stands in.
_SPOILS_TRANSACTION = packed(("REFUSED-BY-CHAOSKIT",))


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

    def ended(self, session: "Session", bug: Exception | None) -> None:
        """The session is over; an error of ours may have ended it."""


class Session(asyncio.Protocol):
    """One client's connection.

    ``crossing`` is true while a message of it is at the gate: then its connection to
    the server must stay, as the message may have to be applied still.
    """

    def __init__(self, life: int, gate: Gate, host: Host) -> None:
        self.life = life
        self.crossing = False
        self.task: asyncio.Task[None]
        self._gate = gate
        self._host = host
        self._commands = Commands()
        self._dialogue = Dialogue(host.table)
        self.upstream = Upstream(self, self._dialogue)
        self._held: Step | None = None
        self._news = asyncio.Event()
        self._writable = asyncio.Event()
        self._writable.set()
        self._is_blocked = self._is_over = self._is_gone = False
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """asyncio's part of the deal."""
        self._transport = cast(asyncio.Transport, transport)
        # asyncio forgets this for sockets that were made without a protocol number;
        # the replies of a pipeline would wait for each other, 40 ms a time.
        connection = self._transport.get_extra_info("socket")
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.task = asyncio.get_running_loop().create_task(self._live())

    def data_received(self, data: bytes) -> None:
        """asyncio's part of the deal."""
        self._commands.feed(data)
        if len(self._commands) > WAITING_BYTES_MAX:
            self._transport.pause_reading()
        self.wake()

    def eof_received(self) -> bool:
        """asyncio's part of the deal. True: we may still have something to say."""
        self._hung_up()
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        """asyncio's part of the deal."""
        self._writable.set()
        self._hung_up()

    def pause_writing(self) -> None:
        """asyncio's part of the deal: the client reads too slowly."""
        self._writable.clear()
        self.upstream.pause()

    def resume_writing(self) -> None:
        """asyncio's part of the deal."""
        self._writable.set()
        self.upstream.resume()

    def send(self, data: bytes) -> None:
        """Send to the client, if it is still there."""
        if not self._transport.is_closing():
            self._transport.write(data)

    def wake(self) -> None:
        """Something has changed that the session may be waiting for."""
        self._news.set()

    def abort(self) -> None:
        """Its life is over: hang up, and begin nothing more."""
        self._is_over = True
        self._transport.abort()
        self._writable.set()
        self.wake()

    def _hung_up(self) -> None:
        self._is_gone = True
        if self._is_blocked:
            self.upstream.abort()
        self.wake()

    async def _live(self) -> None:
        bug: Exception | None = None
        try:
            await self._connect()
            while (step := await self._next()) is not None:
                await self._carry_out(step)
        except Dropped:
            self._transport.abort()
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
        self._transport.close()

    async def _next(self) -> Step | None:
        """The next command when its turn has come, or None when there will be none."""
        while True:
            await self._writable.wait()
            if self._is_over or self._gate.is_over(self.life):
                raise Dropped
            step, self._held = self._held or self._read(), None
            if step is not None:
                return step
            if self._is_gone or self.upstream.is_lost:
                return None
            self._news.clear()
            self._transport.resume_reading()
            await self._news.wait()

    def _read(self) -> Step | None:
        command = self._commands.take()
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
        crossing = self._gate.arrive(self.life, operation)
        self.crossing = True
        try:
            self.send(await self._gate.cross(crossing, lambda: self._apply(step)))
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
        if self._is_gone:
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
