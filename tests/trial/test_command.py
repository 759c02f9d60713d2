"""How a life is started, what it finds in its environment, and what is kept of it."""

import asyncio
import sys

import pytest

from chaoskit.trial import Watching

LOOPBACK = {"127.0.0.1", "localhost"}


async def done(body):
    """A life with nothing to do."""
    return 0


def environment(stage, **manifest):
    """What the first life was given."""
    asyncio.run(stage.play(done, manifest=manifest))
    return stage.launcher.commands[0].env


def test_start_resume_and_once_more(stage):
    """A run is started once; every later life is a resume, that after done too."""

    async def dies_once(body):
        return 0 if body.life else 1

    asyncio.run(stage.play(dies_once))
    words = [command.argv for command in stage.launcher.commands]
    assert words == [("agent", "run-1"), *[("agent", "run-1", "--resume")] * 2]


def test_without_a_resume_command_start_serves_for_it(stage):
    """As the contract says."""
    asyncio.run(stage.play(done, manifest={"resume": None}))
    assert {command.argv for command in stage.launcher.commands} == {("agent", "run-1")}


def test_each_life_has_output_files_of_its_own(stage):
    """In the trial's folder, named for the life; the history says where."""
    visited = asyncio.run(stage.play(done))
    names = [(c.stdout.name, c.stderr.name) for c in stage.launcher.commands]
    assert names == [("life-0.out", "life-0.err"), ("life-1.out", "life-1.err")]
    ended = next(e for e in visited.trial.history if e.kind == "life.ended")
    assert ended.output == "trial-1/life-0.err"


def test_the_environment_is_ours_the_manifests_and_the_worlds(stage, monkeypatch):
    """The manifest's may hold placeholders."""
    monkeypatch.setenv("FROM_OUTSIDE", "kept")
    env = environment(stage, env={"PYTHON": "{python}", "FLAG": "1"})
    assert (env["FROM_OUTSIDE"], env["FLAG"]) == ("kept", "1")
    assert env["PYTHON"] == sys.executable
    assert env["CHAOSKIT_TOOLS_URL"] == "fake:0"
    assert env["CHAOSKIT_RUN_ID"] == "run-1"


@pytest.mark.parametrize("before", ["", "internal.invalid"])
def test_loopback_goes_through_no_proxy(stage, monkeypatch, before):
    """Under both names, and what was exempt before still is."""
    monkeypatch.setenv("NO_PROXY", before)
    monkeypatch.delenv("no_proxy", raising=False)
    env = environment(stage)
    assert env["NO_PROXY"] == env["no_proxy"]
    assert set(env["NO_PROXY"].split(",")) == LOOPBACK | ({before} - {""})


@pytest.mark.parametrize("name", ["REDIS_URL", "DATABASE_URL", "CHAOSKIT_REDIS_URL"])
def test_a_store_of_the_users_own_is_out_of_reach(stage, monkeypatch, name):
    """An agent without a store does not come upon somebody's real one."""
    monkeypatch.setenv(name, "redis://production.invalid")
    assert name not in environment(stage)


def test_no_variable_tells_the_life_or_the_fault(stage, canary):
    """An agent cannot behave well only while it is watched."""
    schedule = "kill@0:tools.pay[o-1]#1:before"

    async def pays(body):
        await body.act()
        return 0

    asyncio.run(stage.play(pays, schedule=schedule))
    first, second, _ = (dict(command.env) for command in stage.launcher.commands)
    # The fake service names the life in its address; a real one keeps its port.
    assert first.pop("CHAOSKIT_TOOLS_URL") != second.pop("CHAOSKIT_TOOLS_URL")
    assert first == second


def test_the_log_is_read_to_its_last_line(stage):
    """Standard error, then standard output, before the death is recorded."""

    async def logs(body):
        body.log(event="run.start", step=1)
        body.say('{"event": "run.end"}')  # killed before the end of the line
        return 0

    history = asyncio.run(stage.play(logs)).trial.history
    kinds = [event.kind for event in history[:4]]
    assert kinds == ["life.started", "logged", "logged", "life.ended"]
    assert [event.entry["event"] for event in history[1:3]] == ["run.start", "run.end"]


def test_the_secret_is_taken_out_of_everything_that_is_kept(stage, canary):
    """Out of output files, journal, tail and answer, and no log line is lost by it."""

    async def leaks(body):
        body.log(event="first", key=canary)
        await body.act()
        body.log(event="second", key=canary)
        body.log(event="third")
        body.say(f"The key is {canary}\n")
        return 0 if body.life else 1

    visited = asyncio.run(stage.play(leaks, watching=Watching()))
    entries = [e.entry for e in visited.trial.history if e.kind == "logged"]
    expected = [
        {"event": "first", "key": "[canary]"},
        {"event": "second", "key": "[canary]"},
        {"event": "third"},
    ]
    assert entries == expected * 3
    assert visited.trial.ended.answer == "The key is [canary]"
    for path in stage.folder.iterdir():
        assert canary not in path.read_text(), path
