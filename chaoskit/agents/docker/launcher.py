"""Lives in containers of an image that the engine of this machine has.

What a life gets: the image's own entry point, user, folder and variables, with the
command and the variables of `Command.env` put over them, as `docker run` does it. Not
the manifest's folder, nor anything else of this machine but the folder of
CHAOSKIT_STATE_DIR, bound at the same path; nor a descriptor: `Command.inherit` is left
out. `Command.memory_bytes` limits the container as a whole.

**Network.** The world listens on the loopback interface, and nowhere else. A container
with a network of its own has a loopback of its own and cannot reach it; so it gets this
machine's network (`network_mode: host`). That works on Linux, with an engine of this
machine, and is why the engine's bridge and its firewall rules are not needed.

**Disk.** `fresh`: each life is a new container of the image, as when an instance is
reclaimed. `keep`: the lives of one run share one disk, as when the same container is
started again. Docker cannot start a container again with another command, and each
life's command and sockets differ; so each life after the first is a new container over
the disk that the one before left, to the byte (`docker commit`; times of files are kept
to the second). Volumes that the image declares are handed on. A run is told by its
CHAOSKIT_RUN_ID; the next run starts from the image, and the disk of the one before is
removed then, or at the end.

Everything has the label `chaoskit.campaign`; `leftovers` removes by it what
is left of a campaign, however that ended. With it a worker's death takes its containers
along only then: docker's processes are not our children.
"""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from chaoskit.agents.docker.disk import KeptDisk
from chaoskit.agents.docker.engine import Container, Engine
from chaoskit.agents.docker.leftovers import take_note
from chaoskit.agents.docker.life import ContainerLife
from chaoskit.agents.docker.output import ContainerOutput
from chaoskit.agents.life import Clock, Command, LaunchError
from chaoskit.model.manifest import Disk

RUN_VARIABLE = "CHAOSKIT_RUN_ID"
STATE_VARIABLE = "CHAOSKIT_STATE_DIR"


class DockerLauncher:
    """A `Launcher`. `folder` is the campaign's, and is called by the campaign's id."""

    def __init__(self, image: str, disk: Disk, folder: Path) -> None:
        self._name = image
        self._disk = disk
        self._folder = folder
        self._engine = Engine(folder.name)
        self._image: asyncio.Task[str] | None = None
        self._lives: set[ContainerLife] = set()
        self._clearing: set[asyncio.Task[None]] = set()
        self._births: set[asyncio.Task[ContainerLife]] = set()
        self._kept = KeptDisk(self._engine, "")

    async def warm(self) -> None:
        """See `Launcher.warm`. What was raised once is raised at every call."""
        await self._prepared()

    async def start(self, command: Command) -> ContainerLife:
        """See `Launcher.start`, and `ContainerLife` for when it runs."""
        birth = asyncio.create_task(self._bear(command))
        self._births.add(birth)
        birth.add_done_callback(self._births.discard)
        try:
            return await asyncio.shield(birth)
        except asyncio.CancelledError:
            birth.add_done_callback(self._abandon)
            raise

    def clock(self) -> Clock:
        """See `Launcher.clock`: it cannot be set."""
        raise LaunchError(
            "the clock of a container cannot be set; expected no fault `skew` with"
            " `launch: docker`: use `launch: process` or `fork` for it"
        )

    async def close(self) -> None:
        """See `Launcher.close`. Containers are removed, and the disks they had."""
        if self._image is None:
            return
        await asyncio.wait([self._image])
        await asyncio.gather(*self._births, return_exceptions=True)
        lives = [life.kill() for life in self._lives]
        await asyncio.gather(*lives, return_exceptions=True)
        await asyncio.gather(*self._clearing, return_exceptions=True)
        try:
            await self._kept.discard()
        finally:
            self._engine.close()

    async def _prepared(self) -> str:
        if self._image is None:
            self._image = asyncio.create_task(self._prepare())
        return await asyncio.shield(self._image)

    async def _prepare(self) -> str:
        await self._engine.connect()
        image = await self._engine.image(self._name)
        take_note(self._folder, self._engine.address)
        return image

    async def _bear(self, command: Command) -> ContainerLife:
        image = await self._prepared()
        if self._disk is Disk.FRESH:
            return await self._launch(command, image)
        return await self._go_on_from_disk(command, image)

    async def _go_on_from_disk(self, command: Command, image: str) -> ContainerLife:
        kept = await self._disk_of(command.env.get(RUN_VARIABLE, ""))
        last = kept.last
        if last is not None:
            image = await kept.image()
        unset = dict.fromkeys(kept.names - command.env.keys())
        volumes = last.container if last else None
        life = await self._launch(command, image, unset, volumes)
        await kept.hand_on(life, command.env)
        return life

    async def _disk_of(self, run: str) -> KeptDisk:
        if self._kept.run != run:
            await self._kept.discard()
            self._kept = KeptDisk(self._engine, run)
        return self._kept

    async def _launch(
        self,
        command: Command,
        image: str,
        unset: Mapping[str, None] | None = None,
        volumes_of: str | None = None,
    ) -> ContainerLife:
        state = command.env.get(STATE_VARIABLE)
        container = Container(
            image=image,
            argv=command.argv,
            variables={**command.env, **(unset or {})},
            binds=(Path(state),) if state else (),
            memory_bytes=command.memory_bytes,
            volumes_of=volumes_of,
        )
        name = await self._engine.create(container)
        try:
            line = await self._engine.attach(name)
            output = ContainerOutput(line, command.stdout, command.stderr)
        except BaseException:
            await self._engine.remove(name, volumes=True)
            raise
        return self._take_in(ContainerLife(self._engine, name, output, command))

    def _take_in(self, life: ContainerLife) -> ContainerLife:
        self._lives.add(life)
        life.ending.add_done_callback(lambda _: self._see_off(life))
        return life

    def _see_off(self, life: ContainerLife) -> None:
        self._lives.discard(life)
        if self._disk is Disk.FRESH:
            clearing = asyncio.create_task(self._clear(life))
            self._clearing.add(clearing)
            clearing.add_done_callback(self._clearing.discard)

    async def _clear(self, life: ContainerLife) -> None:
        # What resists is found by its label at the campaign's end.
        with suppress(LaunchError):
            await self._engine.remove(life.container, volumes=True)

    def _abandon(self, birth: "asyncio.Task[ContainerLife]") -> None:
        if not birth.cancelled() and birth.exception() is None:
            killing = asyncio.create_task(_end(birth.result()))
            self._clearing.add(killing)
            killing.add_done_callback(self._clearing.discard)


async def _end(life: ContainerLife) -> None:
    with suppress(LaunchError):
        await life.kill()
