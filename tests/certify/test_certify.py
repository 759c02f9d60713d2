"""`chaoskit certify` from end to end: levels truly reached, and what stops them."""

import json
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from chaoskit.agents.life import LaunchError
from chaoskit.campaign.again import judge_folder
from chaoskit.certify import Asked, Certificate, CertifyError, certify, folder, read
from chaoskit.certify.known import load_known
from chaoskit.certify.observed import journal, saved
from chaoskit.certify.revision import Revision, load
from chaoskit.certify.run import NO_TAKEOVER, SELFTEST_GOES_ON
from chaoskit.explore.closure import Closure
from chaoskit.loading import load_scenario
from chaoskit.model.errors import InputError
from chaoskit.model.history import Wreck
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
    stages: tuple[str, ...] = ()

    @property
    def level(self) -> str | None:
        return self.certificate.standing.level

    @property
    def verdict(self) -> Verdict:
        return self.certificate.verdict

    @property
    def json(self) -> dict[str, Any]:
        return json.loads((self.out / "certificate.json").read_text())


def written(into: Path, spoilt: str = "whole", **changes: Any) -> Path:
    """Write a scenario for the tiny agent, spoilt or not; returns its path."""
    shutil.copy(AGENT, into)
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
        **changes.pop("manifest", {}),
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
        # No limit is put to the test here, however busy the machine.
        "limits": {"life_seconds": 300, "trial_seconds": 600},
        **changes,
    }
    # JSON is YAML, and needs no writer.
    (into / "agent.yaml").write_text(json.dumps(manifest))
    path = into / "tiny.yaml"
    path.write_text(json.dumps(scenario))
    return path


def only(*names: str) -> Revision:
    """The current revision with these campaigns alone."""
    whole = load()
    levels = (
        level.model_copy(
            update={"campaigns": tuple(c for c in level.campaigns if c.id in names)}
        )
        for level in whole.levels
    )
    return whole.model_copy(update={"levels": tuple(levels)})


def certified(path: Path, level: str, **more: Any) -> Run:
    """Certify a scenario; the self-test of the installation is taken for green."""
    selftest, revision = more.pop("selftest", ()), more.pop("revision", None)
    out = path.parent / "certificate"
    # One job: a campaign is over in less time than a second worker takes to start.
    asked = Asked((path,), out, level=level, jobs=1, **more)
    stages: list[str] = []
    certificate = certify(
        read(asked, revision), lambda: selftest, lambda now: stages.append(now.stage)
    )
    return Run(certificate, out, tuple(stages))


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    """Write a scenario for the tiny agent; see `written`."""
    return lambda *spoilt, **changes: written(tmp_path, *spoilt, **changes)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The agent as it should be, but that nothing fences it.

    One campaign of each sort, of all levels: there is nothing new in the others.
    """
    names = ("clean", "kill", "arguments", "drop-reply", "closure", "chains", "pairs")
    revision = only(*names, "pause", "restart", "restart-then-kill")
    path = written(tmp_path_factory.mktemp("whole"))
    return certified(path, "L4", revision=revision)


@pytest.fixture(scope="module")
def keyless(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The one that sends no keys."""
    return certified(written(tmp_path_factory.mktemp("keyless"), "no-key"), "L2")


@pytest.fixture(scope="module")
def forgetful(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """The one that begins anew."""
    return certified(written(tmp_path_factory.mktemp("anew"), "asks-anew"), "L1")


def with_known(run: Run, tmp_path: Path) -> Run:
    """The same results, weighed with a list of known failures."""
    listed = tmp_path / "known.yaml"
    listed.write_text(ENTRY)
    was = run.certificate
    entries = load_known(listed, was.certified.revision, ("tiny",))
    asked = replace(was.certified.asked, known=listed)
    certified = replace(was.certified, asked=asked, known=entries)
    shutil.copytree(run.out, tmp_path / "out")
    weighed = Certificate.of(certified, was.results, was.server)
    folder.leave(weighed, tmp_path / "out", 1.0)
    return Run(weighed, tmp_path / "out")


def campaigns(run: Run) -> Iterator[dict[str, Any]]:
    """What the certificate says of each campaign."""
    for level in run.json["levels"]:
        yield from level["campaigns"]


# --- levels that are truly reached ---------------------------------------------------


def test_each_level_that_was_reached_says_what_was_struck(whole):
    """With figures: every edge was hit by each campaign that strikes at all of them."""
    fields = whole.json
    assert fields["agent"] | {"name": "tiny", "version": "1.2"} == fields["agent"]
    assert fields["store"]["durability"] == "always"
    assert fields["store"]["server"]
    told = {each["id"]: each for each in campaigns(whole) if "verdict" in each}
    assert told["kill"]["kills"] == told["kill"]["crossings"]["seen"] > 10
    for name in ("kill", "arguments", "drop-reply", "restart"):
        assert told[name]["crossings"]["missed"] == 0
    reached = {level["id"]: level["reached"] for level in fields["levels"]}
    assert reached == {"L0": True, "L1": True, "L2": True, "L3": True, "L4": False}


def test_an_agent_without_fencing_is_crash_hard_and_no_more(whole):
    """Stopped, taken over and continued, it writes."""
    assert (whole.level, whole.verdict) == ("L3", Verdict.FAIL), whole.json["stopped"]
    stop = whole.json["stopped"][0]
    assert (stop["level"], stop["campaign"]) == ("L4", "pause")


def test_pairs_that_a_closure_has_tried_are_not_run_and_that_is_told(whole):
    told = {each["id"]: each for each in campaigns(whole)}
    states = told["chains"]["closure"]["states"]
    assert told["closure"]["closure"]["ended"]
    assert told["chains"]["closure"]["followed_for"] == 2
    assert "verdict" not in told["pairs"]
    said = told["pairs"]["within"]
    assert said.startswith(f"within chains: {states} states, ")
    assert int(said.split()[-2]) > 50
    assert said in (whole.out / "certificate.txt").read_text()
    assert said in (whole.out / "certificate.html").read_text()


def test_a_scenario_that_waits_has_its_pairs_run(write, monkeypatch):
    """A world is restored late, when a wait is over: that is no pair of kills.

    And here, where nothing is waited for, each world that two real kills leave is one
    that the closure has visited: on that it rests that pairs need not be run.
    """
    monkeypatch.setattr("chaoskit.certify.run.has_waits", lambda _: True)
    monkeypatch.setattr("chaoskit.certify.folder._thin_out", lambda *_: None)
    closures: list[Closure] = []

    class Kept(Closure):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            closures.append(self)

    monkeypatch.setattr("chaoskit.campaign.search.Closure", Kept)
    done = certified(write(), "L3", revision=only("clean", "chains", "pairs"))
    assert done.level == "L3", done.json["stopped"]
    told = {each["id"]: each for each in campaigns(done)}
    assert told["pairs"]["pairs"] > 50
    assert "within" not in told["pairs"]
    (closure,) = closures
    assert wrecks(done.out / "campaigns/tiny/pairs") <= set(closure.states)


def wrecks(out: Path) -> set[str]:
    """The fingerprints of the worlds that the kills of a campaign left."""
    trials = [saved(out, line["trial"]) for line in journal(out)]
    return {wreck.state for trial in trials for wreck in trial.of(Wreck)}


def test_a_broken_agent_is_stopped_at_its_own_level(keyless, tmp_path):
    """The certificate says by what, and how to see it again."""
    assert (keyless.level, keyless.verdict) == ("L1", Verdict.FAIL)
    assert keyless.json["level_name"] == "L1 resumable"
    stop = keyless.json["stopped"][0]
    assert (stop["level"], stop["requirement"]) == ("L2", TWICE)
    verb, scenario, schedule = shlex.split(stop["replay"])[1:4]
    assert (verb, schedule) == ("replay", stop["schedule"])
    assert load_scenario(Path(scenario)).scenario.name == "tiny"
    words = shlex.split(stop["replay"])[1:]
    code, said = program(*words, "--out", str(tmp_path / "again"))
    assert code == 1, said
    assert TWICE in said


def program(*words: str) -> tuple[int, str]:
    """Run chaoskit as a user would; its exit code, and all that it said."""
    done = subprocess.run(
        [sys.executable, "-m", "chaoskit", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    return done.returncode, done.stdout


def test_an_agent_that_begins_anew_is_not_resumable(forgetful):
    assert (forgetful.level, forgetful.verdict) == ("L0", Verdict.FAIL)
    assert forgetful.json["stopped"][0]["level"] == "L1"


# --- no level at all -----------------------------------------------------------------


def test_a_run_that_does_not_repeat_is_inconclusive_and_no_level(write):
    done = certified(write("two-minds"), "L2")
    assert (done.level, done.verdict) == (None, Verdict.INCONCLUSIVE)
    assert "does not repeat" in done.json["stopped"][0]["why"]
    assert done.json["level_name"] == "no level"


def test_a_tool_that_is_never_called_is_not_observed(write):
    done = certified(write(tools={"pay": "keyed", "never": "keyed"}), "L2")
    assert done.level is None
    assert "the tool never is declared" in done.json["stopped"][0]["why"]


def test_an_installation_whose_selftest_is_not_green_certifies_nothing(write):
    done = certified(write(), "L2", selftest=("the self-test is not green",))
    assert (done.level, done.verdict) == (None, Verdict.INCONCLUSIVE)


def test_a_budget_that_cuts_a_campaign_is_no_pass(write):
    """The level is not reached, and how much was left over is said."""
    done = certified(write(), "L2", budget=5)
    assert (done.level, done.verdict) == ("L0", Verdict.INCONCLUSIVE)
    assert "more schedules were due and not run" in done.json["stopped"][0]["why"]


def test_pauses_by_which_nobody_took_over_prove_nothing(write, monkeypatch):
    """All of them may wait for what the paused one holds; that is no fencing."""
    monkeypatch.setattr("chaoskit.certify.run.takeovers", lambda _: 0)
    done = certified(write(), "L4", revision=only("clean", "pause"))
    assert done.level == "L3"
    assert NO_TAKEOVER in [stop["why"] for stop in done.json["stopped"]]


# --- known failures ------------------------------------------------------------------


def test_a_known_failure_lifts_no_level_and_fails_no_run(keyless, tmp_path):
    done = with_known(keyless, tmp_path)
    assert (done.level, done.verdict) == ("L1", Verdict.PASS)
    assert done.json["stopped"][0]["known"]
    assert done.json["known_failures_that_pass"] == []


def test_a_known_failure_that_passes_fails_the_run(whole, tmp_path):
    done = with_known(whole, tmp_path)
    assert (done.level, done.verdict) == ("L3", Verdict.FAIL)
    (entry,) = done.json["known_failures_that_pass"]
    assert entry["requirement"] == TWICE
    assert "take it out of" in (done.out / "certificate.txt").read_text()


# --- what it refuses -----------------------------------------------------------------


def test_a_capability_that_nothing_verifies_is_an_error(write):
    with pytest.raises(CertifyError, match="declares approval, and no scenario"):
        certified(write(capabilities=["approval"]), "L2")


def test_a_manifest_that_changes_meanwhile_ends_it(write):
    """Or what was tried last would be another agent than what was tried first."""
    path = write()

    def spoil(_: object) -> None:
        text = (path.parent / "agent.yaml").read_text()
        (path.parent / "agent.yaml").write_text(text.replace("whole", "no-key"))

    out = path.parent / "certificate"
    asked = Asked((path,), out, level="L1", jobs=1)
    with pytest.raises(CertifyError, match="was changed while the run went on"):
        certify(read(asked), tuple, spoil)
    assert not (out / "certificate.json").exists()


def test_streaming_that_is_declared_has_to_be_seen(write):
    with pytest.raises(CertifyError, match="declares streaming, and no reply"):
        certified(write(capabilities=["streaming"]), "L2")


def test_a_missing_server_ends_it_with_the_way_to_get_one(write, monkeypatch):
    """Nothing is skipped."""
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("chaoskit.world.redis.own.folders_of", lambda _: ())
    with pytest.raises(MissingServer, match="Install one with"):
        certified(write(), "L2")


def test_a_missing_image_ends_it_with_the_way_to_get_it(write):
    """And so does an engine that is not there."""
    image = {"launch": "docker", "docker": {"image": "chaoskit-no-such-image:1"}}
    path = write(manifest={**image, "fork": None, "start": ["agent"]})
    with pytest.raises(LaunchError, match=r"docker (build|pull)|install docker.io"):
        certified(path, "L2")
    assert not (path.parent / "certificate" / "certificate.json").exists()


def test_a_missing_package_ends_it_with_the_way_to_get_it(write):
    """One that the manifest names; by `setup.sh` if there is one beside it."""
    fork = {"preload": ["no_such_package"], "call": "tiny_agent:main"}
    path = write(manifest={"fork": fork})
    with pytest.raises(LaunchError, match="-m pip install PACKAGE"):
        certified(path, "L2")
    (path.parent / "setup.sh").touch()
    with pytest.raises(LaunchError, match=r"run \S+setup.sh first"):
        certified(path, "L2")


@pytest.mark.parametrize(
    ("level", "more", "said"),
    [
        ("L9", {}, "expected one of L0, L1"),
        ("L2", {"durability": "sometimes"}, "expected one of always, everysec"),
    ],
)
def test_wrong_words_are_told(write, level, more, said):
    with pytest.raises(CertifyError, match=said):
        certified(write(), level, **more)


def test_a_wrong_scenario_is_told_as_anywhere(write):
    with pytest.raises(InputError, match="a tool declared under"):
        certified(write(tools={}), "L2")


# --- what it leaves ------------------------------------------------------------------


def test_the_same_command_gives_the_same_certificate(forgetful):
    """Byte for byte, findings too; how long it took is in a file of its own."""
    path = forgetful.out / "certificate.json"
    before = path.read_bytes()
    (forgetful.out / "badge.svg").write_text("of an earlier run")
    again = certified(forgetful.certificate.certified.asked.scenarios[0], "L1")
    assert path.read_bytes() == before
    assert again.json["stopped"]
    assert SELFTEST_GOES_ON in again.stages  # minutes in which nothing else is told
    assert json.loads((again.out / "seconds.json").read_text())["seconds"] > 0


def test_observable_is_no_badge(forgetful):
    """Nor is a badge of an earlier run left lying there."""
    assert not (forgetful.out / "badge.svg").exists()


def test_the_folder_is_small_and_names_the_command(keyless):
    command = shlex.split(keyless.json["reproduce"])
    scenario = str(keyless.out.parent / "tiny.yaml")
    assert command[:3] == ["chaoskit", "certify", scenario]
    lines = (keyless.out / "reproduce").read_text().splitlines()
    assert shlex.split(lines[1]) == ["cd", "--", str(Path.cwd()), "||", "exit", "2"]
    assert lines[2] == keyless.json["reproduce"]
    assert command[-1] == f"{keyless.out}-again"
    trials = keyless.out / "campaigns/tiny/kill/trials"
    kept = {path.name for path in trials.iterdir()}
    assert "baseline-1" in kept
    assert len(kept) <= 3


def test_a_campaign_of_the_folder_that_is_judged_again_says_what_was_removed(keyless):
    """So that nobody takes it for damaged, or what is left of it for all."""
    passed = judge_folder(keyless.out / "campaigns/tiny/clean")
    assert passed.verdict is Verdict.INCONCLUSIVE
    *_, doubt = passed.doubts
    assert "only those were kept that show something" in doubt


def test_a_level_has_a_badge_and_ci_sees_what_stopped_it(keyless):
    assert "L1 on redis always" in (keyless.out / "badge.svg").read_text()
    suites = ElementTree.parse(keyless.out / "junit.xml").getroot()
    told = {suite.get("name"): suite for suite in suites}
    assert told["L1"].get("failures") == "0"
    assert int(told["L2"].get("failures", "0")) >= 1
    assert {each.get("type") for each in told["L2"].iter("failure")} == {TWICE}
    page = (keyless.out / "certificate.html").read_text()
    assert "L1 resumable" in page
    assert TWICE in page


def test_the_program_says_what_is_wrong_and_exits_2(write, tmp_path):
    path = write(capabilities=["timers"])
    code, said = program("certify", str(path), "--out", str(tmp_path / "certificate"))
    assert code == 2
    assert "declares timers" in said
    assert "Traceback" not in said
