"""When the agent's command `inspect` is run, and what is made of what it prints."""

import asyncio
import json

import pytest

from chaoskit.gate import Recorder
from chaoskit.model.history import (
    Asked,
    Delivered,
    Inspected,
    LifeEnded,
    RunEnded,
    StatusSeen,
    from_line,
    to_line,
)
from chaoskit.model.schedule import Schedule
from chaoskit.model.state import WorldState
from chaoskit.model.visit import Visit
from chaoskit.trial.inspection import read
from chaoskit.trial.patience import Patience

INSPECT = {"inspect": ["agent", "inspect", "{run}"]}
PAY = "tools.pay[o-1]#1"


async def pays(body):
    await body.act()
    body.say("Paid.\n")
    return 0


async def parks(body):
    await body.act()
    return 75


async def looks(body):
    """What is stored, and a message to the store on the way."""
    assert body.command.argv[1] == "inspect"
    await body.act("load", "o-1")
    shown = {"checkpoint_id": 3, "status": "running", "transcript": [{"role": "user"}]}
    body.say(f"a word before\n{json.dumps(shown)}\n\n")
    return 0


def inspected(visited):
    return [(e.when, e.after) for e in visited.trial.of(Inspected)]


def played(stage, *lives, **more):
    return asyncio.run(stage.play(*lives, manifest=INSPECT, **more))


def test_it_comes_after_a_death_and_before_the_next_life_and_at_the_end(stage, told):
    """None of its messages is on record, and none is counted."""
    lives = pays, looks, pays, pays, looks
    visited = played(stage, *lives, schedule=f"kill@0:{PAY}:before")
    assert told(visited) == [
        "start 0",
        f"0:{PAY}:before",
        "fault",
        "died 0 by fault: signal 9",
        "inspected",
        "resume 1",
        f"1:{PAY}:before",
        f"1:{PAY}:after",
        "done 1 by itself: 0",
        "again 2",
        f"2:{PAY}:before",
        f"2:{PAY}:after",
        "done 2 by itself: 0",
        "inspected",
        "done",
    ]
    assert inspected(visited) == [("death", 0), ("end", 2)]
    seen = next(visited.trial.of(Inspected))
    assert (seen.checkpoint_id, seen.status, seen.problem) == (3, "running", "")
    assert seen.transcript == [{"role": "user"}]


def test_it_comes_where_a_run_rests(stage):
    visited = played(stage, parks, looks, looks)
    assert inspected(visited) == [("rest", 0), ("end", 0)]


def test_without_the_command_nothing_is_looked_at(stage):
    assert inspected(asyncio.run(stage.play(pays))) == []


@pytest.mark.parametrize(
    "schedule", ["kill@*:tools.load#1:before", "kill@0:tools.load#1:before"]
)
def test_no_fault_strikes_it(stage, schedule):
    """Not one of every life, nor one of a message that only it sends."""

    async def asks_for_it(body):
        await body.act("load", None)
        await body.act()
        body.say('{"checkpoint_id": 1}\n')
        return 0

    visited = played(stage, parks, asks_for_it, schedule=schedule)
    assert [e.problem for e in visited.trial.of(Inspected)] == ["", ""]
    assert visited.trial.unfired == Schedule.parse(schedule).faults


def test_one_that_hangs_is_given_up_and_costs_the_run_nothing(stage):
    """The trial's clock is held meanwhile: the look has one of its own."""

    async def hangs(body):
        return await body.hang()

    limits = {"limits": {"life_seconds": 1, "trial_seconds": 1.5}}
    lives = pays, hangs, pays, pays, hangs
    visited = played(stage, *lives, schedule=f"kill@0:{PAY}:before", scenario=limits)
    problems = [e.problem for e in visited.trial.of(Inspected)]
    assert problems == ["it did not end in time"] * 2
    assert visited.trial.ended.outcome == "done"


def test_one_that_a_paused_life_locks_out_is_not_tried_until_that_is_over(stage):
    """It waits for what that life holds; each further look would wait as long."""

    async def hangs(body):
        return await body.hang()

    async def locked(body):
        return 1

    limits = {"limits": {"life_seconds": 1, "trial_seconds": 60}}
    lives = pays, locked, hangs, locked, locked, locked, pays, looks
    more = {"contract": {"effects": "exactly-once", "max_lives": 3}}
    played_once = stage.play(
        *lives,
        manifest=INSPECT | more,
        schedule=f"pause@0:{PAY}:after",
        scenario=limits,
    )
    visited = asyncio.run(played_once)
    assert inspected(visited) == [("death", 1), ("end", 5)]
    assert visited.trial.ended.outcome == "done"


def test_one_that_fails_says_how(stage):
    async def fails(body):
        body.say("no such run\n")
        return 64

    seen, _ = played(stage, parks, fails, looks).trial.of(Inspected)
    assert seen.problem == "it ended with 64: no such run"
    assert (seen.checkpoint_id, seen.status, seen.transcript) == (None, None, None)


def test_a_world_that_is_restored_is_looked_at_first(stage):
    """A recovery begins with a death that it has not seen itself."""
    path = Schedule.parse(f"kill@0:{PAY}:before")
    state = WorldState(
        path=path,
        life=0,
        run_id="run-1",
        began=Recorder().began,
        prefix=(),
        view={},
        services={"tools": ["pay"]},
        names={},
    )
    visited = played(stage, looks, pays, pays, looks, visit=Visit(path, state))
    assert inspected(visited) == [("death", 0), ("end", 2)]


def test_the_last_line_counts(stage):
    lines = ('{"checkpoint_id": 1}', '{"checkpoint_id": 2, "status": "done"}')
    seen = read(lines, "end", 4)
    assert (seen.checkpoint_id, seen.status, seen.after) == (2, "done", 4)


@pytest.mark.parametrize("said", ["[1]", "done", '{"checkpoint_id": ', "[" * 100_000])
def test_what_is_no_object_is_a_problem_in_words(said):
    seen = read((said,), "death", 0)
    assert seen.problem.startswith("it said ")
    assert seen.problem.endswith('"transcript": [...]}')
    assert len(seen.problem) < 400


def test_who_prints_nothing_is_told_so():
    assert read((), "death", 0).problem.startswith("it said nothing; expected")


@pytest.mark.parametrize("number", ["5", True, 1.5, None, [1]])
def test_a_field_of_another_kind_is_none_that_it_printed(number):
    said = json.dumps({"checkpoint_id": number, "status": 3, "transcript": "x"})
    seen = read((said,), "death", 0)
    assert (seen.checkpoint_id, seen.status, seen.transcript) == (None, None, "x")
    assert seen.problem == ""


def test_half_a_surrogate_pair_is_stored_as_its_escape():
    """JSON can name one, and no file can hold it; nested, and in a key, too."""
    said = r'{"status": "\ud800", "transcript": [{"\udfff": ["\ud800"]}]}'
    seen = read((said,), "end", 0)
    assert (seen.status, seen.transcript) == (r"\ud800", [{r"\udfff": [r"\ud800"]}])
    assert from_line(to_line(seen)) == seen


@pytest.mark.parametrize(
    "event",
    [
        StatusSeen(life=-1, status=None, said="\ud800"),
        RunEnded(life=0, outcome="done", answer="\ud800"),
        LifeEnded(life=0, cause="itself", ending="died", tail=("\ud800",)),
        Asked(life=0, turn=1, contents=("\ud800",), results={"\ud800": "\udfff"}),
        Delivered(life=0, message=1, tool="pay", args={}, idempotency_key="\udcff"),
    ],
    ids=lambda event: event.kind,
)
def test_no_event_of_an_agent_s_words_keeps_a_trial_from_being_written(event):
    """What is kept in memory is what was written."""
    lines = []
    sink = type("Sink", (), {"write": staticmethod(lines.append)})()
    placed = Recorder(sink)(event)
    assert "\\\\ud" in lines[0]
    assert from_line(lines[0]) == placed


def test_a_held_clock_takes_no_time():
    """What the looks rest on: they hold the trial's clock."""
    patience = Patience()
    with patience.held():
        assert patience.now() == patience.now()
