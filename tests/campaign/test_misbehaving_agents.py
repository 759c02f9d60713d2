"""Agents that crash by themselves, hang, or leave children behind."""

import uuid

import psutil

QUICK = {"life_seconds": 1, "trial_seconds": 3}


def test_a_crash_at_start_shows_last_words_and_log(write_scenario, chaoskit):
    """Within its lives: the last lines, and where the whole log is."""
    result = chaoskit("run", write_scenario("crash"))
    assert result.code == 1
    assert result.requirements == ["progress/ends"]
    assert "RuntimeError: the settings file is missing" in result.stdout
    assert "baseline-1/life-5.err" in result.stdout
    log = result.out / "trials" / "baseline-1" / "life-5.err"
    assert "starting up" in log.read_text()


def test_an_agent_that_hangs_is_ended_at_its_limit(write_scenario, chaoskit):
    """It is named for what it is, and its last words are shown."""
    result = chaoskit("run", write_scenario("hang", limits=QUICK))
    assert result.code == 1
    assert result.requirements == ["progress/ends"]
    assert "was ended at its time limit" in result.stdout
    assert "about to wait for ever" in result.stdout


def test_children_of_the_agent_do_not_outlive_it(write_scenario, chaoskit):
    """Neither those in its group nor those in a session of their own."""
    mark = f"mark-{uuid.uuid4()}"
    path = write_scenario("children", mark)
    result = chaoskit("replay", path, "kill@0:llm.chat#1:before")
    assert result.code == 0, result.stdout
    every = psutil.process_iter(["cmdline"])
    assert not [p for p in every if mark in (p.info["cmdline"] or ())]
    history = result.out / "trials" / "0003" / "history.jsonl"
    assert '"orphans":2' in history.read_text()


def test_a_command_that_does_not_exist_is_wrong_input(write_scenario, chaoskit):
    """Exit code 2, and the name of what was not found."""
    path = write_scenario()
    manifest = path.with_name("agent.yaml")
    manifest.write_text(manifest.read_text().replace("{python}", "no-such-program"))
    result = chaoskit("run", path)
    assert result.code == 2
    assert "no-such-program" in result.stderr
    assert "Traceback" not in result.stderr
