"""What a campaign saves is enough to judge it again: byte for byte, and by data alone.

Whatever agent, store, strategy and faults: the verdict rests on what was written down.
"""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from chaoskit.campaign.again import as_text, judge_folder, judged
from chaoskit.campaign.reading import opened
from chaoskit.campaign.saved import campaign_text
from chaoskit.loading import load_scenario
from chaoskit.model.scenario import PromiseId
from chaoskit.model.verdict import Verdict

SCENARIOS = Path(__file__).parents[2] / "scenarios"
CODES = {0: Verdict.PASS, 1: Verdict.FAIL, 3: Verdict.INCONCLUSIVE}

FORKED = ("--agent", "../reference_agent/agent_fork.yaml")
CAMPAIGNS = {
    "published note after": (
        *("published_note_after", "--agent", "published/note_after_run_fork.yaml"),
    ),
    "published check act mark": (
        *("published_check_act_mark", "--agent", "published/check_act_mark_fork.yaml"),
        *("--trials", "16"),
    ),
    "the reference agent": ("book_flight", *FORKED, "--trials", "6"),
    "a gate": ("approve_payment", *FORKED, "--trials", "8"),
    "mail": ("send_mail_smtp", "--trials", "8"),
    "postgres": ("kept", "--agent", "kept/postgres.yaml", "--trials", "12"),
    "closure": ("kept", "--strategy", "closure", "--trials", "40"),
    "lost power": (
        *("kept", "--agent", "kept/unsynced.yaml", "--fault", "powerloss"),
        *("--trials", "20"),
    ),
    "other faults": (
        *("book_flight", *FORKED, "--trials", "6"),
        *("--fault", "pause", "--fault", "error(429)"),
    ),
}


def same(outcome):
    return outcome.trials and all(each.is_same for each in outcome.trials)


@pytest.mark.parametrize("name", CAMPAIGNS)
def test_each_verdict_is_the_same_byte_for_byte(chaoskit, name):
    """And the campaign's own; judged twice, the same is printed twice."""
    scenario, *words = CAMPAIGNS[name]
    words = [str(SCENARIOS / w) if w.endswith(".yaml") else w for w in words]
    result = chaoskit("run", SCENARIOS / f"{scenario}.yaml", *words)
    outcome = judge_folder(result.out)
    assert same(outcome), as_text(outcome)
    assert outcome.verdict is CODES[result.code]
    assert len(outcome.trials) == result.report["trials"]
    assert set(result.report["doubts"]) == set(outcome.doubts)
    assert as_text(outcome) == as_text(judge_folder(result.out))


def test_a_long_lived_agent_too(write_fleet, chaoskit):
    result = chaoskit("run", write_fleet(), "--trials", "6")
    outcome = judge_folder(result.out)
    assert same(outcome), as_text(outcome)
    assert outcome.verdict is CODES[result.code]


def test_what_did_not_come_again_stays_a_doubt(write_scenario, chaoskit):
    """Trials show it, and the campaign had left it out: so does judging again."""
    limits = {"life_seconds": 1, "trial_seconds": 2}
    schedule = "kill@0:tools.pay[o-1]#1:after"
    result = chaoskit("replay", write_scenario("hang", limits=limits), schedule)
    outcome = judge_folder(result.out)
    assert same(outcome), as_text(outcome)
    assert outcome.verdict is CODES[result.code]


def test_one_check_can_be_turned_off(write_scenario, chaoskit):
    """By a pure function: the self-test shows with it what each check is good for."""
    schedule = "kill@0:tools.pay[o-1]#1:after"
    result = chaoskit("replay", write_scenario("no-key"), schedule)
    assert result.code == 1
    others = [each for each in PromiseId if each is not PromiseId.EFFECTS]
    assert judge_folder(result.out).verdict is Verdict.FAIL
    assert judge_folder(result.out, others).verdict is Verdict.PASS
    with opened(result.out) as campaign:
        trial = campaign.trial("0003")
        assert judged(campaign, trial).verdict is Verdict.FAIL
        assert judged(campaign, trial, others).verdict is Verdict.PASS
        gone = replace(trial.trial, history=trial.trial.history[:-1])
        again = judged(campaign, replace(trial, trial=gone))
    assert again != judged(campaign, trial)


def test_a_harness_that_was_killed_halfway_leaves_trials_to_judge(
    write_scenario, tmp_path
):
    """SIGKILL, at any moment: what was judged is whole, and the rest is named."""
    out = tmp_path / "out"
    path = write_scenario()
    command = [sys.executable, "-m", "chaoskit", "run", str(path), "--out", str(out)]
    command += ["--strategy", "sample", "--trials", "5000"]  # not over before it dies
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        for line in process.stderr:
            if line.startswith("sample"):
                break
        journal = out / "trials.jsonl"
        while len(journal.read_text().splitlines()) < 4:
            os.sched_yield()
        process.send_signal(signal.SIGKILL)
    outcome = judge_folder(out)
    assert len(outcome.trials) >= 4
    assert same(outcome), as_text(outcome)
    assert outcome.verdict is Verdict.INCONCLUSIVE
    assert "the campaign was cut short" in as_text(outcome)
    judged_or_cut = {e.before.trial.name for e in outcome.trials} | {*outcome.cut}
    assert judged_or_cut == set(os.listdir(out / "trials"))


@pytest.mark.parametrize(
    "path", sorted(SCENARIOS.glob("*.yaml")), ids=lambda path: path.stem
)
def test_scenario_and_manifest_are_read_back_as_they_were(path, tmp_path):
    """But for the values of `env`, which may be secrets and decide nothing."""
    loaded = load_scenario(path)
    env = {"API_TOKEN": "correct-horse-battery"}
    manifest = loaded.manifest.model_copy(update={"env": env})
    text = campaign_text(loaded.scenario, manifest)
    assert "correct-horse" not in text
    (tmp_path / "campaign.json").write_text(text)
    with opened(tmp_path) as campaign:
        assert campaign.file.scenario == loaded.scenario
        blotted = campaign.file.manifest.model_copy(update={"env": env})
        assert blotted == manifest


def test_what_is_saved_says_what_was_judged(write_scenario, chaoskit):
    """Plain data with names that a person can read."""
    schedule = "kill@0:tools.pay[o-1]#1:after"
    result = chaoskit("replay", write_scenario(), schedule)
    folder = result.out / "trials" / "0003"
    trial = json.loads((folder / "trial.json").read_text())
    assert trial["name"] == "0003"
    assert trial["schedule"] == schedule
    assert (trial["unfired"], trial["golden"]) == ([], True)
    verdict = json.loads((folder / "verdict.json").read_text())
    assert verdict == {"verdict": "pass", "findings": [], "doubts": [], "notes": []}
    golden = json.loads((result.out / "campaign.json").read_text())["golden"]
    assert golden["answer"] == "Paid."
