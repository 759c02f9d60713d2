"""What is read from the kernel: the right process, whatever its name."""

import os
import shutil
from dataclasses import replace
from typing import Any

import pytest

from chaoskit.agents.linux import has_ended, held, look


async def test_a_name_that_looks_like_the_line_it_stands_in_is_read_past(
    stage: Any,
) -> None:
    program = stage.folder / "a) Z 1 ("
    shutil.copy("/bin/sleep", program)
    async with stage.processes() as launcher:
        life = await launcher.start(stage.command(str(program), "1000"))
        process = look(life.pid)
        assert process is not None
        assert not process.zombie
        assert process.start > 1


def test_a_pid_that_another_process_has_now_is_not_held() -> None:
    """A signal must never reach whoever came after."""
    now = look(os.getpid())
    assert now is not None
    with held(now):
        pass
    with pytest.raises(ProcessLookupError), held(replace(now, start=now.start - 1)):
        pass


def test_a_process_that_nobody_has_reaped_yet_has_ended() -> None:
    inherited, ours = os.pipe()
    if not (child := os.fork()):
        os.close(ours)
        os.read(inherited, 1)
        os._exit(0)
    os.close(inherited)
    pidfd = os.pidfd_open(child)
    assert not has_ended(pidfd)
    os.close(ours)
    os.waitid(os.P_PIDFD, pidfd, os.WEXITED | os.WNOWAIT)
    assert has_ended(pidfd)
    os.waitpid(child, 0)
    os.close(pidfd)
