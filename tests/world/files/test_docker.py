"""The files service and a life in a container: the folder is mounted, then bound."""

import asyncio
import inspect
from pathlib import Path

from chaoskit.agents import Command, Exit
from chaoskit.agents.docker.launcher import DockerLauncher
from chaoskit.agents.docker.life import ContainerLife
from chaoskit.gate import FreshNames, Gate, Recorder
from chaoskit.model.history import Cause, Crossed
from chaoskit.model.manifest import Disk
from chaoskit.model.schedule import Schedule
from chaoskit.world.files import Files

AGENT = """
import os
folder = os.environ["CHAOSKIT_STATE_DIR"]
print(os.listdir(folder), flush=True)
with open(folder + "/new", "w") as file:
    file.write("state")
os.rename(folder + "/new", folder + "/state")
"""
STRUCK = "0:files.rename[state]#1:before"


def test_a_container_is_killed_in_the_middle_of_a_change_of_a_file(
    docker_image: str, tmp_path: Path, make_scenario: object
) -> None:
    """What was done before is there for the next container, what was held is not."""
    record = Recorder()
    exits: list[Exit] = []

    async def play() -> None:
        launcher = DockerLauncher(docker_image, Disk.FRESH, tmp_path)
        files = Files(tmp_path / "files")
        await files.start()
        lives: list[ContainerLife] = []

        async def end_life(life: int, cause: Cause) -> None:
            del cause
            await lives[life].kill()

        schedule = Schedule.parse(f"kill@{STRUCK}")
        gate = Gate(record, FreshNames("run"), schedule, end_life)
        await files.reset(gate, make_scenario())  # type: ignore[operator]
        try:
            for life in range(2):
                command = Command(
                    argv=("python", "-S", "-c", inspect.cleandoc(AGENT)),
                    cwd=tmp_path,
                    env=await files.open(life),
                    stdout=tmp_path / "out",
                    stderr=tmp_path / "err",
                )
                lives.append(await launcher.start(command))
                exits.append(await lives[life].wait())
                gate.close(life)
                await files.close(life)
        finally:
            await launcher.close()
            await files.stop()

    asyncio.run(asyncio.wait_for(play(), 60))
    assert [exit_.signal or exit_.code for exit_ in exits] == [9, 0]
    assert (tmp_path / "out").read_text() == "[]\n['new']\n"
    crossed = [e.address for e in record.events if isinstance(e, Crossed)]
    assert [address for address in crossed if address.startswith("0:")][-1] == STRUCK
