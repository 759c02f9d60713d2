"""A life that was paused and goes on: what it cannot know, and what it has to know."""

import pytest

from chaoskit.checks import effects, progress
from chaoskit.checks.case import Case
from chaoskit.checks.takeover import blocked
from chaoskit.model.address import Edge
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import FaultFired
from chaoskit.model.schedule import Fault
from chaoskit.model.verdict import Severity

PAY = {"order": "o-1"}
BUY = ([("pay", PAY)],)
STATE = ("redis", "set", "state")


@pytest.fixture
def judged(make_scenario, make_manifest):
    """What `effects` and `progress` say of a story."""

    def judge(story, *turns, cls="queryable"):
        scenario = make_scenario(*(turns or BUY), tools={"pay": cls})
        trial, manifest = story.trial(), make_manifest()
        found = [*effects.check(Case(trial, scenario, manifest))]
        return [*found, *progress.check(Case(trial, scenario, manifest))]

    return judge


def broken(findings):
    return [finding.requirement for finding in findings]


def look_up(story):
    return story.cross("tools", "pay?", "o-1")


def paused_before_it_sent(told, *, looks=True, key=None):
    """Its intent is saved; another life takes over, pays, and comes to the end."""
    story = told().ask(0).cross(*STATE).struck(FaultKind.PAUSE).resume()
    story = look_up(story) if looks else story
    story.call("pay", key, **PAY).cross(*STATE).ask(1, "0.0").end("done", code=0)
    return story.continued()


def test_a_life_that_goes_on_sends_what_it_was_about_to_send(told, judged):
    """It cannot know yet; a key makes it harmless, and it stops at its store."""
    story = paused_before_it_sent(told, key="k").call("pay", "k", first=False, **PAY)
    story.cross(*STATE).end("parked", code=75).over("done")
    assert judged(story, cls="keyed") == []


def test_once_its_store_could_have_told_it_there_is_no_excuse(told, judged):
    """It goes on after a checkpoint that another life has overtaken."""
    story = paused_before_it_sent(told, key="k").cross(*STATE)
    story.call("pay", "k", first=False, **PAY).cross(*STATE).end("done").over("done")
    assert broken(judged(story, cls="keyed")) == ["progress/not-again"]


def test_a_request_to_its_store_tells_it_nothing_before_the_answer(told, judged):
    """The lease is renewed by a thread of its own, which waits for the answer."""
    story = paused_before_it_sent(told, key="k").cross(*STATE, after=False)
    beat = story.last
    story.call("pay", "k", first=False, **PAY)
    story.last = beat
    story.reply().end("parked", code=75).over("done")
    assert judged(story, cls="keyed") == []


def test_one_that_changes_nothing_may_have_no_place_for_its_answer(told, judged):
    """Of a long-lived agent it has none (`Gate.has_applied`)."""
    story = paused_before_it_sent(told, key="k").cross("redis", "get", "x", after=False)
    story.call("pay", "k", first=False, **PAY).end("done").over("done")
    assert broken(judged(story, cls="keyed")) == ["progress/not-again"]


def test_nor_after_it_has_asked_the_model_again(told, judged):
    story = paused_before_it_sent(told, key="k").ask(0)
    story.call("pay", "k", first=False, **PAY).end("done").over("done")
    assert broken(judged(story, cls="keyed")) == ["progress/not-again"]


def test_what_no_look_up_can_see_is_a_warning(told, judged):
    story = paused_before_it_sent(told).call("pay", **PAY)
    (found,) = judged(story.end("parked", code=75).over("done"))
    assert found.requirement == "effects/once-beyond-its-reach"
    assert found.severity is Severity.SHOULD
    assert "no agent can prevent that" in found.message
    assert found.observed == 2


def test_who_takes_over_has_to_look(told, judged):
    """Twice, and nobody looked: a finding."""
    story = paused_before_it_sent(told, looks=False).call("pay", **PAY)
    (found,) = judged(story.end("parked", code=75).over("done"))
    assert found.requirement == "effects/once-across-kill"
    assert found.severity is Severity.MUST


def test_a_look_up_of_another_call_does_not_count(told, judged):
    story = told().ask(0).cross(*STATE).struck(FaultKind.PAUSE).resume()
    story.cross("tools", "pay?", "o-2").call("pay", **PAY).ask(1, "0.0")
    story.end("done", code=0).continued().call("pay", **PAY)
    found = judged(story.end("parked", code=75).over("done"))
    assert broken(found) == ["effects/once-across-kill"]


def test_who_takes_over_leaves_a_blind_call_alone(told, judged):
    """It can stop in doubt, so two are a finding whatever it looked at."""
    story = paused_before_it_sent(told).call("pay", **PAY)
    found = judged(story.end("parked", code=75).over("done"), cls="blind")
    assert broken(found) == ["effects/once-across-kill"]


def test_twice_beyond_its_reach_does_not_excuse_a_third(told, judged):
    story = paused_before_it_sent(told).call("pay", **PAY).cross(*STATE)
    story.call("pay", **PAY).end("done").over("done")
    found = judged(story)
    assert broken(found) == ["effects/once-across-kill", "progress/not-again"]


@pytest.mark.parametrize("kind", [FaultKind.PAUSE, FaultKind.DELAY])
def test_a_message_that_was_held_lands_late(told, judged, kind):
    """Paused as it sent; or the network was slow, and the agent tired of waiting."""
    story = told().ask(0).deliver("pay", **PAY).struck(kind, Edge.BEFORE)
    held = story.events[-3], story.last
    if kind is FaultKind.PAUSE:
        story.resume()
    look_up(story).call("pay", **PAY).ask(1, "0.0").end("done", code=0)
    if kind is FaultKind.PAUSE:
        story.continued()
    sent, story.last = held
    found = judged(story.lands(sent).over("done"))
    assert broken(found) == ["effects/once-beyond-its-reach"]


def test_the_message_that_was_held_is_the_one_that_landed(told, judged):
    """Two calls came at once, and the other one waited for the door meanwhile."""
    one, other = ({**PAY, "cents": cents} for cents in (1, 2))
    story = told().ask(0).deliver("pay", **one)
    held, sent = story.last, story.events[-2]
    story.deliver("pay", **other)
    waiting = story.last
    fault = Fault(FaultKind.PAUSE, held.at_edge(Edge.BEFORE))
    story.add(FaultFired(life=0, fault=str(fault), message=sent.message))
    story.last = waiting
    look_up(look_up(story.lands().resume())).call("pay", **one)
    story.ask(1, "0.0", "0.1").end("done", code=0).continued()
    story.last = held
    found = judged(story.lands(sent).over("done"), [("pay", one), ("pay", other)])
    assert broken(found) == ["effects/once-beyond-its-reach"]


@pytest.mark.parametrize("end", ["parks", "fails"])
@pytest.mark.parametrize("cls", ["keyed", "queryable", "blind"])
def test_who_takes_over_may_stop_at_a_call_that_may_yet_land(told, judged, cls, end):
    story = told().ask(0).deliver("pay", **PAY).struck(FaultKind.PAUSE, Edge.BEFORE)
    getattr(story.resume(), end)()
    expected = [f"progress/{end}-for-a-reason"] if cls == "keyed" else []
    assert broken(judged(story, cls=cls)) == expected


def test_but_not_at_one_that_nobody_can_have_sent(told, judged):
    """The life was paused before it knew of the call."""
    story = told().ask(0, reply=False).struck(FaultKind.PAUSE, Edge.BEFORE)
    found = judged(story.resume().ask(0).parks(), cls="blind")
    assert broken(found) == ["progress/parks-for-a-reason"]


@pytest.mark.parametrize("kind", [FaultKind.KILL, FaultKind.DELAY])
def test_a_queryable_call_is_in_doubt_by_a_pause_alone(told, judged, kind):
    story = told().ask(0).deliver("pay", **PAY)
    story = story.killed() if kind is FaultKind.KILL else story.struck(kind)
    story = story if kind is FaultKind.KILL else story.end("parked", code=75)
    found = judged(story.resume().parks())
    assert broken(found) == ["progress/parks-for-a-reason"]


@pytest.mark.parametrize("ending", ["died", "done"])
def test_a_takeover_that_never_came_to_an_end_is_noted(told, ending):
    """All who took over may have waited for a lock that the paused life holds."""
    story = told().ask(0).cross(*STATE).struck(FaultKind.PAUSE).resume()
    story.end(ending, code=1 if ending == "died" else 0).continued()
    trial = story.ask(1, "0.0").end("done", code=0).over("done").trial()
    assert bool(blocked(trial)) == (ending == "died")
