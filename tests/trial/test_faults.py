"""What strikes the agent itself, proved on real processes with a real world.

The lives here are small Python programs that call a tool over HTTP. What they see they
print; what they wait for is a file of theirs, never time.
"""

import asyncio
import inspect
import json
import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaoskit.agents import ForkLauncher, Launcher, ProcessLauncher
from chaoskit.agents.linux import look
from chaoskit.model.history import FaultFired, LifeEnded, LifeStarted
from chaoskit.model.manifest import Manifest
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule
from chaoskit.model.visit import Visit, Visited
from chaoskit.trial import Plan, inherited_environment, run_trial
from chaoskit.world import World
from chaoskit.world.llm import Llm
from chaoskit.world.marks import Marks
from chaoskit.world.tools import Tools

SECONDS_MAX = 60
PAY = "tools.pay[o-1]#1"
PRELUDE = """
import json, os, signal, subprocess, sys, threading, time, urllib.request

def call(tool, **args):
    url = os.environ["CHAOSKIT_TOOLS_URL"] + "/" + tool
    request = urllib.request.Request(url, json.dumps(args).encode(), method="POST")
    with urllib.request.urlopen(request, timeout=20) as reply:
        return json.load(reply)["result"]

def ask(*messages):
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    key = os.environ["OPENAI_API_KEY"]
    headers = {"Authorization": "Bearer " + key, "Content-Type": "application/json"}
    body = json.dumps({"model": "m", "messages": messages}).encode()
    request = urllib.request.Request(url, body, headers)
    with urllib.request.urlopen(request, timeout=20) as reply:
        return json.load(reply)["choices"][0]["message"]

def say(*words):
    print(*words, flush=True)

def is_alive(pid):
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True

def put(name, text):
    with open(name + ".new", "w") as file:
        file.write(str(text))
    os.rename(name + ".new", name)

def wait_for(name):
    while not os.path.exists(name):
        os.sched_yield()
    return open(name).read()

first = "--resume" not in sys.argv
"""
SCENARIO: dict[str, Any] = {
    "name": "faults",
    "agent": "agent.yaml",
    "task": {"goal": "Pay"},
    "llm": {
        "script": [
            {"call": [{"tool": "pay", "args": {"order": "o-1"}}]},
            {"ask": "Sure?"},
            {"say": "Paid."},
        ]
    },
    "tools": {"pay": {"class": "keyed"}, "note": {"class": "keyed"}},
    "human": ["yes"],
}


class Ground:
    """A world and a launcher for one trial after the other."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.world = World([Llm(), Tools(), Marks()])
        self.loop = asyncio.Runner()
        self.loop.run(self.world.start())
        self.launchers: dict[str, Launcher] = {}
        self.trials = 0

    def close(self) -> None:
        for launcher in self.launchers.values():
            self.loop.run(launcher.close())
        self.loop.run(self.world.stop())
        self.loop.close()

    def play(
        self,
        code: str,
        schedule: str = "",
        *,
        launch: str = "process",
        **changes: Any,
    ) -> Visited:
        """A trial of an agent that is this program; it has files of its own."""
        self.trials += 1
        here = self.folder / f"agent-{self.trials}"
        here.mkdir()
        body = inspect.cleandoc(code)
        text = (
            PRELUDE
            + "def main():\n"
            + "".join(f"    {line}\n" for line in body.splitlines())
        )
        # One module for all trials of a warm parent: what it runs is looked up.
        (here / "agent.py").write_text(
            f"{text}\nif __name__ == '__main__':\n    main()\n"
        )
        plan = Plan(
            name=f"trial-{self.trials}",
            visit=Visit(Schedule.parse(schedule)),
            scenario=Scenario.model_validate(SCENARIO | changes),
            manifest=self.manifest(here, launch),
            agent_folder=here,
            run_id="run-1",
        )
        trial = run_trial(plan, self.world, self.launcher(launch), self.out)
        return self.loop.run(asyncio.wait_for(trial, SECONDS_MAX))

    @property
    def out(self) -> Path:
        return self.folder / f"trial-{self.trials}"

    def manifest(self, here: Path, launch: str) -> Manifest:
        start = [sys.executable, str(here / "agent.py")]
        return Manifest.model_validate(
            {
                "name": "small",
                "launch": launch,
                "start": start,
                "resume": [*start, "--resume"],
                "answer": [*start, "--resume", "--answer", "{answer}"],
                "store": "none",
                "contract": {"effects": "exactly-once", "max_lives": 2},
                "fork": {"call": "runner:main"} if launch == "fork" else None,
            }
        )

    def launcher(self, launch: str) -> Launcher:
        if launch not in self.launchers:
            clock = self.folder / f"clock-{launch}"
            if launch == "process":
                self.launchers[launch] = ProcessLauncher(clock)
            else:
                self.launchers[launch] = self.warm(clock)
        return self.launchers[launch]

    def warm(self, clock: Path) -> ForkLauncher:
        """Its lives run the program that their command names."""
        (self.folder / "runner.py").write_text(
            "import runpy, sys\n"
            "def main():\n"
            "    runpy.run_path(sys.argv[0], run_name='__main__')\n"
        )
        environment = inherited_environment()
        return ForkLauncher(
            sys.executable, (), "runner:main", self.folder, environment, clock
        )

    def said(self, life: int) -> list[str]:
        """What a life of the last trial printed."""
        return (self.out / f"life-{life}.out").read_text().splitlines()


@pytest.fixture
def ground(tmp_path: Path) -> Iterator[Ground]:
    made = Ground(tmp_path)
    yield made
    made.close()


@pytest.fixture
def story(told: Any) -> Any:
    """A history in short: lives, crossings and faults."""
    quiet = ("delivered", "applied", "asked", "logged")
    return lambda visited: [word for word in told(visited) if word not in quiet]


def _ends(visited: Visited) -> dict[int, LifeEnded]:
    return {end.life: end for end in visited.trial.of(LifeEnded)}


PAYS = "call('pay', order='o-1')"


def _has_no_trace(ground: Ground, story: Any) -> None:
    """A trial after the one with the fault is as if that had never been."""
    code = PAYS + "\nsay(time.time(), os.environ.get('LD_PRELOAD'))"
    visited = ground.play(code)
    assert story(visited) == [
        *("start 0", f"0:{PAY}:before", f"0:{PAY}:after", "done 0 by itself: 0"),
        *("again 1", f"1:{PAY}:before", f"1:{PAY}:after", "done 1 by itself: 0"),
        "done",
    ]
    now, preloaded = ground.said(0)[0].split()
    assert abs(float(now) - _now()) < SECONDS_MAX
    assert preloaded == str(os.environ.get("LD_PRELOAD"))


_now = time.time


@pytest.mark.proves("agent.kill")
@pytest.mark.parametrize("edge", ["before", "after"])
def test_kill_ends_all_of_a_life_at_its_message(ground, story, edge):
    """Root and child die of it at once, and the next life finds neither."""
    code = """
    if first:
        child = subprocess.Popen(["sleep", "600"])
        put("pids", f"{os.getpid()} {child.pid}")
    else:
        say(*[is_alive(int(pid)) for pid in open("pids").read().split()])
    call("pay", order="o-1")
    """
    visited = ground.play(code, f"kill@0:{PAY}:{edge}")
    history = story(visited)
    strikes = history.index("fault")
    assert history[strikes - 1] == f"0:{PAY}:{edge}"
    assert history[strikes + 1] == "died 0 by fault: signal 9"
    assert _ends(visited)[0].orphans == 1
    assert ground.said(1) == ["False False"]
    _has_no_trace(ground, story)


LEAVES_A_CHILD = """
if first:
    root = os.getpid()
    read, write = os.pipe()
    if os.fork() == 0:
        os.close(write)
        os.read(read, 1)  # until the root is dead
        wait_for("next-life")
        call("note", by="child")
        put("noted", os.getpid())
        while True:
            signal.pause()
    os.close(read)
    put("root", root)
    call("pay", order="o-1")
    os._exit(3)  # never
say(is_alive(int(open("root").read())))
put("next-life", "")
child = int(wait_for("noted"))
say(child, is_alive(child))
call("pay", order="o-1")
"""


@pytest.mark.proves("agent.kill_one")
@pytest.mark.parametrize("edge", ["before", "after"])
@pytest.mark.parametrize("launch", ["process", "fork"])
def test_kill_one_takes_the_root_and_leaves_its_children(ground, story, edge, launch):
    """The child goes on beside the next life, as the old one, until the trial ends."""
    visited = ground.play(LEAVES_A_CHILD, f"kill_one@0:{PAY}:{edge}", launch=launch)
    history = story(visited)
    assert history[history.index("fault") + 1] == "died 0 by fault: signal 9"
    assert _ends(visited)[0].orphans == 1
    assert f"0:{PAY}:after" in history  # it was on its way, and is no late message
    note = history.index("0:tools.note[child]#1:after")
    assert history.index("resume 1") < note < history.index(f"1:{PAY}:before")
    root_is_alive, child = ground.said(1)
    assert root_is_alive == "False"
    pid, was_alive = child.split()
    assert was_alive == "True"
    assert look(int(pid)) is None
    assert visited.trial.ended.outcome == "done"
    _has_no_trace(ground, story)


def test_a_loss_of_power_ends_what_an_earlier_life_has_left(ground, story):
    """A machine that stops takes the children with it that a lone kill had spared."""
    schedule = f"kill_one@0:{PAY}:after + powerloss@1:{PAY}:before"
    visited = ground.play(LEAVES_A_CHILD, schedule)
    assert [_ends(visited)[life].signal for life in (0, 1)] == [9, 9]
    alive = [ground.said(life)[1].split()[1] for life in (1, 2)]
    assert alive == ["True", "False"]
    assert visited.trial.ended.outcome == "done"


ENDS_IN_ITS_OWN_WAY = """
def at_signal(number, frame):
    say("asked", number)
signal.signal(signal.SIGTERM, at_signal)
signal.signal(signal.SIGINT, at_signal)
if first:
    child = subprocess.Popen(["sleep", "600"])
call("pay", order="o-1")
say("paid")
if first:
    say("child ended by", -child.wait())
    sys.exit(CODE)
"""


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        pytest.param("term", 15, marks=pytest.mark.proves("agent.term")),
        pytest.param("int", 2, marks=pytest.mark.proves("agent.int")),
    ],
)
@pytest.mark.parametrize("edge", ["before", "after"])
def test_a_signal_reaches_the_group_and_the_message_goes_on(
    ground, story, kind, number, edge
):
    """The agent gets its reply, and ends as it chooses; the next life resumes."""
    code = ENDS_IN_ITS_OWN_WAY.replace("CODE", "99")
    visited = ground.play(code, f"{kind}@0:{PAY}:{edge}")
    assert sorted(ground.said(0)) == [
        f"asked {number}",
        f"child ended by {number}",
        "paid",
    ]
    before = [f"0:{PAY}:before"] + [f"0:{PAY}:after"] * (edge == "after")
    after = [f"0:{PAY}:after"] * (edge == "before")
    assert story(visited)[:-5] == [
        *("start 0", *before, "fault", *after, "died 0 by asked: 99"),
        *("resume 1", f"1:{PAY}:before", f"1:{PAY}:after", "done 1 by itself: 0"),
    ]
    assert ground.said(1) == ["paid"]
    _has_no_trace(ground, story)


@pytest.mark.parametrize(
    ("code", "ending"), [(0, "done"), (75, "parked"), (65, "failed"), (1, "died")]
)
def test_after_a_signal_the_exit_code_keeps_its_meaning(ground, code, ending):
    """It was asked to end, and says how: a run that is done is not started again."""
    program = ENDS_IN_ITS_OWN_WAY.replace("CODE", str(code))
    visited = ground.play(program, f"term@0:{PAY}:after")
    end = _ends(visited)[0]
    assert (end.cause, end.ending, end.code) == ("asked", ending, code)
    again = [start for start in visited.trial.of(LifeStarted) if start.life == 1]
    purposes = {"done": ["again"], "died": ["resume"]}
    assert [start.purpose for start in again] == purposes.get(ending, [])


def test_a_death_by_a_scheduled_signal_is_none_of_the_agents_own(ground):
    """It dies of it as often as a schedule asks, beyond `max_lives`, and is resumed."""
    signals = " + ".join(f"int@{life}:{PAY}:after" for life in range(4))
    code = """
    lives = open("lives", "a")
    lives.write("x")
    lives.flush()
    call("pay", order="o-1")
    while lives.tell() < 5:
        signal.pause()
    """
    visited = ground.play(code, signals)
    asked = [end.signal for end in visited.trial.of(LifeEnded) if end.cause == "asked"]
    assert asked == [2, 2, 2, 2]
    assert visited.trial.ended.outcome == "done"


def test_a_life_that_ignores_the_signal_is_killed_after_its_grace(ground):
    """The grace is the scenario's; what comes of it is no time limit of a life."""
    code = """
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    call("pay", order="o-1")
    while first:
        signal.pause()
    """
    limits = {"grace_seconds": 0.2, "life_seconds": 25}
    visited = ground.play(code, f"term@0:{PAY}:before", limits=limits)
    end = _ends(visited)[0]
    assert (end.cause, end.ending, end.signal) == ("asked", "died", 9)
    assert end.t - next(visited.trial.of(FaultFired)).t < 10


PAUSED = """
def state(pid):
    if not is_alive(int(pid)):
        return "-"
    return open(f"/proc/{pid}/stat").read().rpartition(")")[2].split()[0]
if first:
    busy = subprocess.Popen([sys.executable, "-S", "-c", "while True: pass"])
    put("pids", f"{os.getpid()} {busy.pid}")
else:
    say(*[state(pid) for pid in open("pids").read().split()])
call("pay", order="o-1")
say("paid")
"""


@pytest.mark.proves("agent.pause")
@pytest.mark.parametrize("edge", ["before", "after"])
@pytest.mark.parametrize("launch", ["process", "fork"])
def test_pause_stops_a_life_until_another_has_ended(ground, story, edge, launch):
    """All of it stands still meanwhile; then its message is delivered, and it ends."""
    visited = ground.play(PAUSED, f"pause@0:{PAY}:{edge}", launch=launch)
    before = [f"0:{PAY}:before"] + [f"0:{PAY}:after"] * (edge == "after")
    after = [f"0:{PAY}:after"] * (edge == "before")
    assert story(visited) == [
        *("start 0", *before, "fault"),
        *("resume 1", f"1:{PAY}:before", f"1:{PAY}:after", "done 1 by itself: 0"),
        *("life.continued", *after, "done 0 by itself: 0"),
        *("again 2", f"2:{PAY}:before", f"2:{PAY}:after", "done 2 by itself: 0"),
        "done",
    ]
    assert ground.said(1) == ["T T", "paid"]
    assert ground.said(0) == ["paid"]
    assert visited.trial.ended.life == 1
    _has_no_trace(ground, story)


def test_the_second_line_decides_whatever_the_first_life_does(ground):
    """It dies, is followed, and fails; that the first one is done does not count."""
    code = """
    call("pay", order="o-1")
    if not first:
        put("seen", open("seen").read() + "x" if os.path.exists("seen") else "x")
        sys.exit(1 if open("seen").read() == "x" else 65)
    """
    visited = ground.play(code, f"pause@0:{PAY}:before")
    ends = [(end.life, end.ending) for end in visited.trial.of(LifeEnded)]
    assert ends == [(1, "died"), (2, "failed"), (0, "done")]
    assert visited.trial.ended.outcome == "failed"


@pytest.mark.parametrize("code", [1, 75])
def test_a_line_that_comes_to_nothing_decides_nothing(ground, code):
    """The run is locked by the life that is stopped: the others die of it, or park.

    Nor are their deaths counted: the life that goes on dies once itself.
    """
    code = f"""
    if os.path.exists("lock"):
        sys.exit({code})
    put("lock", "x")
    call("pay", order="o-1")
    os.remove("lock")
    if first: sys.exit(1)
    """
    visited = ground.play(code, f"pause@0:{PAY}:before")
    ends = [end for end in visited.trial.of(LifeEnded) if end.life == 0]
    assert [end.ending for end in ends] == ["died"]
    assert visited.trial.ended.outcome == "done"


ASKS = """
first_words = {"role": "user", "content": "Pay"}
reply = ask(first_words)
result = {"role": "tool", "tool_call_id": reply["tool_calls"][0]["id"], "content": "1"}
gate = ask(first_words, reply, result)
if "--answer" not in sys.argv:
    if not first:
        sys.exit(75)
    call("note", by="first")
    sys.exit(75)
answer = {"role": "tool", "tool_call_id": gate["tool_calls"][0]["id"], "content": "yes"}
say(ask(first_words, reply, result, gate, answer)["content"])
"""


def test_where_the_second_line_parks_the_first_life_goes_on_before_the_rest(ground):
    """The human's answer comes once nobody else is on the run."""
    visited = ground.play(ASKS, "pause@0:llm.chat#2:after")
    ends = [(end.life, end.ending) for end in visited.trial.of(LifeEnded)]
    assert ends[:3] == [(1, "parked"), (0, "parked"), (2, "done")]
    purposes = [start.purpose for start in visited.trial.of(LifeStarted)]
    assert purposes == ["start", "resume", "answer", "again"]
    assert visited.trial.ended.answer == "Paid."


def test_a_life_that_was_paused_has_a_limit_like_another(ground):
    """One that never ends once it goes on is ended, and the run is as it was."""
    code = """
    call("pay", order="o-1")
    while first:
        signal.pause()
    """
    limits = {"life_seconds": 1, "trial_seconds": 20}
    visited = ground.play(code, f"pause@0:{PAY}:before", limits=limits)
    end = _ends(visited)[0]
    assert (end.cause, end.ending) == ("limit", "died")
    assert visited.trial.ended.outcome == "done"


def test_a_fault_may_strike_the_life_that_goes_on(ground):
    """Its second call is one of its own, after the pause."""
    code = "call('pay', order='o-1')\nif first: call('note', by='first')"
    schedule = f"pause@0:{PAY}:before + kill@0:tools.note[first]#1:after"
    visited = ground.play(code, schedule)
    end = _ends(visited)[0]
    assert (end.cause, end.signal) == ("fault", 9)
    assert visited.trial.unfired == ()
    assert visited.trial.ended.outcome == "done"


SEES_THE_CLOCK = """
wall, steady = time.time(), time.monotonic()
call("pay", order="o-1")
child = subprocess.run(["date", "+%s"], capture_output=True, text=True).stdout
before_sleep = time.monotonic()
time.sleep(0.05)
say(json.dumps([wall, time.time(), time.monotonic() - steady, float(child)]))
say(time.monotonic() - before_sleep < 20)
if first:
    call("note", by="first")
"""


@pytest.mark.proves("agent.skew")
@pytest.mark.parametrize("edge", ["before", "after"])
@pytest.mark.parametrize("launch", ["process", "fork"])
@pytest.mark.parametrize("seconds", [3600, -86400])
def test_skew_moves_the_wall_clock_from_its_crossing_on(
    ground, story, edge, launch, seconds
):
    """For this life, its children, and the next life; the monotonic one goes on."""
    schedule = f"skew({seconds})@0:{PAY}:{edge} + kill@0:tools.note[first]#1:after"
    visited = ground.play(SEES_THE_CLOCK, schedule, launch=launch)
    assert visited.trial.unfired == ()
    wall, later, steady, child = json.loads(ground.said(0)[0])
    assert abs(wall - _now()) < SECONDS_MAX
    assert abs(later - wall - seconds) < SECONDS_MAX
    assert 0 < steady < SECONDS_MAX
    assert abs(child - later) < SECONDS_MAX
    assert ground.said(0)[1] == "True"
    wall, later, *_ = json.loads(ground.said(1)[0])
    assert abs(wall - _now() - seconds) < SECONDS_MAX
    assert abs(later - wall) < SECONDS_MAX
    _has_no_trace(ground, story)


@pytest.mark.parametrize("launch", ["process", "fork"])
def test_a_life_that_takes_too_much_memory_dies_of_it(ground, launch):
    """A MemoryError that it does not catch, and a death like another."""
    code = "call('pay', order='o-1')\nif first: bytearray(2**30)"
    visited = ground.play(code, launch=launch, limits={"memory_mb": 512})
    end = _ends(visited)[0]
    assert (end.cause, end.ending, end.code) == ("itself", "died", 1)
    assert end.tail[-1] == "MemoryError"
    assert visited.trial.ended.outcome == "done"
    assert ground.play(code, launch=launch).trial.ended.outcome == "done"
    assert _ends(visited)[0].life == 0


def test_a_crash_at_the_start_is_a_death_like_another(ground):
    """Nothing was crossed; the run goes on, and is given up after so many of them."""
    once = "if first: os._exit(9)\ncall('pay', order='o-1')"
    visited = ground.play(once)
    assert _ends(visited)[0].ending == "died"
    assert visited.trial.ended.outcome == "done"
    always = ground.play("raise SystemExit('no config')").trial
    assert always.ended.outcome == "endless"
    assert always.addresses == ()
    assert [end.tail for end in always.of(LifeEnded)] == [("no config",)] * 3


MARKS = """
import chaoskit
chaoskit.mark("ready")
if first:
    pid = os.fork()
    if pid == 0:
        chaoskit.mark("child")
        os._exit(0)
    os.waitpid(pid, 0)
subprocess.run(["sh", "-c",
    "echo shell >&$CHAOSKIT_MARK_FD; head -c 1 <&$CHAOSKIT_MARK_FD >/dev/null"],
    close_fds=False)
say("through")
"""


@pytest.mark.parametrize("launch", ["process", "fork"])
def test_marks_are_crossings_of_the_life_that_makes_them(ground, story, launch):
    """From Python, from a child, and in a shell; each can be struck there."""
    visited = ground.play(MARKS, "kill@0:marks.mark[shell]#1:before", launch=launch)
    marks = [f"0:marks.mark[{name}]#1:before" for name in ("ready", "child", "shell")]
    assert story(visited)[:6] == [
        *("start 0", *marks, "fault", "died 0 by fault: signal 9"),
    ]
    assert ground.said(0) == []
    assert ground.said(1) == ["through"]
