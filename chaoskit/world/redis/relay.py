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

import re
from collections.abc import Awaitable, Callable
from contextlib import suppress

from chaoskit.gate import Crossing, Dropped, Failed, Gate
from chaoskit.model.address import Operation
from chaoskit.wire.pieces import halves
from chaoskit.wire.redis.commands import Kind
from chaoskit.wire.redis.dialogue import OURS, Dialogue, Step
from chaoskit.wire.redis.requests import Commands
from chaoskit.wire.redis.resp import WireError
from chaoskit.world.redis.due import SERVICE
from chaoskit.world.redis.link import packed
from chaoskit.world.redis.message import Message
from chaoskit.world.redis.store import Store
from chaoskit.world.redis.turns import Turns
from chaoskit.world.redis.upstream import Upstream
from chaoskit.world.relay import session as relay

# An unknown command makes the server refuse the transaction that it stands in.
_SPOILS_TRANSACTION = packed(("REFUSED-BY-CHAOSKIT",))
# It tells the connection's number also while a script keeps the server busy, where
# CLIENT ID is refused; RESP2 is what a connection begins with anyway.
_WHO_AM_I = ("HELLO", "2")
_NUMBER = re.compile(rb"\$2\r\nid\r\n:(\d+)\r\n")


class Session(relay.Session):
    """One client's connection, and what becomes of its commands.

    ``crossing`` is true while a message of it is at the gate: then its connection to
    the server must stay, as the message may have to be applied still.
    """

    upstream: Upstream

    def __init__(
        self, opened: relay.Opened, register: relay.Register, store: Store
    ) -> None:
        commands, dialogue = Commands(), Dialogue(store.table)
        super().__init__(opened, register, commands)
        self.crossing = False
        self.upstream = Upstream(self, dialogue)
        self._store = store
        self._dialogue = dialogue
        self._turns = Turns(commands, dialogue)
        self._is_blocked = False

    def hung_up(self) -> None:
        """The client will send nothing more, and waits for nothing."""
        super().hung_up()
        if self._is_blocked:
            self.upstream.abort()

    async def converse(self) -> None:
        """See `chaoskit.world.relay.session.Session`."""
        try:
            await self._connect()
            while (step := await self._next()) is not None:
                await self._carry_out(step)
        except WireError as wrong:
            self.send(f"-ERR Protocol error: {wrong}\r\n".encode())

    async def leave(self) -> None:
        """See `chaoskit.world.relay.session.Session`."""
        self.upstream.abort()
        if self._is_blocked:  # lest the server gives something to who has left
            with suppress(ConnectionError):
                await self._store.hang_up(self.upstream.known)
        self.close()

    async def _connect(self) -> None:
        await self._store.connect(self.upstream)
        hello = (*self._store.login, _WHO_AM_I)
        replies = await self.upstream.ask(
            OURS, packed(*hello), len(hello), passing=False
        )
        self.upstream.release()
        number = _NUMBER.search(replies[-1])
        if number is None:
            refusals = (reply for reply in replies if reply[:1] == b"-")
            self.send(next(refusals, b""))
            raise ConnectionError("the server lets nobody in")
        self.upstream.known = self._store.known_as(int(number[1]))

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
                apply = self._applying(gate, crossing, message)
                self.post(await gate.cross(crossing, apply))
            else:
                await self._cross_with_care(gate, crossing, message)
        finally:
            self.crossing = False
        self.upstream.release()

    def _applying(
        self, gate: Gate, crossing: Crossing, message: Message
    ) -> Callable[[], Awaitable[bytes]]:
        """What applies it, and tells the gate of a change where it wants to know."""
        if not gate.counts_changes or crossing.is_looker:
            return message.apply

        async def apply() -> bytes:
            before = await self._store.changes()
            reply = await message.apply()
            changed = await self._store.changes() != before
            gate.has_applied(crossing, changed=changed)
            return reply

        return apply

    async def _cross_with_care(
        self, gate: Gate, crossing: Crossing, message: Message
    ) -> None:
        """A fault may hold the message, or cut its reply."""
        self.flush()
        try:
            apply = self._applying(gate, crossing, message)
            reply = await gate.cross(crossing, apply, message)
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
