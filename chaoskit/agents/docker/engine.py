"""The docker engine, spoken to through its SDK: calls that wait in a thread, and words.

The engine must run on this very machine, behind a unix socket: a container's processes
are watched through /proc and pidfds, and its world is on this machine's loopback.

One thread makes all calls, one after the other, as the SDK's client is made for one
thread; the loop runs on meanwhile. No call waits for the agent.
"""

import asyncio
import os
import socket
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import docker
from docker.errors import APIError, DockerException

from chaoskit.agents.docker.refusals import Refusal, elsewhere, unreachable
from chaoskit.agents.life import LaunchError

T = TypeVar("T")
SOCKET = "unix:///var/run/docker.sock"
CAMPAIGN_LABEL = "chaoskit.campaign"
"""The label that everything of a campaign has in the engine; its value is the id."""

_SCHEME = "unix://"
_SECONDS_MAX = 60
_ATTACHED = {"stdout": 1, "stderr": 1, "stream": 1}


@dataclass(frozen=True)
class Container:
    """What a container is made of. `variables` without a value are taken away."""

    image: str
    argv: tuple[str, ...]
    variables: Mapping[str, str | None]
    binds: tuple[Path, ...] = ()
    memory_bytes: int | None = None
    volumes_of: str | None = None


class Engine:
    """One worker's connection. Every method raises `LaunchError`, in words."""

    def __init__(self, campaign: str) -> None:
        self.address = os.environ.get("DOCKER_HOST") or SOCKET
        self._labels = {CAMPAIGN_LABEL: campaign}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="docker")
        self._api: Any = None

    async def connect(self) -> None:
        """Finds the engine and agrees on a version with it."""
        if not self.address.startswith(_SCHEME):
            raise LaunchError(elsewhere(self.address))
        self._api = await self._do(connected, self.address)

    async def image(self, name: str) -> str:
        """The id of an image that the engine has; nothing is pulled."""
        try:
            found = await self._do(self._api.inspect_image, name)
        except Refusal as error:
            if not error.is_about_something_gone:
                raise
            raise LaunchError(
                f"the engine at {self.address} has no image {name!r}; expected one that"
                f" is there already, since chaoskit pulls nothing: build it (docker"
                f" build -t {name} FOLDER) or pull it (docker pull {name})"
            ) from error
        return str(found["Id"])

    async def create(self, container: Container) -> str:
        """Makes a container that does not run yet; returns its id."""
        made = await self._do(self._create, container)
        return str(made["Id"])

    def _create(self, container: Container) -> Any:
        host = self._api.create_host_config(
            network_mode="host",
            binds=[f"{path}:{path}:rw" for path in container.binds],
            volumes_from=[container.volumes_of] if container.volumes_of else None,
            mem_limit=container.memory_bytes,
            memswap_limit=container.memory_bytes,
            log_config={"type": "none"},
            init=False,
        )
        return self._api.create_container(
            container.image,
            list(container.argv),
            environment=dict(container.variables),
            labels=self._labels,
            host_config=host,
            healthcheck={"test": ["NONE"]},  # or it would run beside the agent
            use_config_proxy=False,
        )

    async def attach(self, container: str) -> socket.socket:
        """The stream of what it will write, to be had before it is started."""
        return await self._do(self._attach, container)

    def _attach(self, container: str) -> socket.socket:
        answer = self._api.attach_socket(container, _ATTACHED)
        line = socket.socket(fileno=os.dup(answer.fileno()))
        line.setblocking(False)
        answer._response.close()  # the SDK hangs it there; else its socket stays open
        return line

    async def start(self, container: str) -> None:
        """Has it run; where its program cannot be, the engine's reason is raised."""
        await self._do(self._api.start, container)

    async def pid(self, container: str) -> int:
        """The first process, as this machine counts them; 0 where it has ended."""
        state = await self._do(self._api.inspect_container, container)
        return int(state["State"]["Pid"])

    async def kill(self, container: str, number: int) -> None:
        """Signals its first process; nothing where it has ended."""
        await self._unless_ended(self._api.kill, container, number)

    async def pause(self, container: str) -> None:
        """Freezes all of it; nothing where it has ended."""
        await self._unless_ended(self._api.pause, container)

    async def unpause(self, container: str) -> None:
        """Thaws it; nothing where it has ended or runs."""
        await self._unless_ended(self._api.unpause, container)

    async def ended(self, container: str) -> int:
        """How one ended that is dead, once the engine has reaped it: docker's code."""
        answer = await self._do(self._api.wait, container)
        return int(answer["StatusCode"])

    async def commit(self, container: str) -> str:
        """An image of a container's disk as it is."""
        return str((await self._do(self._api.commit, container))["Id"])

    async def remove(self, container: str, *, volumes: bool) -> None:
        """Ends and removes a container; nothing where it has gone."""
        call = self._api.remove_container
        await self._unless_gone(partial(call, container, v=volumes, force=True))

    async def remove_image(self, image: str) -> None:
        """Removes an image that nothing was made from; nothing where it has gone.

        What it was made from stays, which docker removes too if it has no name.
        """
        await self._unless_gone(partial(self._api.remove_image, image, noprune=True))

    def close(self) -> None:
        """Hangs up."""
        self._thread.shutdown(wait=True)
        if self._api is not None:
            self._api.close()

    async def _unless_ended(self, call: Callable[..., object], *args: object) -> None:
        try:
            await self._do(call, *args)
        except Refusal as refusal:
            if not refusal.is_about_one_that_ended:
                raise

    async def _unless_gone(self, call: Callable[[], object]) -> None:
        try:
            await self._do(call)
        except Refusal as refusal:
            if not refusal.is_about_something_gone:
                raise

    async def _do(self, call: Callable[..., T], *args: Any) -> T:
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._thread, call, *args)
        except APIError as error:
            raise Refusal.of(error) from error
        except (DockerException, OSError) as error:
            raise LaunchError(unreachable(self.address, error)) from error


def connected(address: str) -> Any:
    """A client of the engine at this unix socket.

    Raises `OSError` where nobody answers, else what the SDK raises.
    """
    with socket.socket(socket.AF_UNIX) as line:  # the SDK hides why, and leaves it open
        line.connect(address.removeprefix(_SCHEME))
    return docker.APIClient(address, version="auto", timeout=_SECONDS_MAX)
