"""Closure and sweep say the same of every scenario that the project ships."""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LONG = {"book_flight": "reference_agent/agent_fork.yaml"}
SCENARIOS = {
    "send_mail": "reference_agent/agent_fork.yaml",
    "published_note_after": "scenarios/published/note_after_run_fork.yaml",
    "published_check_act_mark": "scenarios/published/check_act_mark_fork.yaml",
}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """The long one with --full."""
    tried = SCENARIOS | (LONG if metafunc.config.getoption("--full") else {})
    metafunc.parametrize(("name", "manifest"), tried.items(), ids=tried)


def test_closure_agrees_with_the_sweep(chaoskit, name, manifest):
    """The same verdict, and the same findings by requirement and message."""
    scenario = ROOT / "scenarios" / f"{name}.yaml"
    agent = ("--agent", str(ROOT / manifest))
    sweep = chaoskit("run", scenario, *agent, "--strategy", "sweep")
    closure = chaoskit("run", scenario, *agent, "--strategy", "closure")
    assert sweep.report["verdict"] == closure.report["verdict"], closure.stdout
    said = [
        {(f["requirement"], f["schedule"], f["message"]) for f in r.report["findings"]}
        for r in (sweep, closure)
    ]
    assert said[0] == said[1]
    assert 0 < closure.report["states"] < sweep.report["trials"]
    assert closure.report["doubts"] == []
