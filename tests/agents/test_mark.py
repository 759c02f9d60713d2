"""Marks: each life's own, and recognisable as a campaign's."""

import os
import resource
from typing import Any

from chaoskit.agents.mark import fresh_mark, is_of, mark_of


def test_marks_differ_and_tell_their_campaign() -> None:
    first, second = fresh_mark("c1"), fresh_mark("c1")
    assert first != second
    assert is_of(first, "c1")
    assert is_of(second, "c1")
    assert not is_of(first, "c2")


def test_an_unmarked_process_is_of_no_campaign() -> None:
    assert not is_of(resource.RLIM_INFINITY, "c1")
    assert not is_of(0, "")
    assert not is_of(None, "")


def test_a_worker_that_is_itself_a_life_never_gives_its_own_mark_away() -> None:
    """Or a server that it started would be taken for part of a life."""
    before = resource.getrlimit(resource.RLIMIT_RSS)
    own = fresh_mark("c1") + 1
    resource.setrlimit(resource.RLIMIT_RSS, (own, before[1]))
    try:
        assert mark_of(os.getpid()) == own
        assert fresh_mark("c1") == own + 1
    finally:
        resource.setrlimit(resource.RLIMIT_RSS, before)


async def test_a_life_carries_a_mark_of_its_campaign(stage: Any) -> None:
    env = dict(os.environ) | {"CHAOSKIT_CAMPAIGN": "c7"}
    async with stage.processes() as launcher:
        life = await launcher.start(stage.command("/bin/sleep", "1000", env=env))
        assert is_of(mark_of(life.pid), "c7")
