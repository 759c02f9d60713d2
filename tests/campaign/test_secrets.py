"""The canary is found in whatever an agent keeps and prints, and is written nowhere."""

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from chaoskit.gate import forms
from chaoskit.world.llm import CANARY

ROOT = Path(__file__).parents[2]
KILL = "kill@0:tools.pay[o-1]#1:after"
BEGIN = 'state = store.load() or {"n": 0,'
SAVE = '    state["n"] += 1\n'
KEY = 'os.environ["OPENAI_API_KEY"]'
HEADER = f'__import__("base64").b64encode(b"Bearer " + {KEY}.encode()).decode()'
SECRET = "correct-horse-battery-staple"


@pytest.fixture
def kept(chaoskit, tmp_path):
    """Run a kept agent with a change to its source, over one kill."""

    def run(agent, *change, schedule=KILL):
        folder = ROOT / "scenarios" / "kept"
        source = (folder / "kept.py").read_text()
        assert change[0] in source
        (tmp_path / "kept.py").write_text(source.replace(*change))
        manifest = tmp_path / f"{agent}.yaml"
        manifest.write_text((folder / f"{agent}.yaml").read_text())
        scenario = ROOT / "scenarios" / "kept.yaml"
        return chaoskit("replay", scenario, schedule, "--agent", str(manifest))

    return run


def holds(out, *secrets):
    """The files below a folder that hold a secret, in any form."""
    words = [form.encode() for secret in secrets for form in forms(secret)]
    files = [path for path in out.rglob("*") if path.is_file()]
    assert files
    return [path for path in files if any(w in path.read_bytes() for w in words)]


PLACES = {
    "file": "file {run}.json",
    "log": "file {run}.log",
    "sqlite_wal": "file agent.db",
    "sqlite_delete": "file agent.db",
    "postgres": "table runs",
}


@pytest.mark.parametrize(
    ("agent", "value"),
    [*((agent, KEY) for agent in PLACES), ("log", HEADER), ("postgres", HEADER)],
)
def test_a_key_in_a_store_is_found_there(kept, agent, value):
    """By its own promise and no other, and what is left for people holds it not."""
    result = kept(agent, BEGIN, f'{BEGIN} "debug": {value},')
    assert result.code == 1, result.stdout + result.stderr
    assert result.requirements == ["secrets/not-in-store"]
    assert result.report["findings"][0]["observed"] == PLACES[agent]
    assert holds(result.out, CANARY) == []


@pytest.mark.parametrize("agent", ["file", "sqlite_wal", "postgres"])
def test_a_key_that_was_there_at_a_death_is_found(kept, agent):
    """Though the next save takes it away: whoever reads the wreck has it."""
    once = f'{SAVE}    state["debug"] = {KEY} if state["n"] == 1 else ""\n'
    result = kept(agent, SAVE, once, schedule="kill@0:tools.pay[o-1]#1:before")
    assert result.requirements == ["secrets/not-in-store"], result.stdout


def test_a_key_in_a_large_file_is_found(kept):
    """Such a file is looked at by its hash only."""
    bulk = f'{BEGIN} "debug": "{"x" * 80_000}" + {KEY},'
    result = kept("file", BEGIN, bulk)
    assert result.requirements == ["secrets/not-in-store"], result.stdout


LEAKS = {
    "stores-key": ("secrets/not-in-store", "redis key toy:{run}"),
    "leaks-key": ("secrets/not-in-log", "standard error"),
    "prints-header": ("secrets/not-in-log", "standard output"),
    "sends-key": ("secrets/not-in-calls", "a call of pay"),
}


@pytest.mark.parametrize("flag", LEAKS)
def test_each_way_out_is_told_once_a_place(write_scenario, chaoskit, flag):
    """With what it was found in, however many lives and trials show it."""
    tools = {"pay": "keyed"}
    script = [{"call": {"pay": {"order": "o-1"}}}, {"say": "Paid."}]
    path = write_scenario(flag, tools=tools, llm={"script": script})
    result = chaoskit("replay", path, KILL)
    assert result.code == 1, result.stdout + result.stderr
    found = [(f["requirement"], f["observed"]) for f in result.report["findings"]]
    assert found == [LEAKS[flag]]
    assert holds(result.out, CANARY) == []


def test_an_agent_that_keeps_its_key_to_itself_is_no_finding(write_scenario, chaoskit):
    """The same agent without a flag; `secrets` is judged by default."""
    result = chaoskit("replay", write_scenario(), KILL)
    assert result.code == 0, result.stdout + result.stderr


def test_what_is_left_holds_no_secret_of_the_environment(
    write_scenario, chaoskit, monkeypatch
):
    """Neither the manifest's nor the machine's own, though it is printed and stored."""
    monkeypatch.setenv("DEPLOY_TOKEN", f"{SECRET}-2")
    path = write_scenario("prints-env", "stores-env", "crash")
    manifest = path.with_name("agent.yaml")
    env = {"MAIL_PASSWORD": f'{SECRET}-"1"', "MODE": "loud"}
    manifest.write_text(json.dumps({**json.loads(manifest.read_text()), "env": env}))
    result = chaoskit("replay", path, KILL)
    errors = [p for p in result.out.rglob("*.err") if p.stat().st_size]
    assert all("MAIL_PASSWORD=[MAIL_PASSWORD]" in p.read_text() for p in errors)
    assert errors
    assert "MODE=loud" in errors[0].read_text()
    assert holds(result.out, CANARY, SECRET) == []
    saved = json.loads((result.out / "campaign.json").read_text())
    assert saved["manifest"]["env"] == {
        "MAIL_PASSWORD": "[not saved]",
        "MODE": "[not saved]",
    }


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_nor_does_a_campaign_that_was_interrupted(
    write_scenario, tmp_path, monkeypatch, signum
):
    """The life that was running then has no end, and what it printed stays to read."""
    monkeypatch.setenv("DEPLOY_TOKEN", SECRET)
    path = write_scenario("prints-env", "hang", limits={"life_seconds": 600})
    out = tmp_path / "out"
    command = [sys.executable, "-m", "chaoskit", "run", str(path), "--out", str(out)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        said = out / "trials" / "baseline-1" / "life-0.err"
        while not (said.exists() and "about to wait" in said.read_text()):
            assert process.poll() is None
            os.sched_yield()
        assert SECRET in said.read_text()
        process.send_signal(signum)
        _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert holds(out, CANARY, SECRET) == []
    assert "DEPLOY_TOKEN=[DEPLOY_TOKEN]" in said.read_text()
