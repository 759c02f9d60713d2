"""The folder that a campaign leaves: emptied if it is ours, else left alone."""

import os

import pytest

from chaoskit.campaign.output import OutputError, claimed, leave
from chaoskit.model.report import Report


def prepare(out):
    """Claim a folder and let it go again, as a campaign that does nothing."""
    with claimed(out) as trials:
        return trials


@pytest.fixture
def report():
    """A report that needs more than ASCII."""
    fields = ("0", "größe", "größe.yaml", "agent", "redis", 0, "sweep")
    return Report(*fields, notes=("→ half a pair: \ud800",))


def test_a_new_folder_is_made_with_its_parents(tmp_path):
    """Trials get a folder in it, which is made by the first of them."""
    out = tmp_path / "a" / "b"
    assert prepare(out) == out.resolve() / "trials"
    assert [path.name for path in out.iterdir()] == [".chaoskit"]


def test_what_an_earlier_campaign_left_is_removed(tmp_path):
    """All of it, so that no trial of another run is taken for one of this."""
    trials = prepare(tmp_path)
    (trials / "0001").mkdir(parents=True)
    (trials / "0001" / "history.jsonl").touch()
    (tmp_path / "report.json").touch()
    prepare(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".chaoskit"]


def test_links_are_removed_and_not_followed(tmp_path):
    """What they lead to is somebody else's."""
    elsewhere, out = tmp_path / "elsewhere", tmp_path / "out"
    elsewhere.mkdir()
    (elsewhere / "thesis.txt").touch()
    prepare(out)
    (out / "link").symlink_to(elsewhere)
    prepare(out)
    assert (elsewhere / "thesis.txt").exists()
    assert not (out / "link").is_symlink()


def test_a_folder_that_nobody_marked_is_left_alone(tmp_path):
    """Whatever is in it."""
    (tmp_path / "thesis.txt").touch()
    with pytest.raises(OutputError, match="was not written by chaoskit"):
        prepare(tmp_path)
    assert (tmp_path / "thesis.txt").exists()


def test_a_folder_that_another_campaign_writes_to_is_left_alone(tmp_path):
    """Two terminals, one folder: the second is told, the first loses nothing."""
    with claimed(tmp_path) as trials:
        trials.mkdir()
        with pytest.raises(OutputError, match="another campaign is writing"):
            prepare(tmp_path)
        assert trials.exists()
    prepare(tmp_path)
    assert not trials.exists()


def test_an_interrupted_clearing_can_be_gone_on_with(tmp_path, monkeypatch):
    """The mark outlasts the rest, so the folder stays known as ours."""
    prepare(tmp_path)
    for name in ("a", "b", "c"):
        (tmp_path / name).touch()

    def interrupt(path):
        raise KeyboardInterrupt

    monkeypatch.setattr("pathlib.Path.unlink", interrupt)
    with pytest.raises(KeyboardInterrupt):
        prepare(tmp_path)
    monkeypatch.undo()
    prepare(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == [".chaoskit"]


@pytest.mark.parametrize("name", ["pay.yaml", "below/pay.yaml", "link.yaml"])
def test_a_folder_that_holds_an_input_is_not_emptied(tmp_path, name):
    """However often it was written by chaoskit; both are named."""
    out, elsewhere = tmp_path / "out", tmp_path / "elsewhere.yaml"
    prepare(out)
    path = out / name
    path.parent.mkdir(exist_ok=True)
    elsewhere.touch()
    path.symlink_to(elsewhere) if "link" in name else path.touch()
    with (
        pytest.raises(OutputError, match="holds the scenario") as told,
        claimed(out, {"the scenario": path}),
    ):
        pass
    assert str(path) in str(told.value)
    assert str(out) in str(told.value)
    assert path.exists()


def test_an_input_beside_the_folder_or_above_it_is_in_no_danger(tmp_path):
    """As are the scenarios of a certificate, and a folder in that of the agent."""
    out, path = tmp_path / "out", tmp_path / "out.yaml"
    path.touch()
    for _ in range(2):
        with claimed(out, {"the scenario": path}):
            (out / "old").touch()


@pytest.mark.parametrize("name", ["file", "file/below"])
def test_a_file_in_the_way_is_told(tmp_path, name):
    """In words, with what to do about it."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(OutputError, match="--out"):
        prepare(tmp_path / name)
    assert (tmp_path / "file").read_text() == "mine"


def test_the_report_is_left_for_programs_and_for_people(tmp_path, report):
    """As UTF-8, whatever the machine's own encoding is."""
    prepare(tmp_path)
    leave(report, tmp_path)
    for name in ("report.json", "report.txt"):
        assert "größe" in (tmp_path / name).read_bytes().decode("utf-8")
    left = [".chaoskit", "junit.xml", "report.html", "report.json", "report.txt"]
    assert sorted(os.listdir(tmp_path)) == left


def test_a_report_that_cannot_be_left_is_told(tmp_path, report):
    """Such as where somebody removed the folder meanwhile."""
    with pytest.raises(OutputError, match="No such file"):
        leave(report, tmp_path / "gone")
