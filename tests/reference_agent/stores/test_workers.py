"""A fleet on each store: real workers, really killed, stopped and raced."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from reference_agent.stores import STORES, open_store
from reference_agent.stores.base import Held, Store
from reference_agent.tools import TOOLS

ROOT = Path(__file__).parents[3]
NEVER = "3600"  # seconds between polls, where something else must wake the worker
PATIENCE = 60.0  # seconds after which what has not happened is taken never to happen
SOME = ("redis", "postgres", "files")
PAY = ("charge_card", {"order": "o-1", "cents": 3})
FAX = ("send_fax", {"to": "hotel", "body": "x"})


@dataclass
class Kept:
    """A store by its name, and where it is."""

    name: str
    environment: dict[str, str]
    monkeypatch: pytest.MonkeyPatch

    def open(self) -> Store:
        for name, value in self.environment.items():
            self.monkeypatch.setenv(name, value)
        return open_store(self.name)


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """On each store with ``--full``, without it on one of each kind.

    `test_conformance` has them all, and campaigns have workers on them all, each day.
    """
    named = [mark.args[0] for mark in metafunc.definition.iter_markers("parametrize")]
    if "kept" in metafunc.fixturenames and "kept" not in named:
        stores = STORES if metafunc.config.getoption("--full") else SOME
        metafunc.parametrize("kept", list(stores), indirect=True)


@pytest.fixture
def kept(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Kept:
    """Each of the stores, empty."""
    match request.param:
        case "redis" | "redis-log":
            request.getfixturevalue("valkey")
            environment = {"REDIS_URL": request.getfixturevalue("valkey_url")}
        case "postgres":
            environment = {"DATABASE_URL": request.getfixturevalue("postgres_url")}
        case _:
            environment = {"CHAOSKIT_STATE_DIR": str(tmp_path)}
    return Kept(request.param, environment, monkeypatch)


@dataclass
class Fleet:
    """Processes of the agent on one store and in one world."""

    world: Any
    kept: Kept
    environment: dict[str, str]
    processes: list[subprocess.Popen[str]] = field(default_factory=list)

    def start(self, mode: str, *options: str) -> subprocess.Popen[str]:
        command = [sys.executable, "-m", "reference_agent", mode]
        process = subprocess.Popen(
            [*command, "--store", self.kept.name, *options],
            cwd=ROOT,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self.processes.append(process)
        return process

    def do(self, mode: str, *options: str) -> tuple[int, str, str]:
        """A command that ends by itself: its code, its answer, its words."""
        process = self.start(mode, *options)
        out, err = process.communicate(timeout=60)
        return process.returncode, out.strip(), err

    def submit(self, run: str = "r1") -> None:
        assert self.do("submit", "--task", run, "--goal", "Pay")[0] == 0

    def held(self, run: str = "r1") -> Held:
        with closing(self.kept.open()) as store:
            held = store.load(run)
        assert held is not None
        return held

    def until(self, status: str, run: str = "r1") -> dict[str, Any]:
        """The run's state once it has that status."""
        return self.until_true(lambda state: state["status"] == status, run)

    def until_true(
        self, holds: Callable[[dict[str, Any]], bool], run: str = "r1"
    ) -> dict[str, Any]:
        end = time.monotonic() + PATIENCE
        while not holds(state := self.held(run).document):
            assert time.monotonic() < end, f"for {PATIENCE} s in vain: {state}"
            time.sleep(0.02)
        return state

    def term(self, worker: subprocess.Popen[str]) -> list[dict[str, Any]]:
        """Have a worker end gently; its log."""
        worker.send_signal(signal.SIGTERM)
        _, err = worker.communicate(timeout=60)
        assert worker.returncode == 0, err
        return [json.loads(line) for line in err.splitlines() if line[:1] == "{"]


@pytest.fixture
def fleet(world: Any, world_url: str, kept: Kept) -> Iterator[Fleet]:
    world.promises = {tool.name: tool.promise for tool in TOOLS.values()}
    environment = (
        os.environ
        | kept.environment
        | {
            "OPENAI_BASE_URL": f"{world_url}/v1",
            "OPENAI_API_KEY": "sk-canary-5d1f",
            "CHAOSKIT_TOOLS_URL": f"{world_url}/tools",
        }
    )
    fleet = Fleet(world, kept, environment)
    yield fleet
    for process in fleet.processes:
        process.kill()
        process.communicate()


def test_a_worker_takes_what_is_submitted_and_what_was_left(fleet: Fleet) -> None:
    """Runs that were there when it started, and one that came later."""
    fleet.world.script = [[PAY], "Paid."]
    fleet.submit("r1")
    worker = fleet.start("worker")
    fleet.until("done", "r1")
    fleet.submit("r2")
    fleet.until("done", "r2")
    assert fleet.do("status", "--task", "r2")[:2] == (0, "done\nPaid.")
    ends = [line for line in fleet.term(worker) if line["event"] == "run.end"]
    assert [(line["run_id"], line["status"]) for line in ends] == [
        ("r1", "done"),
        ("r2", "done"),
    ]


def test_a_killed_workers_run_is_gone_on_with_at_once(fleet: Fleet) -> None:
    """The lease has minutes to go, but the other worker can see who held it."""
    fleet.world.script = [[PAY], "Paid."]
    fleet.submit()
    first = fleet.start("worker")
    fleet.world.hooks["charge_card#1:after"] = first.kill
    first.wait(timeout=60)
    second = fleet.start("worker")
    fleet.until("done")
    assert fleet.world.counts() == {"charge_card": 1}
    assert fleet.term(second)[0]["event"] == "run.resume"


def wait_of(fleet: Fleet, seconds: float) -> float:
    """Submit a run that waits so long; when its wait is over, as it is stored."""
    fleet.world.script = [[("wait", {"seconds": seconds})], [PAY], "Paid."]
    fleet.submit()
    state = fleet.until_true(lambda state: state["phase"] == "wait")
    assert state["resume_at"] == state["replied_at"] + seconds
    return float(state["resume_at"])


@pytest.fixture
def wait_seconds(request: pytest.FixtureRequest) -> float:
    """As long as the issue has it, or short enough for every day."""
    return 3.0 if request.config.getoption("--full") else 0.9


def test_a_wait_ends_at_its_time_though_its_worker_is_killed_meanwhile(
    fleet: Fleet, wait_seconds: float
) -> None:
    first = fleet.start("worker")
    over = wait_of(fleet, wait_seconds)
    while time.time() < over - wait_seconds * 2 / 3:
        time.sleep(0.01)
    first.kill()
    paid: list[float] = []
    fleet.world.hooks["charge_card#1:before"] = lambda: paid.append(time.time())
    fleet.start("worker", "--poll-seconds", NEVER)
    seen = set[float]()
    while (state := fleet.held().document)["phase"] == "wait":
        assert time.time() < over + PATIENCE, "it is not woken"
        seen.add(state["resume_at"])
    fleet.until("done")
    assert paid[0] >= over
    assert seen <= {over}  # not begun anew; nothing, where we were too late to look


def test_a_wait_that_is_over_when_a_worker_comes_back_ends_at_once(
    fleet: Fleet, wait_seconds: float
) -> None:
    first = fleet.start("worker")
    over = wait_of(fleet, wait_seconds)
    first.kill()
    while time.time() < over + wait_seconds * 2 / 3:
        time.sleep(0.01)
    fleet.start("worker", "--poll-seconds", NEVER)
    state = fleet.until_true(lambda state: state["phase"] != "wait")
    assert state["resume_at"] is None
    fleet.until("done")


def test_two_workers_wake_a_wait_once(fleet: Fleet, wait_seconds: float) -> None:
    workers = [fleet.start("worker") for _ in range(2)]
    wait_of(fleet, wait_seconds)
    fleet.until("done")
    lines = [line for worker in workers for line in fleet.term(worker)]
    woken = [line for line in lines if line.get("call") == "r1/1/0/wait"]
    assert sorted(line["event"] for line in woken) == ["tool.intent", "tool.result"]
    assert fleet.world.asked == [0, 1, 2]
    assert fleet.world.counts() == {"charge_card": 1}


@pytest.mark.parametrize("crossing", ["charge_card#1:before", "model#1:after"])
def test_a_worker_that_was_stopped_past_its_lease_changes_nothing(
    fleet: Fleet, crossing: str
) -> None:
    """It wakes up when another has finished, does what it was about to, and is refused:
    not the store, not the status, no second effect."""
    fleet.world.script = [[PAY], [FAX], "Paid."]
    fleet.submit()
    first = fleet.start("worker", "--lease-seconds", "0.5")
    fleet.world.hooks[crossing] = lambda: stop_until_done(fleet, first)
    done = fleet.until("done")
    after = fleet.held()
    lines = fleet.term(first)
    assert [line["status"] for line in lines if line["event"] == "run.end"] == [
        "taken over"
    ]
    assert fleet.held() == after
    assert after.document == done
    assert fleet.world.counts() == {"charge_card": 1, "send_fax": 1}
    assert fleet.do("status", "--task", "r1")[1] == "done\nPaid."


def stop_until_done(fleet: Fleet, stopped: subprocess.Popen[str]) -> None:
    """Stop a worker in the middle of a call, and let another one finish its run."""
    fleet.world.hooks.clear()
    stopped.send_signal(signal.SIGSTOP)
    second = fleet.start("worker")
    fleet.until("done")
    fleet.term(second)
    stopped.send_signal(signal.SIGCONT)


def test_of_two_answers_at_the_same_time_one_wins_and_the_other_is_told(
    fleet: Fleet,
) -> None:
    fleet.world.script = [[("ask_human", {"question": "Pay?"})], [PAY], "Paid."]
    worker = fleet.start("worker")
    for run in ("r1", "r2", "r3"):
        fleet.submit(run)
        fleet.until("parked", run)
        both = [
            fleet.start("answer", "--task", run, "--answer", words)
            for words in ("yes", "no")
        ]
        errors = [process.communicate(timeout=60)[1] for process in both]
        codes = [process.returncode for process in both]
        assert sorted(codes) in ([0, 64], [0, 69]), errors
        told = errors[0 if codes[0] else 1]
        assert "no open question" in told or "another process has the run" in told
        state = fleet.until("done", run)
        assert state["completed"][0]["result"] == ("yes", "no")[codes.index(0)]
    fleet.term(worker)


def test_an_answer_for_another_gate_is_refused(fleet: Fleet) -> None:
    """A late double click must not answer the next question."""
    ask = ("ask_human", {"question": "Pay?"})
    fleet.world.script = [[ask, ask], "Paid."]
    worker = fleet.start("worker")
    fleet.submit()
    fleet.until("parked")
    code, _, err = fleet.do("status", "--task", "r1")
    assert "Pay? (gate r1/1/0/ask_human)" in err
    answer = ("answer", "--task", "r1", "--answer", "yes", "--gate", "r1/1/0/ask_human")
    assert fleet.do(*answer)[0] == 0
    fleet.until_true(lambda s: s["pending"]["key"] == "r1/1/1/ask_human")
    fleet.until("parked")
    code, _, err = fleet.do(*answer)
    assert code == 64
    assert "the open question is r1/1/1/ask_human" in err
    fleet.term(worker)


def test_a_checkpoint_that_cannot_be_used_is_kept_and_holds_nobody_up(
    fleet: Fleet,
) -> None:
    document = {"schema": 99, "step": 3, "checkpoint_id": 7}
    with closing(fleet.kept.open()) as store:
        store.create("r0", document)
    before = fleet.held("r0")
    fleet.world.script = [[PAY], "Paid."]
    worker = fleet.start("worker")
    fleet.submit("r1")
    fleet.until("done", "r1")
    lines = [line for line in fleet.term(worker) if line["run_id"] == "r0"]
    assert [(x["event"], x["status"], x["checkpoint_id"]) for x in lines] == [
        ("run.end", "failed", 7)
    ]
    assert fleet.held("r0") == before
    code, out, err = fleet.do("status", "--task", "r0")
    assert (code, out) == (0, "failed")
    assert "its schema is 99 and this agent reads" in err
    code, _, err = fleet.do("run", "--task", "r0", "--goal", "Pay", "--resume")
    assert code == 65
    assert "the checkpoint cannot be used and was left as it is" in err
    assert fleet.held("r0") == before


@pytest.mark.parametrize("kept", ["redis", "files"], indirect=True)
def test_a_run_that_kills_its_workers_is_set_aside_and_others_go_on(
    fleet: Fleet,
) -> None:
    fleet.world.script = [[PAY], "Paid."]
    fleet.submit("poison")
    workers: list[subprocess.Popen[str]] = []
    fleet.world.hooks = {
        f"model#{n}:before": lambda: workers[-1].kill() for n in range(1, 12)
    }
    while fleet.held("poison").document["status"] == "running":
        workers.append(fleet.start("worker"))
        while workers[-1].poll() is None:
            if fleet.held("poison").document["status"] != "running":
                break
            time.sleep(0.02)
    reason = fleet.held("poison").document["reason"]
    assert reason == "set aside: 10 lives were lost at call_llm"
    fleet.submit("r1")
    fleet.until("done", "r1")
    assert fleet.world.counts() == {"charge_card": 1}


def test_a_term_lets_the_call_in_hand_be_made_and_nothing_is_in_doubt(
    fleet: Fleet,
) -> None:
    """A blind call that is cut off parks the run; one that is ended gently does not."""
    fleet.world.script = [[FAX, FAX], "Sent."]
    fleet.submit()
    first = fleet.start("worker")
    fleet.world.hooks["send_fax#1:before"] = first.terminate
    assert first.wait(timeout=60) == 0
    assert fleet.held().owner is None
    assert fleet.world.counts() == {"send_fax": 1}
    worker = fleet.start("worker")
    fleet.until("done")
    assert fleet.world.counts() == {"send_fax": 2}
    fleet.term(worker)


def test_submitting_the_same_run_twice_is_one_run(fleet: Fleet) -> None:
    fleet.submit()
    fleet.submit()
    assert fleet.held().document["checkpoint_id"] == 1
    code, _, err = fleet.do("submit", "--task", "r1", "--goal", "Something else")
    assert code == 64
    assert "a run with another goal" in err


@pytest.mark.parametrize("kept", ["postgres"], indirect=True)
def test_a_submitted_run_and_an_answer_wake_a_worker_that_looks_away(
    fleet: Fleet,
) -> None:
    """PostgreSQL tells it at once; on the other stores a worker must look."""
    fleet.world.script = [[("ask_human", {"question": "Pay?"})], [PAY], "Paid."]
    worker = fleet.start("worker", "--poll-seconds", NEVER)
    fleet.submit()
    fleet.until("parked")
    assert fleet.do("answer", "--task", "r1", "--answer", "yes")[0] == 0
    fleet.until("done")
    worker.kill()


def test_a_run_that_another_parked_meanwhile_is_not_taken(fleet: Fleet) -> None:
    """A worker that was busy goes through what was due when it looked, and it is not
    any more; it must not hold on to it, or nobody could answer."""
    ask = [("ask_human", {"question": "Pay?"})]
    fleet.world.script = [ask, [PAY], "Paid."]
    runs = {"r1", "r2"}
    for run in runs:
        fleet.submit(run)
    first = fleet.start("worker")

    def parked() -> set[str]:
        return {run for run in runs if fleet.held(run).document["status"] == "parked"}

    def let_another_park_the_other() -> None:
        fleet.world.hooks.clear()
        second = fleet.start("worker")
        while not parked():
            time.sleep(0.02)
        fleet.term(second)

    fleet.world.hooks["model#1:before"] = let_another_park_the_other
    while parked() != runs:
        time.sleep(0.02)
    (mine,) = {line["run_id"] for line in fleet.term(first)}
    (other,) = runs - {mine}
    assert fleet.held(other).owner is None
    assert fleet.do("answer", "--task", other, "--answer", "yes")[0] == 0
