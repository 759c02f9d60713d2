"""Reports: the fields of section 8 of the contract, and a text for people."""

import json
import shlex
from dataclasses import replace

import pytest

from chaoskit.model.report import CONTRACT_VERSION, Crossings, Repaid, Report, Shown
from chaoskit.model.schedule import Schedule
from chaoskit.model.verdict import Finding, Severity, Verdict
from chaoskit.report import as_json, as_text

ONE = Schedule.parse("kill@0:tools.pay[o-1]#1:after")
TWO = ONE.then(Schedule.parse("kill@1:llm.chat#1:before").faults[0])


def shown(requirement="effects/once-across-kill", schedule=ONE, **more):
    again = more.pop("again", True)
    promise = requirement.partition("/")[0]
    finding = Finding(promise, requirement, "Twice.", 1, 2, events=(3, 8), **more)
    return Shown(finding, schedule, "0007", again)


CLEAN = Report(
    chaoskit="0.1.0",
    scenario="book-flight",
    scenario_path="my scenarios/book flight.yaml",
    agent="reference-agent 1.4.0",
    store="redis",
    seed=7,
    strategy="sweep",
    trials=42,
    kills=40,
    crossings=Crossings(20, 20),
    wrecks=9,
    depth=1,
    seconds=12.345,
    out="out",
)
FAILED = replace(CLEAN, findings=(shown(),))


def as_data(report):
    return json.loads(as_json(report))


# --- report.json ---------------------------------------------------------------------


def test_the_fields_of_the_contract():
    data = as_data(FAILED)
    assert (
        data
        | {
            "chaoskit": "0.1.0",
            "contract": CONTRACT_VERSION,
            "scenario": "book-flight",
            "agent": "reference-agent 1.4.0",
            "store": "redis",
            "seed": 7,
            "strategy": "sweep",
            "verdict": "fail",
            "trials": 42,
            "kills": 40,
            "states": None,
            "seconds": 12.345,
        }
        == data
    )
    assert {"seen", "hit", "missed"} <= data["crossings"].keys()
    assert shlex.split(data["replay"])[:2] == ["chaoskit", "replay"]


def test_the_fields_of_a_finding():
    (finding,) = as_data(FAILED)["findings"]
    assert (
        finding
        | {
            "promise": "effects",
            "requirement": "effects/once-across-kill",
            "severity": "must",
            "message": "Twice.",
            "expected": 1,
            "observed": 2,
            "schedule": str(ONE),
            "trial": "0007",
            "events": [3, 8],
        }
        == finding
    )


def test_a_run_without_findings_has_nothing_to_replay():
    data = as_data(CLEAN)
    assert (data["verdict"], data["findings"], data["replay"]) == ("pass", [], None)


def test_tokens_paid_again_are_told_for_each_kill():
    report = replace(CLEAN, tokens_repaid=Repaid(120, 4, 0.0, 12.5, 60.0))
    data = as_data(report)
    assert data["tokens_repaid"] == 120
    assert data["tokens_repaid_per_kill"] == {"min": 0.0, "median": 12.5, "max": 60.0}
    assert "120 paid again" in as_text(report)
    assert "12.5 for each kill (median, 0 to 60)" in as_text(report)


def test_without_a_kill_there_is_no_price_of_one():
    report = replace(CLEAN, tokens_repaid=Repaid(120))
    data = as_data(report)
    assert (data["tokens_repaid"], data["tokens_repaid_per_kill"]) == (120, None)
    assert "120 paid again" in as_text(report)
    assert "for each kill" not in as_text(report)
    assert "paid again" not in as_text(CLEAN)


def test_crossings_that_were_missed_are_counted_and_named():
    report = replace(CLEAN, crossings=Crossings(2, 1, ("0:llm.chat#1:after",)))
    crossings = as_data(report)["crossings"]
    assert crossings["missed"] == 1
    assert crossings["missed_at"] == ["0:llm.chat#1:after"]


def test_what_a_finding_follows_from_is_named():
    report = replace(CLEAN, findings=(shown(follows="progress/not-again"),))
    assert as_data(report)["findings"][0]["follows"] == "progress/not-again"
    assert "follows from progress/not-again" in as_text(report)


def test_the_json_is_one_text_with_an_end_of_line():
    report = replace(FAILED, doubts=("\N{LATIN SMALL LETTER E WITH ACUTE}",))
    text = as_json(report)
    assert text.endswith("}\n")
    assert json.loads(text)["doubts"] == list(report.doubts)


def test_what_cannot_be_written_in_utf8_is_escaped():
    """An agent may log half a surrogate pair."""
    report = replace(CLEAN, doubts=("\ud83d",))
    as_json(report).encode()
    assert as_data(report)["doubts"] == ["\ud83d"]
    as_text(report).encode()


# --- what adds up --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("findings", "doubts", "verdict"),
    [
        ((), (), Verdict.PASS),
        ((), ("why",), Verdict.INCONCLUSIVE),
        ((shown(),), ("why",), Verdict.FAIL),
        ((shown(severity=Severity.SHOULD),), (), Verdict.PASS),
        ((shown(severity=Severity.SHOULD),), ("why",), Verdict.INCONCLUSIVE),
    ],
)
def test_the_verdict(findings, doubts, verdict):
    report = replace(CLEAN, findings=findings, doubts=doubts)
    assert report.verdict is verdict
    assert as_data(report)["verdict"] == str(verdict)
    assert as_text(report).startswith(f"book-flight: {str(verdict).upper()}\n")


def test_findings_are_in_order_of_weight_then_of_their_schedules():
    should = shown("a/a", severity=Severity.SHOULD)
    longer, later, first = shown("a/a", TWO), shown("z/z"), shown("b/b")
    assert sorted([should, longer, later, first], key=lambda s: s.order) == [
        first,
        later,
        longer,
        should,
    ]


def test_the_replay_command_can_be_typed_as_it_stands():
    words = shlex.split(replace(FAILED, findings=(shown(schedule=TWO),)).replay)
    assert words == ["chaoskit", "replay", "my scenarios/book flight.yaml", str(TWO)]


def test_the_replay_command_keeps_what_the_command_line_changed():
    report = replace(FAILED, overrides=("--agent", "my agent.yaml"))
    assert shlex.split(report.replay)[4:] == ["--agent", "my agent.yaml"]


def test_the_fault_free_run_can_be_replayed():
    assert shlex.split(CLEAN.replay_of(Schedule()))[-1] == ""


# --- the text ------------------------------------------------------------------------


def test_the_text_tells_what_was_tried():
    text = as_text(CLEAN)
    assert "reference-agent 1.4.0, store redis" in text
    assert "sweep, seed 7: 42 trials, 40 kills that left 9 different worlds" in text
    assert "20 edges in the fault-free run, 20 of them hit" in text
    assert text.endswith("Everything is in out\n")


def test_the_text_tells_of_closure():
    report = replace(CLEAN, strategy="closure", states=27, depth=3, wrecks=None)
    assert "27 crash states, up to 3 kills deep" in as_text(report)
    assert as_data(report)["states"] == 27


def test_the_text_tells_each_story_and_how_to_see_it_again():
    text = as_text(FAILED)
    assert "1. effects/once-across-kill\n   Twice.\n" in text
    assert "expected: 1; observed: 2" in text
    assert f"schedule: {ONE}" in text
    assert "trial:    out/trials/0007" in text
    assert f"replay:   {FAILED.replay}" in text


def test_a_warning_is_told_as_one():
    """A run that passes may have findings that only warn."""
    text = as_text(replace(CLEAN, findings=(shown(severity=Severity.SHOULD),)))
    assert "1. effects/once-across-kill (a warning)\n" in text
    assert "warning" not in as_text(FAILED)


def test_a_finding_of_the_fault_free_run_says_so():
    text = as_text(replace(CLEAN, findings=(shown(schedule=Schedule()),)))
    assert "schedule: none: the fault-free run" in text


def test_a_finding_that_did_not_come_again_says_so():
    report = replace(CLEAN, findings=(shown(again=False),))
    assert "did not show it" in as_text(report)
    assert as_data(report)["findings"][0]["shown_again"] is False
    assert "did not show it" not in as_text(FAILED)


def test_doubts_are_given_in_words():
    text = as_text(replace(CLEAN, doubts=("it does not repeat",)))
    assert "proves nothing yet:\n  - it does not repeat" in text
    text = as_text(replace(FAILED, doubts=("it does not repeat",)))
    assert "Besides, this remains open:\n  - it does not repeat" in text


def test_notes_and_periodic_operations_are_told():
    report = replace(CLEAN, notes=("no log",), periodic=("redis.expire[lock]",))
    assert "note       no log" in as_text(report)
    assert "periodic   redis.expire[lock]" in as_text(report)
    assert as_data(report)["notes"] == ["no log"]
    assert as_data(report)["periodic"] == ["redis.expire[lock]"]


def test_fields_that_mean_nothing_are_told_with_whose_word_that_is():
    """What was learned from two runs, and what the scenario lists."""
    told = replace(CLEAN, volatile=("redis:a",), volatile_listed=("*.takes",))
    assert "  volatile   redis:a\n" in as_text(told)
    assert "  volatile   *.takes (so the scenario says)\n" in as_text(told)
    assert as_data(told)["volatile_listed"] == ["*.takes"]


def test_a_sweep_names_what_it_missed_up_to_a_limit():
    missed = tuple(f"0:llm.chat#{n}:after" for n in range(1, 13))
    text = as_text(replace(CLEAN, crossings=Crossings(12, 0, missed)))
    assert "not hit: 0:llm.chat#10:after" in text
    assert "not hit: and 2 more" in text
    assert "0:llm.chat#11:after" not in text


def test_other_strategies_do_not_mean_to_hit_everything():
    crossings = Crossings(2, 1, ("0:llm.chat#1:after",))
    text = as_text(replace(CLEAN, strategy="sample", crossings=crossings))
    assert "not hit" not in text
