"""What a service says of itself: that nothing was done, or that nothing will be."""

import pytest

from chaoskit.checks import judge
from chaoskit.model.address import Edge
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import FaultFired
from chaoskit.model.scenario import Via
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.model.verdict import Verdict

PAY = {"order": "o-1"}
BUY = ([("pay", PAY)],)


@pytest.fixture
def judged(make_scenario, make_manifest):
    """The judgement of a story."""

    def judge_it(story, *turns, cls="keyed", schedule=None, **contract):
        scenario = make_scenario(*(turns or BUY), tools={"pay": cls})
        return judge(story.trial(schedule), scenario, make_manifest(**contract))

    return judge_it


def broken(judgement):
    return [finding.requirement for finding in judgement.findings]


def refused(told, service, argument, edge=Edge.BEFORE):
    """A call is answered with an error, as the service words it."""
    story = told().ask(0).deliver("pay", "k", **PAY)
    op = "send" if service == "smtp" else "pay"
    at = f"0:{service}.{op}[o-1]#1:{edge}"
    fault = Fault.parse(f"error({argument})@{at}")
    story.faults.append(fault)
    return story.add(fired(fault))


def fired(fault):
    return FaultFired(life=0, fault=str(fault))


FINAL = [("smtp", "550")]
PASSING = [("smtp", "451"), ("mcp", "-32603"), ("tools", "503"), ("tools", "429")]


@pytest.mark.parametrize(("service", "argument"), FINAL)
def test_a_call_that_was_refused_for_good_is_told_to_the_model_and_not_lost(
    told, judged, service, argument
):
    story = refused(told, service, argument).ask(1, "0.0").done()
    assert broken(judged(story)) == []
    assert broken(judged(refused(told, service, argument).fails())) == []


@pytest.mark.parametrize(("service", "argument"), PASSING)
def test_one_that_could_have_been_tried_again_is_lost(told, judged, service, argument):
    story = refused(told, service, argument).ask(1, "0.0").done()
    assert broken(judged(story)) == ["effects/none-lost"]
    found = broken(judged(refused(told, service, argument).fails()))
    assert found == ["progress/fails-for-a-reason"]


def test_one_refusal_excuses_one_call(told, judged):
    """Of two equal calls one was refused, and the other was never made."""
    story = refused(told, "smtp", "550").ask(1, "0.0").ask(2, "0.0", "1.0").done()
    assert broken(judged(story, *BUY, *BUY)) == ["effects/none-lost"]


def test_a_disk_that_may_not_be_written_is_a_cause_to_fail(told, judged):
    for name, expected in (("EACCES", []), ("EIO", ["progress/fails-for-a-reason"])):
        story = told().cross("files", "write", "a", after=False)
        story.struck(FaultKind.ERROR, Edge.BEFORE, name)
        assert broken(judged(story.fails())) == expected


@pytest.mark.parametrize("end", ["parks", "fails"])
def test_a_blind_call_is_in_doubt_where_the_answer_left_it_open(told, judged, end):
    """After 503 nobody knows; after 429, or the network's second copy, everybody."""
    doubts = {"error(503)": True, "error(429)": False, "duplicate": False}
    doubts |= {"refuse": True, "drop_reply": True}
    for fault, is_open in doubts.items():
        edge = Edge.AFTER if fault == "drop_reply" else Edge.BEFORE
        story = told().ask(0).deliver("pay", **PAY)
        story.add(fired(Fault.parse(f"{fault}@{story.last.at_edge(edge)}")))
        found = broken(judged(getattr(story, end)(), cls="blind"))
        assert found == ([] if is_open else [f"progress/{end}-for-a-reason"]), fault


def test_a_reply_that_was_lost_on_its_way_leaves_no_doubt(told, judged):
    """The agent never heard of the call, and died of the broken connection."""
    story = told().ask(0).struck(FaultKind.DROP_REPLY).crashed().resume().ask(0)
    found = judged(story.parks(), cls="blind")
    assert broken(found) == ["progress/parks-for-a-reason"]


def test_attempts_that_failed_count_as_deaths_do(told, judged):
    """Two of them in one life, of a limit of two; a delay is none."""
    for kind in (FaultKind.ERROR, FaultKind.DROP_REPLY, FaultKind.DELAY):
        story = told().ask(0)
        for _ in range(2):
            story.deliver("pay", "k", **PAY).struck(kind, argument=None)
        failed = kind is not FaultKind.DELAY
        expected = [] if failed else ["progress/fails-for-a-reason"]
        assert broken(judged(story.fails(), max_attempts=2)) == expected
        assert broken(judged(story, max_attempts=3)) == ["progress/fails-for-a-reason"]


def everywhere(fault):
    return Schedule((Fault(fault.kind, fault.at.in_every_life(), fault.argument),))


def test_a_run_that_was_struck_in_every_life_was_never_let_to_end(told, judged):
    """It died of each error by itself; no number of lives helps."""
    story = told().ask(0).struck(FaultKind.ERROR).crashed()
    story.resume().ask(0).struck(FaultKind.ERROR).crashed()
    story.over("endless", "it had not ended after 120 s")
    judgement = judged(story, schedule=everywhere(story.faults[0]))
    assert judgement.verdict is Verdict.INCONCLUSIVE
    assert "never let to end" in judgement.doubts[0]


def test_one_that_dies_without_being_struck_has_no_excuse(told, judged):
    """The last life did not even come to the fault."""
    story = told().ask(0).struck(FaultKind.ERROR).crashed().resume().crashed()
    story.over("endless", "6 lives ended that no scheduled fault had ended")
    judgement = judged(story, schedule=everywhere(story.faults[0]))
    assert broken(judgement) == ["progress/ends"]


def test_no_wait_ends_on_a_clock_that_was_set_back(told, judged):
    """An hour back, and two minutes for the trial: nothing is proven."""
    for argument, is_proven in (("-3600", False), ("3600", True)):
        story = told().ask(0).struck(FaultKind.SKEW, argument=argument)
        story.end("parked", code=75).over("endless", "it had not ended after 120 s")
        judgement = judged(story, {"wait": 3.0})
        assert broken(judgement) == (["progress/ends"] if is_proven else [])
        assert bool(judgement.doubts) is not is_proven
    back = told().ask(0).struck(FaultKind.SKEW, argument="-3600").crashed()
    assert broken(judged(back.over("endless"))) == ["progress/ends"]


def test_mail_is_refused_by_its_recipient(make_scenario, make_manifest, told):
    """A mail crosses as `send`; its delivery is the newest of its life."""
    scenario = make_scenario(*BUY, tools={"pay": "keyed"})
    tool = scenario.tools["pay"].model_copy(update={"via": Via.SMTP})
    scenario = scenario.model_copy(update={"tools": {"pay": tool}})
    story = refused(told, "smtp", "550").ask(1, "0.0").done()
    assert judge(story.trial(), scenario, make_manifest()).verdict is Verdict.PASS
