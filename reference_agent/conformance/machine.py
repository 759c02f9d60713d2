"""Any sequence of operations does to a store what it does to a model in memory."""

import os
from copy import deepcopy
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import count
from typing import Any, cast

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from reference_agent.conformance.bench import LONG, Bench, Opener, same
from reference_agent.stores.base import NOW, Fenced, Store

RUNS = st.sampled_from(["r", "R/.."])
OWNERS = st.sampled_from(["a", "b"])
SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(st.characters(codec=None, exclude_categories=()), max_size=8)
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(st.text(max_size=3), inner, max_size=4)
    ),
    max_leaves=8,
)
DOCUMENTS = st.dictionaries(
    st.sampled_from(["step", "messages", "é", ""]) | st.text(max_size=3),
    VALUES,
    max_size=5,
)

MOMENT = 0.001
"""Seconds of a lease that is over before anything else is done."""


@dataclass(frozen=True)
class Run:
    """A run as it should be."""

    document: dict[str, Any]
    due: bool = True
    owner: str | None = None
    ended: bool = False
    brief: bool = False
    takes: int = 0
    tokens: list[int] = field(default_factory=list)


class StoreMachine(RuleBasedStateMachine):
    """Hypothesis chooses what is done; names are its own, so data may be shared."""

    numbers = count()

    def __init__(self, open_store: Opener) -> None:
        super().__init__()
        self._open_store = open_store
        self._store: Store = open_store()
        self._handles = [self._store]
        self._prefix = f"{next(StoreMachine.numbers)} "
        self._runs: dict[str, Run] = {}

    def teardown(self) -> None:
        """Leave nothing that later examples would have to list."""
        for name, run in self._runs.items():
            held = self._store.take(self._prefix + name, "end", LONG, over=run.owner)
            if held is not None:
                self._store.save(self._prefix + name, held.token, {}, wake_at=None)
        for handle in self._handles:
            handle.close()

    @initialize(document=DOCUMENTS)
    def create_one(self, document: dict[str, Any]) -> None:
        """Most of what can be done needs a run."""
        self._create("r", document)

    @rule(name=RUNS, document=DOCUMENTS)
    def create(self, name: str, document: dict[str, Any]) -> None:
        """New once."""
        self._create(name, document)

    def _create(self, name: str, document: dict[str, Any]) -> None:
        new = self._store.create(self._prefix + name, document)
        assert new is (name not in self._runs)
        if new:
            self._runs[name] = Run(deepcopy(document))

    @rule(name=RUNS, owner=OWNERS, over=st.none() | OWNERS)
    def take(self, name: str, owner: str, over: str | None) -> None:
        """Had by one, or over the one who is gone."""
        self._take(name, owner, LONG, over)

    @rule(name=RUNS, owner=OWNERS)
    def take_for_a_moment(self, name: str, owner: str) -> None:
        """A lease that is over before anything else happens."""
        if self._take(name, owner, MOMENT, None):
            self._runs[name] = replace(self._runs[name], owner=None, brief=True)
            self._pass_a_moment()

    def _pass_a_moment(self) -> None:
        end = self._store.now() + 2 * MOMENT
        while self._store.now() <= end:
            pass

    def _take(self, name: str, owner: str, seconds: float, over: str | None) -> bool:
        run = self._runs.get(name)
        free = run is not None and (run.owner is None or run.owner == over)
        held = self._store.take(self._prefix + name, owner, seconds, over=over)
        assert (held is not None) is free
        if held is None or run is None:
            return False
        assert same(held.document, run.document)
        assert held.takes == run.takes + 1
        assert held.owner == owner or seconds == MOMENT
        assert held.token > max(run.tokens, default=0)
        tokens = [*run.tokens, held.token]
        self._runs[name] = replace(
            run,
            owner=owner,
            takes=held.takes,
            tokens=tokens,
            ended=False,
            brief=False,
        )
        return True

    @precondition(lambda self: self._runs)
    @rule(
        data=st.data(),
        document=DOCUMENTS,
        wake=st.sampled_from(["now", "past", "later", "never"]),
        keep=st.booleans(),
    )
    def save(
        self, data: st.DataObject, document: dict[str, Any], wake: str, *, keep: bool
    ) -> None:
        """Under the newest token, which has not been given back, all is replaced."""
        name = data.draw(st.sampled_from(sorted(self._runs)))
        run = self._runs[name]
        if not run.tokens or run.ended:
            return
        wake_at = {"now": NOW, "past": self._store.now() - 5, "never": None}.get(
            wake, self._store.now() + LONG
        )
        self._store.save(
            self._prefix + name, run.tokens[-1], document, wake_at=wake_at, keep=keep
        )
        if run.brief and keep:
            self._pass_a_moment()  # its lease was renewed, by as little as it had
        self._runs[name] = replace(
            run,
            document=deepcopy(document),
            due=wake in ("now", "past"),
            owner=run.owner if keep else None,
            ended=not keep,
            takes=0,
        )

    @precondition(lambda self: self._runs)
    @rule(data=st.data(), document=DOCUMENTS, keep=st.booleans())
    def save_stale(
        self, data: st.DataObject, document: dict[str, Any], *, keep: bool
    ) -> None:
        """Fenced; what that must not change, the invariants see."""
        name = data.draw(st.sampled_from(sorted(self._runs)))
        for token in [*self._runs[name].tokens[:-1][-2:], 2**60]:
            with pytest.raises(Fenced):
                self._store.save(
                    self._prefix + name, token, document, wake_at=None, keep=keep
                )

    @precondition(lambda self: self._runs)
    @rule(data=st.data(), which=st.integers(1, 3))
    def release(self, data: st.DataObject, which: int) -> None:
        """By the newest token, or by an old one, which does nothing."""
        name = data.draw(st.sampled_from(sorted(self._runs)))
        run = self._runs[name]
        if len(run.tokens) >= which:
            self._store.release(self._prefix + name, run.tokens[-which])
            if which == 1:
                self._runs[name] = replace(run, owner=None, ended=True)

    @rule(closed=st.booleans())
    def reopen(self, *, closed: bool) -> None:
        """Go on with another handle, whether the old one was closed or just left."""
        if closed:
            self._store.close()
        self._store = self._open_store()
        self._handles.append(self._store)

    @invariant()
    def runs_are_as_they_should_be(self) -> None:
        """`load` and `due` agree with the model."""
        for name, run in self._runs.items():
            held = self._store.load(self._prefix + name)
            assert held is not None
            assert same(held.document, run.document)
            assert (held.owner, held.takes) == (run.owner, run.takes)
        mine = {name: run.owner for name, run in self._runs.items() if run.due}
        size = len(self._prefix)
        assert mine == {
            due.run_id[size:]: due.owner
            for due in self._store.due()
            if due.run_id.startswith(self._prefix)
        }


class AgainstAModel(Bench):
    """The state machine as a test."""

    def test_any_sequence_of_operations(self, open_store: Opener, effort: int) -> None:
        """The same ones each time in CI, others elsewhere.

        With ``--full`` a sequence that fails is made as short as can be: for minutes.
        """
        without = {Phase.explain} if effort > 1 else {Phase.explain, Phase.shrink}
        run_state_machine_as_test(
            cast("type[StoreMachine]", partial(StoreMachine, open_store)),
            settings=settings(
                max_examples=20 * effort,
                stateful_step_count=40,
                deadline=None,
                phases=[phase for phase in Phase if phase not in without],
                derandomize="CI" in os.environ,
                suppress_health_check=list(HealthCheck),
            ),
        )
