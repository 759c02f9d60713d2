"""The files service itself: a mount, the desk behind it, and the gate between."""

import asyncio
import errno
import os
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import ClassVar

from pydantic import JsonValue

from chaoskit.agents.mounts import unmount
from chaoskit.gate import Crossing, Dropped, Failed, Gate
from chaoskit.model.address import Operation
from chaoskit.model.faults import FaultKind
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Fault
from chaoskit.world.files.changes import Step
from chaoskit.world.files.channel import Call, Channel, process_of
from chaoskit.world.files.desk import Desk
from chaoskit.world.files.disk import Disk
from chaoskit.world.files.mount import mount
from chaoskit.world.files.powerloss import Loss, copy, lose_power, pack, unpack
from chaoskit.world.files.view import view, whose

SERVICE = "files"


class Files:
    """A `Service`, `Stateful` and `Volatile`.

    Args:
        folder: where the agent's folder may be, and scratch files beside it.
    """

    name = SERVICE
    variables: ClassVar[Mapping[str, str]] = {
        "CHAOSKIT_STATE_DIR": "a folder in which every change is a crossing"
    }

    def __init__(self, folder: Path) -> None:
        self._folder = folder.absolute()
        self._gate: Gate | None = None
        self._desk = Desk(Disk())
        self._shows_unsynced = True
        self._channel: Channel | None = None
        self._open: list[int] = []
        self._crossing: set[asyncio.Task[None]] = set()
        self._bugs: list[BaseException] = []

    @property
    def state_folder(self) -> Path:
        """The agent's folder. Nobody may look into it from within the loop."""
        return self._folder / "state"

    async def start(self) -> None:
        """See `Service`.

        Raises:
            MissingFuse: there is none here, or we may not use it.
        """
        for folder in (self.state_folder, self._scratch):
            folder.mkdir(parents=True, exist_ok=True)
        await self._mount()
        await self._unmount()

    async def reset(self, gate: Gate, scenario: Scenario) -> None:
        """See `Service`."""
        await self._close_all()
        # Where no power is lost nobody can tell what is synced, and states are fewer.
        self._shows_unsynced = FaultKind.POWERLOSS in {w.kind for w in scenario.wanted}
        self._gate = gate
        self._desk = Desk(Disk())

    async def open(self, life: int) -> dict[str, str]:
        """See `Service`."""
        if self._channel is None:
            await self._mount()
        self._open.append(life)
        return {"CHAOSKIT_STATE_DIR": str(self.state_folder)}

    async def close(self, life: int) -> None:
        """See `Service`. Call it once no process of the life is left."""
        if life in self._open:
            self._open.remove(life)
        if not self._open:
            await self._unmount()
        if self._bugs:
            raise self._bugs.pop()

    async def stop(self) -> None:
        """See `Service`."""
        await self._close_all()

    async def snapshot(self) -> bytes:
        """See `Stateful`."""
        return pack(self._desk.disk)

    async def restore(self, snapshot: object) -> None:
        """See `Stateful`."""
        assert isinstance(snapshot, bytes)
        self._desk = Desk(unpack(snapshot))

    async def view(self) -> JsonValue:
        """See `Stateful`; for its form see `chaoskit.world.files.view`.

        What is not synced is shown where the scenario tries `powerloss`.
        """
        shown = view(self._desk.disk, self._scratch)
        return shown if self._shows_unsynced else {"now": shown["now"]}

    def holding(self, words: Sequence[bytes]) -> Iterator[str]:
        """See `Searched`: a database is one place with its log and its journal."""
        for path, inode in self._desk.disk.files():
            if any(word in inode.content for word in words):
                yield f"file {whose(path)}"

    @asynccontextmanager
    async def sheltered(self) -> AsyncIterator[None]:
        """See `Sheltered`. Open files are of one disk, and stay there."""
        if self._open:
            yield
            return
        kept, self._desk = self._desk, Desk(copy(self._desk.disk))
        try:
            yield
        finally:
            self._desk = kept

    async def lose_power(self, loss: str | None = None) -> None:
        """See `Volatile`; ``loss`` is one of `Loss`."""
        await self._unmount()  # whoever else is there has no power either
        disk = copy(self._desk.disk)
        lose_power(disk, Loss(loss or Loss.ALL))
        # What is on its way still changes the disk that was.
        self._desk = Desk(disk)

    def _serve(self, call: Call) -> None:
        """Answer a request at once, or see that it crosses."""
        try:
            answer = self._desk.take(call.request)
            if isinstance(answer, Step):
                if not answer.means_nothing:
                    self._begin(call, answer)
                    return
                answer = answer.do(None)
        except OSError as error:
            call.answer(error)
        except Exception as bug:
            self._bugs.append(bug)
            call.answer(OSError(errno.EIO, "a fault of chaoskit"))
        else:
            call.answer(answer)

    def _begin(self, call: Call, step: Step) -> None:
        assert self._gate is not None, "reset comes first"
        life = self._life_of(call.request.pid)
        try:
            operation = Operation(SERVICE, step.op, step.path)
            crossing = self._gate.arrive(life, operation)
        except Dropped:
            self._drop(call, life)
            return
        crossing_over = self._cross(call, step, self._gate, crossing)
        task = asyncio.get_running_loop().create_task(crossing_over)
        self._crossing.add(task)
        task.add_done_callback(self._crossed)

    async def _cross(
        self, call: Call, step: Step, gate: Gate, crossing: Crossing
    ) -> None:
        async def apply() -> bytes | OSError:
            call.result = _done(step, gate.torn(crossing, step.pieces))
            return call.result

        try:
            result = await gate.cross(crossing, apply, pieces=step.pieces)
        except Dropped:
            self._drop(call, crossing.life)
        except Failed as failed:
            call.answer(_error_of(failed.fault))
        except BaseException:  # told by `close`, which must be reached
            call.answer(OSError(errno.EIO, "a fault of chaoskit"))
            raise
        else:
            call.answer(result)

    def _drop(self, call: Call, life: int) -> None:
        """Let nobody run on whose life is over: the channel knows when it is dead."""
        assert self._gate is not None
        if not self._gate.is_over(life):
            call.answer(OSError(errno.EIO, "dropped"))

    def _crossed(self, task: "asyncio.Task[None]") -> None:
        self._crossing.discard(task)
        if not task.cancelled() and (bug := task.exception()):
            self._bugs.append(bug)

    def _life_of(self, thread: int) -> int:
        if not self._open:
            raise OSError(errno.EROFS, "no agent is there whose folder it is")
        assert self._gate is not None, "reset comes first"
        if len(self._open) == 1 or self._gate.whose is None:
            return self._open[-1]
        life = self._gate.whose.process(process_of(thread))
        if life is None:
            raise OSError(errno.EIO, "of no life that is open")
        return life

    async def _mount(self) -> None:
        device = await asyncio.to_thread(mount, self.state_folder)
        self._channel = Channel(device, self._serve)

    async def _unmount(self) -> None:
        if self._channel is None:
            return
        self._channel.close()
        self._channel = None
        await asyncio.to_thread(unmount, self.state_folder)

    async def _close_all(self) -> None:
        self._open.clear()
        await self._unmount()
        if self._crossing:
            await asyncio.wait(self._crossing)

    @property
    def _scratch(self) -> Path:
        return self._folder / "scratch"


def _done(step: Step, part: int | None) -> bytes | OSError:
    try:
        return step.do(part)
    except OSError as error:
        return error


def _error_of(fault: Fault) -> OSError:
    name = "ENOSPC" if fault.kind is FaultKind.FULL else fault.chosen or "EIO"
    number = getattr(errno, name)
    return OSError(number, os.strerror(number))
