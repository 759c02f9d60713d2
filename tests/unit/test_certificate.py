"""What a certificate says and exits with, weighed from outcomes written by hand."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest

from chaoskit import __version__
from chaoskit.campaign.output import OutputError, claimed
from chaoskit.certify import Asked, Certificate, CertifyError, certify, read
from chaoskit.certify.as_json import as_json
from chaoskit.certify.evidence import Breach, Outcome
from chaoskit.certify.junit import as_junit
from chaoskit.certify.not_judged import UNTESTED
from chaoskit.certify.outcomes import plain_text
from chaoskit.certify.page import as_html
from chaoskit.certify.reading import unchanged
from chaoskit.certify.results import Ran, Results
from chaoskit.certify.revision import load
from chaoskit.certify.text import COVERS, as_text
from chaoskit.checks.log import silent
from chaoskit.checks.takeover import blocked
from chaoskit.model.errors import InputError
from chaoskit.model.faults import FaultKind
from chaoskit.model.report import Report
from chaoskit.model.verdict import Verdict

REVISION = load()
TWICE = "effects/once-across-kill"
PAYING = ({"call": {"pay": {"order": "o-1"}}}, {"say": "Paid."})
CAMPAIGNS = {each.id: each for each in REVISION.campaigns()}


@pytest.fixture
def asked(tmp_path: Path) -> Callable[..., Asked]:
    """Leaves a scenario and a manifest with changes; returns what is asked of them."""

    def leave(
        level: str = "L4",
        known: str = "",
        script: Sequence[Any] = PAYING,
        **changes: Any,
    ) -> Asked:
        manifest = {
            "name": "tiny",
            "launch": "process",
            "start": ["agent"],
            "store": "redis",
            "contract": {"effects": "exactly-once"},
            **changes,
        }
        scenario = {
            "name": "pay",
            "agent": "agent.yaml",
            "task": {"goal": "Pay"},
            "llm": {"script": list(script)},
            "tools": {"pay": "keyed"},
        }
        (tmp_path / "agent.yaml").write_text(json.dumps(manifest))
        (tmp_path / "pay.yaml").write_text(json.dumps(scenario))
        (tmp_path / "known.yaml").write_text(known)
        file = tmp_path / "known.yaml" if known else None
        out = tmp_path / "certificate"
        return Asked((tmp_path / "pay.yaml",), out, level=level, known=file)

    return leave


def ran(name: str, **more: Any) -> Ran:
    """A campaign that was run, and what its report says."""
    report = Report("0", "pay", "pay.yaml", "tiny", "redis", 0, "sweep", **more)
    return Ran("pay", CAMPAIGNS[name], report, report.verdict)


def broken(campaign: str, requirement: str = TWICE) -> Outcome:
    """A campaign that found something."""
    replay = "chaoskit replay pay.yaml ''"
    return Outcome("pay", campaign, (Breach(requirement, "BAD", "", replay, "0.0"),))


def weighed(
    asked: Asked,
    *exceptions: Outcome,
    notes: tuple[str, ...] = (),
    **more: tuple[str, ...],
) -> Any:
    """All campaigns up to the level asked for passed, but for these.

    ``notes`` are those of each report, ``more`` those of some more, by campaign.
    """
    told = {each.campaign: each for each in exceptions}
    names = [
        campaign.id
        for level in REVISION.up_to(asked.level)
        for campaign in level.campaigns
    ]
    outcomes = [told.get(name, Outcome("pay", name)) for name in names]
    reports = [ran(name, notes=notes + more.get(name, ())) for name in names]
    results = Results(outcomes, reports)
    return Certificate.of(read(asked), results, "")


def fields(certificate: Certificate) -> Any:
    return json.loads(as_json(certificate))


# --- what it exits with --------------------------------------------------------------

ENTRY = f"- {{requirement: {TWICE}, scenario: pay, reason: no keys yet}}\n"


def test_a_new_failure_does_not_hide_behind_a_known_one(asked):
    """Neither in the verdict, nor in the lists, nor from a CI system."""
    found = weighed(
        asked(known=ENTRY), broken("kill"), broken("treadmill", "store/whole")
    )
    assert (found.standing.level, found.verdict) == ("L1", Verdict.FAIL)
    told = [(s["requirement"], s["known"]) for s in fields(found)["stopped"]]
    assert told == [(TWICE, True), ("store/whole", False)]
    assert "L3 was not reached (pay, treadmill): store/whole" in as_text(found)
    assert "store/whole" in as_html(found)
    (failure,) = ElementTree.fromstring(as_junit(found)).iter("failure")
    assert failure.get("type") == "store/whole"


def test_a_known_failure_alone_is_a_pass(asked):
    found = weighed(asked(known=ENTRY), broken("kill"), broken("pairs"))
    assert (found.standing.level, found.verdict) == ("L1", Verdict.PASS)
    root = ElementTree.fromstring(as_junit(found))
    assert not list(root.iter("failure"))
    assert any("known: " in (each.text or "") for each in root.iter("system-out"))
    assert "   known:    " in as_text(found)


def test_what_was_found_weighs_more_than_a_doubt_below(asked):
    doubtful = Outcome("pay", "kill", broken("kill").breaches, ("x never fired",))
    found = weighed(asked("L2"), doubtful)
    assert (found.standing.level, found.verdict) == ("L0", Verdict.FAIL)
    assert TWICE in as_text(found)


def test_what_is_demanded_above_the_level_asked_for_is_listed(asked):
    """It fails nothing, and nobody can say that it was not told."""
    found = weighed(asked("L1"), broken("kill"))
    assert (found.standing.level, found.verdict) == ("L1", Verdict.PASS)
    (told,) = fields(found)["found_and_not_demanded"]
    assert (told["level"], told["requirement"]) == ("L2", TWICE)
    assert f"found, not demanded at L1 (pay, kill): {TWICE}" in as_text(found)
    assert "Found, not demanded at L1" in as_html(found)
    root = ElementTree.fromstring(as_junit(found))
    assert TWICE in "".join(each.text or "" for each in root.iter("system-out"))


# --- what it says --------------------------------------------------------------------

NO_STORE = "store was not judged: the manifest names no `inspect`"
NO_LOG = "log was not judged: the agent writes no JSON log lines"


def test_what_was_not_judged_is_told(asked):
    """With the requirements that nobody may take for fulfilled."""
    notes = (NO_STORE, NO_LOG)
    found = weighed(asked("L1"), notes=notes, kill=(f"... {UNTESTED}",))
    keys, inspect, log, fence = fields(found)["not_judged"]
    assert keys["requirements"] == ["effects/distinct-key"]  # it pays once only
    assert {"store/newest", "fence/no-status"} < set(inspect["requirements"])
    assert "`inspect`" in inspect["why"]
    assert "log/no-content" in log["requirements"]
    assert (log["where"], fence["where"]) == ([], ["pay/kill"])
    assert fence["requirements"][0] == "fence/no-effect"
    assert as_text(found).count("not judged") == 4
    assert as_html(found).count("not judged") == 4


def test_what_was_never_called_otherwise_is_told(asked):
    """Beside what was not judged: nobody may take such a call for tried."""
    flag = {"call": {"pay": {"flag": True}}}
    found = weighed(asked("L2", script=[*PAYING[:1], flag, *PAYING[1:]]))
    (told,) = fields(found)["not_varied"]
    assert (told["scenario"], told["campaign"]) == ("pay", "arguments")
    assert told["calls"] == ["1.0 (pay)"]
    assert "not varied    1.0 (pay): repeated with the same" in as_text(found)
    assert "1.0 (pay): repeated with the same" in as_html(found)
    assert fields(weighed(asked("L2")))["not_varied"] == []


def test_all_is_judged_of_an_agent_that_shows_it(asked):
    script = [*PAYING[:1], *PAYING]
    found = weighed(asked("L1", script=script, inspect=["agent", "inspect"]))
    assert fields(found)["not_judged"] == []


def test_the_notes_of_the_checks_are_understood(told, make_manifest):
    """Or what was not judged would be in no list."""
    assert silent(told().done().trial(), make_manifest())
    paused = told().cross("redis", "set", "a").struck(FaultKind.PAUSE)
    assert blocked(paused.resume().crashed().continued().trial()).endswith(UNTESTED)


@pytest.mark.parametrize(
    ("contract", "said"),
    [
        ({"effects": "exactly-once"}, ""),
        ({"effects": "at-least-once"}, "at-least-once"),
        ({"effects": "exactly-once", "resumes": "start"}, "resumes from start"),
    ],
)
def test_a_weaker_contract_stands_beside_the_level(asked, contract, said):
    """Wherever the level is said: an agent of which less was asked has earned less."""
    found = weighed(asked("L1", contract=contract))
    assert found.weaker == (f" · {said}" if said else "")
    assert f"L1{found.weaker} · redis always" in found.label
    assert said in as_html(found)


def test_limits_of_its_own_are_told(asked):
    contract = {"effects": "exactly-once", "max_attempts": 7, "max_lives": 50}
    found = weighed(asked("L1", contract=contract))
    assert "gives up after 7 deaths at one call" in as_text(found)
    assert "may take 50 lives" in as_text(found)
    agent = fields(found)["agent"]
    assert (agent["max_attempts"], agent["max_lives"]) == (7, 50)


def test_it_says_which_self_test_was_made(asked):
    assert fields(weighed(asked("L1")))["selftest"] == {
        "extent": "quick",
        "green": True,
    }
    assert "self-test     green, quick" in as_text(weighed(asked("L1")))


def test_it_says_by_what_it_was_made_and_which_levels_were_not_tried(asked):
    text, page = (show(weighed(asked("L2"))) for show in (as_text, as_html))
    assert f"chaoskit      {__version__}" in text
    assert "not tried     L3, L4: L2 was asked for" in text
    assert "not tried" not in as_text(weighed(asked("L4")))
    assert COVERS in text
    assert COVERS in page


def test_an_image_is_named_by_its_digest(asked):
    found = weighed(asked("L1"))
    found.results.image = "sha256:0123"
    assert fields(found)["agent"]["image"] == "sha256:0123"
    assert "image         sha256:0123" in as_text(found)


def test_the_command_leaves_this_certificate_alone(asked):
    """What it finds goes elsewhere: a campaign empties the folder that it is given."""
    again = fields(weighed(asked("L1")))["reproduce"]
    assert again.endswith("certificate-again")


# --- settings and files ---------------------------------------------------------------


def test_settings_of_a_server_of_one_s_own_are_not_claimed(asked, monkeypatch):
    """Nobody has set them, and nobody knows them."""
    monkeypatch.setenv("CHAOSKIT_REDIS_URL", "redis://127.0.0.1:1/0")
    found = weighed(asked("L1"))
    assert found.certified.durability is None
    assert "redis (settings not known)" in found.label
    given = Asked(asked().scenarios, Path("out"), durability="always")
    with pytest.raises(CertifyError, match="a server of your own"):
        read(given)


def test_a_file_that_changes_meanwhile_ends_it(asked):
    """The certificate names the hash of what was read, and of nothing else."""
    certified = read(asked())
    (member,) = certified.members
    unchanged(certified, member)
    was = certified.manifest_sha256
    for path in (certified.manifest_path, member.loaded.scenario_path):
        text = path.read_text()
        path.write_text(text + "\n")
        with pytest.raises(CertifyError, match="was changed while the run went on"):
            unchanged(certified, member)
        path.write_text(text)
    assert certified.manifest_sha256 == was


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("agent.yaml", "the agent's manifest"),
        ("pay.yaml", "the scenario pay"),
        ("known.yaml", "the file of known failures"),
    ],
)
def test_a_folder_that_holds_what_is_to_be_certified_is_refused(
    asked, tmp_path, name, said
):
    """Before anything in it is removed, whoever wrote it."""
    given = asked(known=ENTRY, store="files")
    with claimed(given.out):
        moved = (tmp_path / name).rename(given.out / name)
    changes = {"pay.yaml": {"scenarios": (moved,)}, "known.yaml": {"known": moved}}
    manifest = given.out if name == "agent.yaml" else tmp_path
    change = {"agent": manifest / "agent.yaml", **changes.get(name, {})}
    with pytest.raises(OutputError, match=f"holds {said}"):
        certify(read(replace(given, **change)), lambda: ())
    assert moved.exists()


def test_a_container_that_keeps_its_disk_is_told_before_anything_runs(asked):
    """That nobody can take over from it, after hours, would be late; L3 is tried."""
    kept = {"launch": "docker", "docker": {"image": "i", "disk": "keep"}}
    with pytest.raises(CertifyError, match=r"`pause` of L4 cannot be run on pay.*keep"):
        read(asked(**kept))
    assert read(asked("L3", **kept)).manifest.docker


@pytest.mark.parametrize("field", ["name", "version"])
def test_a_name_that_would_write_over_the_screen_is_refused(asked, field):
    with pytest.raises(InputError, match="characters that can be seen"):
        read(asked(**{field: "tiny\u001b[2J"}))


def test_words_that_an_agent_makes_at_random_are_not_on_it():
    """The same command gives the same certificate, whatever the keys were."""
    key = "0c6f9a1e-52f5-4a0b-9f6d-3a4f0e2b7c11"
    told = plain_text(f"run-0a1b2c3d sent 'pay' under {key}, then under no other")
    assert told == "{run} sent 'pay' under <?>, then under no other"
