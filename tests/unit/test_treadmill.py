"""Treadmill: each life ends a step further than those before it, in one trial."""

from dataclasses import replace

import pytest

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.steps import Steps
from chaoskit.explore.treadmill import Treadmill, so_far
from chaoskit.model.faults import Wanted
from chaoskit.model.history import Wreck
from chaoskit.model.schedule import Schedule
from chaoskit.model.verdict import Finding
from chaoskit.model.visit import Visited

KILL = Wanted.parse("kill")


class Machine:
    """A durable agent of turns: it looks up what is saved, asks, pays, saves.

    ``counts``: it counts its lives in its store. ``attempts_max``: it gives the run up
    after so many of them between two saves.
    """

    def __init__(self, story, turns=2, *, counts=False, attempts_max=None):
        self.story, self.turns = story, turns
        self.counts, self.attempts_max = counts, attempts_max
        self.saved = self.lives = self.lost = 0
        self.steps = None

    def run(self, steps=None):
        """All its lives; `steps` decides where one ends."""
        self.steps = steps
        self.story.life = -1
        self.story.start()
        while not self._live():
            self._leave_wreck()
            self.story.resume()
            self.lost += 1
            if self.lost == self.attempts_max:
                return self.story.fails().trial()
        return self.story.done().trial()

    def _live(self):
        self.lives += 1
        if not self._pass("redis", "get", "x"):
            return False
        while self.saved < self.turns:
            turn = self.saved
            carried = [f"{n}.0" for n in range(turn)]
            if not (self._asks(turn, carried) and self._pays(turn)):
                return False
            if not self._saves():
                return False
        return self._asks(self.turns, [f"{n}.0" for n in range(self.turns)])

    def _asks(self, turn, carried):
        self.story.ask(turn, *carried, reply=False)
        return self._lets_go() and self._answers()

    def _pays(self, turn):
        self.story.deliver("pay", order=f"o-{turn}")
        if not self._lets_go():
            return False
        self.story.lands()
        return self._lets_go()

    def _saves(self):
        self.story.cross("redis", "set", "x", after=False)
        if not self._lets_go():
            return False
        self.saved += 1
        self.lost = 0
        return self._answers()

    def _pass(self, *message):
        self.story.cross(*message, after=False)
        return self._lets_go() and self._answers()

    def _answers(self):
        self.story.reply()
        return self._lets_go()

    def _lets_go(self):
        fault = self.steps and self.steps(self.story.last)
        if fault is None:
            return True
        self.story.killed()
        assert self.story.faults[-1] == fault
        return False

    def _leave_wreck(self):
        state = f"{self.saved} {self.lives if self.counts else ''}"
        self.story.events[-1] = Wreck(
            life=self.story.life, state=state, seq=self.story.seq
        )


@pytest.fixture
def walk(told):
    """Walks the treadmill with a machine; the explorer, and the trial."""

    def go(**kind):
        clean = Machine(told(), **kind)
        clean.story.events.clear()
        baseline = Baseline(*(clean.run(),) * 2)
        mill = Treadmill([KILL])
        (visit,) = mill.first(baseline)
        machine = Machine(told(), **kind)
        machine.story.events.clear()
        steps = Steps(visit.tread, machine.story.events)
        trial = machine.run(steps)
        assert list(mill.after(Visited(visit, trial))) == []
        return mill, trial, baseline

    return go


def test_every_crossing_of_the_run_is_struck_once_whichever_life_comes_to_it(walk):
    mill, trial, baseline = walk()
    assert mill.reached == set(map(str, baseline.targets))
    assert len(trial.kills) == len(baseline.targets)
    assert not list(mill.why_short())


def test_each_life_is_struck_once_and_the_run_still_ends(walk):
    _, trial, _ = walk()
    assert [fault.at.life for fault in trial.kills] == list(range(len(trial.kills)))
    assert trial.ended.outcome == "done"


def test_the_same_message_further_on_is_another_crossing(walk):
    """Each life after a save asks `llm.chat#1`, and it is another turn each time."""
    _, trial, _ = walk(turns=3)
    chats = [str(f.at) for f in trial.kills if f.at.operation.service == "llm"]
    assert len(chats) == 2 * 4
    assert {at.partition("#")[2] for at in chats} == {"1:before", "1:after"}


def test_what_came_of_it_is_a_schedule_that_can_be_replayed(walk):
    _, trial, _ = walk()
    assert Schedule.parse(str(trial.schedule)) == trial.schedule
    assert trial.schedule.faults == trial.kills


def test_an_agent_that_counts_its_lives_is_not_killed_for_ever(walk):
    _, trial, baseline = walk(counts=True)
    assert trial.ended.outcome == "done"
    assert len(trial.kills) <= len(baseline.targets)


@pytest.fixture
def walk_on(told):
    """Walks every run of a treadmill with a machine that gives up after some lives."""

    def go(limit, said=None):
        def machine(steps=None):
            made = Machine(told(), attempts_max=limit)
            made.story.events.clear()
            return made if steps is None else made.run(steps)

        baseline = Baseline(*(machine().run(),) * 2)
        mill = Treadmill([KILL], limit if said is None else said)
        due = list(mill.first(baseline))
        for number in range(99):
            if not due:
                return mill, baseline
            visit, made = due.pop(), machine()
            trial = made.run(Steps(visit.tread, made.story.events))
            named = replace(trial, name=f"{number:04}")
            due += mill.after(Visited(visit, named))
        raise AssertionError("it never ends")

    return go


@pytest.mark.parametrize("limit", [2, 3, 5, 7])
def test_an_agent_that_gives_up_is_let_go_on_in_time_and_a_further_run_goes_on(
    walk_on, limit
):
    """None of the further runs is given up, and in the end nothing is left."""
    mill, baseline = walk_on(limit)
    first, *further = mill.walked
    assert first.ended.outcome == "failed"
    assert {trial.ended.outcome for trial in further} == {"done"}
    assert mill.reached == set(map(str, baseline.targets))
    struck = [fault for trial in mill.walked for fault in trial.kills]
    assert len(struck) == len(baseline.targets), "each of them once"
    assert not list(mill.why_short())


def test_one_that_takes_it_all_needs_one_run(walk_on):
    mill, _ = walk_on(20)
    (trial,) = mill.walked
    assert trial.ended.outcome == "done"


def test_one_that_gives_up_sooner_than_it_says_is_told(walk_on):
    """It ends each run; and it is not tried for ever."""
    mill, _ = walk_on(3, said=8)
    assert len(mill.walked) == 2
    (why,) = mill.why_short()
    assert "in trial 0001" in why


def test_a_run_that_ends_otherwise_is_told(told):
    baseline = Baseline(*(told().ask(0).call("pay", order="o").done().trial(),) * 2)
    mill = Treadmill([KILL])
    (visit,) = mill.first(baseline)
    given_up = told().ask(0, reply=False).killed().resume().fails().trial()
    list(mill.after(Visited(visit, given_up)))
    (why,) = mill.why_short()
    assert "after 1 kills it was failed" in why
    assert mill.reached == {"0:llm.chat#1:before"}


def test_a_life_is_not_struck_at_what_the_fault_free_run_never_does(told):
    baseline = Baseline(*(told().ask(0).done().trial(),) * 2)
    (visit,) = Treadmill([KILL]).first(baseline)
    story = told().cross("redis", "get", "x", after=False)
    steps = Steps(visit.tread, story.events)
    assert steps(story.last) is None
    story.ask(0, reply=False)
    assert str(steps(story.last)) == "kill@0:llm.chat#1:before"


def test_each_way_to_lose_power_has_a_run_of_its_own(told):
    baseline = Baseline(*(told().ask(0).done().trial(),) * 2)
    visits = Treadmill([KILL, Wanted.parse("powerloss")]).first(baseline)
    assert [str(visit.tread.fault) for visit in visits] == [
        "kill",
        "powerloss(all)",
        "powerloss(data)",
    ]
    (one,) = Treadmill([Wanted.parse("powerloss(names)")]).first(baseline)
    assert str(one.tread.fault) == "powerloss(names)"


def test_what_struck_after_a_finding_is_no_part_of_it(walk):
    _, trial, _ = walk()
    third = [event for event in trial.history if event.kind == "fault"][2]
    finding = Finding("p", "p/r", "m", 1, 2, events=(0, third.seq + 1))
    assert so_far(trial, finding).faults == trial.schedule.faults[:3]
    assert so_far(trial, replace(finding, events=())) == trial.schedule
