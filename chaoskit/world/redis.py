"""The Redis service: a relay, with the gate in it, in front of a real server.

Operations are the write commands, in lower case, with their first key; a transaction
that writes is the one operation ``exec`` (see `chaoskit.wire.redis`). Edges: ``before``
(the command is whole, the server has not seen it) and ``after`` (the server has done
it, the reply is withheld). What else the agent says to the server is not counted.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from pydantic import JsonValue

from chaoskit.gate import Gate
from chaoskit.model.scenario import Scenario
from chaoskit.wire.redis import CommandTable
from chaoskit.world.listener import LOOPBACK, Listener
from chaoskit.world.redis_link import Link, MissingServer, Refusal
from chaoskit.world.redis_relay import SERVICE, Opened, Session
from chaoskit.world.redis_server import check_version, find_server
from chaoskit.world.redis_state import RedisState, Snapshot


@dataclass(frozen=True)
class _Up:
    """What there is between `start` and `stop`."""

    link: Link
    state: RedisState
    listener: Listener


class Redis:
    """A `Service`, and a `Stateful` one.

    Args:
        folder: where a server of our own may live.
        url: a server to use instead, which must be empty.

    Raises:
        MissingServer: the URL makes no sense.
    """

    name = SERVICE
    variables: ClassVar[Mapping[str, str]] = {
        "REDIS_URL": "a real Redis-protocol server behind a relay"
    }

    def __init__(self, folder: Path, url: str | None = None) -> None:
        self.server = find_server(url, folder)
        self.version = ""
        """Name and version of the server, once started, such as ``valkey 8.1.8``."""
        self.table = CommandTable(())
        self._up: _Up | None = None
        self._gate: Gate | None = None
        self._open: dict[int, tuple[Opened, asyncio.Server]] = {}
        self._sessions: set[Session] = set()
        self._bugs: list[Exception] = []

    async def start(self) -> None:
        """See `Service`.

        Raises:
            MissingServer: there is no server to be had, or not this one.
        """
        link = await self.server.start()
        try:
            self.version = await check_version(link)
            (commands,) = await link.do(("COMMAND",))
        except BaseException:
            await self.server.stop()
            raise
        self.table = CommandTable(commands)
        state = RedisState(link, field_expiry="hpttl" in self.table)
        self._up = _Up(link, state, Listener())

    async def reset(self, gate: Gate, scenario: Scenario) -> None:
        """See `Service`."""
        del scenario  # every scenario's store begins empty
        await self._close_all()
        await self._all_ended()
        self._gate = gate
        await self._started.state.reset()

    async def open(self, life: int) -> dict[str, str]:
        """See `Service`."""
        assert self._gate is not None, "reset comes first"
        opened, listener = Opened(life, self._gate), self._started.listener
        server = await asyncio.get_running_loop().create_server(
            lambda: Session(opened, self), sock=listener.renew()
        )
        self._open[life] = opened, server
        return {"REDIS_URL": f"redis://{LOOPBACK}:{listener.port}/0"}

    async def close(self, life: int) -> None:
        """See `Service`.

        Once it returns the server does nothing more for the life, except for messages
        that are at the gate: wait for those with `Gate.settled`.
        """
        if life not in self._open:
            return
        opened, server = self._open.pop(life)
        opened.is_closed = True
        server.close()
        await self._cut([each for each in self._sessions if each.opened is opened])
        if self._bugs:
            raise self._bugs.pop()

    async def _cut(self, sessions: list[Session]) -> None:
        for session in sessions:
            session.abort()
        idle = [session for session in sessions if not session.crossing]
        await self.end(*(session.upstream.number for session in idle))
        if idle:
            await asyncio.wait([session.task for session in idle])

    async def stop(self) -> None:
        """See `Service`."""
        try:
            await self._close_all()
        finally:
            await self.server.stop()
            for session in self._sessions:
                session.upstream.abort()
            await self._all_ended()
            if self._up is not None:
                self._up.listener.close()
                self._up.link.close()
                self._up = None

    async def snapshot(self) -> Snapshot:
        """See `Stateful`."""
        return await self._started.state.snapshot()

    async def restore(self, snapshot: object) -> None:
        """See `Stateful`."""
        assert isinstance(snapshot, Snapshot)
        await self._started.state.restore(snapshot)

    async def view(self) -> JsonValue:
        """See `Stateful`; for its form see `chaoskit.world.redis_state`."""
        return await self._started.state.view()

    def learned(self, script: bytes) -> None:
        """See `Host`."""
        self._started.state.scripts.add(script)

    async def end(self, *numbers: int) -> None:
        """See `Host`. The reply comes when the connection is gone."""
        kills = [("CLIENT", "KILL", "ID", number) for number in numbers if number]
        with suppress(ConnectionError):
            while any(map(_is_busy, await self._started.link.ask(("PING",), *kills))):
                await self._end_script()

    async def _end_script(self) -> None:
        """A script that does not end by itself keeps the server from everything else.

        The message that brought it would never leave the gate.
        """
        ends = (("SCRIPT", "KILL"), ("FUNCTION", "KILL"))
        for refusal in await self._started.link.ask(*ends):
            if str(refusal).startswith("UNKILLABLE"):
                raise MissingServer(
                    "a script of the agent runs in the Redis server without an end, "
                    "and cannot be ended since it has written something"
                )

    def began(self, session: Session) -> None:
        """See `Host`."""
        self._sessions.add(session)

    def ended(self, session: Session, bug: Exception | None) -> None:
        """See `Host`."""
        self._sessions.discard(session)
        if bug is not None:
            self._bugs.append(bug)

    async def _close_all(self) -> None:
        for life in tuple(self._open):
            await self.close(life)

    async def _all_ended(self) -> None:
        if self._sessions:
            await asyncio.wait([session.task for session in self._sessions])

    @property
    def _started(self) -> _Up:
        assert self._up is not None, "start comes first"
        return self._up


def _is_busy(reply: object) -> bool:
    return isinstance(reply, Refusal) and str(reply).startswith("BUSY")
