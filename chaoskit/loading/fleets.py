"""What a scenario cannot ask of a long-lived agent."""

from collections.abc import Iterator

from chaoskit.loading.nodes import Node, deepest
from chaoskit.model.errors import Problem
from chaoskit.model.manifest import LONG_LIVED, Manifest
from chaoskit.model.scenario import Scenario, Strategy

_NO_CLOSURE = (
    "another strategy, since the agent is long-lived",
    "closure restores worlds, and what its processes remember is in none; use sweep",
)


def beyond_a_fleet(scenario: Node | None, manifest: Node | None) -> Iterator[Problem]:
    """The rules between the two files, whatever else may be wrong with them."""
    if scenario is None or manifest is None:
        return
    strategy, missing = deepest(scenario, ("search", "strategy"))
    is_closure = not missing and strategy.value == Strategy.CLOSURE
    if is_closure and any(key in manifest.entries for key in LONG_LIVED):
        yield strategy.problem(*_NO_CLOSURE)


def unfit_for_a_fleet(scenario: Scenario, manifest: Manifest) -> str | None:
    """The same rules, of what the command line has made of the files, in words."""
    if manifest.processes and scenario.search.strategy is Strategy.CLOSURE:
        return "expected {}; {}".format(*_NO_CLOSURE)
    return None
