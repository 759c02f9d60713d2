"""`chaoskit certify` from end to end: levels truly reached, and what stops them."""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from chaoskit.certify import Asked, Certificate, CertifyError, certify, read
from chaoskit.loading import load_scenario
from chaoskit.model.errors import InputError
from chaoskit.model.verdict import Verdict
from chaoskit.world.servers import MissingServer

AGENT = Path(__file__).with_name("tiny_agent.py")
TWICE = "effects/once-across-kill"
ENTRY = f"- {{requirement: {TWICE}, scenario: tiny, reason: it sends no key yet}}\n"


@dataclass(frozen=True)
class Run:
    """A certificate, and what was left of the run that gave it."""

    certificate: Certificate
    out: Path

    @property
    def level(self) -> str | None:
        return self.certificate.standing.level

    @property
    def verdict(self) -> Verdict:
        return self.certificate.verdict

    @property
    def json(self) -> dict[str, Any]:
        return json.loads((self.out / "certificate.json").read_text())


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a scenario for the tiny agent, spoilt or not; returns its path."""

    def write(spoilt: str = "whole", **changes: Any) -> Path:
        shutil.copy(AGENT, tmp_path)
        manifest = {
            "name": "tiny",
            "version": "1.2",
            "launch": "fork",
            "fork": {
                "preload": ["chaoskit.selftest.kit", "redis"],
                "call": "tiny_agent:main",
            },
            "start": ["{python}", "tiny_agent.py", spoilt, "{run}", "--goal", "{goal}"],
            "store": "redis",
            "contract": {"effects": "exactly-once"},
            "capabilities": changes.pop("capabilities", []),
        }
        scenario = {
            "name": "tiny",
            "agent": "agent.yaml",
            "task": {"goal": "Pay the bill"},
            "llm": {
                "script": [
                    {"call": {"pay": {"order": "o-1", "cents": 100}}},
                    {"say": "Paid."},
                ]
            },
            "tools": {"pay": "keyed"},
            **changes,
        }
        # JSON is YAML, and needs no writer.
        (tmp_path / "agent.yaml").write_text(json.dumps(manifest))
        path = tmp_path / "tiny.yaml"
        path.write_text(json.dumps(scenario))
        return path

    return write


@pytest.fixture
def run(tmp_path: Path) -> Callable[..., Run]:
    """Certify a scenario; the self-test of the installation is taken for green."""

    def run(
        path: Path, level: str = "L2", known: str | None = None, **more: Any
    ) -> Run:
        listed = None
        if known is not None:
            listed = tmp_path / "known.yaml"
            listed.write_text(known)
        selftest = more.pop("selftest", ())
        out = tmp_path / "certificate"
        asked = Asked((path,), out, level=level, known=listed, jobs=2, **more)
        return Run(certify(read(asked), lambda: selftest), out)

    return run


# --- levels that are truly reached ---------------------------------------------------


def test_a_correct_agent_reaches_what_was_asked_for(write, run):
    """With figures: every edge was hit by each campaign that strikes at all of them."""
    done = run(write())
    assert (done.level, done.verdict) == ("L2", Verdict.PASS), done.json["stopped"]
    fields = done.json
    assert fields["agent"] | {"name": "tiny", "version": "1.2"} == fields["agent"]
    assert fields["store"]["durability"] == "always"
    assert fields["store"]["server"]
    campaigns = [each for level in fields["levels"] for each in level["campaigns"]]
    told = {each["id"]: each for each in campaigns if "verdict" in each}
    assert told.keys() == {"clean", "kill", "wording", "arguments"}
    assert told["kill"]["kills"] == told["kill"]["crossings"]["seen"] > 10
    for name in ("kill", "wording", "arguments"):
        assert told[name]["crossings"]["missed"] == 0
    assert [level["reached"] for level in fields["levels"]] == [
        True,
        True,
        True,
        False,
        False,
    ]


def test_an_agent_without_fencing_is_crash_hard_and_no_more(write, run):
    """Every pair of kills is survived; stopped, taken over and continued, it writes."""
    done = run(write(), "L4")
    assert done.level == "L3", done.json["stopped"]
    told = {
        each["id"]: each
        for level in done.json["levels"]
        for each in level["campaigns"]
        if "verdict" in each
    }
    assert told["pairs"]["pairs"] > 50
    assert told["closure"]["closure"]["ended"]
    stop = done.json["stopped"][0]
    assert (stop["level"], stop["campaign"]) == ("L4", "pause")


def test_a_broken_agent_is_stopped_at_its_own_level(write, run, tmp_path):
    """The certificate says by what, and how to see it again."""
    done = run(write("no-key"))
    assert (done.level, done.verdict) == ("L1", Verdict.FAIL)
    assert done.json["level_name"] == "L1 resumable"
    stop = done.json["stopped"][0]
    assert (stop["level"], stop["requirement"]) == ("L2", TWICE)
    verb, scenario, schedule = shlex.split(stop["replay"])[1:4]
    assert (verb, schedule) == ("replay", stop["schedule"])
    assert load_scenario(Path(scenario)).scenario.name == "tiny"
    words = shlex.split(stop["replay"])[1:]
    shown = subprocess.run(
        [sys.executable, "-m", "chaoskit", *words, "--out", str(tmp_path / "again")],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert shown.returncode == 1, shown.stdout + shown.stderr
    assert TWICE in shown.stdout


def test_an_agent_that_begins_anew_is_not_resumable(write, run):
    done = run(write("asks-anew"))
    assert (done.level, done.verdict) == ("L0", Verdict.FAIL)
    assert done.json["stopped"][0]["level"] == "L1"


# --- no level at all -----------------------------------------------------------------


def test_a_run_that_does_not_repeat_is_inconclusive_and_no_level(write, run):
    done = run(write("two-minds"))
    assert (done.level, done.verdict) == (None, Verdict.INCONCLUSIVE)
    assert "does not repeat" in done.json["stopped"][0]["why"]
    assert done.json["level_name"] == "no level"


def test_a_tool_that_is_never_called_is_not_observed(write, run):
    done = run(write(tools={"pay": "keyed", "never": "keyed"}))
    assert done.level is None
    assert "the tool never is declared" in done.json["stopped"][0]["why"]


def test_an_installation_whose_selftest_is_not_green_certifies_nothing(write, run):
    done = run(write(), selftest=("the self-test is not green",))
    assert (done.level, done.verdict) == (None, Verdict.INCONCLUSIVE)


def test_a_budget_that_cuts_a_campaign_is_no_pass(write, run):
    """The level is not reached, and how much was left over is said."""
    done = run(write(), budget=5)
    assert (done.level, done.verdict) == ("L0", Verdict.INCONCLUSIVE)
    assert "more schedules were due and not run" in done.json["stopped"][0]["why"]


# --- known failures ------------------------------------------------------------------


def test_a_known_failure_still_runs_and_lifts_no_level(write, run):
    done = run(write("no-key"), known=ENTRY)
    assert (done.level, done.verdict) == ("L1", Verdict.PASS)
    assert done.json["stopped"][0]["known"]
    assert done.json["known_failures_that_pass"] == []


def test_a_known_failure_that_passes_fails_the_run(write, run):
    done = run(write(), known=ENTRY)
    assert (done.level, done.verdict) == ("L2", Verdict.FAIL)
    (entry,) = done.json["known_failures_that_pass"]
    assert entry["requirement"] == TWICE
    assert "take it out of" in (done.out / "certificate.txt").read_text()


# --- what it refuses -----------------------------------------------------------------


def test_a_capability_that_nothing_verifies_is_an_error(write, run):
    with pytest.raises(CertifyError, match="declares approval, and no scenario"):
        run(write(capabilities=["approval"]))


def test_streaming_that_is_declared_has_to_be_seen(write, run):
    with pytest.raises(CertifyError, match="declares streaming, and no reply"):
        run(write(capabilities=["streaming"]))


def test_a_missing_server_ends_it_with_the_way_to_get_one(write, run, monkeypatch):
    """Nothing is skipped."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("chaoskit.world.redis.own.folders_of", lambda _: ())
    with pytest.raises(MissingServer, match="Install one with"):
        run(write())


@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({"level": "L9"}, "expected one of L0, L1"),
        ({"durability": "sometimes"}, "expected one of always, everysec"),
    ],
)
def test_wrong_words_are_told(write, run, more, said):
    with pytest.raises(CertifyError, match=said):
        run(write(), **more)


def test_a_wrong_scenario_is_told_as_anywhere(write, run):
    with pytest.raises(InputError, match="a tool declared under"):
        run(write(tools={}))


# --- what it leaves ------------------------------------------------------------------


def test_the_same_command_gives_the_same_certificate(write, run):
    """Byte for byte; how long it took is in a file of its own."""
    path = write()
    first = run(path, "L1")
    bytes_of_first = (first.out / "certificate.json").read_bytes()
    second = run(path, "L1")
    assert (second.out / "certificate.json").read_bytes() == bytes_of_first
    assert json.loads((second.out / "seconds.json").read_text())["seconds"] > 0


def test_the_folder_is_small_and_names_the_command(write, run):
    done = run(write("no-key"))
    command = shlex.split(done.json["reproduce"])
    assert command[:3] == ["chaoskit", "certify", str(done.out.parent / "tiny.yaml")]
    assert (done.out / "reproduce").read_text().splitlines()[1] == done.json[
        "reproduce"
    ]
    kept = {path.name for path in (done.out / "campaigns/tiny/kill/trials").iterdir()}
    assert "baseline-1" in kept
    assert len(kept) <= 3


def test_a_level_has_a_badge_and_ci_sees_what_stopped_it(write, run):
    done = run(write("no-key"))
    assert "L1 on redis always" in (done.out / "badge.svg").read_text()
    suites = ElementTree.parse(done.out / "junit.xml").getroot()
    told = {suite.get("name"): suite for suite in suites}
    assert told["L1"].get("failures") == "0"
    assert int(told["L2"].get("failures", "0")) >= 1
    assert {each.get("type") for each in told["L2"].iter("failure")} == {TWICE}
    page = (done.out / "certificate.html").read_text()
    assert "L1 resumable" in page
    assert TWICE in page


def test_observable_is_no_badge(write, run):
    """Nor is a badge of an earlier run left lying there."""
    assert (run(write(), "L1").out / "badge.svg").exists()
    done = run(write("asks-anew"), "L1")
    assert done.level == "L0"
    assert not (done.out / "badge.svg").exists()


def test_the_program_says_what_is_wrong_and_exits_2(write, tmp_path):
    path = write(capabilities=["timers"])
    words = ["certify", str(path), "--out", str(tmp_path / "certificate")]
    done = subprocess.run(
        [sys.executable, "-m", "chaoskit", *words],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2
    assert "declares timers" in done.stderr
    assert "Traceback" not in done.stderr
