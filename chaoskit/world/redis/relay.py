"""The relay between one client and the real Redis server.

Each connection of an agent has one of its own to the server, so that transactions,
subscriptions and blocking reads are the server's business. A client's commands are
carried out one after the other, and replies keep their order:

- a write goes through the gate; its reply is withheld until the gate gives it back;
- what is not counted passes, with all that has arrived behind it of its kind;
- what the server pushes passes at once, or behind the reply that it came behind.

Who hangs up has still sent what had arrived: those commands are carried out. Only a
blocking command ends with its client, as it does in the server.
"""

import asyncio
from contextlib import suppress
from dataclasses import dataclass
from typing import Protocol

from chaoskit.gate import Crossing, Dropped, Failed, Gate
from chaoskit.model.address import Operation
from chaoskit.wire.redis.commands import Kind
from chaoskit.wire.redis.dialogue import OURS, Dialogue, Step
from chaoskit.wire.redis.resp import WireError
from chaoskit.world.redis.client import ClientConnection
from chaoskit.world.redis.due import SERVICE
from chaoskit.world.redis.link import packed
from chaoskit.world.redis.message import Message, halves
from chaoskit.world.redis.store import Store
from chaoskit.world.redis.turns import Turns
from chaoskit.world.redis.upstream import Upstream

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
    def store(self) -> Store:
        """The real server."""

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
        self._store = host.store
        self._dialogue = Dialogue(host.store.table)
        self.upstream = Upstream(self, self._dialogue)
        self._turns = Turns(self, self._dialogue)
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
            self.abort()  # with a reset
        except WireError as wrong:
            self.send(f"-ERR Protocol error: {wrong}\r\n".encode())
        except OSError:
            pass  # the server has closed the connection: do as it does
        except Exception as error:
            bug = error
        await self._leave()
        self._host.ended(self, bug)

    async def _connect(self) -> None:
        await self._store.connect(self.upstream)
        hello = (*self._store.login, ("CLIENT", "ID"))
        *_, reply = await self.upstream.ask(
            OURS, packed(*hello), len(hello), passing=False
        )
        self.upstream.release()
        self.upstream.known = self._store.known_as(int(reply[1:]))

    async def _leave(self) -> None:
        self.upstream.abort()
        if self._is_blocked:  # lest the server gives something to who has left
            with suppress(ConnectionError):
                await self._store.hang_up(self.upstream.known)
        self.close()

    async def _next(self) -> Step | None:
        """The next command when its turn has come, or None when there will be none."""
        while True:
            await self.drained()
            if self.opened.is_over:
                raise Dropped
            if (step := self._turns.next()) is not None:
                return step
            self.flush()
            if self.has_left or self.upstream.is_lost:
                return None
            await self.more()

    async def _carry_out(self, step: Step) -> None:
        match step.kind:
            case Kind.WRITE:
                await self._cross(step)
            case Kind.REFUSED:
                await self._refuse(step)
            case Kind.BLOCKING:
                await self._block(step)
            case Kind.PLAIN if step.replies:
                await self._pass(*self._turns.run(step))
            case Kind.PLAIN:
                self.upstream.tell(step.raw)
            case _:
                await self._pass(step)

    async def _cross(self, step: Step) -> None:
        operation = Operation(SERVICE, step.meaning.op, step.meaning.key)
        gate = self.opened.gate
        crossing = gate.arrive(self.opened.life, operation)
        message = Message(step, self.upstream, self._store)
        self.crossing = True
        try:
            if gate.is_calm_for(crossing):
                self.post(await gate.cross(crossing, message.apply))
            else:
                await self._cross_with_care(gate, crossing, message)
        finally:
            self.crossing = False
        self.upstream.release()

    async def _cross_with_care(
        self, gate: Gate, crossing: Crossing, message: Message
    ) -> None:
        """A fault may hold the message, or cut its reply."""
        self.flush()
        try:
            reply = await gate.cross(crossing, message.apply, message)
            if gate.is_cut(crossing):
                await gate.deliver(crossing, halves(reply), self._send)
            else:
                self.send(reply)
        except Failed as failed:
            self.send(await message.failure(failed.fault))

    async def _send(self, piece: bytes) -> None:
        self.send(piece)
        await self.sent()

    async def _pass(self, *run: Step) -> None:
        last = run[-1]
        raw = b"".join(step.raw for step in run)
        replies = sum(step.replies for step in run)
        for step in run:
            self._store.learn(step.meaning)
        (reply,) = await self.upstream.ask(last, raw, replies, passing=True)
        self._dialogue.answered(last, reply)

    async def _block(self, step: Step) -> None:
        self.flush()
        self._is_blocked = True
        if self.has_left:
            self.upstream.tell(step.raw)
            raise ConnectionError("nobody waits for it")
        await self._pass(step)
        self._is_blocked = False

    async def _refuse(self, step: Step) -> None:
        if self._dialogue.queueing:
            await self.upstream.ask(OURS, _SPOILS_TRANSACTION, 1, passing=False)
            self.upstream.release()
        op, why = step.meaning.op.upper().replace("|", " "), step.meaning.why
        self.send(f"-ERR chaoskit does not pass on {op}: {why}\r\n".encode())
