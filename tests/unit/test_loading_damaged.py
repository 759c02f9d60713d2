"""Every damaged file is refused with all of its problems, each at its own line.

The files under `damaged/` say themselves what has to be found: each line that is wrong
ends in `# expect: words` for each of its problems, and there may be no other problem.
The command line is tested with the same files.
"""

from collections import Counter
from pathlib import Path

import pytest

from chaoskit.loading import load_scenario
from chaoskit.model.errors import InputError

DAMAGED = Path(__file__).parent / "damaged"
SCENARIOS = sorted(DAMAGED.glob("scenarios/*.yaml"))
MANIFESTS = sorted(DAMAGED.glob("manifests/*.yaml"))


def expectations(path: Path) -> list[tuple[int, str]]:
    lines = enumerate(path.read_text().splitlines(), start=1)
    return [
        (number, words.strip())
        for number, line in lines
        for words in line.split("# expect: ")[1:]
    ]


def check(path: Path, error: InputError) -> None:
    expected = expectations(path)
    assert expected, "a damaged file says what is wrong with it"
    assert {problem.file for problem in error.problems} == {str(path)}
    found = Counter(problem.line for problem in error.problems)
    assert found == Counter(line for line, _ in expected), str(error)
    for line, words in expected:
        told = [str(p) for p in error.problems if p.line == line]
        assert any(words in each for each in told), f"{words!r} not in\n{error}"


@pytest.mark.parametrize("path", SCENARIOS, ids=lambda path: path.stem)
def test_damaged_scenario(path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_scenario(path)
    check(path, caught.value)


@pytest.mark.parametrize("path", MANIFESTS, ids=lambda path: path.stem)
def test_damaged_manifest(path: Path) -> None:
    with pytest.raises(InputError) as caught:
        load_scenario(DAMAGED / "scenario.yaml", agent=path)
    check(path, caught.value)


def test_the_files_around_the_damage_are_sound() -> None:
    assert load_scenario(DAMAGED / "scenario.yaml").manifest.name == "agent"
    assert len(SCENARIOS) + len(MANIFESTS) >= 30
