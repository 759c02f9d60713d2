"""The marks service on its line: what is a mark, and what becomes of a dead life's."""

import asyncio
import os
import socket

import pytest

import chaoskit
from chaoskit.world.marks import NAME_BYTES_MAX, Marks

VARIABLE = "CHAOSKIT_MARK_FD"


async def _opened(marks, gate, scenario):
    await marks.start()
    return await _next_trial(marks, gate, scenario)


async def _next_trial(marks, gate, scenario):
    await marks.reset(gate, scenario)
    assert await marks.open(0) == {}
    line = socket.socket(fileno=os.dup(marks.inherited(0)[VARIABLE]))
    line.setblocking(False)
    return line


async def _say(line, words):
    await asyncio.get_running_loop().sock_sendall(line, words)


async def _hear(line):
    return await asyncio.get_running_loop().sock_recv(line, 100)


@pytest.fixture
def crossed():
    """The addresses in a gate's history."""
    return lambda gate: [e.address for e in gate.record.events if e.kind == "crossed"]


async def test_a_mark_is_answered_by_one_byte(make_gate, make_scenario, crossed):
    """Its one edge is `before`; fresh names in it are renamed as in any key."""
    gate, marks = make_gate(), Marks()
    with await _opened(marks, gate, make_scenario()) as line:
        for name in (b"save", b"of run-7f3a", b"save"):
            await _say(line, name + b"\n")
            assert len(await _hear(line)) == 1
        await marks.stop()
    assert crossed(gate) == [
        "0:marks.mark[save]#1:before",
        "0:marks.mark[of%20{run}]#1:before",
        "0:marks.mark[save]#2:before",
    ]


async def test_a_name_may_come_byte_by_byte_and_many_at_once(
    make_gate, make_scenario, crossed
):
    gate, marks = make_gate(), Marks()
    with await _opened(marks, gate, make_scenario()) as line:
        for byte in b"one\n":
            await _say(line, bytes([byte]))
        assert len(await _hear(line)) == 1
        await _say(line, b"two\nthree\n")
        answers = 0
        while answers < 2:
            answers += len(await _hear(line))
        await marks.stop()
    assert [address.split("[")[1].split("]")[0] for address in crossed(gate)] == [
        *("one", "two", "three"),
    ]


async def test_what_is_no_mark_cuts_the_line(make_gate, make_scenario, crossed):
    gate, marks = make_gate(), Marks()
    with await _opened(marks, gate, make_scenario()) as line:
        await _say(line, b"x" * (NAME_BYTES_MAX + 1))
        assert await _hear(line) == b""
        await marks.stop()
    assert crossed(gate) == []


async def test_a_dead_lifes_line_is_cut_and_the_next_ones_is_its_own(
    make_gate, make_scenario, crossed
):
    gate, marks = make_gate(), Marks()
    with await _opened(marks, gate, make_scenario()) as line:
        gate.close(0)
        await marks.close(0)
        assert await _hear(line) == b""
        await marks.open(1)
        with socket.socket(fileno=os.dup(marks.inherited(1)[VARIABLE])) as fresh:
            fresh.setblocking(False)
            await _say(fresh, b"save\n")
            assert len(await _hear(fresh)) == 1
            await marks.stop()
    assert crossed(gate) == ["1:marks.mark[save]#1:before"]


async def test_the_function_does_nothing_elsewhere_and_waits_here(
    make_gate, make_scenario, crossed, monkeypatch
):
    monkeypatch.delenv(VARIABLE, raising=False)
    chaoskit.mark("nobody listens")
    gate, marks = make_gate(), Marks()
    with await _opened(marks, gate, make_scenario()) as line:
        line.setblocking(True)
        monkeypatch.setenv(VARIABLE, str(line.fileno()))
        await asyncio.to_thread(chaoskit.mark, "save")
        # Threads take turns, or one would take the answer of another.
        await asyncio.gather(*(asyncio.to_thread(chaoskit.mark, "t") for _ in range(8)))
        gate.close(0)
        await marks.close(0)
        with pytest.raises(ConnectionError):
            await asyncio.to_thread(chaoskit.mark, "too late")
        await marks.stop()
    assert len(crossed(gate)) == 9


@pytest.mark.parametrize("name", ["", "two\nlines"])
def test_a_name_is_one_line(name):
    with pytest.raises(ValueError, match="expected one line of text"):
        chaoskit.mark(name)


async def test_the_same_schedule_gives_the_same_crossings(make_gate, make_scenario):
    """A hundred times: what was killed at its mark, and what got its answer."""
    marks, scenario, seen = Marks(), make_scenario(), set()
    await marks.start()
    for _ in range(100):
        gate = make_gate("kill@0:marks.mark[save]#2:before")
        with await _next_trial(marks, gate, scenario) as line:
            for name in (b"save", b"load"):
                await _say(line, name + b"\n")
                assert len(await _hear(line)) == 1
            await _say(line, b"save\n")
            await gate.record.sink.seen("fault")
        told = [event.model_copy(update={"t": 0}) for event in gate.record.events]
        seen.add(repr(told))
    await marks.stop()
    assert len(seen) == 1
