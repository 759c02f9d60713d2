"""`chaoskit judge`: what it prints, its exit codes, and folders that are not sound."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from chaoskit.campaign.saved import thinned_text
from chaoskit.cli import run_words

ROOT = Path(__file__).parents[2]
AGENT = ROOT / "scenarios" / "published" / "note_after_run_fork.yaml"
SHOWING = "kill@0:tools.hold_seat[o-1]#1:after"


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A real campaign of three trials: two without a fault, and one that shows it."""
    out = tmp_path_factory.mktemp("judge") / "out"
    scenario = ROOT / "scenarios" / "published_note_after.yaml"
    words = ("replay", str(scenario), SHOWING, "--agent", str(AGENT))
    command = [sys.executable, "-m", "chaoskit", *words, "--out", str(out)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert done.returncode == 1, done.stderr
    assert (out / "report.json").exists(), done.stderr
    return out


@pytest.fixture
def out(ran, tmp_path):
    """A copy of it that may be spoiled."""
    return Path(shutil.copytree(ran, tmp_path / "out"))


@pytest.fixture
def judge(capsys):
    def call(*words):
        code = run_words(["judge", *map(str, words)])
        said = capsys.readouterr()
        assert "Traceback" not in said.err
        return code, said.out, said.err

    return call


def edit(path, *change):
    text = path.read_text()
    assert change[0] in text
    path.write_text(text.replace(*change, 1))


TRIAL = "trials/0003"


def test_a_campaign_is_judged_as_it_was(judge, out):
    code, said, _ = judge(out)
    assert code == 1
    assert said.startswith("published-note-after: FAIL, judged again\n")
    assert "3 of 3 are the same, byte for byte" in said
    assert "effects/once-across-kill" in said
    assert "differ" not in said


@pytest.mark.parametrize(("name", "code"), [("baseline-1", 0), ("0003", 1)])
def test_one_trial_is_judged_by_itself(judge, out, name, code, monkeypatch):
    """By the campaign that it lies in, from wherever it is named."""
    found = judge(out / "trials" / name)
    assert found[0] == code
    assert "1 of 1 are the same" in found[1]
    monkeypatch.chdir(out / "trials" / name)
    assert judge(".")[:2] == found[:2]


def test_some_promises_only(judge, out):
    """Without the one that is broken nothing is found; with it, the same again."""
    assert judge(out, "--promise", "progress", "--promise", "log")[0] == 0
    assert judge(out, "--promise", "effects")[0] == 1
    assert judge(out, "--promise", "honesty")[0] == 2


def test_a_verdict_that_is_no_longer_given_is_told(judge, out):
    """Which trial, what it was and what it is; the saved one stays as it is."""
    edit(out / TRIAL / "verdict.json", '"verdict": "fail"', '"verdict": "pass"')
    before = (out / TRIAL / "verdict.json").read_bytes()
    code, said, _ = judge(out)
    assert code == 1
    assert "2 of 3 are the same" in said
    assert "trial 0003 is judged otherwise" in said
    assert '-  "verdict": "pass",' in said
    assert '+  "verdict": "fail",' in said
    assert (out / TRIAL / "verdict.json").read_bytes() == before


def test_a_finding_that_is_new_fails_a_campaign_that_had_passed(judge, out):
    """As where today's checks see more than those of then."""
    clean = {"verdict": "pass", "findings": [], "doubts": [], "notes": []}
    (out / TRIAL / "verdict.json").write_text(json.dumps(clean))
    report = json.loads((out / "report.json").read_text())
    report |= {"verdict": "pass", "findings": []}
    (out / "report.json").write_text(json.dumps(report))
    code, said, _ = judge(out)
    assert code == 1
    assert "verdict    was pass, is fail" in said


def rewrite(out, **changes):
    """The report as somebody has edited it."""
    report = json.loads((out / "report.json").read_text())
    (out / "report.json").write_text(json.dumps(report | changes))


NOT_AGAIN = (
    "effects/once-across-kill was broken at a time limit, and running the scenario "
    "once more did not show it again"
)


def test_a_report_that_does_not_tell_of_a_finding_takes_none_away(judge, out):
    """The trials show it, whatever the report was made to say."""
    rewrite(out, verdict="pass", findings=[], doubts=[])
    code, said, _ = judge(out)
    assert code == 1
    assert "1. effects/once-across-kill" in said


def test_a_finding_for_which_a_doubt_stands_is_left_out_again(judge, out):
    """As where the campaign could not show it a second time: that is no pass."""
    rewrite(out, verdict="inconclusive", findings=[], doubts=[NOT_AGAIN])
    code, said, _ = judge(out)
    assert code == 3
    assert "did not show it again" in said
    rewrite(out, doubts=[NOT_AGAIN.replace("once-across", "none-lost")])
    assert judge(out)[0] == 1


def test_what_only_a_second_run_shows_is_a_doubt(judge, out):
    """The campaign looked for something else there; a pass it is not."""
    (out / TRIAL).rename(out / "trials" / "confirm-0003")
    edit(out / "trials/confirm-0003/trial.json", '"0003"', '"confirm-0003"')
    rewrite(out, verdict="pass", findings=[], doubts=[])
    code, said, _ = judge(out)
    assert code == 3
    assert "trial confirm-0003 shows effects/once-across-kill" in said


def test_a_trial_s_own_doubt_stays_whatever_the_report_says(judge, out):
    place = out / "trials" / "baseline-1"
    edit(
        place / "trial.json", '"unfired": []', '"unfired": ["kill@0:llm.chat#9:after"]'
    )
    doubts = '"doubts": ["kill@0:llm.chat#9:after was scheduled and never fired"]'
    edit(place / "verdict.json", '"doubts": []', doubts)
    assert judge(out, "--promise", "progress")[0] == 3


def without(history, kind):
    """The history as if there had been no such event."""
    events = map(json.loads, history.read_text().splitlines())
    kept = [event for event in events if event["kind"] != kind]
    lines = (json.dumps(each | {"seq": seq}) for seq, each in enumerate(kept))
    history.write_text("".join(f"{line}\n" for line in lines))


@pytest.mark.parametrize("spoil", ["history", "all of it", "schedule"])
def test_a_fault_that_never_struck_earns_no_pass(judge, out, spoil):
    """Whatever `unfired` says: what struck is in the history."""
    if spoil == "history":
        without(out / TRIAL / "history.jsonl", "fault")
    elif spoil == "all of it":
        shutil.copy(out / "trials/baseline-1/history.jsonl", out / TRIAL)
    else:
        edit(out / TRIAL / "trial.json", "#1:after", "#2:after")
    for folder in (out, out / TRIAL):
        code, said, _ = judge(folder, "--promise", "answer")
        assert code == 3
        assert "trial 0003 does not fit together: kill@0:tools.hold_seat[o-1]" in said


def test_doubts_of_the_campaign_itself_stay(judge, out):
    report = json.loads((out / "report.json").read_text())
    report |= {"doubts": ["the search was short"], "findings": []}
    (out / "report.json").write_text(json.dumps(report))
    code, said, _ = judge(out, "--promise", "progress")
    assert code == 3
    assert "- the search was short" in said


def test_verdicts_can_be_left_elsewhere(judge, out, tmp_path):
    assert judge(out, "--out", tmp_path / "now")[0] == 1
    for path in (tmp_path / "now").rglob("verdict.json"):
        name = path.relative_to(tmp_path / "now")
        assert path.read_bytes() == (out / name).read_bytes()
    assert len(list((tmp_path / "now").rglob("verdict.json"))) == 3


@pytest.mark.parametrize("where", ["", "again", ".."])
def test_what_was_saved_is_not_written_over(judge, out, where):
    code, _, errors = judge(out, "--out", out / where)
    assert code == 2
    assert "hold one another" in errors
    assert (out / TRIAL / "verdict.json").exists()


def test_a_killed_harness_leaves_what_can_be_judged(judge, out):
    """The trial that it had not judged is named, and proves nothing."""
    (out / "report.json").unlink()
    (out / TRIAL / "trial.json").unlink()
    history = out / TRIAL / "history.jsonl"
    history.write_text(history.read_text()[:-20])
    code, said, _ = judge(out)
    assert code == 3
    assert "2 of 2 are the same" in said
    assert "the campaign was cut short: it left no report" in said
    assert "trial 0003 was cut short before it was judged" in said


def test_a_trial_that_is_gone_is_missed(judge, out):
    shutil.rmtree(out / TRIAL)
    code, said, _ = judge(out)
    assert code == 3
    assert "the report counts 3 trials, and 2 are here" in said


@pytest.mark.parametrize("more", [0, 1])
def test_what_a_certificate_has_removed_is_told_and_proves_nothing(judge, out, more):
    """Plainly, so that nobody takes it for damage; what else is gone is missed too."""
    for name in ("baseline-2", "0003")[: 1 + more]:
        shutil.rmtree(out / "trials" / name)
    (out / "thinned.json").write_text(thinned_text(1))
    _, said, _ = judge(out)
    assert "of 3 trials only those were kept that show something" in said
    assert "nothing can be said now about the other 1;" in said
    assert ("the report counts 3 trials" in said) is bool(more)


def test_a_passed_campaign_that_was_thinned_out_is_no_pass(judge, out):
    """All that it has left shows nothing, and the rest is not there to be judged."""
    shutil.rmtree(out / TRIAL)
    report = json.loads((out / "report.json").read_text())
    report |= {"verdict": "pass", "findings": []}
    (out / "report.json").write_text(json.dumps(report))
    (out / "thinned.json").write_text(thinned_text(1))
    assert judge(out)[0] == 3


# --- damage ---------------------------------------------------------------------------


def cut(path):
    path.write_text(path.read_text()[:-20])


DAMAGES = {
    "cut off": ("history.jsonl", cut, "it was cut off"),
    "a line gone": (
        "history.jsonl",
        lambda p: p.write_text("".join(p.read_text().splitlines(keepends=True)[1:])),
        "history.jsonl:1: $: found seq 1",
    ),
    "no JSON": ("history.jsonl", lambda p: p.write_text("?\n"), "history.jsonl:1:"),
    "no address": (
        "history.jsonl",
        lambda p: edit(p, '"address":"0:llm.chat#1:before"', '"address":"x"'),
        "is not an address",
    ),
    "no text": ("history.jsonl", lambda p: p.write_bytes(b"\n\xff"), ":2: $: found"),
    "empty": ("history.jsonl", lambda p: p.write_text(""), "it was cut off"),
    "gone": ("history.jsonl", Path.unlink, "no such file"),
    "deep": ("verdict.json", lambda p: p.write_text("[" * 10**5), "verdict.json:1:"),
    "a wrong name": (
        "trial.json",
        lambda p: edit(p, '"0003"', '"../../x"'),
        "the folder's name, 0003",
    ),
    "no schedule": ("trial.json", lambda p: edit(p, "kill@", "bribe@"), "trial.json"),
    "an unknown key": (
        "trial.json",
        lambda p: edit(p, '"golden"', '"extra": 1,\n"golden"'),
        "trial.json:6: $.extra: found 1",
    ),
}


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_trial_is_told_with_its_place(judge, out, damage):
    name, spoil, told = DAMAGES[damage]
    spoil(out / TRIAL / name)
    code, _, errors = judge(out)
    assert code == 2
    assert told in errors
    assert str(out / TRIAL / name) in errors


def test_all_that_is_damaged_is_told_at_once(judge, out):
    for trial in ("baseline-1", "0003"):
        cut(out / "trials" / trial / "history.jsonl")
    errors = judge(out)[2]
    assert errors.count("it was cut off") == 2


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (('"format": 1', '"format": 2'), "saved by another version of chaoskit"),
        (('"keyed"', '"magic"'), "campaign.json:"),
        (('"manifest": {', '"manifest": {"x": 1,'), "$.manifest.x: found 1"),
        (("{", "["), "text that is no JSON"),
    ],
)
def test_a_damaged_campaign_is_told_with_its_place(judge, out, change, told):
    edit(out / "campaign.json", *change)
    code, _, errors = judge(out)
    assert code == 2
    assert told in errors


def test_an_older_chaoskit_is_named(judge, out):
    """Its trials are judged by the checks of today, and the report says so."""
    saved = json.loads((out / "campaign.json").read_text())
    saved["chaoskit"] = "0.0.1"
    (out / "campaign.json").write_text(json.dumps(saved))
    code, said, _ = judge(out)
    assert code == 1
    assert "saved by chaoskit 0.0.1" in said


def test_a_folder_from_before_there_was_judging_is_told(judge, out):
    (out / "campaign.json").unlink()
    code, _, errors = judge(out)
    assert code == 2
    assert "an older chaoskit writes none" in errors


def test_what_is_no_campaign_is_told(judge, tmp_path):
    assert judge(tmp_path)[0] == 2
    assert judge(tmp_path / "nowhere")[0] == 2
    (tmp_path / "file").touch()
    assert judge(tmp_path / "file")[0] == 2


def test_links_and_pipes_in_it_are_not_followed(judge, out, tmp_path):
    """What they lead to is not this campaign's, however much it looks like one."""
    for name in ("history.jsonl", "trial.json", "verdict.json"):
        path = out / TRIAL / name
        path.rename(tmp_path / name)
        path.symlink_to(tmp_path / name)
        code, _, errors = judge(out)
        assert code == 2
        assert "links are not followed" in errors
        path.unlink()
        os.mkfifo(path)
        assert judge(out)[0] == 2
        path.unlink()
        (tmp_path / name).rename(path)
    (out / TRIAL).rename(tmp_path / "elsewhere")
    (out / TRIAL).symlink_to(tmp_path / "elsewhere")
    assert judge(out)[0] == 2


def test_a_campaign_that_still_runs_is_left_alone(judge, out):
    from chaoskit.campaign.output import claimed

    other = out.with_name("other")
    with claimed(other):
        shutil.copy(out / "campaign.json", other)
        code, _, errors = judge(other)
    assert code == 2
    assert "still being written" in errors
