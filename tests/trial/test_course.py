"""What follows a life: gates are answered, waits end, and some runs never do."""

import asyncio
import time
from contextlib import suppress

import pytest

from chaoskit.gate import Recorder
from chaoskit.model.history import LifeEnded
from chaoskit.model.manifest import Manifest
from chaoskit.model.scenario import Scenario
from chaoskit.trial import course
from chaoskit.trial.plan import Watching

ASK = {
    "llm": {"script": [{"ask": "Pay?"}, {"ask": "Really?"}, {"say": "Paid."}]},
    "human": ["yes", "very"],
}
WAIT = {"llm": {"script": [{"wait": 0.05}, {"say": "Paid."}]}}
HASTE = {"limits": {"life_seconds": 0.05, "trial_seconds": 0.2}}


def answer_in(body):
    """The answer that a command brings."""
    words = body.command.argv
    return words[words.index("--answer") + 1] if "--answer" in words else None


async def answered(body):
    """Asks on, as far as the answers that were brought go."""
    brought = {None: 0, "yes": 1, "very": 2}[answer_in(body)]
    if brought == 0 and body.life > 1:  # resumed after done
        return 0
    await body.ask(brought, *(["0.0"], ["1.0"])[brought - 1] if brought else ())
    return 0 if brought == 2 else 75


def test_gates_are_answered_in_order(stage, told):
    """Parked at a gate, the run goes on at once with that gate's answer."""
    visited = asyncio.run(stage.play(answered, scenario=ASK))
    starts = [event for event in told(visited) if event.split()[0] in PURPOSES]
    assert starts == ["start 0", "answer 1", "answer 2", "again 3"]
    answers = [e.answer for e in visited.trial.history if e.kind == "life.started"]
    assert answers == [None, "yes", "very", None]


PURPOSES = ("start", "resume", "answer", "again")


def test_after_a_death_with_an_answer_the_next_life_resumes(stage, told):
    """If it parks at the same gate, the same answer is brought again, at once."""

    async def forgets(body):
        if answer_in(body) and body.life > 2:
            return await answered(body)
        if answer_in(body):
            await body.ask(1, "0.0")
        elif body.life == 0:
            await body.ask(0)
        return 0 if body.life > 4 else 75

    visited = asyncio.run(
        stage.play(forgets, scenario=ASK, schedule="kill@1:llm.chat#1:before")
    )
    starts = [event for event in told(visited) if event.split()[0] in PURPOSES]
    assert starts[:5] == ["start 0", "answer 1", "resume 2", "answer 3", "answer 4"]
    assert visited.trial.ended.outcome == "done"


def test_an_agent_that_parks_with_the_answer_in_hand_is_not_hurried(stage, monkeypatch):
    """The same answer is brought once a second, not as fast as lives can start."""
    monkeypatch.setattr(course, "SECONDS_BETWEEN_RESUMES", 0.15)

    async def ignores(body):
        if body.life == 0:
            await body.ask(0)
        return 75

    trial = asyncio.run(stage.play(ignores, scenario=ASK | HASTE)).trial
    assert trial.ended.outcome == "endless"
    lives = [event for event in trial.history if event.kind == "life.started"]
    assert len(lives) <= 4


def test_a_wait_is_resumed_at_its_end(stage, told):
    """Not before, and by the resume command.

    An agent that counts from when it had its answer is not resumed too early.
    """

    async def waits(body):
        if body.life == 0:
            await body.ask(0)
            await asyncio.sleep(0.01)  # for the agent's own clock to be behind
            due.append(time.monotonic() + 0.05)
            return 75
        return 0 if time.monotonic() >= due[0] else 75

    due: list[float] = []
    visited = asyncio.run(stage.play(waits, scenario=WAIT))
    assert "done 1 by itself: 0" in told(visited)
    asked, started = (
        next(e.t for e in visited.trial.history if e.kind == kind and e.life == life)
        for kind, life in (("asked", 0), ("life.started", 1))
    )
    assert started - asked >= 0.05


def test_a_wait_that_is_over_is_asked_for_once_a_second(stage, monkeypatch):
    """An agent that parks again is resumed again, and again."""
    monkeypatch.setattr(course, "SECONDS_BETWEEN_RESUMES", 0.01)

    async def waits(body):
        if body.life == 0:
            await body.ask(0)
        return 75 if body.life < 4 else 0

    trial = asyncio.run(stage.play(waits, scenario=WAIT)).trial
    assert trial.ended.life == 4


def test_parked_with_nothing_due_is_the_end(stage):
    """A call in doubt waits for a person, and no life is started again."""

    async def parks(body):
        return 75

    trial = asyncio.run(stage.play(parks)).trial
    assert (trial.ended.outcome, trial.ended.life) == ("parked", 0)


def test_failed_is_the_end(stage, told):
    """It gave up for good."""

    async def fails(body):
        return 65

    expected = ["start 0", "failed 0 by itself: 65", "failed"]
    assert told(asyncio.run(stage.play(fails))) == expected


def test_lives_that_crash_are_counted_and_kills_are_not(stage):
    """More than `max_lives` that no fault ended: the run never ends."""

    async def crashes(body):
        if body.life < 2:
            await body.act()
        return 1

    schedule = "kill@0:tools.pay[o-1]#1:after + kill@1:tools.pay[o-1]#1:before"
    contract = {"contract": {"effects": "exactly-once", "max_lives": 2}}
    played = stage.play(crashes, schedule=schedule, manifest=contract)
    ended = asyncio.run(played).trial.ended
    assert (ended.outcome, ended.life) == ("endless", 4)
    assert ended.reason == "3 lives ended that no scheduled fault had ended"


def test_a_life_that_ends_itself_because_of_a_fault_is_not_counted(stage):
    """Each fault excuses one life; those in which none struck are counted."""

    async def gives_up(body):
        if body.life < 3:
            with suppress(ConnectionError):
                await body.act()
        return 1

    schedule = " + ".join(f"refuse@{n}:tools.pay[o-1]#1:before" for n in range(3))
    contract = {"contract": {"effects": "exactly-once", "max_lives": 1}}
    played = stage.play(gives_up, schedule=schedule, manifest=contract)
    trial = asyncio.run(played).trial
    assert trial.unfired == ()
    assert (trial.ended.outcome, trial.ended.life) == ("endless", 4)
    assert trial.ended.reason == "2 lives ended that no scheduled fault had ended"


def test_a_life_that_hangs_is_ended_at_its_limit(stage, told):
    """By SIGKILL; the run goes on until its own time is over."""

    async def hangs(body):
        return await body.hang()

    visited = asyncio.run(stage.play(hangs, scenario=HASTE))
    assert told(visited)[:3] == ["start 0", "died 0 by limit: signal 9", "resume 1"]
    assert visited.trial.ended.reason == "it had not ended after 0.2 s"


def test_what_chaoskit_looks_at_takes_nothing_of_the_time_of_lives(stage, told):
    """A world of megabytes takes long to render, at crossings and after a death."""
    seconds, look = 0.3, stage.service.view

    async def slow():
        await asyncio.sleep(seconds)
        return await look()

    async def acts(body):
        await body.act()
        return 0

    stage.service.view = slow
    limits = {"life_seconds": seconds, "trial_seconds": seconds}
    played = stage.play(
        acts,
        scenario={"limits": limits},
        schedule="kill@0:tools.pay[o-1]#1:after",
        watching=Watching(),
    )
    visited = asyncio.run(played)
    assert visited.trial.ended.outcome == "done"
    assert not [event for event in told(visited) if "by limit" in event]
    assert stage.service.noted.count(("view", -1)) == 5


def test_a_look_does_not_let_a_life_that_hangs_live_on(stage, told):
    async def hangs(body):
        await body.act()
        return await body.hang()

    visited = asyncio.run(stage.play(hangs, scenario=HASTE, watching=Watching()))
    assert "died 0 by limit: signal 9" in told(visited)


def test_a_life_that_ends_at_its_limit_by_itself_did_end(stage, told):
    """The exit that it chose counts, however close the limit was."""

    async def just_in_time(body):
        try:
            return await body.hang()
        except asyncio.CancelledError:  # it was on its way out already
            return 0

    scenario = {"limits": {"life_seconds": 0.05, "trial_seconds": 5}}
    visited = asyncio.run(stage.play(just_in_time, scenario=scenario))
    assert told(visited)[1] == "done 0 by itself: 0"


def test_a_fault_that_finds_the_life_on_its_way_out_is_told(stage, told):
    """Its exit is recorded; it was no kill, and whoever counts kills can see that."""

    async def leaves(body):
        try:
            await body.act()
        except asyncio.CancelledError:
            return 0
        return 0

    schedule = "kill@0:tools.pay[o-1]#1:before"
    visited = asyncio.run(stage.play(leaves, schedule=schedule))
    assert "died 0 by fault: 0" in told(visited)
    assert visited.trial.kills == ()


@pytest.mark.parametrize(
    ("code", "exits", "outcome"),
    [(3, {"done": [3]}, "done"), (9, {"failed": [8, 9]}, "failed")],
)
def test_exit_codes_mean_what_the_manifest_says(stage, code, exits, outcome):
    """Its own, where it has some."""

    async def exit_with(body):
        return code

    played = stage.play(exit_with, manifest={"exits": exits})
    assert asyncio.run(played).trial.ended.outcome == outcome


def test_the_final_answer_is_that_of_the_life_that_was_done(stage):
    """Not what is said when it is resumed once more."""

    async def speaks(body):
        body.say("Booked.\n" if body.life == 0 else "Nothing to do.\n")
        return 0

    assert asyncio.run(stage.play(speaks)).trial.ended.answer == "Booked."


class Clock:
    """A clock that is set by hand."""

    seconds = 0.0

    def now(self):
        return self.seconds


def test_lives_that_a_scheduled_fault_ended_use_up_no_time():
    """Else how many kills a schedule may have would depend on the machine's speed."""
    clock = Clock()
    line = course.Course(SLOW, Manifest.model_validate(PLAIN), clock)

    def after(**how):
        clock.seconds += 4
        end = LifeEnded(life=0, ending="died", **how)
        return line.after(end, Recorder())

    assert [after(cause="fault", signal=9) for _ in range(5)] == [RESUME] * 5
    assert [after(cause="itself", code=1) for _ in range(2)] == [RESUME] * 2
    assert after(cause="itself", code=1).outcome == "endless"


RESUME = course.Step("resume")
PLAIN = {"name": "a", "launch": "process", "start": ["a"], "store": "none"} | {
    "contract": {"effects": "exactly-once"}
}
SLOW = Scenario.model_validate(
    {
        "name": "slow",
        "agent": "agent.yaml",
        "task": {"goal": "Wait"},
        "llm": {"script": [{"say": "Done."}]},
        "limits": {"life_seconds": 5, "trial_seconds": 10},
    }
)
