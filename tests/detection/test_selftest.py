"""The self-test finds each broken specimen by its own promise, and alarms on no other.

Here it is a sample that is tried, enough to fail if any one check were off: for each
promise a specimen that no other finds, and correct ones of every store. `pytest --full`
tries all of them, by all that their scenarios ask for.
"""

import json
import os
import re
from pathlib import Path

from chaoskit.campaign.again import judge_folder
from chaoskit.model.scenario import PromiseId
from chaoskit.model.schedule import Schedule
from chaoskit.model.verdict import Verdict
from chaoskit.selftest.catalogue import specimens

BROKEN = [each for each in specimens() if each.is_broken]
CORRECT = [each for each in specimens() if not each.is_broken]

# The broken specimen that only the check of that promise finds.
FOUND_BY_NO_OTHER = {
    PromiseId.EFFECTS: "note_after",
    PromiseId.PROGRESS: "parks_needlessly",
    PromiseId.TRANSCRIPT: "swapped_results",
    PromiseId.COST: "acts_unsaved",
    PromiseId.LOG: "log_quotes",
    PromiseId.ANSWER: "answer_from_memory",
    PromiseId.STORE: "ids_begin_anew",
    PromiseId.FENCE: "marks_it_failed",
    PromiseId.HUMAN: "answers_the_wrong_gate",
    PromiseId.LOUD: "fails_without_a_word",
    PromiseId.SECRETS: "stores_headers",
}
SOUND = ("durable_function", "leased_workers", "row_locked", "two_gates")


def found_by(saved: Path, promises: list[PromiseId]) -> list[str]:
    """What the checks of these promises find in the saved trials of one specimen."""
    outcome = judge_folder(saved, promises)
    return [finding.requirement for _, finding in outcome.findings]


def gets_through(name: str, saved: Path, off: PromiseId) -> bool:
    """Whether a specimen that is found is so no more without that one check."""
    assert judge_folder(saved / name, [off]).verdict is Verdict.FAIL, (off, name)
    return not found_by(saved / name, [each for each in PromiseId if each is not off])


def test_every_specimen_comes_out_as_it_must(chaoskit, request, tmp_path):
    """Found by its own promise and no other, or passed; --full: over 1,000 kills."""
    full = request.config.getoption("--full")
    names, kills_min = ((), 1000) if full else (("note_after", "parallel_tasks"), 50)
    done = chaoskit("selftest", *names, "--out", "out")
    assert done.returncode == 0, done.stdout + done.stderr
    result = json.loads((tmp_path / "out" / "selftest.json").read_text())
    tested = {each["name"]: each for each in result["specimens"]}
    assert set(tested) == {each.name for each in specimens(names)}
    sound = [each for each in tested.values() if each["requirement"] is None]
    assert sum(each["kills"] for each in sound) >= kills_min


def test_without_any_one_check_a_broken_specimen_gets_through(
    chaoskit, request, tmp_path
):
    """Each check is needed: the saved trials of one specimen pass all the others."""
    sample = (*FOUND_BY_NO_OTHER.values(), *SOUND)
    names = () if request.config.getoption("--full") else sample
    done = chaoskit("selftest", "--quick", *names, "--out", "out")
    assert done.returncode == 0, done.stdout + done.stderr
    assert " 0 alarms on " in done.stdout
    through = {
        promise: name
        for promise, name in FOUND_BY_NO_OTHER.items()
        if gets_through(name, tmp_path / "out", promise)
    }
    assert through == FOUND_BY_NO_OTHER
    assert set(through) == set(PromiseId)


def test_there_are_enough_of_them_and_they_differ():
    """Thirty broken ones and ten correct ones, over all stores and ways to run."""
    assert len(BROKEN) >= 30
    assert len(CORRECT) >= 10
    for half in (BROKEN, CORRECT):
        assert {each.store for each in half} >= {"redis", "sqlite", "postgres", "files"}
        assert len({each.mode for each in half}) >= 3


def test_each_broken_one_says_which_failure_of_the_field_it_stands_for():
    """By the letters of the list of kinds, or as one of the two published patterns."""
    for specimen in BROKEN:
        assert specimen.label.kinds, specimen.name
        for kind in specimen.label.kinds:
            assert re.fullmatch(r"[A-N]\d|published [a-z-]+", kind), specimen.name


def test_each_broken_one_says_what_shows_it():
    """A quick self-test, as each certificate needs it, replays that alone."""
    for specimen in BROKEN:
        assert specimen.label.shows is not None, specimen.name
        assert str(Schedule.parse(specimen.label.shows)) == specimen.label.shows


def test_the_result_can_be_read_by_programs(chaoskit, tmp_path):
    """What the table says stands in a file, too."""
    done = chaoskit("selftest", "--quick", "note_after", "--out", "out")
    assert done.returncode == 0, done.stderr
    result = json.loads((tmp_path / "out" / "selftest.json").read_text())
    assert result["green"] is True
    assert result["quick"] is True
    (specimen,) = result["specimens"]
    assert specimen["name"] == "note_after"
    assert specimen["requirement"] == "effects/once-across-kill"
    assert specimen["found"] is specimen["as_expected"] is True
    assert specimen["others"] == []
    assert specimen["needed"] == 1
    assert specimen["schedule"] == "kill@0:tools.pay[o-1]#1:after"


def test_a_server_that_is_missing_is_an_error_that_says_how_to_get_it(chaoskit):
    """No specimen is left out for want of a server."""
    env = {**os.environ, "CHAOSKIT_REDIS_URL": "redis://127.0.0.1:1/0"}
    done = chaoskit("selftest", "--quick", "note_after", **env)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "CHAOSKIT_REDIS_URL" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_name_that_no_specimen_has_is_told_with_a_guess(chaoskit):
    done = chaoskit("selftest", "note_afer")
    assert done.returncode == 2
    assert "did you mean 'note_after'?" in done.stderr
