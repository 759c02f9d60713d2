"""The relay between one client and the real PostgreSQL server.

Each connection of an agent has one of its own to the server, so that transactions,
prepared statements and locks are the server's business. A client's steps (see
`chaoskit.wire.postgres.dialogue`) are carried out one after the other:

- one that commits goes through the gate (`chaoskit.world.postgres.passage`);
- all else passes, and its answer with it, as it comes;
- notifications pass at once.

Who hangs up has still sent what had arrived: that is carried out. A session is over
when the server's process for it has ended, and not before.
"""

from typing import Protocol

from chaoskit.gate import Dropped
from chaoskit.wire.postgres.dialogue import Dialogue
from chaoskit.wire.postgres.framing import WireError, error
from chaoskit.wire.postgres.sql import Classifier
from chaoskit.wire.postgres.steps import Step
from chaoskit.world.postgres import opening, passage
from chaoskit.world.postgres.opening import Beginning
from chaoskit.world.postgres.passage import Passage
from chaoskit.world.relay.session import Opened, Register


class Host(opening.Reception, passage.Host, Protocol):
    """What a session needs of the service it belongs to."""

    classifier: Classifier


class Session(Beginning):
    """One client's connection, and what becomes of its messages."""

    def __init__(self, opened: Opened, register: Register, host: Host) -> None:
        super().__init__(opened, register, host)
        self._host = host
        self._dialogue = Dialogue(host.classifier)
        self.passage = Passage(opened, host, self.upstream, self._dialogue)

    def told(self, reply: bytes) -> None:
        """See `Client`."""
        self._dialogue.told(reply)

    async def converse(self) -> None:
        """See `chaoskit.world.relay.session.Session`."""
        try:
            if await self.begin():
                while (step := await self._next()) is not None:
                    await self._carry_out(step)
        except WireError as wrong:
            self.send(error("FATAL", "08P01", f"invalid message: {wrong}"))

    async def leave(self) -> None:
        """See `chaoskit.world.relay.session.Session`."""
        if self.opened.is_over:
            await self._host.end([self.upstream])
        elif not self.upstream.is_lost:
            self.upstream.leave()
            await self.upstream.gone
        self.close()

    async def _next(self) -> Step | None:
        """The next step when its turn has come, or None when there will be none."""
        while True:
            if not self._writable.is_set():
                await self.drained()
            if self.opened.is_over:
                raise Dropped
            message = self._requests.take()
            if message is not None:
                step = self._dialogue.read(message)
                if step is not None:
                    return step
            elif self.has_left or self.upstream.is_lost:
                return None
            else:
                await self.more()

    async def _carry_out(self, step: Step) -> None:
        if step.ends:
            self.has_left = True  # what comes behind it is nobody's any more
        elif step.label is not None:
            await self.passage.cross(step, *step.label)
        else:
            if step.locks:
                await self._host.before_lock()
            self._dialogue.answered(await self.upstream.ask(step.work, passing=True))
