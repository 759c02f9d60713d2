"""Files that are no YAML, or YAML made to do harm, are refused in words."""

import os
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from chaoskit.loading import load_scenario
from chaoskit.loading.text import BYTES_MAX
from chaoskit.model.errors import InputError, Problem

DAMAGED = Path(__file__).parent / "damaged"
SOUND = (DAMAGED / "scenario.yaml").read_text()
BOMB = "a: &a [x, x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]\n"
    for before, name in zip("abcdefgh", "bcdefghi", strict=True)
)


def refused(path: Path) -> Problem:
    with pytest.raises(InputError) as caught:
        load_scenario(path)
    return caught.value.problems[0]


HOSTILE = {
    "empty": (b"", 1, "keys and values"),
    "only comments": (b"# nothing\n# here\n", 1, "keys and values"),
    "only null": (b"~\n", 1, "keys and values"),
    "only a document start": (b"---\n", 1, "keys and values"),
    "binary": (b"\x7fELF\x02\x01\0\0", 1, "text, saved as UTF-8"),
    "latin-1": ("name: s\nabout: caf\xe9".encode("latin-1"), 2, "saved as UTF-8"),
    "utf-16": ("name: s\n".encode("utf-16"), 1, "text, saved as UTF-8"),
    "control characters": (b"name: s\nabout: \x1b[31m", 2, "control characters"),
    "huge": (b"a" * (BYTES_MAX + 1), 1, "at most 1024 KiB"),
    "billion laughs": (BOMB.encode(), 5, "aliases counted as copies"),
    "many values": (b"[" + b"a, " * 30_000 + b"]", 1, "at most 20000 values"),
    "deep brackets": (b"[" * 200_000, 1, "64 levels of nesting"),
    "deep braces": (b"{a: " * 100_000, 1, "64 levels of nesting"),
    "deep dashes": (b"- " * 200_000, 1, "64 levels of nesting"),
    "deep aliases": (
        b"a0: &a0 [x]\n"
        + b"".join(b"a%d: &a%d [*a%d]\n" % (n, n, n - 1) for n in range(1, 90)),
        64,
        "64 levels of nesting",
    ),
    "other version": (b"%YAML 2.0\n---\nname: s\n", 1, "valid YAML"),
    "long number": (b"name: " + b"9" * 5000, 1, "300 digits"),
    "long command": (b"name: s\nfaults: " + b"x" * 5000, 2, "a list"),
    "python object": (b"!!python/object/apply:os.system ['true']", 1, "without a tag"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_content(name: str, tmp_path: Path) -> None:
    content, line, words = HOSTILE[name]
    path = tmp_path / "scenario.yaml"
    path.write_bytes(content)
    with pytest.raises(InputError) as caught:
        load_scenario(path)
    told = [p for p in caught.value.problems if words in p.expected]
    assert [(p.file, p.line) for p in told] == [(str(path), line)]
    assert len(str(told[0])) < 1000


def test_no_such_file(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").touch()
    problem = refused(tmp_path / "scenaro.yaml")
    assert (problem.line, problem.expected) == (None, "a file that exists")
    assert problem.hint == "did you mean 'scenario.yaml'?"


def test_no_such_folder(tmp_path: Path) -> None:
    assert refused(tmp_path / "gone" / "x.yaml").expected == "a file that exists"


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "inside.yaml").touch()
    assert refused(tmp_path).hint == "it is a folder, with inside.yaml"


def test_a_file_in_place_of_a_folder(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    assert "can be read" in refused(tmp_path / "file" / "x.yaml").expected


def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    assert refused(tmp_path / "pipe").expected == "a file"


def test_a_device_is_not_read() -> None:
    assert refused(Path("/dev/zero")).expected == "a file"


def test_a_link_to_itself(tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    assert "can be read" in refused(tmp_path / "loop").expected


def test_a_file_without_permission(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As root every file can be read, so the refusal is played."""
    path = tmp_path / "scenario.yaml"
    path.touch()

    def forbidden(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", forbidden)
    assert refused(path).expected == "a file that can be read (Permission denied)"


def test_a_path_that_no_system_takes() -> None:
    assert "can be read" in refused(Path("a\0b")).expected


@pytest.mark.parametrize(
    "written", ['"a\\0b"', "'" + "long/" * 1500 + "'", "/dev/zero"]
)
def test_an_agent_that_cannot_be_a_file_is_told_where_it_is_named(
    written: str, tmp_path: Path
) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text(SOUND.replace("agent: agent.yaml", f"agent: {written}"))
    with pytest.raises(InputError) as caught:
        load_scenario(path)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line, problem.path) == (str(path), 3, "$.agent")


def test_an_agent_given_by_hand_is_told_by_its_own_name(tmp_path: Path) -> None:
    gone = tmp_path / "gone.yaml"
    with pytest.raises(InputError) as caught:
        load_scenario(DAMAGED / "scenario.yaml", agent=gone)
    (problem,) = caught.value.problems
    assert (problem.file, problem.line) == (str(gone), None)


FRAGMENTS = st.sampled_from(
    [
        *("{", "}", "[", "]", "*a", "&a ", "!!x ", "!", "\t", ": ", ":", "- ", "? "),
        *("\n", "\n  ", '"', "'", "\\", "\\ud800", "|", ">", ",", "@", "`", "%", "#"),
        *("%YAML 1.2", "---", "...", "\0", "\u2028", "\ufeff", "\x85", "é", "~", "5"),
        *(
            ".nan",
            "1e999",
            "<<: ",
            "2026-01-05",
            "null",
            "ask",
            "call",
            "wait",
            "{run}",
        ),
    ]
)
CHANGES = st.lists(
    st.tuples(st.integers(0, len(SOUND)), st.integers(0, 12), FRAGMENTS),
    min_size=1,
    max_size=4,
)


@settings(max_examples=400, deadline=None, derandomize=True)
@given(changes=CHANGES)
def test_a_changed_file_is_read_or_refused_in_words(
    changes: list[tuple[int, int, str]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """As scenario and as manifest: whatever goes wrong is an InputError with words."""
    text = SOUND
    for start, length, fragment in changes:
        text = text[:start] + fragment + text[start + length :]
    assert_read_or_refused(text.encode(), tmp_path_factory.getbasetemp())


@settings(max_examples=200, deadline=None, derandomize=True)
@given(content=st.binary(max_size=60) | st.text(max_size=60).map(str.encode))
def test_noise_is_read_or_refused_in_words(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    assert_read_or_refused(content, tmp_path_factory.getbasetemp())


def assert_read_or_refused(content: bytes, folder: Path) -> None:
    path = folder / "changed.yaml"
    path.write_bytes(content)
    for error in (told(path), told(DAMAGED / "scenario.yaml", path)):
        assert error is None or error.problems
        assert all(line.isprintable() for line in str(error).split("\n"))


def told(scenario: Path, agent: Path | None = None) -> InputError | None:
    try:
        load_scenario(scenario, agent)
    except InputError as error:
        return error
    return None
