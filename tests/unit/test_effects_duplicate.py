"""What the network delivered twice is no second attempt of the agent's."""

import pytest

from chaoskit.checks.case import Case
from chaoskit.checks.effects import check
from chaoskit.model.history import Applied, Delivered
from chaoskit.model.scenario import STRAY_MAIL, Via

PAY = {"order": "o-1"}


@pytest.fixture
def judged(make_scenario, make_manifest):
    def judge(story, cls="keyed", guarantee="exactly-once", via="http"):
        scenario = make_scenario([("pay", PAY)], tools={"pay": cls})
        tool = scenario.tools["pay"].model_copy(update={"via": Via(via)})
        scenario = scenario.model_copy(update={"tools": {"pay": tool}})
        return list(check(Case(story.trial(), scenario, make_manifest(guarantee))))

    return judge


def copied(told, key, *, first):
    """One call that the network delivered twice."""
    story = told().ask(0).deliver("pay", key, **PAY)
    call = {"life": 0, "message": 1, "tool": "pay", "args": PAY, "idempotency_key": key}
    story.add(Applied(**call)).add(Delivered(duplicate=True, **call))
    story.add(Applied(first=first, duplicate=True, **call))
    return story.reply().ask(1, "0.0").done()


@pytest.mark.parametrize("guarantee", ["exactly-once", "at-most-once", "at-least-once"])
@pytest.mark.parametrize("cls", ["blind", "queryable"])
def test_the_network_s_copy_is_not_the_agent_s(told, judged, cls, guarantee):
    story = copied(told, None, first=True)
    assert judged(story, cls, guarantee) == []


def test_a_key_is_there_for_the_network_s_copies_too(told, judged):
    assert judged(copied(told, "k", first=False)) == []
    (found,) = judged(copied(told, None, first=True))
    assert found.requirement == "effects/once-across-kill"
    assert "without an idempotency key" in found.message


@pytest.mark.parametrize("cls", ["blind", "queryable"])
def test_the_agent_s_own_second_call_still_counts(told, judged, cls):
    story = told().ask(0).call("pay", **PAY).call("pay", **PAY)
    (found,) = judged(story.ask(1, "0.0").done(), cls)
    assert found.requirement == "effects/once-across-kill"


def test_an_unscripted_mail_is_found_and_names_the_mail_that_was_asked_for(
    told, judged
):
    story = told().ask(0).call("pay", **PAY)
    story.call(STRAY_MAIL, to=["eve@example.org"], subject="Hi", body="")
    (found,) = judged(story.ask(1, "0.0").done(), via="smtp")
    assert found.requirement == "effects/only-what-was-asked"
    assert "unscripted mail(to=['eve@example.org'], subject='Hi'" in found.message
    assert "pay(order='o-1')" in found.message
