"""Reference texts are printed from the code that runs."""

import json
import subprocess
import sys

from chaoskit import contract
from chaoskit.certify.revision import digest, load
from chaoskit.cli import (
    EXIT_INTERRUPTED,
    EXIT_OWN_FAULT,
    EXIT_WRONG_INPUT,
    VERDICT_EXITS,
    run_words,
)
from chaoskit.model.scenario import PromiseId, Strategy, ToolClass


def test_the_schema_is_printed_for_both_files(capsys):
    """Editors get JSON Schema."""
    for kind in ("scenario", "manifest"):
        assert run_words(["doc", "schema", kind]) == 0
        assert json.loads(capsys.readouterr().out)["type"] == "object"


def test_the_contract_names_everything_that_runs(capsys):
    """Classes, promises, variables and exit codes, from where they are defined."""
    assert run_words(["doc", "contract"]) == 0
    text = capsys.readouterr().out
    names = [*ToolClass, *PromiseId, "OPENAI_BASE_URL", "CHAOSKIT_TOOLS_URL"]
    names += ["REDIS_URL", "CHAOSKIT_RUN_ID", "contract.max_lives", "limits"]
    for name in names:
        assert f"`{name}" in text, name
    codes = {*VERDICT_EXITS.values()}
    codes |= {EXIT_WRONG_INPUT, EXIT_OWN_FAULT, EXIT_INTERRUPTED}
    assert codes == set(contract.EXIT_CODES)
    assert all(strategy in text for strategy in Strategy)


def test_the_contract_says_what_each_level_runs_and_demands(capsys):
    """Levels, campaigns, tags and requirements, from the frozen revision."""
    assert run_words(["doc", "contract"]) == 0
    text = capsys.readouterr().out.partition("\n## 9. ")[2]
    revision = load()
    assert all(
        f"| {each.id} {each.name} | {each.holds} |" in text for each in revision.levels
    )
    assert all(f"| `{each.id}` | {each.about}" in text for each in revision.campaigns())
    assert all(f"| `{name}` |" in text for name in revision.requirements)
    assert all(f"| `{each.id}` |" in text for each in revision.tags)
    assert digest() in text


def test_the_crossings_of_each_service_are_printed(capsys):
    """Operations and edges, in each service's own words."""
    assert run_words(["doc", "crossings"]) == 0
    text = capsys.readouterr().out
    for service in ("### `llm`", "### `tools`", "### `redis`"):
        assert service in text


def test_the_version(capsys):
    """`chaoskit --version`."""
    assert run_words(["--version"]) == 0
    assert capsys.readouterr().out.startswith("chaoskit ")


def test_a_reader_that_leaves_early_is_no_fault_of_ours():
    """As in `chaoskit doc contract | head -1`."""
    command = [sys.executable, "-m", "chaoskit", "doc", "contract"]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.close()
    _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (0, b"")
