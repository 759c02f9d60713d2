"""The JSON Schema that editors use agrees with the loader about what may be written."""

from pathlib import Path
from typing import Any

import jsonschema
import pytest

from chaoskit.loading import Kind, load_scenario, schema
from chaoskit.loading.nodes import plain
from chaoskit.loading.yaml_source import parse
from chaoskit.model.errors import InputError

DAMAGED = Path(__file__).parent / "damaged"
RULES_BETWEEN_FIELDS = {
    "agent_is_a_folder",
    "agent_missing_file",
    "answers_missing",
    "docker_missing",
    "docker_python",
    "exits_shared",
    "fleet_closure",
    "fleet_in_docker",
    "fork_missing",
    "kept_disk_closure",
    "kept_disk_pause",
    "script_without_end",
    "start_no_program",
    "tool_undeclared",
    "tools_missing",
    "wobble_without_arguments",
    "wobble_without_choice",
}
"""What a schema cannot see: rules between fields, and other files."""

NOT_IN_JSON = {
    "alias_of_itself",
    "args_no_json",
    "bad_escape",
    "duplicate_key",
    "goal_half_character",
    "goal_with_nul",
    "merge_key",
    "python_tag",
    "two_documents",
}
"""What is gone, or different, once YAML was read as JSON."""

FULL_SCENARIO = """
name: everything
about: Every key and every shorthand.
agent: agent.yaml
task: {goal: g}
llm:
  script:
    - call: {one: {}}
    - call: [{one: {a: [1, null, {b: 2.5}]}}, {two: {}}]
    - call: {three: {a: 1}, or: [{a: 2}, {}]}
      or: [{three: {a: 3}}, [{three: {a: 4}, or: [{a: 5}]}]]
    - ask: "?"
    - wait: 0.5
    - say: Done.
  fresh_ids: false
  wobble: choice
tools: {one: read, two: {class: blind}, three: {class: keyed, result: [1]}}
search: {strategy: closure, depth: 1, seed: -1, trials: 1}
faults: [kill]
promises: [effects, progress, transcript, log]
limits: {life_seconds: 1, trial_seconds: 2.5, grace_seconds: 0.1}
human: [yes]
volatile: ["redis:x.attempts"]
"""
FULL_MANIFEST = """
name: everything
version: "1"
launch: fork
start: ["{python}", "{{x}}", "--run={run}"]
resume: [a]
answer: [a, "{answer}"]
store: none
exits: {done: [0], parked: [], failed: [1, 255]}
inspect: [a]
contract: {effects: at-most-once, resumes: start, max_lives: 1, max_attempts: 1}
capabilities: [streaming, parallel-tools, approval, timers, worker]
log: {run_id: a, step: b, checkpoint_id: c, level: d, event: e, call: f}
env: {A_1: "", B: "{goal}"}
fork: {preload: [a.b], call: "a.b:c"}
docker: {image: "a/b:1", disk: keep}
"""


FULL_FLEET = """
name: workers
launch: process
submit: [a, "{run}", "{goal}"]
status: [a, "{run}"]
answer: [a, "{run}", "{answer}"]
processes:
  worker: {command: [b], copies: 2}
  server: {command: [c], ready: {tcp: 8233}}
store: none
contract: {effects: at-most-once}
"""


def errors(kind: Kind, text: str) -> list[Any]:
    data = plain(parse("file", text).root)
    validator = jsonschema.Draft202012Validator(schema(kind))
    return list(validator.iter_errors(data))


@pytest.mark.parametrize("kind", ["scenario", "manifest"])
def test_it_is_a_schema_that_describes_every_key(kind: Kind) -> None:
    found = schema(kind)
    jsonschema.Draft202012Validator.check_schema(found)
    owners = [found, *found["$defs"].values()]
    for owner in owners:
        for key, value in owner.get("properties", {}).items():
            reference = value.get("$ref", "").removeprefix("#/$defs/")
            described = value | found["$defs"].get(reference, {})
            assert described.get("description"), f"{key} has no description"


def test_what_the_loader_takes_fits_the_schema(tmp_path: Path) -> None:
    (tmp_path / "scenario.yaml").write_text(FULL_SCENARIO)
    (tmp_path / "agent.yaml").write_text(FULL_MANIFEST)
    load_scenario(tmp_path / "scenario.yaml")
    assert not errors("scenario", FULL_SCENARIO)
    assert not errors("manifest", FULL_MANIFEST)
    (tmp_path / "agent.yaml").write_text(FULL_FLEET)
    sweep = FULL_SCENARIO.replace("closure", "sweep")
    (tmp_path / "scenario.yaml").write_text(sweep)
    manifest = load_scenario(tmp_path / "scenario.yaml").manifest
    names = [name for name, _ in manifest.fleet]
    assert names == ["worker.1", "worker.2", "server"]
    assert not errors("manifest", FULL_FLEET)


@pytest.mark.parametrize(
    ("kind", "path"),
    [
        (folder.removesuffix("s"), path)
        for folder in ("scenarios", "manifests")
        for path in sorted(DAMAGED.glob(f"{folder}/*.yaml"))
    ],
    ids=lambda value: value.stem if isinstance(value, Path) else value,
)
def test_what_the_loader_refuses_does_not_fit(kind: Kind, path: Path) -> None:
    try:
        found = errors(kind, path.read_text())
    except InputError:
        return  # no YAML at all: there is nothing to fit
    unseen = path.stem in RULES_BETWEEN_FIELDS | NOT_IN_JSON
    assert unseen == (not found), found
