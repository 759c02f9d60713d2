"""Closure over toy worlds: every reachable state once, in one order, or the reason."""

from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.closure import Closure
from chaoskit.explore.fingerprint import Canon
from chaoskit.explore.memory import remembered
from chaoskit.model.address import Address, Edge, Operation
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import Crossed, FaultFired, LifeEnded
from chaoskit.model.manifest import LogNames
from chaoskit.model.schedule import Fault, Schedule
from chaoskit.model.state import WorldState
from chaoskit.model.trial import Trial
from chaoskit.model.visit import Look, Visit, Visited

CANON = Canon(frozenset({"run-1"}), since=1.7e9)
WRITE = Operation("redis", "set", "x")
CROSSED = tuple(
    Crossed(life=0, address=str(Address(0, WRITE, nth, Edge.AFTER)))
    for nth in range(1, 30)
)
CLEAN = Trial("0001", "run-1", Schedule(), CROSSED)
BASELINE = Baseline(CLEAN, CLEAN)
EMPTY = Trial("0002", "run-1", Schedule(), ())


@dataclass
class Toy:
    """An agent whose world is a value: `step` says what it does next, None at its end.

    `boot` is what a new life does to the world that it finds. `thorough`: a recovery
    goes on where it comes to a world that is known.
    """

    step: callable
    boot: callable = lambda world: world
    start: object = 0
    thorough: bool = False
    view: callable = lambda world: {"redis": {"world": world}}
    canon: Canon = CANON
    visited: list = field(default_factory=list)

    def run(self, world):
        """Every world that a life passes, from the one it finds."""
        while world is not None:
            yield world
            world = self.step(world)

    def looks(self, worlds, path, known=()):
        marks = set()
        for number, world in enumerate(worlds, 1):
            view = self.view(world)
            mark = self.canon.fingerprint(view)
            if mark in known and not self.thorough and number > 1:
                return
            if mark not in known and mark not in marks:
                marks.add(mark)
                state = self.state(world, view, path, number)
                yield Look(state, str(state.path.faults[-1].at), mark)

    def state(self, world, view, path, number):
        at = Address(len(path), WRITE, 1 if path else number, Edge.AFTER)
        longer = path.then(Fault(FaultKind.KILL, at))
        services = {"world": world}
        return WorldState(longer, len(path), "run-1", 0.0, (), view, services, {})

    def clean(self):
        """Looks of the fault-free run; nobody had a canon yet."""
        looks = self.looks(self.run(self.start), Schedule())
        return tuple(Look(look.state, look.address) for look in looks)

    def recover(self, origin, known):
        world = origin.services["world"]
        self.visited.append(world)
        return tuple(self.looks(self.run(self.boot(world)), origin.path, known))

    def close(self, limit=1000, deep=None):
        """All visits of a closure, as a campaign makes them."""
        closure = Closure(self.canon, self.clean(), limit, deep=deep)
        queue = [(visit, closure.known) for visit in closure.first(BASELINE)]
        for visit, known in queue:
            looks = self.recover(visit.origin, known)
            more = list(closure.after(Visited(visit, EMPTY, looks)))
            queue += [(visit, closure.known) for visit in more]
        return closure


def reachable(toy):
    """Every world that any number of kills can leave, found by brute force."""
    found, todo = set(), [toy.start]
    while todo:
        world = todo.pop()
        if world is not None and world not in found:
            found.add(world)
            todo += [toy.step(world), toy.boot(world)]
    return found


def straight(length):
    return lambda world: world + 1 if world < length else None


def test_a_straight_run_is_visited_once_in_its_own_order():
    toy = Toy(straight(4))
    closure = toy.close()
    assert toy.visited == [0, 1, 2, 3, 4]
    assert closure.ended
    assert closure.depth == 1
    assert len(closure.states) == 5


def test_states_that_only_a_recovery_makes_join_the_queue():
    """A kill leaves half a note (a negative world); a recovery cleans it up."""
    toy = Toy(
        step=lambda world: world + 1 if world < 3 else None,
        boot=lambda world: -world if world > 0 else world,
    )
    closure = toy.close()
    assert set(toy.visited) == reachable(toy) == {0, 1, 2, 3, -1, -2, -3}
    assert toy.visited[:4] == [0, 1, 2, 3]
    assert closure.depth == 2


@st.composite
def toys(draw, thorough):
    """Finite worlds; a run always comes to its end."""
    size = draw(st.integers(1, 8))
    later = [st.none() | st.integers(n + 1, size) for n in range(size)]
    steps = [*(draw(each) for each in later), None]
    boots = draw(st.lists(st.integers(0, size), min_size=size + 1, max_size=size + 1))
    return Toy(steps.__getitem__, boots.__getitem__, thorough=thorough)


@given(st.booleans().flatmap(toys))
def test_every_reachable_state_is_visited_exactly_once(toy):
    closure = toy.close()
    assert sorted(toy.visited) == sorted(reachable(toy))
    assert closure.ended
    first = list(toy.visited)
    toy.visited.clear()
    again = toy.close()
    assert toy.visited == first
    assert list(closure.states) == list(again.states)
    assert all(
        state.path == again.states[mark].path for mark, state in closure.states.items()
    )


@given(st.booleans().flatmap(toys))
def test_a_state_is_found_by_as_few_kills_as_can_be(toy):
    depths = {len(toy.close().states[mark].path) for mark in toy.close().states}
    assert depths == set(range(1, max(depths) + 1))


COUNTED = Canon(CANON.run_ids, CANON.since, ignored=("redis:*.attempts",))


def counting(canon=CANON):
    """An agent that counts its lives in its checkpoint."""
    return Toy(
        step=lambda world: (world[0] + 1, world[1]) if world[0] < 2 else None,
        boot=lambda world: (world[0], world[1] + 1),
        start=(0, 0),
        view=lambda world: {
            "memory": {"asked": [str(world[1])]},
            "redis": {
                "0": {"agent": {"value": {"step": world[0], "attempts": world[1]}}}
            },
        },
        canon=canon,
    )


def test_a_counter_never_ends_and_is_named():
    toy = counting()
    closure = toy.close(limit=20)
    assert not closure.ended
    assert len(toy.visited) == 20
    why = closure.why_endless()
    assert "What keeps moving is redis:0.agent.value.attempts" in why
    assert f"{len(closure.states)} states" in why
    assert f"{closure.depth} kills deep" in why


def test_a_counter_that_means_nothing_can_be_listed_as_volatile():
    toy = counting(COUNTED)
    toy.view = lambda world: {"redis": counting().view(world)["redis"]}
    closure = toy.close(limit=20)
    assert closure.ended
    assert [world[0] for world in toy.visited] == [0, 1, 2]


def test_what_moves_in_what_judging_remembers_is_named_if_nothing_else_does():
    toy = counting(COUNTED)
    toy.start = (2, 0)
    why = toy.close(limit=20).why_endless()
    assert "What keeps moving is memory:asked.0." in why


def test_what_lies_deeper_than_was_asked_for_is_no_end_that_is_missing():
    """All that so many kills can reach is visited, and nothing beyond."""
    toy = counting()
    closure = toy.close(limit=100, deep=3)
    assert closure.ended
    assert closure.depth == 3
    assert {world[1] for world in toy.visited} == {0, 1, 2}
    assert len(closure.known) > len(closure.states) == len(toy.visited)


def test_exactly_as_many_states_as_allowed_is_an_end():
    assert Toy(straight(4)).close(limit=5).ended
    assert not Toy(straight(4)).close(limit=4).ended


def test_a_world_seen_twice_in_the_fault_free_run_is_one_state():
    toy = Toy(straight(3), view=lambda world: {"redis": world // 2})
    assert len(toy.close().states) == 2


def test_looks_that_were_found_by_two_recoveries_at_once_are_visited_once():
    """With several workers a trial does not know yet what its neighbour has seen."""
    toy = Toy(straight(1), boot=lambda world: 5)
    closure = Closure(CANON, toy.clean(), 100)
    visits = list(closure.first(BASELINE))
    found = [
        list(closure.after(Visited(v, EMPTY, toy.recover(v.origin, ()))))
        for v in visits
    ]
    assert [len(each) for each in found] == [1, 0]


def test_a_world_that_no_schedule_surely_leads_to_is_visited_all_the_same():
    """A heartbeat may share its operation with the checkpoint that matters."""
    toy = Toy(straight(3))
    fewer = Trial("0003", "run-1", Schedule(), CROSSED[:2])
    closure = Closure(CANON, toy.clean(), 100)
    visits = closure.first(Baseline(fewer, CLEAN))
    assert len(visits) == len(closure.states) == 4


# --- what judging remembers ----------------------------------------------------------


def test_what_is_remembered(told):
    story = told().ask(0).call("pay", "k", order="o-1").killed().resume()
    story.call("pay", "k", first=False, order="o-1").ask(1, "0.0")
    story.log("run.end", checkpoint_id=7)
    assert remembered(story.events, LogNames(), {"redis": '{"id": 7}'}) == {
        "applied": ['pay {"order": "o-1"} x1'],
        "sent": ['pay {"order": "o-1"} key=k'],
        "asked": ["0 ", "1 "],
        "carried": ["0.0"],
        "parked": [],
        "answers": [],
        "logged": "stored",
    }


@pytest.mark.parametrize(
    "more",
    [
        lambda story: story.call("pay", "k2", order="o-1"),
        lambda story: story.deliver("pay", "k2", order="o-1"),
        lambda story: story.ask(1),
        lambda story: story.ask(0, "0.0"),
        lambda story: story.ask(0, problem="refused"),
        lambda story: story.log("saved", checkpoint_id=8),
    ],
    ids=["applied", "key", "asked", "carried", "refused", "logged"],
)
def test_what_later_judgement_can_depend_on_makes_another_world(told, more):
    def story():
        return told().ask(0).call("pay", "k", order="o-1")

    after, before = more(story()).events, story().events
    assert remembered(after, LogNames(), {}) != remembered(before, LogNames(), {})


def test_a_checkpoint_that_was_logged_and_not_stored_makes_another_world(told):
    """Its number alone does not: an agent may save each time it resumes."""
    events = told().log("saved", checkpoint_id=12).events
    worlds = [{"redis": text} for text in ("11", "12", '{"id":12,"n":3}', "112")]
    marks = [remembered(events, LogNames(), world)["logged"] for world in worlds]
    assert marks == ["lost", "stored", "stored", "lost"]


def test_repeating_makes_no_other_world(told):
    """Otherwise no search over states would ever end."""
    story = told().ask(0).call("pay", "k", order="o-1").killed()
    before = remembered(story.events, LogNames(), {})
    story.resume().ask(0).call("pay", "k", first=False, order="o-1").log("x").killed()
    assert remembered(story.events, LogNames(), {}) == before
    assert Visit().origin is None


UNSYNCED = {"files": {"a": "new"}, "unsynced": {"a": "old"}}


@pytest.mark.parametrize("files", [{"unsynced": {}}, UNSYNCED])
def test_a_loss_of_power_is_tried_where_there_is_something_to_lose(files):
    """Each such world is visited as it is, and without what was not synced."""
    address = Address(0, WRITE, 1, Edge.AFTER)
    kill = Fault(FaultKind.KILL, address)
    prefix = (
        FaultFired(life=0, fault=str(kill)),
        LifeEnded(life=0, cause="restored", ending="died", signal=9),
    )
    state = WorldState(
        Schedule((kill,)), 0, "run-1", 0.0, prefix, {"files": files}, {}, {}
    )
    wanted = (FaultKind.KILL, FaultKind.POWERLOSS)
    closure = Closure(CANON, (Look(state, str(address)),), 10, wanted)
    visits = list(closure.first(BASELINE))
    lost = [visit.origin for visit in visits[1:]]
    assert visits[0].origin == state
    kinds = ("powerloss(all)", "powerloss(data)") if files is UNSYNCED else ()
    assert [str(origin.path) for origin in lost] == [f"{k}@{address}" for k in kinds]
    assert [origin.prefix[0].fault for origin in lost] == [str(o.path) for o in lost]
