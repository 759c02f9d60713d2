"""Which level follows from what was shown, both ways; and the frozen revision."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from chaoskit.campaign.search import NOT_FOLLOWED, NOTHING_STRUCK
from chaoskit.certify import revision as revisions
from chaoskit.certify.derive import can_vary, derived, unvaried
from chaoskit.certify.evidence import Base, Breach, Evidence, Outcome
from chaoskit.certify.known import is_known, load_known, passed
from chaoskit.certify.levels import standing
from chaoskit.certify.observed import (
    chased,
    inside_replies,
    kills_in,
    operations,
    takeovers,
)
from chaoskit.certify.outcomes import is_whole, outcome
from chaoskit.certify.revision import Revision
from chaoskit.certify.run import Ran
from chaoskit.certify.scenario_set import (
    flaws,
    has_waits,
    not_for,
    tags_tried,
    unseen,
)
from chaoskit.certify.stops import Stop
from chaoskit.checks import CHECKS, REQUIREMENTS
from chaoskit.model.errors import InputError
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import to_line
from chaoskit.model.manifest import Manifest
from chaoskit.model.report import CONTRACT_VERSION, Crossings, Report, Shown
from chaoskit.model.schedule import Schedule
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding, Severity

REVISION = revisions.load()
RELEASED = {
    "2026.1": "abb9363aee770cdb970b10e8c2e043ff48df0901c4eb947ac422916ed50c2df1",
}
"""The SHA-256 of each released revision: it is never changed, a new one is added."""
TWICE = "effects/once-across-kill"
SCENARIOS = ("pay", "book")


def shown(*exceptions):
    """All campaigns of all levels and tags passed, but for these outcomes."""
    told = {(each.scenario, each.campaign): each for each in exceptions}
    outcomes = (
        told.get((scenario, campaign.id), Outcome(scenario, campaign.id))
        for campaign in REVISION.campaigns()
        for scenario in SCENARIOS
    )
    return Evidence(SCENARIOS, tuple(outcomes))


def broken(campaign, requirement=TWICE, scenario="pay"):
    breach = Breach(requirement, "Twice.", "kill@0:llm.chat#1:before", "chaoskit ...")
    return Outcome(scenario, campaign, (breach,))


def stands(evidence, asked="L4", tags=()):
    return standing(REVISION, evidence, asked, tags)


# --- the revision --------------------------------------------------------------------


def test_the_revision_demands_what_the_checks_check():
    """Each requirement, under its own promise; none is forgotten, none is left over."""
    assert set(REVISION.requirements) == set(REQUIREMENTS)
    for name, requirement in REVISION.requirements.items():
        assert requirement.promise.value == name.partition("/")[0]
    assert {r.promise for r in REVISION.requirements.values()} == set(CHECKS)
    assert REVISION.contract == CONTRACT_VERSION


def test_what_only_warns_is_what_the_checks_call_a_warning():
    should = {n for n, r in REVISION.requirements.items() if r.severity == "should"}
    assert should == {"effects/once-beyond-its-reach"}


def test_a_released_revision_is_not_changed():
    for name, sha256 in RELEASED.items():
        assert revisions.digest(name) == sha256


@pytest.mark.parametrize(
    "changes",
    [
        {"thorough": False},
        {"depth": 1},
        {"strategy": "treadmill"},
        {"wobble": "wording"},
        {"faults": ["powerloss"]},
    ],
    ids=lambda changes: next(iter(changes)),
)
def test_pairs_are_within_nothing_less_than_all_chains_of_two_kills(changes):
    """A revision that says so is none; the current one is."""
    document = REVISION.model_dump(mode="json")
    assert Revision.model_validate(document) == REVISION
    (level,) = (each for each in document["levels"] if each["id"] == "L3")
    (chains,) = (each for each in level["campaigns"] if each["id"] == "chains")
    chains.update(changes)
    with pytest.raises(ValueError, match="a thorough closure that holds it"):
        Revision.model_validate(document)


# --- levels --------------------------------------------------------------------------


def test_all_that_passed_is_the_highest_level():
    found = stands(shown())
    assert (found.level, found.stops) == ("L4", ())


@pytest.mark.parametrize("level", REVISION.order)
def test_no_higher_level_than_the_one_asked_for(level):
    assert stands(shown(), level).level == level


@pytest.mark.parametrize(
    ("campaign", "requirement", "level"),
    [
        ("clean", "progress/ends", None),
        ("kill", "progress/ends", "L0"),
        ("kill", "effects/none-lost", "L0"),
        ("kill", TWICE, "L1"),
        ("arguments", "effects/none-lost", "L1"),
        ("wording", "store/newest", "L1"),
        ("pairs", TWICE, "L2"),
        ("drop-reply", "cost/not-asked-again", "L2"),
        ("pause", "fence/no-effect", "L3"),
        ("rollback", TWICE, "L3"),
        ("kill", "of/no-revision", "L0"),
    ],
)
def test_a_broken_requirement_holds_up_the_level_that_demands_it(
    campaign, requirement, level
):
    """At the campaign's own level, or the requirement's, whichever is higher."""
    found = stands(shown(broken(campaign, requirement)))
    assert found.level == level
    assert found.stops[0].requirement == requirement
    assert found.stops[0].schedule


def test_what_only_warns_holds_up_nothing_and_is_told():
    warning = "effects/once-beyond-its-reach"
    found = stands(shown(broken("pause", warning)))
    assert found.level == "L4"
    assert [stop.requirement for stop in found.warnings] == [warning]


@pytest.mark.parametrize("level", REVISION.levels, ids=lambda level: level.id)
def test_what_proves_nothing_and_what_was_not_run_hold_a_level_up(level):
    index = REVISION.order.index(level.id)
    below = REVISION.order[index - 1] if index else None
    for campaign in level.campaigns:
        doubtful = Outcome("book", campaign.id, doubts=("the fault did not fire",))
        found = stands(shown(doubtful))
        assert (found.level, found.stops[0].why) == (below, "the fault did not fire")
        without = tuple(o for o in shown().outcomes if o.campaign != campaign.id)
        assert stands(Evidence(SCENARIOS, without)).level == below


def test_a_campaign_that_makes_no_sense_for_the_agent_holds_up_nothing():
    aside = Outcome("pay", "restart", not_for="it is for other stores")
    assert stands(shown(aside)).level == "L4"


def test_a_campaign_within_another_holds_up_nothing():
    """What it stands on does: that other campaign has to be there, and whole."""
    inside = Outcome("pay", "pairs", within="within chains: 9 states, 80 kills")
    assert stands(shown(inside)).level == "L4"
    doubtful = Outcome("pay", "chains", doubts=("it was cut short",))
    assert stands(shown(inside, doubtful)).level == "L2"


def test_what_was_found_higher_up_does_not_hide_behind_what_stopped_a_lower_level():
    """Each stands at the level that it keeps from being reached, the lowest first."""
    found = stands(
        shown(
            broken("kill"),
            broken("treadmill", "store/whole"),
            Outcome("book", "closure", doubts=("a check crashed",)),
        )
    )
    assert found.level == "L1"
    assert {(s.level, s.requirement or s.why) for s in found.stops} == {
        ("L2", TWICE),
        ("L3", "store/whole"),
        ("L3", "a check crashed"),
    }
    assert found.stops[0].level == "L2"


def test_a_level_that_was_not_begun_is_told_once():
    few = tuple(o for o in shown(broken("kill")).outcomes if o.campaign == "kill")
    found = stands(Evidence(SCENARIOS, few), "L3")
    told = [(stop.level, stop.why) for stop in found.stops]
    assert told == [
        ("L0", "none of its campaigns was run"),
        ("L2", "none of its campaigns was run"),
        ("L2", "Twice."),
        ("L3", "none of its campaigns was run"),
    ]


def test_what_is_demanded_above_the_level_asked_for_is_told_and_stops_nothing():
    found = stands(shown(broken("kill")), "L1")
    assert (found.level, found.stops) == ("L1", ())
    assert [(stop.level, stop.requirement) for stop in found.beyond] == [("L2", TWICE)]


def test_a_lower_level_that_fails_is_not_made_good_by_higher_ones():
    assert stands(shown(broken("kill"), Outcome("pay", "pairs"))).level == "L1"


@pytest.mark.parametrize("base", [Base(unseen=("x",)), Base(selftest=("not green",))])
def test_what_is_missing_at_the_base_is_no_level_at_all(base):
    found = stands(replace(shown(), base=base), tags=REVISION.tags)
    assert (found.level, found.tags) == (None, ())


# --- tags ----------------------------------------------------------------------------


def tag(name):
    return next(tag for tag in REVISION.tags if tag.id == name)


def test_a_tag_stands_beside_a_level_that_was_earned():
    tags = (tag("approval"), tag("stream"))
    assert stands(shown(), tags=tags).tags == ("approval", "stream")
    fallen = stands(shown(broken("kill", "progress/ends")), tags=tags)
    assert (fallen.level, fallen.tags) == ("L0", ())


def test_a_tag_is_not_given_where_its_own_campaign_finds_something():
    """The level is not lowered by it, and what stopped the tag is told."""
    tags = (tag("approval"), tag("powerloss"))
    found = stands(shown(broken("powerloss")), tags=tags)
    assert (found.level, found.tags) == ("L4", ("approval",))
    assert found.tag_stops[0].requirement == TWICE


@pytest.mark.parametrize(
    ("name", "requirement"),
    [
        ("approval", "human/own-answer"),
        ("parallel", "transcript/right-result"),
        ("timers", "progress/waits-its-time"),
        ("worker", "fence/no-effect"),
    ],
)
def test_a_tag_without_campaigns_stands_for_its_own_promise(name, requirement):
    """Broken in any campaign, at whatever level that is demanded, it is not given."""
    found = stands(shown(broken("treadmill", requirement)), "L1", (tag(name),))
    assert found.tags == ()
    assert {stop.requirement for stop in found.tag_stops} == {requirement}
    other = stands(shown(broken("treadmill", TWICE)), "L1", (tag(name),))
    assert (other.tags, other.tag_stops) == ((name,), ())


def test_a_tag_that_was_not_tried_is_neither_given_nor_held_against_anybody():
    tags = (tag("powerloss"), tag("approval"))
    upto = tuple(o for o in shown().outcomes if o.campaign == "clean")
    base = stands(Evidence(SCENARIOS, upto), "L0", tags)
    assert (base.level, base.tags, base.tag_stops) == ("L0", (), ())
    fallen = stands(Evidence(SCENARIOS, upto), "L1", tags)
    assert (fallen.tags, fallen.tag_stops) == ((), ())


def agent(store="redis", capabilities=(), **more):
    fields = {"start": ["agent"], **more}
    return Manifest.model_validate(
        {
            "name": "unit-agent",
            "launch": "process",
            "store": store,
            "contract": {"effects": "exactly-once"},
            "capabilities": capabilities,
            **fields,
        }
    )


def test_tags_are_tried_as_declared_or_as_the_store_allows():
    tried = tags_tried(REVISION, agent("sqlite", ["approval"]))
    assert [each.id for each in tried] == ["approval", "powerloss"]


# --- the set -------------------------------------------------------------------------

PAY = ("pay", {"order": "o-1", "cents": 1})


def test_a_set_that_verifies_what_is_declared_has_no_flaw(make_scenario):
    scenario = make_scenario([PAY, PAY], {"ask": "Sure?"}, tools={"pay": "keyed"})
    manifest = agent(capabilities=["approval", "parallel-tools"])
    assert list(flaws(manifest, [scenario])) == []


@pytest.mark.parametrize(
    ("capabilities", "turns", "said"),
    [
        (["approval"], [[PAY]], "declares approval, and no scenario"),
        (["timers"], [[PAY]], "declares timers, and no scenario"),
        (["parallel-tools"], [[PAY]], "declares parallel-tools, and no scenario"),
        (["worker"], [[PAY]], "fewer than two"),
        ([], [[PAY], {"ask": "Sure?"}], "does not declare approval"),
        ([], [[PAY], {"wait": 1}], "does not declare timers"),
        ([], [[PAY, PAY]], "does not declare parallel-tools"),
        ([], [[("look", {"at": "x"})]], "no scenario of the set has an effect"),
    ],
)
def test_a_set_that_leaves_something_unverified_is_refused(
    make_scenario, capabilities, turns, said
):
    scenario = make_scenario(*turns, tools={"pay": "keyed", "look": "read"})
    assert said in "\n".join(flaws(agent(capabilities=capabilities), [scenario]))


@pytest.mark.parametrize(("attempts", "flawed"), [(1, True), (2, True), (3, False)])
def test_who_gives_a_run_up_after_a_death_or_two_is_not_certified(
    make_scenario, attempts, flawed
):
    """A run that may fail wherever it is killed shows nothing by it."""
    scenario = make_scenario([PAY], tools={"pay": "keyed"})
    contract = {"effects": "exactly-once", "max_attempts": attempts}
    told = "\n".join(flaws(agent(contract=contract), [scenario]))
    assert (f"`max_attempts: {attempts}`" in told) is flawed


def test_what_was_declared_and_not_seen_is_named(make_scenario):
    scenario = make_scenario([PAY], tools={"pay": "keyed", "never": "keyed"})
    seen = {"llm": {"chat"}, "mcp": {"pay", "never"}, "redis": {"set"}}
    assert list(unseen([scenario], agent(), seen)) == []
    told = "\n".join(unseen([scenario], agent("sqlite"), {"tools": {"pay"}}))
    assert "the model was not asked" in told
    assert "the tool never is declared" in told
    assert "nothing crossed to files" in told


def test_time_counts_where_something_is_waited_for(make_scenario):
    tools = {"pay": "keyed"}
    assert has_waits(make_scenario([PAY], {"wait": 1}, tools=tools))
    assert not has_waits(make_scenario([PAY], {"ask": "Sure?"}, tools=tools))


def campaign(name):
    return next(each for each in REVISION.campaigns() if each.id == name)


@pytest.mark.parametrize(
    ("name", "store", "unfit", "said"),
    [
        ("restart", "files", None, "stores redis, postgres only"),
        ("restart", "redis", None, ""),
        ("choice", "redis", None, "no other steps"),
        ("closure", "redis", "it is long-lived", "it is long-lived"),
        ("pairs", "redis", "it is long-lived", ""),
    ],
)
def test_a_campaign_is_left_out_for_a_reason_only(
    make_scenario, name, store, unfit, said
):
    scenario = make_scenario([PAY], tools={"pay": "keyed"})
    why = not_for(campaign(name), agent(store), scenario, unfit, can_vary=True)
    assert (said in why) if said else (why == "")


# --- the scenario of a campaign ------------------------------------------------------


def document(*turns):
    return {
        "name": "pay",
        "agent": "agent.yaml",
        "task": {"goal": "Pay"},
        "llm": {"script": [*turns, {"say": "Paid."}]},
        "tools": {"pay": "keyed"},
        "promises": ["effects"],
        "search": {"seed": 7, "strategy": "sample"},
    }


def test_a_campaign_keeps_the_workload_and_judges_every_promise():
    told = derived(
        document({"call": {"pay": {"order": "o-1"}}}),
        campaign("pairs"),
        "../agent.yaml",
        50,
        {"redis": "everysec"},
    )
    assert told["search"] == {
        "strategy": "sweep",
        "depth": 2,
        "seed": 7,
        "trials": 50,
    }
    assert told["agent"] == "../agent.yaml"
    assert told["durability"] == {"redis": "everysec"}
    assert (
        told["llm"]["script"]
        == document({"call": {"pay": {"order": "o-1"}}})["llm"]["script"]
    )
    assert "promises" not in told


@pytest.mark.parametrize("each", [*REVISION.campaigns()], ids=lambda each: each.id)
def test_no_campaign_takes_an_author_s_word_for_it_or_makes_it_easier(each):
    """With all fields listed as meaning nothing, any closure would end at once."""
    listed = {**document(), "volatile": ["*"]}
    listed["llm"]["fresh_ids"] = False
    told = derived(listed, each, "a", 1, {})
    assert "volatile" not in told
    assert told["llm"]["fresh_ids"] is True


def varied(*turns):
    told = derived(document(*turns), campaign("arguments"), "a", 1, {})
    return [turn["call"] for turn in told["llm"]["script"] if "call" in turn]


def test_other_arguments_keep_the_one_that_names_the_call():
    one, two = varied(
        {"call": {"pay": {"order": "o-1", "cents": 5}}},
        {"call": [{"pay": {"order": "o-2", "to": "Ann"}}, {"pay": {}}]},
    )
    assert one["or"] == [{"order": "o-1", "cents": 6}]
    assert two[0]["or"] == [{"order": "o-2", "to": "Ann (again)"}]
    assert "or" not in two[1]


def test_what_another_call_is_becomes_no_variant():
    """Or nobody could say which of the two calls was made."""
    one, two = varied({"call": {"pay": {"cents": 5}}}, {"call": {"pay": {"cents": 6}}})
    assert "or" not in one
    assert two["or"] == [{"cents": 7}]


def test_the_author_s_own_variants_are_taken_as_they_are_and_excuse_no_other_call():
    """One `or` in a script may not keep the calls beside it from being varied."""
    own = {"pay": {"cents": 5}, "or": [{"cents": 9}]}
    first, second = varied({"call": own}, {"call": {"pay": {"cents": 8}}})
    assert first == own
    assert "or" not in second  # with 9 it would be the first call
    assert varied({"call": own}, {"call": {"pay": {"cents": 1}}})[1]["or"]


def test_where_the_last_argument_cannot_be_another_one_before_it_is():
    steps = {"call": {"pay": {"order": "o-2", "cents": 6}}, "or": [{"pay": {}}]}
    first, _ = varied({"call": {"pay": {"order": "o-2", "cents": 5}}}, steps)
    assert first["or"] == [{"order": "o-2 (again)", "cents": 5}]


def test_the_calls_that_are_never_varied_are_named():
    """By turn and place, as in a finding."""
    calls = [{"pay": {"cents": 5}}, {"pay": {"flag": True}}]
    told = document({"ask": "Sure?"}, {"call": calls}, {"call": {"pay": {}}})
    assert [*unvaried(told)] == ["1.1 (pay)", "2.0 (pay)"]
    assert can_vary(told)
    assert not can_vary(document({"call": {"pay": {"flag": True}}}))


@pytest.mark.parametrize(
    ("others", "flawed"),
    [
        ([{"to": "Ann", "cents": 1}], True),
        ([{"cents": 1, "to": "Ann"}, {"to": "Ann", "cents": 1}], True),
        ([{"cents": 1, "to": "Ann"}, {"to": "Bob", "cents": 1}], False),
        ([{"cents": True, "to": "Ann"}], False),
    ],
)
def test_an_or_that_names_the_call_itself_is_refused(make_scenario, others, flawed):
    """It looks like other arguments, and would have none tried."""
    own = {"tool": "pay", "args": {"cents": 1, "to": "Ann"}, "or": others}
    turn = {"call": [{"tool": "pay", "args": {}}, own]}
    scenario = make_scenario(turn, tools={"pay": "keyed"})
    told = "\n".join(flaws(agent(), [scenario]))
    assert ("the `or` of call 0.1 (pay) of" in told) is flawed


# --- known failures ------------------------------------------------------------------


def known_file(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "known.yaml"
    path.write_text(text, encoding="utf-8")
    return path


ENTRY = f"- {{requirement: {TWICE}, scenario: pay, reason: no keys yet}}\n"


def listed(tmp_path, text=ENTRY):
    return load_known(known_file(tmp_path, text), REVISION, SCENARIOS)


def test_a_known_failure_that_shows_is_known_and_still_holds_up_its_level(tmp_path):
    known, evidence = listed(tmp_path), shown(broken("kill"))
    found = stands(evidence)
    assert found.level == "L1"
    assert all(is_known(stop, known) for stop in found.stops)
    assert passed(known, REVISION, evidence) == ()


def test_a_known_failure_excuses_no_other_scenario_and_no_doubt(tmp_path):
    known = listed(tmp_path)
    elsewhere = Stop("L2", "book", "kill", "Twice.", TWICE)
    doubt = Stop("L2", "pay", "kill", "it was not run")
    assert not is_known(elsewhere, known)
    assert not is_known(doubt, known)


def test_a_known_failure_that_passes_is_told(tmp_path):
    known = listed(tmp_path)
    assert passed(known, REVISION, shown()) == known


def test_what_was_not_tried_did_not_pass(tmp_path):
    known = listed(tmp_path)
    few = tuple(o for o in shown().outcomes if o.campaign in ("clean", "kill"))
    assert passed(known, REVISION, Evidence(SCENARIOS, few)) == ()
    doubtful = Outcome("pay", "wording", doubts=("nothing fired",))
    assert passed(known, REVISION, shown(doubtful)) == ()


def test_a_known_failure_of_a_later_level_waits_for_that_level(tmp_path):
    known = listed(tmp_path, ENTRY.replace("}", ", level: L4}"))
    upto = tuple(o for o in shown().outcomes if o.campaign != "pause")
    assert passed(known, REVISION, Evidence(SCENARIOS, upto)) == ()
    assert passed(known, REVISION, shown()) == known


def test_a_known_failure_of_a_later_level_excuses_nothing_below(tmp_path):
    """Broken by a plain kill it is new; and what is listed has to show at its level."""
    later = listed(tmp_path, ENTRY.replace("}", ", level: L4}"))
    (found,) = stands(shown(broken("kill"))).stops
    assert not is_known(found, later)
    (paused,) = stands(shown(broken("pause"))).stops
    assert is_known(paused, later)
    assert passed(later, REVISION, shown(broken("kill"))) == later
    tags = stands(shown(broken("powerloss")), tags=(tag("powerloss"),)).tag_stops
    assert not is_known(tags[0], later)
    assert is_known(tags[0], listed(tmp_path))


def test_a_known_failure_may_be_one_of_several_of_its_kind(tmp_path):
    """Told apart by their subject; another one is new."""
    first = listed(tmp_path, ENTRY.replace("}", ', subject: "1.0"}'))
    one, two = (
        Stop("L2", "pay", "kill", "Twice.", TWICE, subject=subject)
        for subject in ("1.0", "2.0")
    )
    assert is_known(one, first)
    assert not is_known(two, first)
    assert is_known(two, listed(tmp_path))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (ENTRY.replace("}", ", subject: ''}"), "`subject`"),
        (ENTRY.replace("}", ", subject: 2.0}"), "in quotes"),
        *(
            (ENTRY.replace("}", f", level: {level}}}"), "expected one of L0, L1")
            for level in ("", "4.0", "4", "true", "[L4]", "{a: b}", "L7")
        ),
        (ENTRY.replace("pay", "[pay]"), "one of pay, book"),
        (ENTRY.replace(TWICE, "{a: b}"), "expected one of"),
        ("requirement: x\n", "a list of known failures"),
        (ENTRY.replace("once-across", "once-acros"), "did you mean"),
        (ENTRY.replace("pay", "pya"), "one of pay, book"),
        (ENTRY.replace("no keys yet", "''"), "`reason`"),
        (ENTRY.replace("reason:", "why:"), "one of requirement, scenario"),
    ],
)
def test_a_wrong_entry_is_told_with_its_line(tmp_path, text, said):
    with pytest.raises(InputError) as problem:
        listed(tmp_path, text)
    assert said in str(problem.value)
    assert "known.yaml:1:" in str(problem.value)


def test_an_unknown_requirement_is_a_must():
    assert REVISION.severity("of/no-revision") is Severity.MUST


# --- what a campaign's report says ---------------------------------------------------


def report(**more):
    fields = {
        "chaoskit": "0",
        "scenario": "pay",
        "scenario_path": "out/pay.yaml",
        "agent": "tiny",
        "store": "redis",
        "seed": 0,
        "strategy": "sweep",
        "overrides": ("--agent", "a.yaml"),
    }
    return Report(**{**fields, **more})


def test_a_finding_keeps_its_way_to_replay_and_no_run_s_own_id():
    """Or the certificate would differ each time."""
    finding = Finding("effects", TWICE, "run-0a1b2c3d paid twice.", 1, 2)
    schedule = Schedule.parse("kill@0:tools.pay[o-1]#1:after")
    found = outcome(
        "pay", campaign("kill"), report(findings=(Shown(finding, schedule, "0007"),))
    )
    (breach,) = found.breaches
    assert breach.message == "{run} paid twice."
    assert breach.replay == (
        f"chaoskit replay out/pay.yaml '{schedule}' --agent a.yaml"
    )


def test_a_crossing_that_was_not_struck_is_a_doubt():
    missed = Crossings(3, 2, ("0:llm.chat#1:after",))
    (doubt,) = outcome("pay", campaign("kill"), report(crossings=missed)).doubts
    assert "1 crossings were not hit, such as 0:llm.chat#1:after" in doubt
    assert outcome("pay", campaign("treadmill"), report(crossings=missed)).doubts == ()


def test_only_a_closure_may_end_at_its_depth():
    """And only by that: whatever else is in doubt about it stays."""
    endless = report(endless="it did not end", doubts=("it did not end", "more"))
    assert outcome("pay", campaign("closure"), endless).doubts == ("more",)
    assert len(outcome("pay", campaign("pairs"), endless).doubts) == 2


WARNED = Shown(
    Finding("effects", "effects/once-beyond-its-reach", "Twice.", 1, 2),
    Schedule.parse("kill@0:tools.pay[o-1]#1:after"),
    "0007",
)


@pytest.mark.parametrize(
    ("more", "whole"),
    [
        ({}, True),
        ({"doubts": ("2 more schedules were due",)}, False),
        ({"endless": "it did not end", "doubts": ("it did not end",)}, False),
        ({"findings": (WARNED,)}, False),
        ({"notes": (f"3 {NOT_FOLLOWED}",)}, False),
        ({"states": None}, False),
    ],
)
def test_a_closure_is_whole_if_it_left_nothing_out(more, whole):
    told = report(**{"states": 9, **more})
    assert is_whole(outcome("pay", campaign("chains"), told), told) is whole


@pytest.mark.parametrize(
    ("name", "depth", "closed"),
    [("closure", 9, True), ("chains", 1, True), ("chains", 2, False)],
)
def test_a_closure_that_was_to_go_no_deeper_is_not_called_closed(name, depth, closed):
    """Beyond its last kill there may be more; it says how deep it is whole."""
    told = report(states=9, depth=depth)
    assert Ran("pay", campaign(name), told, told.verdict).is_closed is closed


def test_fault_free_runs_need_no_fault():
    clean = report(doubts=(NOTHING_STRUCK, "it does not repeat"))
    assert outcome("pay", campaign("clean"), clean).doubts == ("it does not repeat",)
    assert len(outcome("pay", campaign("kill"), clean).doubts) == 2


# --- what was left in a campaign's folder --------------------------------------------


def test_a_finding_keeps_what_it_is_about():
    finding = Finding("effects", TWICE, "Twice.", 1, 2, subject="run-0a1b2c3d 1.0")
    schedule = Schedule.parse("kill@0:tools.pay[o-1]#1:after")
    told = report(findings=(Shown(finding, schedule, "0007"),))
    assert outcome("pay", campaign("kill"), told).breaches[0].subject == "{run} 1.0"


def leave(out: Path, trial: str, schedule: str, *events) -> None:
    folder = out / "trials" / trial
    folder.mkdir(parents=True)
    lines = (to_line(event) + "\n" for event in events)
    (folder / "history.jsonl").write_text("".join(lines))
    with (out / "trials.jsonl").open("a") as journal:
        journal.write(json.dumps({"trial": trial, "schedule": schedule}) + "\n")


def test_a_kill_chases_what_struck(told, tmp_path):
    """At the crossing that came next, whichever life had it; not at a heartbeat."""
    struck = told().cross("redis", "set", "a").struck(FaultKind.ROLLBACK)
    schedule = str(struck.trial().schedule)
    story = struck.cross("redis", "pexpire", "b").cross("llm", "chat").done()
    leave(tmp_path, "0001", schedule, *story.trial().history)
    leave(tmp_path, "0002", "", *told().done().trial().history)
    (found,) = chased(tmp_path, ["redis.pexpire[b]"])
    assert str(found) == f"{schedule} + kill@0:llm.chat#1:before"


def test_the_kills_of_a_closure_are_the_crossings_of_its_recoveries(told, tmp_path):
    """Not those that led to where each began; and a beat counts once."""
    story = told().cross("redis", "set", "a").killed(cause="restored").resume()
    beats = story.cross("redis", "pexpire", "b").cross("redis", "pexpire", "b")
    trial = beats.cross("llm", "chat").done().trial()
    leave(tmp_path, "0003", str(trial.schedule), *trial.history)
    assert kills_in(tmp_path, []) == 6
    assert kills_in(tmp_path, ["redis.pexpire[b]"]) == 4


def test_a_pause_counts_where_somebody_took_over(told, tmp_path):
    """Not where all who were to do so died, nor where nobody was started at all."""
    paused = told().cross("redis", "set", "a").struck(FaultKind.PAUSE)
    schedule = str(paused.trial().schedule)
    alone = told().cross("redis", "set", "a").struck(FaultKind.PAUSE)
    leave(
        tmp_path / "alone", "0001", schedule, *alone.continued().done().trial().history
    )
    assert takeovers(tmp_path / "alone") == 0
    over = paused.resume().cross("redis", "set", "a").done().continued()
    leave(tmp_path / "over", "0001", schedule, *over.trial().history)
    assert takeovers(tmp_path / "over") == 1


def test_a_kill_lands_between_all_pieces_of_a_streamed_reply(told):
    story = told().cross("redis", "set", "a").cross("llm", "chat")
    events = list(story.done().trial().history)
    last = max(
        n for n, e in enumerate(events) if getattr(e, "address", "")[2:5] == "llm"
    )
    events[last] = events[last].model_copy(update={"pieces": 3})
    trial = Trial("0001", "", Schedule(), tuple(events))
    assert [str(each) for each in inside_replies(trial)] == [
        "kill@0:llm.chat#1:part:1",
        "kill@0:llm.chat#1:part:2",
    ]
    assert set(operations(trial)) == {("redis", "set"), ("llm", "chat")}
