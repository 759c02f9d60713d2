"""Long-lived agents: two workers on a queue, in campaigns with real kills.

The right one passes every kill, whoever of its processes sends the message. The broken
ones are found, each by the promise that it breaks.
"""

import json

import pytest

PAY = {"call": {"pay": {"order": "o-1", "cents": 100}}}
GATE_AND_WAIT = [{"ask": "Pay?"}, PAY, {"wait": 0.8}, {"say": "Paid."}]


def events(result, trial):
    """The history of one trial."""
    lines = (result.out / "trials" / trial / "history.jsonl").read_text().splitlines()
    return [json.loads(line) for line in lines]


@pytest.fixture
def sampled(request):
    """What keeps a campaign small without ``--full``."""
    full = request.config.getoption("--full")
    return () if full else ("--strategy", "sample", "--trials", "6")


@pytest.mark.parametrize("launch", ["process", "fork"])
def test_the_right_one_survives_kills(write_fleet, chaoskit, sampled, launch):
    """In full each edge of the clean run is struck, in the submission as in workers."""
    result = chaoskit("run", write_fleet(launch=launch), *sampled)
    assert result.code == 0, result.stdout + result.stderr
    crossings, kills = result.report["crossings"], result.report["kills"]
    assert kills >= 6
    if not sampled:
        assert crossings["missed"] == 0
        assert crossings["seen"] == crossings["hit"] == kills >= 34


def test_a_gate_and_a_wait_survive_kills(write_fleet, chaoskit, sampled):
    """The run is claimed three times, and each claim that succeeds is struck.

    How often the other worker tries in vain meanwhile makes no address another one.
    """
    path = write_fleet(
        llm={"script": GATE_AND_WAIT}, tools={"pay": "keyed"}, human=["yes"]
    )
    result = chaoskit("run", path, *sampled)
    assert result.code == 0, result.stdout + result.stderr
    assert sampled or result.report["crossings"]["missed"] == 0
    clean = events(result, "baseline-1")
    brought = [e["answer"] for e in clean if e.get("purpose") == "answer"]
    assert brought == ["yes"]


def test_an_answer_that_the_store_has_forgotten_is_brought_again(write_fleet, chaoskit):
    """As a person would who sees the run still parked; no agent could go on alone."""
    path = write_fleet(
        llm={"script": GATE_AND_WAIT}, tools={"pay": "keyed"}, human=["yes"]
    )
    schedule = "rollback(1)@0:redis.eval[doc:{run}]#1:after"
    result = chaoskit("replay", path, schedule)
    assert result.code == 0, result.stdout + result.stderr
    brought = [e for e in events(result, "0003") if e.get("purpose") == "answer"]
    assert [each["answer"] for each in brought] == ["yes", "yes"]


def test_two_processes_share_a_database_and_each_is_struck(write_fleet, chaoskit):
    """Whose a file operation is, is told by its process; SQLite's locks hold."""
    path = write_fleet(store="sqlite")
    schedules = [
        "kill@0:files.write[agent.db]#1:after",
        "kill@0:tools.pay[o-1]#1:after",
    ]
    for schedule in schedules:
        result = chaoskit("replay", path, schedule)
        assert result.code == 0, result.stdout + result.stderr
    clean = events(result, "baseline-1")
    assert {e["life"] for e in clean if e["kind"] == "crossed"} >= {2}


def test_an_address_says_when_and_never_who(write_fleet, chaoskit):
    """It counts over all processes, and the time after a death is another life."""
    schedule = "kill@0:redis.eval[lease:{run}]#2:after + kill@1:llm.chat#1:after"
    result = chaoskit("replay", write_fleet(), schedule)
    assert result.code == 0, result.stdout
    history = events(result, "0003")
    names = {e["life"]: e["process"] for e in history if e["kind"] == "life.started"}
    struck = [e for e in history if e["kind"] == "fault"]
    assert len(struck) == 2
    assert all(names[e["life"]].startswith("worker.") for e in struck)
    lives = [e["address"].split(":")[0] for e in history if e["kind"] == "crossed"]
    assert {"0", "1", "2"} <= set(lives)
    assert lives == sorted(lives)
    # Nobody is told of the harness's own looks.
    assert all(e["life"] >= 0 for e in history if e["kind"] != "status.seen")
    restarted = [e for e in history if e.get("purpose") == "resume"]
    assert [names[e["life"]] for e in restarted] == [names[e["life"]] for e in struck]


def test_a_submission_that_is_killed_is_made_again(write_fleet, chaoskit):
    """As its user would; it is one run all the same."""
    result = chaoskit("replay", write_fleet(), "kill@0:redis.sadd[runs]#1:after")
    assert result.code == 0, result.stdout
    started = [e for e in events(result, "0003") if e.get("purpose") == "submit"]
    assert len(started) == 2


def test_a_pause_is_taken_over_by_the_other_worker(write_fleet, chaoskit):
    """No process is started for it; the one that comes back is ended, and idle."""
    schedule = "pause@0:tools.note[n-1]#1:before"
    result = chaoskit("replay", write_fleet(), schedule)
    assert result.code == 0, result.stdout
    (note,) = result.report["notes"]
    assert note.startswith("store was not judged")  # and the takeover was
    history = events(result, "0003")
    done, continued = (
        next(e["seq"] for e in history if test(e))
        for test in (
            lambda e: e.get("status") == "done",
            lambda e: e["kind"] == "life.continued",
        )
    )
    assert done < continued


def test_a_worker_without_a_fence_is_found_when_it_comes_back(write_fleet, chaoskit):
    """It goes on with a run that another has finished."""
    schedule = "pause@0:tools.note[n-1]#1:before"
    result = chaoskit("replay", write_fleet("--unfenced"), schedule)
    assert result.code == 1, result.stdout
    assert "progress/not-again" in result.requirements
    assert "it hit:   worker." in result.stdout


def test_a_worker_that_takes_a_run_with_it_is_found(write_fleet, chaoskit):
    """Who takes it off the queue and dies leaves it to nobody."""
    path = write_fleet("--drops", limits={"life_seconds": 4, "trial_seconds": 60})
    result = chaoskit("replay", path, "kill@0:redis.eval[lease:{run}]#2:after")
    assert result.code == 1, result.stdout
    assert result.requirements == ["progress/ends"]
    assert "nothing new happened" in result.stdout
    assert "`status` said running" in result.stdout


def test_a_claim_on_what_was_read_before_it_is_found(write_fleet, chaoskit):
    """It waits at its claim while another does the run, and then does it all again."""
    schedule = "pause@0:redis.set[lease:{run}]#1:before"
    result = chaoskit("replay", write_fleet("--stale"), schedule)
    assert result.code == 1, result.stdout
    caused, *others = result.report["findings"]
    assert caused["requirement"] == "fence/no-effect"
    assert {each["requirement"] for each in others} == {
        *("cost/not-asked-again", "progress/not-again")
    }


def test_a_key_of_a_worker_s_own_is_found(write_fleet, chaoskit):
    """Another worker makes the call with another key."""
    schedule = "kill@0:tools.pay[o-1]#1:after"
    result = chaoskit("replay", write_fleet("--fresh-key"), schedule)
    assert result.code == 1, result.stdout
    assert "effects/once-across-kill" in result.requirements


def test_workers_that_find_something_to_do_after_done_are_found(write_fleet, chaoskit):
    """All are started once more, and must wait for other runs."""
    result = chaoskit("replay", write_fleet("--repeats"), "")
    assert result.code == 1, result.stdout
    assert result.requirements == ["progress/resume-after-done"]


def test_a_worker_that_cannot_be_started_is_told_at_once(write_fleet, chaoskit):
    path = write_fleet(launch="process")
    manifest = json.loads((path.parent / "agent.yaml").read_text())
    manifest["processes"]["worker"]["command"] = ["no-such-program"]
    (path.parent / "agent.yaml").write_text(json.dumps(manifest))
    result = chaoskit("replay", path, "")
    assert result.code == 2
    assert "cannot run 'no-such-program'" in result.stderr


def test_workers_that_die_by_themselves_are_not_started_for_ever(write_fleet, chaoskit):
    path = write_fleet(launch="process")
    manifest = json.loads((path.parent / "agent.yaml").read_text())
    manifest["processes"]["worker"]["command"] = ["{python}", "-c", "exit(3)"]
    (path.parent / "agent.yaml").write_text(json.dumps(manifest))
    result = chaoskit("replay", path, "")
    assert result.code == 1
    assert result.requirements == ["progress/ends"]
    assert "lives ended that no scheduled fault had ended" in result.stdout
    assert "exited with 3" in result.stdout


def test_closure_is_refused_for_workers(write_fleet, chaoskit):
    """What they remember is in no world that could be restored."""
    result = chaoskit("run", write_fleet(), "--strategy", "closure")
    assert result.code == 2
    assert "what its processes remember" in " ".join(result.stderr.split())
