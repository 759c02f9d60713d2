"""The stores of the world, by small agents that keep their state in each of them.

All of them pass every kill, singly and in any number. A loss of power finds the one
that syncs nothing, a torn write the one that does not look at its last line, and
neither finds anything in the others.
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOUND = ("sqlite_wal", "sqlite_delete", "file", "log")
ALL = (*SOUND, "postgres", "unsynced", "trusting_log")
# SQLite's rollback mode has some 250 edges, and five faults at each.
SLOW = {"sqlite_wal", "sqlite_delete"}


@pytest.fixture
def kept(chaoskit, request):
    """Run the scenario of the kept agents; a slow one is sampled without ``--full``."""

    def run(agent, *words):
        path = ROOT / "scenarios" / "kept" / f"{agent}.yaml"
        if request.config.getoption("--full"):
            words = (*words, "--trials", "2000")
        elif agent in SLOW:
            words = (*words, "--strategy", "sample", "--trials", "30")
        return chaoskit(
            "run", ROOT / "scenarios" / "kept.yaml", "--agent", str(path), *words
        )

    return run


def tried(*faults):
    return [word for fault in faults for word in ("--fault", fault)]


@pytest.mark.parametrize("agent", ALL)
def test_every_kill_is_survived(kept, agent):
    result = kept(agent)
    assert result.code == 0, result.stdout + result.stderr
    assert result.report["kills"] >= 20


@pytest.mark.parametrize("agent", [*SOUND, "postgres"])
def test_every_number_of_kills_is_survived(chaoskit, agent):
    """And, where there is a disk, of losses of power between them."""
    path = ROOT / "scenarios" / "kept" / f"{agent}.yaml"
    faults = tried("kill") if agent == "postgres" else tried("kill", "powerloss")
    words = ("--agent", str(path), "--strategy", "closure", *faults)
    result = chaoskit("run", ROOT / "scenarios" / "kept.yaml", *words)
    assert result.code == 0, result.stdout + result.stderr
    assert result.report["states"] > 10
    assert result.report["doubts"] == []


@pytest.mark.parametrize("agent", SOUND)
def test_no_loss_of_power_and_no_torn_write_finds_a_sound_one(kept, agent):
    result = kept(agent, *tried("powerloss", "tear"))
    assert result.code == 0, result.stdout + result.stderr
    assert result.report["faults"]["powerloss"] > 10
    assert result.report["faults"]["tear"] > 2


def test_a_loss_of_power_finds_the_one_that_syncs_nothing(kept):
    result = kept("unsynced", *tried("powerloss"))
    assert result.code == 1, result.stdout + result.stderr
    assert "progress/not-again" in result.requirements
    schedules = {f["schedule"].split("(")[0] for f in result.report["findings"]}
    assert schedules == {"powerloss"}


def test_a_loss_of_power_finds_the_one_that_renames_before_it_syncs(chaoskit, tmp_path):
    """The name may be saved before the data: the file is there, and empty."""
    source = (ROOT / "scenarios" / "kept" / "kept.py").read_text()
    early = """            if self.synced:
                os.fsync(file.fileno())
        new.rename(self.path)
"""
    late = "        new.rename(self.path)\n        sync(self.path)\n"
    assert early in source
    (tmp_path / "kept.py").write_text(source.replace(early, late))
    manifest = ROOT / "scenarios" / "kept" / "file.yaml"
    (tmp_path / "file.yaml").write_text(manifest.read_text())
    words = ("--agent", str(tmp_path / "file.yaml"), *tried("powerloss"))
    result = chaoskit("run", ROOT / "scenarios" / "kept.yaml", *words)
    assert result.code == 1, result.stdout + result.stderr
    schedules = [f["schedule"] for f in result.report["findings"]]
    assert schedules[0].startswith("powerloss(data)@0:files.rename")


def test_a_torn_write_finds_the_one_that_trusts_its_last_line(kept):
    result = kept("trusting_log", *tried("tear", "powerloss"))
    assert result.code == 1, result.stdout + result.stderr
    assert result.requirements[0] == "progress/ends"
    assert result.report["findings"][0]["schedule"].startswith("tear@0:files.write")


@pytest.mark.parametrize("strategy", ["sweep", "closure"])
def test_a_loss_of_power_without_a_folder_proves_nothing(chaoskit, strategy):
    """What a database server keeps is not the agent's to sync."""
    path = ROOT / "scenarios" / "kept" / "postgres.yaml"
    words = ("--agent", str(path), "--strategy", strategy, *tried("powerloss"))
    result = chaoskit("run", ROOT / "scenarios" / "kept.yaml", *words)
    assert result.code == 3, result.stdout + result.stderr
    assert "there is no such folder" in result.report["doubts"][0]


def test_a_state_that_was_read_is_not_yet_one_that_will_stay(chaoskit, tmp_path):
    """What a dead life wrote and did not sync can be read, acted on, and then lost.

    It takes two faults, a kill and a loss of power, and closure alone finds it.
    """
    source = (ROOT / "scenarios" / "kept" / "kept.py").read_text()
    careful = "        if self.synced:\n            sync(self.path)\n"
    assert careful in source
    careless = source.replace(careful, "        if False:\n            pass\n")
    (tmp_path / "kept.py").write_text(careless)
    manifest = (ROOT / "scenarios" / "kept" / "file.yaml").read_text()
    (tmp_path / "file.yaml").write_text(manifest)
    words = ("--agent", str(tmp_path / "file.yaml"), "--strategy", "closure")
    faults = tried("kill", "powerloss")
    result = chaoskit("run", ROOT / "scenarios" / "kept.yaml", *words, *faults)
    assert result.code == 1, result.stdout + result.stderr
    smallest = result.report["findings"][0]["schedule"]
    assert smallest.startswith("kill@0:files.rename")
    assert " + powerloss(" in smallest
