"""The checks on histories of processes that run side by side."""

import pytest

from chaoskit.checks import log, progress, takeover
from chaoskit.checks.case import Case
from chaoskit.checks.causes import linked
from chaoskit.explore.baseline import Baseline
from chaoskit.model.address import Address
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import (
    Asked,
    Crossed,
    LifeContinued,
    LifeEnded,
    LifeStarted,
    StatusSeen,
)
from chaoskit.model.scenario import AskTurn, SayTurn
from chaoskit.model.waiting import open_turn

PAY = {"order": "o-1"}


class Fleet:
    """A story of several lives; each step says whose it is."""

    def __init__(self, told, count=2):
        self.story = told()
        self.story.events.clear()
        for life in range(count):
            self.begins(life, f"worker.{life + 1}", "start")

    def begins(self, life, process, purpose="resume"):
        self.story.add(LifeStarted(life=life, purpose=purpose, process=process))
        return self

    def ends(self, life, cause="stopped", ending="done", **more):
        code = 0 if ending == "done" else 1
        more = {"code": code, "process": f"worker.{life + 1}", **more}
        self.story.add(LifeEnded(life=life, cause=cause, ending=ending, **more))
        return self

    def by(self, life):
        self.story.life = life
        return self.story

    def seen(self, status):
        self.story.add(StatusSeen(life=-1, status=status))
        return self

    def over(self, outcome="done", reason=""):
        self.story.over(outcome, reason)
        return self.story.trial()


@pytest.fixture
def fleet(told):
    return lambda *args: Fleet(told, *args)


@pytest.fixture
def judged(make_scenario, make_manifest):
    def judge(check, trial):
        scenario = make_scenario([("pay", PAY)], tools={"pay": "keyed"})
        return list(check(Case(trial, scenario, make_manifest())))

    return judge


def broken(findings):
    return [finding.requirement for finding in findings]


def test_lines_of_lives_side_by_side_have_no_order(fleet, judged):
    """A worker that did not get the run may still name the checkpoint that it saw."""
    crew = fleet()
    crew.by(0).log("checkpoint", 5)
    crew.by(1).log("run.lost", 3)
    crew.ends(0).ends(1)
    assert judged(log.check, crew.over()) == []


def test_a_life_that_began_after_another_knows_its_checkpoints(fleet, judged):
    crew = fleet()
    crew.by(0).log("checkpoint", 5)
    crew.ends(0, "itself", "died").begins(2, "worker.1")
    crew.by(2).log("run.resume", 3)
    crew.ends(1).ends(2)
    (found,) = judged(log.check, crew.over())
    assert found.requirement == "log/checkpoint-ids-never-fall"
    assert "life 0 (worker.1)" in found.message


def test_a_result_may_follow_an_intent_of_a_life_that_runs_on(fleet, judged):
    crew = fleet()
    crew.by(1).log("tool.intent", 1, call="c")
    crew.by(0).log("tool.result", 1, call="c")
    crew.ends(0).ends(1)
    assert judged(log.check, crew.over()) == []


def test_a_worker_may_speak_of_no_run_at_all(fleet, judged):
    crew = fleet()
    crew.by(0).log("run.resume", 1)
    crew.by(1).line({"event": "worker.start", "level": "info", "step": 0})
    crew.ends(0).ends(1)
    assert judged(log.check, crew.over()) == []


def test_a_start_is_closed_by_the_process_that_logged_it(fleet, judged):
    crew = fleet()
    crew.by(1).log("tool.start", 1)
    crew.by(0).log("run.end", 1)
    crew.ends(0).ends(1)
    (found,) = judged(log.check, crew.over())
    assert found.requirement == "log/starts-are-closed"


def test_or_by_the_one_that_goes_on_with_the_run(fleet, judged):
    """The first parked; the second resumed, and ended it. No fault is needed."""
    crew = fleet()
    crew.by(0).log("run.start").log("tool.start", 1).ask(0)
    crew.by(1).log("run.resume", 1).log("run.end", 2)
    crew.ends(0).ends(1)
    assert judged(log.check, crew.over()) == []


def test_or_by_one_that_does_the_same_later(fleet, judged):
    for more in (("tool.start", "tool.end"), ("tool.end",)):
        crew = fleet()
        crew.by(0).log("tool.start", 1)
        for event in more:
            crew.by(1).log(event, 1)
        crew.ends(0).ends(1)
        assert judged(log.check, crew.over()) == []


@pytest.mark.parametrize(("kind", "found"), [(None, 1), (FaultKind.ROLLBACK, 0)])
def test_one_that_went_before_closes_nothing(fleet, judged, kind, found):
    """It names an older checkpoint, which it may do later where the store forgot."""
    crew = fleet()
    if kind:
        crew.by(1).cross("redis", "set", "x").struck(kind).cross("redis", "get", "x")
    crew.by(1).log("run.resume", 1)
    crew.by(0).log("run.resume", 2).log("tool.start", 2).log("run.end", 3)
    crew.ends(0).ends(1)
    broken_by = broken(judged(log.check, crew.over()))
    assert broken_by == ["log/starts-are-closed"] * found


def test_nor_does_a_life_that_had_ended_by_then(fleet, judged):
    crew = fleet()
    crew.by(1).log("run.resume", 1)
    crew.ends(1, "itself", "died").begins(2, "worker.2")
    crew.by(2).log("tool.start", 1)
    crew.ends(0).ends(2, process="worker.2")
    assert broken(judged(log.check, crew.over())) == ["log/starts-are-closed"]


@pytest.mark.parametrize(
    ("kind", "answered", "found"),
    [
        (FaultKind.RESTART, False, []),
        (FaultKind.DROP_REPLY, False, []),
        (FaultKind.RESTART, True, ["log/starts-are-closed"]),
        (FaultKind.TERM, False, ["log/starts-are-closed"]),
    ],
)
def test_a_start_may_stay_open_where_nobody_said_what_became_of_the_last_message(
    fleet, judged, kind, answered, found
):
    """It saved that the run is done, and was stopped while its store was away."""
    crew = fleet()
    crew.by(0).log("run.start", 1).cross("postgres", "update", "runs").struck(kind)
    if answered:
        crew.by(0).cross("postgres", "select", "runs")
    crew.seen("done").ends(0).ends(1)
    assert broken(judged(log.check, crew.over())) == found


def test_a_run_that_is_done_stays_so(fleet, judged):
    crew = fleet().seen("running").seen("done").seen("running")
    found = judged(progress.check, crew.over())
    assert broken(found) == ["progress/stays-over"]


def test_what_any_of_them_does_after_done_is_found(fleet, judged):
    crew = fleet(1).seen("done").ends(0)
    crew.begins(1, "worker.1", "again").begins(2, "worker.2", "again")
    crew.by(2).call("pay", "k", **PAY)
    crew.ends(1).ends(2)
    trial = crew.over()
    (found,) = judged(progress.check, trial)
    assert found.requirement == "progress/resume-after-done"
    assert "wait for other runs" in found.message
    assert trial.again == {1, 2}
    assert trial.addresses == ()
    assert linked([found], trial) == (found,)


def test_one_that_dies_after_done_is_found(fleet, judged):
    crew = fleet(1).seen("done").ends(0).begins(1, "worker.1", "again")
    crew.ends(1, "itself", "died")
    assert broken(judged(progress.check, crew.over())) == ["progress/resume-after-done"]


def test_an_endless_run_tells_of_who_died_by_itself(fleet, judged):
    crew = fleet().ends(1, "itself", "died", tail=("no database",)).ends(0)
    (found,) = judged(progress.check, crew.over("endless", "too many deaths"))
    assert found.requirement == "progress/ends"
    assert "Life 1 (worker.2) exited with 1" in found.message
    assert "no database" in found.message


def test_a_pause_that_nobody_took_over_is_told(fleet):
    for status, is_told in ((None, True), ("done", False), ("parked", False)):
        crew = fleet()
        crew.by(0).ask(0).struck(FaultKind.PAUSE)
        if status:
            crew.seen(status)
        crew.story.add(LifeContinued(life=0))
        crew.ends(0).ends(1)
        assert bool(takeover.blocked(crew.over())) == is_told


def test_a_gate_is_open_by_the_message_of_whichever_process(fleet):
    """Requests are told by their place, and a death elsewhere closes nothing."""
    script = (AskTurn(ask="Pay?"), SayTurn(say="Paid."))

    def request(life, place, turn, *carried):
        asked = Asked(life=life, turn=turn, carried=carried, place=place)
        edges = (f"{place}:{edge}" for edge in ("before", "after"))
        return [asked, *(Crossed(life=life, address=edge) for edge in edges)]

    asks = [*request(0, "0:llm.chat#1", 0), *request(1, "0:llm.chat#2", 0)]
    death = LifeEnded(life=0, cause="fault", ending="died", signal=9)
    assert open_turn([*asks, death], script) == 0
    told = request(1, "1:llm.chat#1", 1, "0.0")
    assert open_turn([*asks, death, *told], script) is None


def test_an_address_that_was_tried_in_vain_counts_once(fleet):
    crew = fleet()
    at = "0:redis.set[lease]#1"
    edges = ((0, "before"), (1, "before"), (1, "after"))
    for life, edge in edges:
        crew.story.add(Crossed(life=life, address=f"{at}:{edge}"))
    addresses = crew.ends(0).ends(1).over().addresses
    assert addresses == tuple(Address.parse(f"{at}:{e}") for e in ("before", "after"))


def test_what_was_tried_in_vain_in_a_clean_run_is_no_target(fleet):
    """Another run may have no such try, and a fault there would never fire."""
    crew = fleet()
    at = "0:redis.set[lease]"
    for place in ("#1:before", "#1:after", "#2:before"):
        crew.story.add(Crossed(life=0, address=f"{at}{place}"))
    trial = crew.ends(0).ends(1).over()
    targets = [str(target) for target in Baseline(trial, trial).targets]
    assert targets == [f"{at}#1:before", f"{at}#1:after"]
