"""One message of a client at the gate: how it is applied, and what a fault makes of it.

A message is a command, or a transaction. The server may have been sent a transaction
up to its ``EXEC`` already, or nothing of it yet, where all had arrived at once.
"""

from chaoskit.gate import Crossing
from chaoskit.model.address import Edge
from chaoskit.model.faults import FaultKind
from chaoskit.model.schedule import Fault
from chaoskit.wire.redis.dialogue import OURS, Step
from chaoskit.wire.redis.errors import DEFAULT, FULL
from chaoskit.world.redis.link import packed
from chaoskit.world.redis.store import Store
from chaoskit.world.redis.upstream import Upstream

_DISCARD = packed(("DISCARD",))


class Message:
    """See the module's docstring; also the gate's `Host`, for this one message."""

    __slots__ = ("_replies", "_step", "_store", "_upstream")

    def __init__(self, step: Step, upstream: Upstream, store: Store) -> None:
        self._step = step
        self._upstream = upstream
        self._store = store
        self._replies: list[bytes] = []

    async def apply(self) -> bytes:
        """Have the server do it; returns all of its replies."""
        step, store = self._step, self._store
        store.learn(step.meaning)
        if store.past is not None:
            await store.past.remember()
        self._replies = await self._upstream.ask(
            step, step.raw, step.replies, passing=False
        )
        return b"".join(self._replies)

    async def suffer(self, fault: Fault, crossing: Crossing) -> bool:
        """See `chaoskit.gate.Host`."""
        key = self._step.meaning.raw_key
        return await self._store.suffer(fault, self._upstream.known, key)

    async def failure(self, fault: Fault) -> bytes:
        """The error that a fault asks for, behind what is answered before it."""
        transaction = self._step.meaning.op == "exec"
        if transaction and fault.at.edge == Edge.BEFORE:
            await self._discard()
        name = FULL if fault.kind is FaultKind.FULL else fault.chosen or DEFAULT
        error = self._store.error(name, transaction=transaction)
        return b"".join([*self._replies[:-1], error])

    async def _discard(self) -> None:
        """Have the server forget the transaction, and what was watched for it."""
        raw, replies = self._step.opening + _DISCARD, self._step.replies
        self._replies = await self._upstream.ask(OURS, raw, replies, passing=False)
