"""Broken input: exit code 2, the place, and never a traceback."""

import os
from pathlib import Path

import pytest

from chaoskit.cli import run_words

DAMAGED = Path(__file__).parents[1] / "unit" / "damaged"
SCENARIOS = sorted((DAMAGED / "scenarios").glob("*.yaml"))
SOUND = str(DAMAGED / "scenario.yaml")
KEPT = str(DAMAGED / "agent_kept_disk.yaml")
MANIFESTS = sorted((DAMAGED / "manifests").glob("*.yaml"))


def test_there_are_at_least_thirty_of_them():
    """The promise of the project, counted."""
    assert len(SCENARIOS) + len(MANIFESTS) >= 30


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_a_damaged_scenario_is_exit_code_2(path, capsys, tmp_path, monkeypatch):
    """Each problem with its file and line."""
    monkeypatch.chdir(tmp_path)
    assert run_words(["run", str(path)]) == 2
    errors = capsys.readouterr().err
    assert f"{path}:" in errors
    assert "expected" in errors
    assert "Traceback" not in errors
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_a_damaged_manifest_is_exit_code_2(path, capsys, tmp_path, monkeypatch):
    """Each problem with its file and line."""
    monkeypatch.chdir(tmp_path)
    words = ["run", str(DAMAGED / "scenario.yaml"), "--agent", str(path)]
    assert run_words(words) == 2
    errors = capsys.readouterr().err
    assert f"{path}:" in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["run", "no-such.yaml"], "no-such.yaml"),
        (["run", "."], "."),
        (["run"], "Missing argument"),
        (["fly"], "No such command"),
        (["run", "x.yaml", "--jobs", "0"], "--jobs"),
        (["run", "x.yaml", "--strategy", "swep"], "swep"),
        (["doc", "schema", "scenery"], "scenery"),
        (["run", SOUND, "--fault", "eror"], "did you mean 'error'?"),
        (["run", SOUND, "--fault", "error(418)"], "expected 429, 500, 503, 529"),
        (
            ["run", SOUND, "--fault", "error", "--strategy", "closure"],
            "use the strategy",
        ),
        (["run", SOUND, "--agent", KEPT, "--strategy", "closure"], "use sweep"),
        (["run", SOUND, "--agent", KEPT, "--fault", "pause"], "use `disk: fresh`"),
    ],
)
def test_wrong_words_on_the_command_line(words, said, capsys, tmp_path, monkeypatch):
    """Said in words, with exit code 2."""
    monkeypatch.chdir(tmp_path)
    assert run_words(words) == 2
    errors = capsys.readouterr().err
    assert said in errors
    assert "Traceback" not in errors


@pytest.mark.parametrize(
    "schedule", ["kill", "kill@", "kill@0:llm.chat", "paus@0:llm.chat#1:before", "+"]
)
def test_a_wrong_schedule(schedule, capsys, tmp_path, monkeypatch):
    """The offending part is shown."""
    monkeypatch.chdir(tmp_path)
    words = ["replay", str(DAMAGED / "scenario.yaml"), schedule]
    assert run_words(words) == 2
    assert "schedule is wrong" in capsys.readouterr().err


def test_a_folder_that_is_not_ours_is_left_alone(capsys, tmp_path):
    """`--out` never destroys what no campaign wrote."""
    precious = tmp_path / "thesis.txt"
    precious.write_text("years of work")
    words = ["run", str(DAMAGED / "scenario.yaml"), "--out", str(tmp_path)]
    assert run_words(words) == 2
    assert "was not written by chaoskit" in capsys.readouterr().err
    assert precious.read_text() == "years of work"


@pytest.mark.parametrize("inside", ["scenario.yaml", "agent.yaml"])
@pytest.mark.parametrize("verb", [["run"], ["replay", ""]], ids=["run", "replay"])
def test_an_output_folder_that_holds_what_is_tried_is_refused(
    verb, inside, capsys, tmp_path
):
    """Although chaoskit wrote it, say for an earlier run: nothing in it is removed."""
    out = tmp_path / "out"
    out.mkdir()
    (out / ".chaoskit").touch()
    (out / "report.json").touch()
    folders = dict.fromkeys(("scenario.yaml", "agent.yaml"), tmp_path) | {inside: out}
    for name, folder in folders.items():
        (folder / name).write_bytes((DAMAGED / name).read_bytes())
    scenario, agent = (str(folder / name) for name, folder in folders.items())
    words = [verb[0], scenario, *verb[1:], "--agent", agent, "--out", str(out)]
    assert run_words(words) == 2
    errors = capsys.readouterr().err
    assert f"{out} holds the " in errors
    assert str(out / inside) in errors
    assert sorted(os.listdir(out)) == sorted([".chaoskit", "report.json", inside])
