"""One step of a client on its way through the gate, and what a fault makes of it.

The answer is withheld until the gate gives it back. Where other sessions may hold a
lock that the step needs, its work is done before the door, and only the commit inside;
a session that is alone waits for nobody, and has both done at once.
"""

from typing import Protocol

from chaoskit.gate import Crossing, Failed
from chaoskit.gate import Host as Suffering
from chaoskit.model.address import Operation
from chaoskit.model.faults import FaultKind
from chaoskit.wire.pieces import halves
from chaoskit.wire.postgres.dialogue import Dialogue
from chaoskit.wire.postgres.errors import DISK_FULL, REFUSALS, Refusal
from chaoskit.wire.postgres.framing import ready
from chaoskit.wire.postgres.steps import UNDO, Step
from chaoskit.world.postgres.upstream import Given, Upstream
from chaoskit.world.relay.session import Opened

SERVICE = "postgres"
_ENDS_STATEMENT = frozenset(b"CIE")
_READY, _ERROR, _COMPLETE = b"ZEC"


class Host(Suffering, Protocol):
    """What the passage of a step needs of the service."""

    def keep_alone(self) -> bool:
        """Whether there is one session only; none joins it then until `let_join`."""

    def let_join(self) -> None:
        """Others may connect again."""

    async def end(self, upstreams: list[Upstream]) -> None:
        """Have the server end connections, and wait until it has."""

    async def before_lock(self) -> None:
        """A table is about to be locked against everybody's reading."""

    async def before_commit(self) -> None:
        """Something is about to be committed."""

    async def position(self) -> str | None:
        """How far the log has been written; None where the server does not say."""

    async def has_written(self, session: int) -> bool:
        """Whether the open transaction of a session has changed anything."""

    async def schema_changed(self) -> None:
        """There may be other functions than before."""


class Passage:
    """The way of one session's steps through the gate, one after the other.

    ``holds``: a message of it is at the gate and not yet applied: then the connection
    to the server must stay, as the message may have to be applied still.
    """

    def __init__(
        self, opened: Opened, host: Host, upstream: Upstream, dialogue: Dialogue
    ) -> None:
        self.holds = False
        self._opened = opened
        self._host = host
        self._upstream = upstream
        self._dialogue = dialogue
        self._worked: Given | None = None
        self._given: Given
        self._is_alone = False

    async def cross(self, step: Step, op: str, key: str | None) -> None:
        """Take a step through; its answer goes to the client.

        Raises:
            Dropped: the connection is to be reset.
            ConnectionError: the server has gone.
        """
        gate, life = self._opened.gate, self._opened.life
        crossing = gate.arrive(life, Operation(SERVICE, op, key))
        self.holds, self._worked, self._is_alone = True, None, False
        work = (lambda: self._work(step)) if step.work.raw else None
        try:
            apply = lambda: self._apply(step, crossing)  # noqa: E731
            reply = await gate.cross(crossing, apply, self._host, work=work)
            whole = b"".join(reply.kept)
            if gate.is_cut(crossing):
                await gate.deliver(crossing, halves(whole), self._send)
            else:
                self._upstream.client.send(whole)
        except Failed as failed:
            await self._fail(step, failed)
        finally:
            self.holds = False
            self._let_join()

    async def _work(self, step: Step) -> None:
        self._is_alone = self._host.keep_alone()
        if self._is_alone:
            return
        if step.locks:
            await self._host.before_lock()
        self._worked = worked = await self._upstream.ask(step.work, passing=False)
        if not step.wrapped:
            self._dialogue.answered(worked)

    def _let_join(self) -> None:
        if self._is_alone:
            self._is_alone = False
            self._host.let_join()

    async def _apply(self, step: Step, crossing: Crossing) -> Given:
        await self._host.before_commit()
        if self._opened.gate.counts_changes and not crossing.is_looker:
            self._given = given = await self._done_and_told(step, crossing)
        else:
            self._given = given = await self._done(step)
        self._let_join()  # a fault may hold the reply until others have come and gone
        if step.schema and not given.failed:
            await self._host.schema_changed()
        self.holds = False
        if self._opened.is_over:
            await self._host.end([self._upstream])
        return given

    async def _done_and_told(self, step: Step, crossing: Crossing) -> Given:
        """Do it, and tell the gate whether that has changed anything.

        A session that is alone leaves a record in the log if it has; where others are
        at work, a transaction has got a number by the time it is to commit. Either is
        true as well of one that has only locked rows, or has failed, which the answer
        tells.
        """
        host, gate, rows = self._host, self._opened.gate, self._dialogue.rows
        if self._is_alone:
            before = await host.position()
            given = await self._done(step)
            changed = before is None or before != await host.position()
        else:
            changed = await host.has_written(self._upstream.number)
            given = await self._done(step)
        counts_none = rows is not None and not rows + given.rows
        came_to_nothing = counts_none or (given.failed and step.work.raw)
        gate.has_applied(crossing, changed=changed and not came_to_nothing)
        return given

    async def _done(self, step: Step) -> Given:
        worked = self._worked
        if worked is None:
            part = step.whole if self._is_alone else step.commit
            given = await self._upstream.ask(part, passing=False)
            self._dialogue.answered(given)
            return given
        if worked.failed and not step.syncs:
            return worked  # the server waits for a Sync, and would not do it
        commit = UNDO if step.wrapped and worked.failed else step.commit
        given = await self._upstream.ask(commit, passing=False)
        self._dialogue.answered(given)
        given.failed |= worked.failed
        if step.wrapped:
            given.rows += worked.rows
        given.kept = _joined(worked, given, wrapped=step.wrapped)
        return given

    async def _send(self, data: bytes) -> None:
        self._upstream.client.send(data)

    async def _fail(self, step: Step, failed: Failed) -> None:
        """Answer with the error that a fault names."""
        is_full = failed.fault.kind is FaultKind.FULL
        refusal = REFUSALS[DISK_FULL if is_full else str(failed.fault.chosen)]
        if refusal.is_fatal:
            await self._host.end([self._upstream])
            await self._send(refusal.raw)
        elif self.holds:
            await self._fail_before(step, refusal)
        else:
            await self._fail_after(step, refusal)

    async def _fail_before(self, step: Step, refusal: Refusal) -> None:
        # Also a COMMIT that fails has ended its transaction.
        await self._upstream.ask(step.undo, passing=False)
        self._dialogue.failed(step)
        await self._send(refusal.raw + (ready(b"I") if step.syncs else b""))

    async def _fail_after(self, step: Step, refusal: Refusal) -> None:
        """The error stands where the end of the last statement would."""
        kept = self._given.kept
        ends = [at for at, reply in enumerate(kept) if reply[0] in _ENDS_STATEMENT]
        before, rest = (kept[: ends[-1]], kept[ends[-1] + 1 :]) if ends else ([], [])
        await self._send(b"".join((*before, refusal.raw, *rest)))
        if not step.syncs:
            self._dialogue.failed(step)


def _joined(worked: Given, given: Given, *, wrapped: bool) -> list[bytes]:
    """The answer to a step that was carried out in two parts, as if in one."""
    if not wrapped:
        return worked.kept + given.kept
    at = next(i for i, reply in enumerate(worked.kept) if reply[0] == _READY)
    # Between the answers to the relay's own BEGIN and COMMIT or ROLLBACK.
    inner, outer = worked.kept[at + 1 : -1], given.kept
    if not worked.failed and any(reply[0] == _ERROR for reply in outer):
        return inner[:-1] + outer  # what failed at its end was not done
    return inner + [reply for reply in outer if reply[0] != _COMPLETE]
