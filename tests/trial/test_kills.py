"""What a kill looks like in the history, and what it leaves to the next life."""

import asyncio
import json

import pytest

from chaoskit.explore.fingerprint import learn
from chaoskit.model.schedule import Schedule
from chaoskit.model.visit import Visit
from chaoskit.trial import Watching

PAY = "tools.pay[o-1]#1"


async def pays(body):
    """A life that pays and is done."""
    await body.act()
    body.say("Paid.\n")
    return 0


def test_the_order_of_a_kill(stage, told):
    """Crossed, fault, death by signal 9, wreck, next start: always in this order."""
    canon = learn([], ("run-1", "run-2"), 0.0)
    played = stage.play(pays, schedule=f"kill@0:{PAY}:after", canon=canon)
    visited = asyncio.run(played)
    assert told(visited) == [
        "start 0",
        f"0:{PAY}:before",
        f"0:{PAY}:after",
        "fault",
        "died 0 by fault: signal 9",
        "wreck",
        "resume 1",
        f"1:{PAY}:before",
        f"1:{PAY}:after",
        "done 1 by itself: 0",
        "again 2",
        f"2:{PAY}:before",
        f"2:{PAY}:after",
        "done 2 by itself: 0",
        "done",
    ]
    assert visited.trial.unfired == ()
    assert [event.seq for event in visited.trial.history] == list(range(15))


def test_sockets_of_a_life_are_closed_before_the_next_are_opened(stage):
    """Nothing of a dead life can reach the next one's sockets."""
    asyncio.run(stage.play(pays, schedule=f"kill@0:{PAY}:before"))
    sockets = [note for note in stage.service.noted if note[0] in ("open", "close")]
    assert sockets == [(what, life) for life in range(3) for what in ("open", "close")]


def test_killed_before_the_call_is_not_applied(stage):
    """The message is dropped; only the next life's, and that after done, applied."""
    asyncio.run(stage.play(pays, schedule=f"kill@0:{PAY}:before"))
    assert len(stage.service.applied) == 2


def test_a_message_past_before_lands_late(stage, told):
    """It is applied, recorded as late, and all that before the death is."""

    async def three_at_once(body):
        if body.life == 0:
            # The first keeps the door busy, so that the others queue before it.
            others = body.act(), body.act("note", "n-1")
            await asyncio.gather(body.act("look", None), *others)
        return 0

    schedule = "kill@0:tools.note[n-1]#1:before"
    visited = asyncio.run(stage.play(three_at_once, schedule=schedule))
    history = told(visited)
    late = history.index(f"0:{PAY}:after late")
    assert history.index("fault") < late
    assert late < history.index("died 0 by fault: signal 9")
    assert "0:tools.note[n-1]#1:after late" not in history
    assert stage.service.applied == ["tools.look", "tools.pay[o-1]"]


def test_a_life_that_ends_by_itself_may_leave_late_messages(stage, told):
    """The death waits for them: the next life finds a world that stands still."""
    holds, left_alone = asyncio.Event(), []

    async def leaves(body):
        if body.life == 0:
            stage.service.at_apply = holds.wait
            left_alone.append(asyncio.ensure_future(body.act()))
            asyncio.get_running_loop().call_later(0.05, holds.set)
            await asyncio.sleep(0)
            return 1
        await asyncio.gather(*left_alone, return_exceptions=True)
        return 0

    history = told(asyncio.run(stage.play(leaves)))
    assert history[:5] == [
        "start 0",
        f"0:{PAY}:before",
        f"0:{PAY}:after late",
        "died 0 by itself: 1",
        "resume 1",
    ]


def test_the_life_after_done_meets_no_fault(stage, told):
    """Nor is what it crosses among the run's own addresses."""
    visited = asyncio.run(stage.play(pays, schedule=f"kill@1:{PAY}:before"))
    assert told(visited)[-2:] == ["done 1 by itself: 0", "done"]
    assert list(map(str, visited.trial.unfired)) == [f"kill@1:{PAY}:before"]
    assert {address.life for address in visited.trial.addresses} == {0}
    assert visited.trial.ended.life == 0


def test_the_journal_is_written_as_it_happens(stage):
    """While a life hangs, its history can be read: all that has happened so far."""
    read = []

    async def hangs(body):
        await body.act()
        lines = (stage.folder / "history.jsonl").read_text().splitlines()
        read.extend(json.loads(line)["kind"] for line in lines)
        return await body.hang()

    limits = {"life_seconds": 0.1, "trial_seconds": 0.1}
    asyncio.run(stage.play(hangs, scenario={"limits": limits}))
    assert read == ["life.started", "crossed", "crossed"]
    assert (stage.folder / "schedule.txt").read_text() == "\n"


def test_the_journal_is_the_history(stage):
    """Line by line, also where a trial goes on with the history of another."""
    look = asyncio.run(stage.play(pays, watching=Watching(snapshots=True))).looks[0]
    visited = asyncio.run(stage.play(pays, visit=Visit(origin=look.state)))
    lines = (stage.folder / "history.jsonl").read_text().splitlines()
    assert lines == [event.model_dump_json() for event in visited.trial.history]


def test_a_recovery_starts_in_the_world_of_its_origin(stage, told):
    """Its first life is the next one, it resumes, and its path names the kill."""
    looks = asyncio.run(stage.play(pays, watching=Watching(snapshots=True))).looks
    after = next(look for look in looks if look.address.endswith("after"))

    async def finds(body):
        stage.found = list(stage.service.applied)
        return 0

    visited = asyncio.run(stage.play(finds, visit=Visit(origin=after.state)))
    assert stage.found == ["tools.pay[o-1]"]
    assert told(visited) == [
        "start 0",
        f"0:{PAY}:before",
        f"0:{PAY}:after",
        "fault",
        "died 0 by restored: signal 9",
        "resume 1",
        "done 1 by itself: 0",
        "again 2",
        "done 2 by itself: 0",
        "done",
    ]
    assert str(visited.trial.schedule) == f"kill@0:{PAY}:after"


@pytest.mark.parametrize(("thorough", "ends"), [(False, "cut"), (True, "done")])
def test_a_recovery_ends_where_it_comes_to_a_known_world(stage, thorough, ends):
    """Unless it is to be thorough; the world that it starts in does not count."""
    canon = learn([], ("run-1", "run-2"), 0.0)
    watching = Watching(canon, snapshots=True)

    async def pays_thrice(body):
        for _ in range(3):
            await body.act()
        return 0

    first = asyncio.run(stage.play(pays_thrice, watching=watching))
    known = frozenset(look.fingerprint for look in first.looks if look.fingerprint)
    assert len(known) == 4  # nothing paid, once, twice, three times
    again = Watching(canon, known, snapshots=True, thorough=thorough)
    origin = first.looks[0].state
    visit = Visit(origin=origin)
    visited = asyncio.run(stage.play(pays_thrice, visit=visit, watching=again))
    assert visited.trial.ended.outcome == ends
    assert visited.looks == ()


def test_an_address_that_is_never_reached_is_unfired(stage):
    """And a fault of every life is fired once it struck anywhere."""
    schedule = f"kill@*:{PAY}:before + kill@7:{PAY}:before"

    async def gives_up(body):
        if body.life == 1:
            return 65
        await body.act()
        return 0

    trial = asyncio.run(stage.play(gives_up, schedule=schedule)).trial
    assert trial.unfired == Schedule.parse(f"kill@7:{PAY}:before").faults
    assert trial.ended.outcome == "failed"
