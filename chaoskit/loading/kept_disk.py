"""What a scenario cannot ask of an agent that keeps its state on a container's disk."""

from collections.abc import Iterator

from pydantic import TypeAdapter, ValidationError

from chaoskit.loading.nodes import Node, deepest
from chaoskit.model.errors import Problem
from chaoskit.model.faults import FaultKind, Wanted
from chaoskit.model.manifest import Disk, Launch, Manifest
from chaoskit.model.scenario import FaultText, Scenario, Strategy

_NO_CLOSURE = (
    "another strategy, since the agent has `disk: keep`",
    "closure restores worlds, and a container's disk is in none; use sweep",
)
_NO_PAUSE = (
    "no pause, since the agent has `disk: keep`",
    "a second life would need the disk that the paused one has; use `disk: fresh`",
)
_FAULT: TypeAdapter[str] = TypeAdapter(FaultText)


def beyond_a_kept_disk(scenario: Node | None, manifest: Node | None) -> list[Problem]:
    """The rules between the two files, whatever else may be wrong with them."""
    if scenario is None or manifest is None or not _is_kept(manifest):
        return []
    return [*_closure(scenario), *_pauses(scenario)]


def unfit_for_a_kept_disk(scenario: Scenario, manifest: Manifest) -> str | None:
    """The same rules, of what the command line has made of the files, in words."""
    docker = manifest.docker
    if manifest.launch is not Launch.DOCKER or not docker or docker.disk != Disk.KEEP:
        return None
    if scenario.search.strategy is Strategy.CLOSURE:
        return "expected {}; {}".format(*_NO_CLOSURE)
    if any(wanted.kind is FaultKind.PAUSE for wanted in scenario.wanted):
        return "expected {}; {}".format(*_NO_PAUSE)
    return None


def _is_kept(manifest: Node) -> bool:
    disk, missing = deepest(manifest, ("docker", "disk"))
    launch = manifest.entries.get("launch")
    in_docker = launch is not None and launch.value == Launch.DOCKER
    return in_docker and not missing and disk.value == Disk.KEEP


def _closure(scenario: Node) -> Iterator[Problem]:
    strategy, missing = deepest(scenario, ("search", "strategy"))
    if not missing and strategy.value == Strategy.CLOSURE:
        yield strategy.problem(*_NO_CLOSURE)


def _pauses(scenario: Node) -> Iterator[Problem]:
    faults = scenario.entries.get("faults")
    for fault in faults.items if faults else ():
        if _kind(fault) is FaultKind.PAUSE:
            yield fault.problem(*_NO_PAUSE)


def _kind(fault: Node) -> FaultKind | None:
    try:
        return Wanted.parse(_FAULT.validate_python(fault.value)).kind
    except (ValidationError, ValueError):
        return None
