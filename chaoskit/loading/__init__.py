"""Layer 1: YAML -> model, with all the problems of the input at once.

A file goes through these steps, each a module: `text` (bytes that can be trusted),
`yaml_source` (a tree of nodes with places), `sugar` (shorthand written out), the
pydantic models, and `explain` (their complaints in words, back at their places).
"""

from dataclasses import dataclass
from pathlib import Path

from chaoskit.loading.check import Checked, check_manifest, check_scenario, first_gate
from chaoskit.loading.fleets import beyond_a_fleet, unfit_for_a_fleet
from chaoskit.loading.kept_disk import beyond_a_kept_disk, unfit_for_a_kept_disk
from chaoskit.loading.nodes import Node
from chaoskit.loading.schema import Kind, schema
from chaoskit.model.errors import InputError, Problem
from chaoskit.model.manifest import Manifest, Store
from chaoskit.model.scenario import Scenario

__all__ = ["Kind", "Loaded", "load_scenario", "schema", "unfit"]


@dataclass(frozen=True)
class Loaded:
    """A scenario with the agent it is for, and where both were read."""

    scenario: Scenario
    manifest: Manifest
    scenario_path: Path
    manifest_path: Path


def load_scenario(
    path: Path, agent: Path | None = None, store: Store | None = None
) -> Loaded:
    """Read a scenario and its agent's manifest.

    `agent` and `store` take the place of what the files name. Raises InputError with
    every problem of both files.
    """
    scenario = check_scenario(path)
    written = _usable_agent(scenario)
    manifest_path = agent or (path.parent / str(written.value) if written else None)
    if manifest_path is None:
        raise InputError(scenario.problems)
    manifest = check_manifest(manifest_path, store)
    found = manifest.problems if agent else _blamed(manifest, manifest_path, written)
    beyond = (
        *beyond_a_kept_disk(scenario.root, manifest.root),
        *beyond_a_fleet(scenario.root, manifest.root),
    )
    unanswerable = _unanswerable(scenario, manifest)
    problems = (*scenario.problems, *found, *unanswerable, *beyond)
    if problems or scenario.model is None or manifest.model is None:
        raise InputError(problems)
    return Loaded(scenario.model, manifest.model, path, manifest_path)


def unfit(scenario: Scenario, manifest: Manifest) -> str | None:
    """Why the two do not fit together as the command line has changed them."""
    kept = unfit_for_a_kept_disk(scenario, manifest)
    return kept or unfit_for_a_fleet(scenario, manifest)


def _usable_agent(scenario: Checked[Scenario]) -> Node | None:
    """The scenario's `agent`, whatever else is wrong, unless it is wrong itself."""
    if any(problem.path == "$.agent" for problem in scenario.problems):
        return None
    return scenario.root.entries.get("agent") if scenario.root else None


def _blamed(
    manifest: Checked[Manifest], path: Path, written: Node | None
) -> tuple[Problem, ...]:
    """The problems; if the file cannot be read, then at the line that names it."""
    first = manifest.problems[0] if manifest.problems else None
    if first is None or first.line is not None or written is None:
        return manifest.problems
    return (written.problem(first.expected, first.hint or f"it was sought at {path}"),)


def _unanswerable(
    scenario: Checked[Scenario], manifest: Checked[Manifest]
) -> tuple[Problem, ...]:
    """A gate of the scenario needs a command of the manifest."""
    gate = first_gate(scenario.root) if scenario.root else None
    if gate is None or manifest.root is None:
        return ()
    answer = manifest.root.entries.get("answer")
    if answer is not None and answer.value is not None:
        return ()
    expected = "`answer`: the command that brings a human's answer"
    asks = f"the scenario asks in {gate.place.file} line {gate.place.line}"
    place = manifest.root.place
    return (place.problem("$.answer", "nothing", expected, asks),)
