"""The published patterns: right in calm runs, wrong in one moment, careful else."""

from typing import Any

import pytest

BOOK = [
    [("search_flights", {"to": "NYC"})],
    [("hold_seat", {"order": "o-1"}), ("charge_card", {"order": "o-1", "cents": 3})],
    "Booked: your flight to NYC leaves on Monday.",
]
ONCE = {"search_flights": 1, "hold_seat": 1, "charge_card": 1}


@pytest.fixture(params=["note_after_run", "check_act_mark"])
def published(request: pytest.FixtureRequest, agent: Any) -> Any:
    agent.program = (f"scenarios/published/{request.param}.py",)
    agent.world.script = BOOK
    agent.world.promises = dict.fromkeys(ONCE, "keyed")
    return agent


def test_a_calm_run_books_once_and_stays_done(published: Any) -> None:
    life = published.live()
    assert (life.code, life.out.strip()) == (0, BOOK[-1])
    assert published.world.counts() == ONCE
    crossed = len(published.world.crossed)
    again = published.live()
    assert (again.code, again.out) == (0, life.out)
    assert len(published.world.crossed) == crossed
    assert again.events == ["run.start", "run.end"]


@pytest.mark.parametrize(
    ("kill_at", "applied"),
    [
        ("charge_card#1:before", 1),
        ("charge_card#1:after", 2),  # the moment
        ("model#3:after", 1),
    ],
)
def test_killed_it_pays_twice_in_one_moment_only(
    published: Any, kill_at: str, applied: int
) -> None:
    published.world.kill_at = kill_at
    killed = published.live()
    assert killed.code == -9
    life = published.live()
    assert (life.code, life.out.strip()) == (0, BOOK[-1])
    assert published.world.counts() == ONCE | {"charge_card": applied}
    assert published.world.problems == []
    ids = [line["checkpoint_id"] for line in killed.log + life.log]
    assert ids == sorted(ids)
    intents = [line["call"] for line in killed.log if line["event"] == "tool.intent"]
    assert intents == ["1.0", "2.0", "2.1"]
