"""A run is created once, and what comes back is what was saved last."""

from typing import Any

import pytest

from reference_agent.conformance.bench import Bench, Opener, loaded, same, taken
from reference_agent.stores.base import Store

HISTORY: list[dict[str, Any]] = [
    {"list": [1, 2]},
    {"list": [1, 2, 3], "new": None},
    {"list": [1, 2, 3, {"deep": [1]}], "new": {"a": 1}},
    {"list": [1, 2, 3, {"deep": [1, 2]}], "new": {"b": 1}},
    {"list": [1, 9, 3, {"deep": [1, 2]}, 5], "new": {"b": True}},
    {"list": [True, 9, 3, {"deep": [1, 2]}, 5, 6], "new": {"b": 1.0}},
    {"list": [1.0, 9, 3], "new": 0.0},
    {"list": [1, 9, 3, 4], "new": -0.0},
    {"list": [], "new": 0},
    {"list": {}, "new": False},
    {"list": "", "": [], "new.b": 1, "$": [None]},
    {"list": None, "": [None], "new": {"b": {"c": []}}},
    {"": [None, None]},
    {"": 1},
    {"": True},
    {"": 1.0},
    {"": [0]},
    {"": [False]},
    {"": 0.0},
    {"": -0.0},
    {},
    {"list": [1, 2]},
]
"""One document after another; each differs from the last in a way that is easily missed
by who keeps differences, and compares with ``==``."""


class Saving(Bench):
    """Create, load, save, close."""

    def test_a_run_is_created_once(self, store: Store, opened: Opener) -> None:
        """The second to create it is told so, and changes nothing."""
        assert store.load("r") is None
        assert store.create("r", {"by": "the first"}) is True
        assert store.create("r", {"by": "the second"}) is False
        assert opened().create("r", {"by": "the third"}) is False
        held = loaded(store, "r")
        assert held.document == {"by": "the first"}
        assert (held.owner, held.takes) == (None, 0)

    def test_a_run_that_was_worked_on_is_not_created_again(self, store: Store) -> None:
        """Not even when it is at its end, and nobody holds it."""
        store.create("r", {"n": 0})
        token = taken(store, "r", "a").token
        store.save("r", token, {"n": 1}, wake_at=None, keep=False)
        assert store.create("r", {"n": 0}) is False
        assert loaded(store, "r").document == {"n": 1}

    def test_what_is_not_there_is_nothing(self, store: Store, opened: Opener) -> None:
        """No run comes into being by being looked for."""
        store.create("other", {})
        for handle in (store, opened()):
            assert handle.load("r") is None
            assert handle.take("r", "a", 60.0) is None
            handle.release("r", 1)
            assert handle.load("r") is None
        assert [due.run_id for due in store.due()] == ["other"]
        assert store.create("r", {}) is True

    def test_the_newest_checkpoint_comes_back(
        self, store: Store, opened: Opener, effort: int
    ) -> None:
        """Past 10 and past 100 of them, and many in one second."""
        store.create("r", {"n": 0})
        token = taken(store, "r", "a").token
        for number in range(1, 1 + 120 * effort):
            store.save("r", token, {"n": number, "log": list(range(number))})
            assert loaded(store, "r").document["n"] == number
            if number % 10 in (0, 1):
                held = loaded(opened(), "r")
                assert held.document == {"n": number, "log": list(range(number))}

    def test_the_newest_comes_back_from_holder_to_holder(
        self, store: Store, opened: Opener
    ) -> None:
        """Past 10 and past 100 leases, each with its own save."""
        store.create("r", {"n": 0})
        for number in range(1, 112):
            held = taken(store, "r", f"worker {number}")
            assert held.document == {"n": number - 1}
            store.save("r", held.token, {"n": number}, keep=False)
            if number % 25 == 0:
                store = opened()

    def test_each_change_comes_back(self, store: Store, opened: Opener) -> None:
        """Members that come, go, grow, shrink, or differ in their type alone."""
        store.create("r", {})
        token = taken(store, "r", "a").token
        for document in HISTORY:
            store.save("r", token, document)
            for handle in (store, opened()):
                found = loaded(handle, "r").document
                assert same(found, document), f"{document} came back as {found}"

    def test_a_document_is_what_it_was_when_it_was_saved(self, store: Store) -> None:
        """The caller may change what it saved or loaded, and save it once more."""
        document: dict[str, Any] = {"log": [1], "deep": {"log": [1]}}
        store.create("r", document)
        document["log"].append(2)
        assert loaded(store, "r").document["log"] == [1]
        held = taken(store, "r", "a")
        held.document["log"].append(3)
        assert loaded(store, "r").document["log"] == [1]
        for number in (4, 5):
            document["deep"]["log"].append(number)
            store.save("r", held.token, document)
            assert loaded(store, "r").document == document
        loaded(store, "r").document["deep"].clear()
        assert loaded(store, "r").document == document

    @pytest.mark.parametrize("closed", [True, False])
    def test_reopened_it_is_as_it_was(
        self, open_store: Opener, opened: Opener, *, closed: bool
    ) -> None:
        """Document, lease, takes and wake-up; and the holder can go on."""
        first = open_store()
        first.create("r", {"n": 0})
        token = taken(first, "r", "a").token
        first.save("r", token, {"n": 1}, wake_at=None)
        if closed:
            first.close()
        second = opened()
        held = loaded(second, "r")
        assert (held.document, held.owner, held.takes) == ({"n": 1}, "a", 0)
        assert second.due() == [] or list(second.due()) == []
        assert second.take("r", "b", 60.0) is None
        second.save("r", token, {"n": 2})
        assert loaded(opened(), "r").document == {"n": 2}
        first.close()

    def test_close_can_be_called_twice(self, open_store: Opener) -> None:
        """Used or not."""
        unused, used = open_store(), open_store()
        used.create("r", {})
        for handle in (unused, unused, used, used):
            handle.close()
