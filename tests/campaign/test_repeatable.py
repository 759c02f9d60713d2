"""The same schedule gives the same verdict and the same history of crossings.

Each campaign is an interpreter of its own, with a hash seed of its own.
"""

import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FULL_TIMES, REDUCED_TIMES = 100, 10
AGENTS = {
    "note_after": "note_after_run_fork.yaml",
    "check_act_mark": "check_act_mark_fork.yaml",
}


def _crossings(history: Path) -> tuple[str, ...]:
    events = map(json.loads, history.read_text().splitlines())
    return tuple(
        f"{event['address']} late={event['late']}"
        for event in events
        if event["kind"] == "crossed"
    )


@pytest.mark.parametrize(
    "schedule",
    [
        "kill@0:tools.charge_card[o-1]#1:after",
        "kill@0:redis.eval[agent:checkpoint:{run}]#4:before + kill@1:llm.chat#1:after",
    ],
)
def test_a_schedule_repeats_to_the_letter(cold_chaoskit, request, schedule):
    """100 of 100 with --full: one verdict, one history of crossings."""
    times = FULL_TIMES if request.config.getoption("--full") else REDUCED_TIMES
    agent = ROOT / "reference_agent" / "agent_fork.yaml"
    scenario = ROOT / "scenarios" / "book_flight.yaml"
    words = (schedule, "--times", str(times), "--agent", str(agent), "--jobs", "2")
    result = cold_chaoskit("replay", scenario, *words)
    assert result.code == 0, result.stdout + result.stderr
    assert result.report["kills"] == times * schedule.count("kill@")
    trials = [p for p in (result.out / "trials").iterdir() if p.name.isdecimal()]
    histories = [_crossings(path / "history.jsonl") for path in trials]
    assert len(histories) == times
    assert len(set(histories)) == 1


@pytest.mark.parametrize("pattern", AGENTS)
def test_a_published_pattern_fails_the_same_way_each_time(
    cold_chaoskit, pattern, request
):
    """The replay command that the report prints shows the finding every time."""
    times = 20 if request.config.getoption("--full") else 3
    scenario = ROOT / "scenarios" / f"published_{pattern}.yaml"
    agent = ("--agent", str(scenario.parent / "published" / AGENTS[pattern]))
    found = cold_chaoskit("run", scenario, *agent)
    assert found.code == 1, found.stdout + found.stderr
    first = found.report["findings"][0]
    assert first["requirement"] == "effects/once-across-kill"
    assert first["schedule"].count("kill@") == 1
    words = (first["schedule"], "--times", str(times), *agent)
    again = cold_chaoskit("replay", scenario, *words)
    assert again.code == 1
    assert again.report["findings"][0]["message"] == first["message"]
    assert again.report["kills"] == times
    assert again.report["findings"][0]["shown_in"] == times
