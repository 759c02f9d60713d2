"""The mount: as root and as a user, without FUSE, and what a dead one leaves."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chaoskit.agents import CampaignFolder
from chaoskit.agents.mounts import unmount_below
from chaoskit.world.files import Files
from chaoskit.world.files import mount as files_mount
from chaoskit.world.files.mount import MissingFuse


def mounted_below(folder):
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    places = [line.split(" ")[4].replace("\\040", " ") for line in lines]
    return [place for place in places if place.startswith(str(folder))]


async def test_the_helper_that_a_user_needs_gives_the_same_mount(
    on_disk, monkeypatch, tmp_path
):
    asked = []

    def by_helper(folder):
        asked.append(folder)
        return files_mount._mounted_by_helper(folder)

    monkeypatch.setattr("chaoskit.world.files.service.mount", by_helper)
    async with on_disk() as bench:
        await bench.trial("kill@0:files.write[a]#1:before")
        ended = await bench.live("open('a', 'x').write('abc')")
        assert ended.signal == signal.SIGKILL
        await bench.run("open('a', 'a').write('abc')")
        assert await bench.content() == {"a": "abc"}
    assert len(asked) == 3
    assert mounted_below(tmp_path) == []


@pytest.mark.parametrize(
    ("target", "value", "said"),
    [
        ("DEVICE", "/dev/no-fuse", "there is no /dev/no-fuse"),
        ("HELPER", "no-fusermount", "there is no no-fusermount on the PATH"),
        ("HELPER", "false", "ended with 1"),
    ],
)
async def test_where_there_is_no_fuse_it_says_what_to_install(
    monkeypatch, tmp_path, target, value, said
):
    def refused(folder):
        raise PermissionError(folder)

    monkeypatch.setattr(files_mount, "_mounted_by_root", refused)
    monkeypatch.setattr(files_mount, target, value)
    with pytest.raises(MissingFuse, match=said) as missing:
        await Files(tmp_path).start()
    assert "apt-get install fuse3" in str(missing.value)
    assert "chaoskit.mark()" in str(missing.value)


SERVER = """
import asyncio, os, sys
from pathlib import Path
from chaoskit.gate import FreshNames, Gate, Recorder
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule
from chaoskit.world.files import Files
SCENARIO = Scenario.model_validate({
    "name": "test",
    "agent": "agent.yaml",
    "task": {"goal": "none"},
    "llm": {"script": [{"say": "Done."}]},
})
async def main():
    files = Files(Path(sys.argv[1]) / "files with space")
    await files.start()
    gate = Gate(Recorder(), FreshNames("r"), Schedule(), None)
    await files.reset(gate, SCENARIO)
    await files.open(0)
    print("up", flush=True)
    await asyncio.Event().wait()
asyncio.run(main())
"""


def test_the_mount_of_a_killed_worker_is_cleared_by_the_next_campaign(tmp_path):
    dead = CampaignFolder(tmp_path)
    server = subprocess.Popen(
        (sys.executable, "-c", SERVER, str(dead.path)),
        env={**os.environ, **dead.tag},
        stdout=subprocess.PIPE,
    )
    with server:
        assert server.stdout is not None
        assert server.stdout.readline() == b"up\n"
        server.kill()
    (place,) = mounted_below(dead.path)
    with pytest.raises(OSError, match="not connected"):
        os.stat(place)
    os.close(dead._owner)
    with CampaignFolder(tmp_path) as following:
        assert following.clean_up_leftovers() == (dead.id,)
        assert mounted_below(tmp_path) == []
        assert not dead.path.exists()


def test_nothing_is_unmounted_beside_the_folder(tmp_path, monkeypatch):
    gone = []
    monkeypatch.setattr("chaoskit.agents.mounts.unmount", gone.append)
    unmount_below(tmp_path)
    assert gone == []
    unmount_below(Path("/"))
    assert Path("/proc") in gone
