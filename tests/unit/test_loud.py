"""`loud`: nothing is lost in silence, and nothing tried for ever."""

import pytest

from chaoskit.checks.case import Case, Golden
from chaoskit.checks.loud import check
from chaoskit.model.address import Edge
from chaoskit.model.faults import FaultKind

PAY = {"order": "o-1"}


@pytest.fixture
def judged(make_scenario, make_manifest):
    def judge(story, last_turn=1, **contract):
        scenario = make_scenario([("pay", PAY)], tools={"pay": "keyed"})
        golden = Golden(last_turn=last_turn)
        case = Case(story.trial(), scenario, make_manifest(**contract), golden)
        return [each.requirement for each in check(case)]

    return judge


def test_a_run_that_is_done_too_early_is_found(told, judged):
    assert judged(told().ask(0).done()) == ["loud/no-silent-success"]


def test_the_last_turn_is_the_one_that_the_fault_free_runs_asked(told, judged):
    assert judged(told().ask(0).ask(1).done()) == []
    assert judged(told().ask(0).done(), last_turn=0) == []
    assert judged(told().ask(0).done(), last_turn=None) == []


def test_what_the_life_after_done_asks_makes_up_for_nothing(told, judged):
    story = told().ask(0).end("done").start("again").ask(1).end("done").over("done")
    assert judged(story) == ["loud/no-silent-success"]


def test_a_failure_without_a_word_is_found(told, judged):
    story = told().ask(0).end("failed", code=65).over("failed")
    assert judged(story) == ["loud/says-why"]


def test_any_word_is_one(told, judged):
    assert judged(told().ask(0).fails()) == []
    logged = told().ask(0).log("run.end").end("failed", code=65).over("failed")
    assert judged(logged) == []


def torn(told, carried=("0.0",)):
    story = told().ask(0).call("pay", "k", **PAY).ask(1, *carried)
    return story.cross("files", "write", "state").struck(
        FaultKind.TEAR, Edge.of_part(3)
    )


def test_a_checkpoint_that_cannot_be_read_is_no_first_run(told, judged):
    story = torn(told).crashed().resume().ask(0).ask(1).done()
    assert judged(story) == ["loud/unreadable-kept"]


def test_who_goes_on_from_the_one_before_is_right(told, judged):
    assert judged(torn(told).crashed().resume().ask(1, "0.0").done()) == []
    assert judged(torn(told).crashed().resume().fails()) == []


def test_the_first_checkpoint_may_be_the_torn_one(told, judged):
    story = (
        told()
        .ask(0)
        .cross("files", "write", "state")
        .struck(FaultKind.TEAR, Edge.of_part(3))
    )
    assert judged(story.crashed().resume().ask(0).ask(1).done()) == []


@pytest.mark.parametrize(("deaths", "found"), [(2, []), (3, ["loud/gives-up"])])
def test_a_call_that_kills_its_agent_is_given_up(told, judged, deaths, found):
    story = told().ask(0)
    for _ in range(deaths):
        story.deliver("pay", "k", **PAY).killed().resume()
    assert judged(story.fails(), max_attempts=2) == found
    assert judged(story.fails()) == []
