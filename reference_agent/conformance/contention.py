"""Many at once: one of them wins, and nothing that was acknowledged is lost."""

from collections.abc import Callable
from time import monotonic
from typing import Any

import pytest

from reference_agent.conformance import deeds
from reference_agent.conformance.bench import (
    Bench,
    Opener,
    Start,
    loaded,
    start_thread,
)
from reference_agent.conformance.nursery import Child, Nursery, first_to_speak
from reference_agent.stores.base import Store

WORKERS = [f"worker {number}" for number in range(4)]

Crew = Callable[..., dict[str, Child]]


class Contention(Bench):
    """Compare-and-set by tokens, under workers that all want the same."""

    @pytest.fixture(params=["processes", "threads"])
    def crew(
        self, request: pytest.FixtureRequest, nursery: Nursery, open_store: Opener
    ) -> Crew:
        """Starts a deed in each worker, and returns when all are ready to begin."""
        start: Start = nursery.start if request.param == "processes" else start_thread

        def crew(deed: Callable[..., None], *arguments: object) -> dict[str, Child]:
            crew = {who: start(deed, open_store, who, *arguments) for who in WORKERS}
            _heard(crew)
            return crew

        return crew

    def test_each_run_is_taken_by_one(
        self, store: Store, crew: Crew, effort: int
    ) -> None:
        """All reach for it at the same moment; nobody else gets it, and one does."""
        workers = crew(deeds.take_in_step)
        for number in range(25 * effort):
            run_id = f"run {number}"
            store.create(run_id, {})
            said = _in_step(workers, run_id)
            ((who, token),) = [(who, t) for who, t in said.items() if t is not None]
            held = loaded(store, run_id)
            assert (held.owner, held.token, held.takes) == (who, token, 1)
        _dismiss(workers)

    def test_each_run_is_created_by_one(
        self, store: Store, crew: Crew, effort: int
    ) -> None:
        """And it is that one's document which is kept, all of it."""
        workers = crew(deeds.create_in_step)
        for number in range(25 * effort):
            said = _in_step(workers, f"run {number}")
            (who,) = [who for who, is_new in said.items() if is_new]
            document = loaded(store, f"run {number}").document
            assert document == {"by": who, "parts": [who] * 200}
        _dismiss(workers)

    def test_no_line_is_lost_in_turn(
        self, store: Store, crew: Crew, effort: int
    ) -> None:
        """Each adds to what the one before has saved."""
        store.create("r", {"lines": []})
        workers = crew(deeds.add_in_turn, "r", 10 * effort)
        said = _all_at_once(workers)
        lines = loaded(store, "r").document["lines"]
        assert sorted(lines) == sorted(line for done in said.values() for line in done)
        tokens = [line[-1] for line in lines]
        assert tokens == sorted(set(tokens))

    def test_no_line_is_lost_by_force(
        self, store: Store, crew: Crew, effort: int
    ) -> None:
        """A save that was acknowledged is in what the next one takes.

        One that was fenced off while it was under way may be in it, too, once.
        """
        store.create("r", {"lines": []})
        workers = crew(deeds.add_by_force, "r", 12 * effort)
        said = _all_at_once(workers)
        lines = loaded(store, "r").document["lines"]
        safe = [line for ok, _ in said.values() for line in ok]
        fenced = [line for _, no in said.values() for line in no]
        assert [line for line in safe if line not in lines] == []
        assert [line for line in lines if line not in safe + fenced] == []
        assert len(lines) == len({str(line) for line in lines})
        tokens = [line[-1] for line in lines]
        assert tokens == sorted(tokens)


def _in_step(workers: dict[str, Child], run_id: str) -> dict[str, Any]:
    """Each tries the same thing at the same moment."""
    moment = monotonic() + 0.002
    for child in workers.values():
        child.say((run_id, moment))
    return _heard(workers)


def _all_at_once(workers: dict[str, Child]) -> dict[str, Any]:
    """Each does what it was started for."""
    for child in workers.values():
        child.say("go")
    return _heard(workers)


def _dismiss(workers: dict[str, Child]) -> None:
    for child in workers.values():
        child.say(None)
        child.rest()


def _heard(workers: dict[str, Child]) -> dict[str, Any]:
    """What each says next; of one that fails before others, who wait for it."""
    said: dict[str, Any] = {}
    while silent := {c: who for who, c in workers.items() if who not in said}:
        for child in first_to_speak(list(silent)):
            said[silent[child]] = child.hear()
    return said
