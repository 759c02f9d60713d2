"""The table of faults: no cell is empty without a reason, none is filled without proof.

A proof is a test marked ``proves("redis.rollback")``: a plain client, a fault, and what
it really did. The agent's own faults are the same at every service: ``agent.kill``.
"""

import ast
from pathlib import Path

import pytest

from chaoskit.contract import SERVICES, faults
from chaoskit.model.fault_table import AGENT, FAULTS
from chaoskit.model.faults import Cell, Empty, FaultKind

TESTS = Path(__file__).parents[1]
FILLED = {f"agent.{kind}" for kind in AGENT} | {
    f"{service}.{kind}"
    for service, row in FAULTS.items()
    for kind, cell in row.items()
    if kind not in AGENT and isinstance(cell, Cell)
}


def _proven() -> set[str]:
    """What the marks in the tests claim, read without running them."""
    calls = (
        node
        for path in sorted(TESTS.rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
    )
    return {
        argument.value
        for call in calls
        if call.func.attr == "proves"
        for argument in call.args
        if isinstance(argument, ast.Constant)
    }


def test_every_fault_that_the_table_promises_is_proven():
    assert sorted(FILLED - _proven()) == []


def test_nothing_is_proven_that_the_table_does_not_promise():
    assert sorted(_proven() - FILLED) == []


@pytest.mark.parametrize("service", FAULTS)
def test_no_cell_is_empty_without_a_reason(service):
    row = FAULTS[service]
    assert set(row) == set(FaultKind)
    for kind, cell in row.items():
        assert cell.because if isinstance(cell, Empty) else cell.does, kind


def test_the_table_that_is_printed_has_every_service_and_every_fault():
    text = faults()
    assert {service.name for _, service in SERVICES} == set(FAULTS)
    for service, row in FAULTS.items():
        part = text.partition(f"## `{service}`")[2].partition("## `")[0]
        for kind, cell in row.items():
            line = next(x for x in part.splitlines() if x.startswith(f"| `{kind}`"))
            said = cell.because if isinstance(cell, Empty) else cell.does
            assert said.replace("|", "\\|") in line
