"""What strikes an agent at a mark, and that the mark itself can be struck by no fault.

The faults of the agent are proved on real lives in tests/trial/test_faults.py; here a
plain client holds the line of a mark.
"""

import asyncio
import os
import socket
from contextlib import asynccontextmanager

import pytest

from chaoskit.model.faults import FaultKind
from chaoskit.model.history import Crossed, FaultFired
from chaoskit.model.schedule import Schedule
from chaoskit.world.marks import Marks

VARIABLE = "CHAOSKIT_MARK_FD"
AT = "0:marks.mark[save]#1:before"


class Client:
    """Makes marks, by the three lines."""

    def __init__(self, file: int) -> None:
        self._line = socket.socket(fileno=os.dup(file))
        self._line.setblocking(False)

    async def mark(self, name: str) -> bytes:
        loop = asyncio.get_running_loop()
        await loop.sock_sendall(self._line, f"{name}\n".encode())
        return await asyncio.wait_for(loop.sock_recv(self._line, 1), 30)

    def close(self) -> None:
        self._line.close()


@asynccontextmanager
async def _life(marks, gate, scenario):
    await marks.reset(gate, scenario)
    await marks.open(0)
    client = Client(marks.inherited(0)[VARIABLE])
    try:
        yield client
    finally:
        client.close()
        await marks.stop()


def _history(gate):
    told = {Crossed: "address", FaultFired: "fault"}
    events = (event for event in gate.record.events if type(event) in told)
    return [getattr(event, told[type(event)]) for event in events]


@pytest.fixture
def make_struck(make_gate):
    """A gate, and the list of what it asked its trial to do to a life."""

    def make(schedule=""):
        done = []

        async def end_life(life, cause):
            done.append((life, cause))

        async def strike(life, fault):
            done.append((life, fault.kind.value))

        return make_gate(schedule, end_life=end_life, strike=strike), done

    return make


async def test_kill_holds_the_mark_and_cuts_the_line(make_struck, make_scenario):
    marks = Marks()
    gate, done = make_struck(f"kill@{AT}")
    async with _life(marks, gate, make_scenario()) as client:
        assert await client.mark("save") == b""
    assert done == [(0, "fault")]
    assert _history(gate) == [AT, f"kill@{AT}"]
    await _leaves_no_trace(marks, make_struck, make_scenario())


@pytest.mark.parametrize("kind", ["kill_one", "term", "int", "pause", "skew"])
async def test_other_faults_are_done_at_the_mark_which_is_then_answered(
    make_struck, make_scenario, kind
):
    marks = Marks()
    gate, done = make_struck(f"{kind}@{AT}")
    async with _life(marks, gate, make_scenario()) as client:
        assert len(await client.mark("save")) == 1
        assert done == [(0, kind)]
        assert len(await client.mark("save")) == 1
    assert done == [(0, kind)]
    assert _history(gate) == [AT, f"{kind}@{AT}", AT.replace("#1", "#2")]
    await _leaves_no_trace(marks, make_struck, make_scenario())


async def _leaves_no_trace(marks, make_struck, scenario):
    gate, done = make_struck()
    async with _life(marks, gate, scenario) as client:
        assert len(await client.mark("save")) == 1
    assert done == []
    assert _history(gate) == [AT]


@pytest.mark.parametrize("kind", [FaultKind.DROP_REPLY, FaultKind.DELAY])
def test_a_mark_is_no_service_that_could_fail(kind):
    """A schedule that says so is refused, in words."""
    with pytest.raises(ValueError, match="only the agent can be struck there"):
        Schedule.parse(f"{kind}@{AT}")
    with pytest.raises(ValueError, match="before"):
        Schedule.parse(f"kill@{AT.replace('before', 'after')}")
