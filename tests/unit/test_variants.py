"""A logical call that the model may word in several ways is still one call."""

import pytest

from chaoskit.checks import effects, progress
from chaoskit.checks.case import Case
from chaoskit.checks.script import Script
from chaoskit.model.calls import identities

PAY = {"order": "o-1"}
OTHER = {"order": "O-1"}
TRAIN, BUS = {"tool": "train", "args": PAY}, {"tool": "bus", "args": PAY}
BY_ARGUMENTS = {"call": [{"tool": "pay", "args": PAY, "or": [OTHER]}]}
BY_CHOICE = {"call": [TRAIN], "or": [[BUS]]}
TOOLS = {"pay": "keyed", "train": "keyed", "bus": "keyed"}


@pytest.fixture(scope="module")
def judged(make_scenario, make_manifest):
    def judge(story, turn, check=effects.check):
        llm = {"script": [turn, {"say": "Done."}]}
        scenario = make_scenario(tools=TOOLS, llm=llm)
        return list(check(Case(story.trial(), scenario, make_manifest())))

    return judge


def _requirements(findings):
    return [finding.requirement for finding in findings]


def test_a_call_is_recognised_by_each_of_its_forms(make_scenario):
    both = {**BY_CHOICE, "call": [{**TRAIN, "or": [OTHER]}]}
    scenario = make_scenario(tools=TOOLS, llm={"script": [both, {"say": "Done."}]})
    (call,) = scenario.calls()
    assert len(identities(call)) == 3
    groups = Script(scenario).groups
    assert len(set(map(id, groups.values()))) == 1
    assert str(groups["bus", '{"order": "o-1"}']) == "train(order='o-1')"


@pytest.mark.parametrize("args", [PAY, OTHER])
def test_any_form_of_a_call_is_that_call(told, judged, args):
    story = told().ask(0).call("pay", "k", **args).ask(1, "0.0").done()
    assert judged(story, BY_ARGUMENTS) == []


@pytest.mark.parametrize("tool", ["train", "bus"])
def test_any_step_is_that_step(told, judged, tool):
    story = told().ask(0).call(tool, "k", **PAY).ask(1, "0.0").done()
    assert judged(story, BY_CHOICE) == []


def test_two_forms_of_one_call_are_two_applications(told, judged):
    story = told().ask(0).call("pay", "a", **PAY).killed().resume()
    story.ask(0).call("pay", "b", **OTHER).ask(1, "0.0").done()
    (found,) = judged(story, BY_ARGUMENTS)
    assert found.requirement == "effects/once-across-kill"
    assert "said it otherwise: pay(order='o-1'), pay(order='O-1')" in found.message


def test_two_steps_in_one_place_are_two_applications(told, judged):
    story = told().ask(0).call("train", "k", **PAY).killed().resume()
    story.ask(0).call("bus", "k", **PAY).ask(1, "0.0").done()
    assert _requirements(judged(story, BY_CHOICE)) == ["effects/once-across-kill"]


def test_a_key_that_follows_the_arguments_is_not_stable(told, judged):
    story = told().ask(0).deliver("pay", "a", **PAY).killed().resume()
    story.ask(0).call("pay", "b", **OTHER).ask(1, "0.0").done()
    assert _requirements(judged(story, BY_ARGUMENTS)) == ["effects/stable-key"]


def test_another_tool_may_be_given_another_key(told, judged):
    story = told().ask(0).deliver("train", "a", **PAY).killed().resume()
    story.ask(0).call("bus", "b", **PAY).ask(1, "0.0").done()
    assert judged(story, BY_CHOICE) == []


def test_one_key_for_two_forms_of_a_call_is_shared_by_nothing_else(told, judged):
    story = told().ask(0).call("pay", "k", **PAY).killed().resume()
    story.ask(0).call("pay", "k", first=False, **OTHER).ask(1, "0.0").done()
    assert judged(story, BY_ARGUMENTS) == []


def test_a_call_in_none_of_its_forms_is_missing(told, judged):
    story = told().ask(0).ask(1, "0.0").done()
    assert _requirements(judged(story, BY_CHOICE)) == ["effects/none-lost"]


def test_a_form_that_is_sent_again_after_its_result_came_is_found(told, judged):
    story = told().ask(0).call("train", "k", **PAY).ask(1, "0.0")
    story.call("bus", "k", **PAY).done()
    found = judged(story, BY_CHOICE, progress.check)
    assert "progress/not-again" in _requirements(found)


def test_calls_that_share_a_form_are_judged_together(make_scenario):
    shared = {"call": [{"tool": "pay", "args": OTHER, "or": [{"order": "o-3"}]}]}
    script = [BY_ARGUMENTS, shared, {"say": "Done."}]
    scenario = make_scenario(tools=TOOLS, llm={"script": script})
    (group,) = Script(scenario).effects
    assert (len(group), len(group.identities)) == (2, 3)
