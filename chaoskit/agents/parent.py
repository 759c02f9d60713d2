"""The worker's handle on its zygote, the process that lives are forked from.

`zygote.py` says how the two talk, and why there are two.
"""

import asyncio
import json
import os
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from chaoskit.agents.family import Family
from chaoskit.agents.life import LaunchError
from chaoskit.agents.linux import become_subreaper
from chaoskit.agents.mark import CAMPAIGN_VARIABLE, fresh_mark
from chaoskit.agents.refusals import last_lines, unprepared

_ZYGOTE = str(Path(__file__).with_name("zygote.py"))
_TAIL_BYTES = 16_384
_READ_BYTES = 65_536


@dataclass(frozen=True)
class Origin:
    """How to start a zygote: an interpreter with options, and what lives will call."""

    python: tuple[str, ...]
    call: tuple[str, ...]  # function, then modules to import first; empty: lives exec
    cwd: Path
    env: Mapping[str, str]


@dataclass(frozen=True)
class Parent:
    """A zygote that is ready."""

    family: Family
    control: socket.socket
    output: IO[bytes]

    def pass_line(self) -> socket.socket:
        """Has a life forked; returns our end of the socket that it listens to.

        Raises `OSError` where the zygote has ended.
        """
        ours, theirs = socket.socketpair()
        with theirs:
            try:
                socket.send_fds(self.control, [b"\n"], [theirs.fileno()])
            except OSError:
                ours.close()
                raise
        ours.settimeout(0)
        return ours

    def last_lines(self) -> str:
        """What it, or its imports, printed last."""
        file = self.output.fileno()
        start = max(0, os.fstat(file).st_size - _TAIL_BYTES)
        return last_lines(os.pread(file, _TAIL_BYTES, start).decode(errors="replace"))

    async def end(self) -> None:
        """Kills it, and a life that still waits to become one."""
        await self.family.kill()
        self.control.close()
        self.output.close()


async def start_parent(origin: Origin) -> Parent:
    """Starts a zygote and waits for its imports. Raises `LaunchError`."""
    become_subreaper()
    parent = _spawn(origin)
    try:
        reply = await hear(parent.control)
        if "ready" not in reply:
            lines = last_lines(reply.get("error", "")) or parent.last_lines()
            raise LaunchError(unprepared(origin.python, origin.call, origin.cwd, lines))
    except BaseException:
        await parent.end()
        raise
    return parent


async def hear(line: socket.socket) -> dict[str, Any]:
    """The next line of JSON; empty where the other side has gone."""
    loop = asyncio.get_running_loop()
    heard = b""
    while not heard.endswith(b"\n"):
        try:
            more = await loop.sock_recv(line, _READ_BYTES)
        except ConnectionError:
            more = b""
        if not more:
            return {}
        heard += more
    return words(heard)


def words(line: bytes) -> dict[str, Any]:
    """What a line says."""
    said: dict[str, Any] = json.loads(line) if line else {}
    return said


def _spawn(origin: Origin) -> Parent:
    mark = fresh_mark(origin.env.get(CAMPAIGN_VARIABLE, ""))
    with ExitStack() as on_failure:
        ours, theirs = map(on_failure.enter_context, socket.socketpair())
        output = on_failure.enter_context(tempfile.TemporaryFile())
        pid = _run(origin, mark, theirs.fileno(), output)
        on_failure.pop_all()
    theirs.close()
    ours.settimeout(0)
    return Parent(Family(pid, mark), ours, output)


def _run(origin: Origin, mark: int, control: int, output: IO[bytes]) -> int:
    settings = (str(control), str(os.getpid()), str(mark))
    try:
        process = subprocess.Popen(
            [*origin.python, _ZYGOTE, *settings, *origin.call],
            cwd=origin.cwd,
            env=origin.env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=output,
            pass_fds=(control,),
            start_new_session=True,
        )
    except OSError as error:
        raise LaunchError(
            unprepared(origin.python, origin.call, origin.cwd, str(error))
        ) from error
    # We reap it by its pidfd; without this Popen would, by its pid, when deleted.
    process.returncode = 0
    return process.pid
