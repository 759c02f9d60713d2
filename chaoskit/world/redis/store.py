"""The store behind the relay: a server, its state, and what faults do to it.

- ``restart`` kills the server (SIGKILL) and starts it again on what its durability
  setting had saved (see `chaoskit.world.redis.own`). Every connection is lost, and so
  are scripts, settings and subscriptions; clients find it at the same address.
- ``rollback`` makes it forget its last acknowledged writes (see
  `chaoskit.world.redis.past`).
- ``expire`` lets the server itself expire one key, so that watchers and key events
  notice.

What they need costs time, so it is there only in trials in which they are due.
"""

import asyncio
import re
from typing import NamedTuple

from chaoskit.gate import Gate
from chaoskit.model.faults import FaultKind
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Fault
from chaoskit.wire.redis.commands import CommandTable, Meaning
from chaoskit.wire.redis.errors import error
from chaoskit.world.redis.due import SERVICE, meant, to_keep, to_remember, writes
from chaoskit.world.redis.link import Command, Link, Refusal
from chaoskit.world.redis.past import Past
from chaoskit.world.redis.server import GivenServer, OwnServer, check_version
from chaoskit.world.redis.state import RedisState
from chaoskit.world.servers import MissingServer
from chaoskit.world.servers.connect import Connected

_ENDS = (("SCRIPT", "KILL"), ("FUNCTION", "KILL"))


class Client(NamedTuple):
    """A connection, by the server's own number; each start begins to count anew."""

    number: int
    start: int


class Store:
    """A server for a whole campaign; also a `Connector`, which waits for a restart."""

    def __init__(self, server: GivenServer | OwnServer) -> None:
        self.version = ""
        self.table = CommandTable(())
        self.login: tuple[Command, ...] = server.login
        self.state: RedisState
        self.past: Past | None = None
        self._server = server
        self._gate: Gate
        self._keeps: str | None = None
        self._answers = asyncio.Event()
        self._starts = 0

    async def start(self) -> None:
        """Start it, and learn what it is.

        Raises:
            MissingServer: there is no server to be had, or not this one.
        """
        link = await self._server.start()
        try:
            self.version = await check_version(link)
            (commands,) = await link.do(("COMMAND",))
        except BaseException:
            await self._server.stop()
            raise
        self.table = CommandTable(commands)
        self._take_up(link)
        self._answers.set()

    async def reset(self, gate: Gate, scenario: Scenario) -> None:
        """Empty it, and make ready for the faults that are due.

        Raises:
            MissingServer: the server cannot suffer them.
        """
        self._gate = gate
        await self._renew(to_keep(gate, scenario, self._server))
        await self.state.reset()
        depth = to_remember(gate.unfired)
        self.past = Past(self.state, depth) if depth else None

    async def stop(self) -> None:
        """End it, or leave it empty where it is not ours."""
        await self._server.stop()
        if self._answers.is_set():
            self.state.link.close()

    async def connect(self, protocol: Connected) -> Connected:
        """See `Connector`."""
        await self._answers.wait()
        return await self._server.connect(protocol)

    def known_as(self, number: int) -> Client:
        """A connection whose number the server has told just now."""
        return Client(number, self._starts)

    async def hang_up(self, *clients: Client | None) -> None:
        """Drop connections, and wait until they are gone.

        Raises:
            ConnectionError: the server has gone.
            MissingServer: a script keeps it busy for ever.
        """
        kills = [
            ("CLIENT", "KILL", "ID", client.number)
            for client in clients
            if client is not None and client.start == self._starts
        ]
        while any(map(_is_busy, await self.state.link.ask(("PING",), *kills))):
            await self._end_script()

    def learn(self, command: Meaning) -> None:
        """The server knows the command's script from here on, if it has one."""
        if command.script is not None:
            self.state.scripts.add(command.script)

    async def changes(self) -> int:
        """How many changes the server has made so far; it may begin anew at a save."""
        (told,) = await self.state.link.do(("INFO", "persistence"))
        found = re.search(rb"rdb_changes_since_last_save:(\d+)", told)
        return int(found[1]) if found else -1

    async def suffer(
        self, fault: Fault, client: Client | None, key: bytes | None
    ) -> bool:
        """See the module's docstring. The message is of a client, and about a key.

        Returns False where there was nothing to forget.
        """
        if fault.kind is FaultKind.RESTART:
            await self._restart()
            return True
        if fault.kind is FaultKind.ROLLBACK:
            return await self._roll_back(writes(fault))
        if fault.argument is not None:
            key = meant(fault.argument, self._gate.names)
        if key is None or client is None:
            return False
        return await self._expire(client.number, key)

    def error(self, name: str, *, transaction: bool) -> bytes:
        """An error as this server would word it."""
        title = self.version.partition(" ")[0].capitalize()
        return error(name, title, transaction=transaction)

    async def _restart(self) -> None:
        server = self._server
        assert isinstance(server, OwnServer), "refused before the trial began"
        await self._until_all_is_in_the_file()
        self._answers.clear()
        self._starts += 1
        self.state.take_up(await server.restart())
        self._answers.set()

    async def _until_all_is_in_the_file(self) -> None:
        """See `chaoskit.world.redis.own` on ``everysec``; each look is a message."""
        waits = True
        while waits:
            (told,) = await self.state.link.do(("INFO", "persistence"))
            unwritten = re.search(rb"aof_buffer_length:(\d+)", told)
            waits = unwritten is not None and int(unwritten[1]) > 0

    async def _roll_back(self, writes: int) -> bool:
        assert self.past is not None, "it was not due when the trial began"
        forgot = await self.past.forget(writes)
        if not self._gate.expects(FaultKind.ROLLBACK, SERVICE):
            self.past = None
        return forgot

    async def _expire(self, number: int, key: bytes) -> bool:
        link = self.state.link
        (clients,) = await link.do(("CLIENT", "LIST"))
        asked = ("PEXPIRE", key, 1), ("EXISTS", key)
        *_, was_there, exists = await link.do(
            ("SELECT", _database(clients, number)), *asked
        )
        while exists:  # until a millisecond has passed; asking lets the server see it
            (exists,) = await link.do(("EXISTS", key))
        return bool(was_there)

    async def _renew(self, keeps: str | None) -> None:
        """A fresh server, where the last one kept something, or this one is to."""
        if keeps is None and self._keeps is None:
            return
        self._keeps = keeps
        server = self._server
        assert isinstance(server, OwnServer)
        self._answers.clear()
        await server.stop()
        self._starts += 1
        self._take_up(await server.start(keeps))
        self._answers.set()

    def _take_up(self, link: Link) -> None:
        self.state = RedisState(link, field_expiry="hpttl" in self.table)

    async def _end_script(self) -> None:
        """A script that does not end by itself keeps the server from everything else.

        The message that brought it would never leave the gate.
        """
        for refusal in await self.state.link.ask(*_ENDS):
            if str(refusal).startswith("UNKILLABLE"):
                raise MissingServer(
                    "a script of the agent runs in the Redis server without an end, "
                    "and cannot be ended since it has written something"
                )


def _database(clients: bytes, number: int) -> int:
    for line in clients.decode(errors="replace").splitlines():
        told = dict(word.split("=", 1) for word in line.split(" ") if "=" in word)
        if told.get("id") == str(number):
            return int(told["db"])
    return 0


def _is_busy(reply: object) -> bool:
    return isinstance(reply, Refusal) and str(reply).startswith("BUSY")
