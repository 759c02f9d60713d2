"""Operations that mix a heartbeat with changes of the state are known for it."""

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.fingerprint import Canon, learn
from chaoskit.explore.steadiness import mixed
from chaoskit.model.address import Address, Edge, Operation
from chaoskit.model.history import Crossed
from chaoskit.model.schedule import Schedule
from chaoskit.model.trial import Trial

SET = Operation("redis", "hset", "run:{run}")
CANON = Canon(frozenset(), since=1e9)


def seen(*worlds):
    """A run whose messages to the store left these worlds; its views by address."""
    events, views, was = [], {}, {}
    for number, world in enumerate(worlds, 1):
        for edge, view in ((Edge.BEFORE, was), (Edge.AFTER, world)):
            address = str(Address(0, SET, number, edge))
            events.append(Crossed(life=0, address=address))
            views[address] = {"redis": view}
        was = world
    return Trial("0001", "run-1", Schedule(), tuple(events)), views


def mixed_in(first, second):
    """The operations that are mixed in these two runs."""
    (one, here), (other, there) = seen(*first), seen(*second)
    return mixed(Baseline(one, other), (here, there), CANON)


def test_checkpoints_alone_are_steady():
    worlds = [{"cursor": 1}, {"cursor": 1, "m1": "a"}, {"cursor": 2, "m1": "a"}]
    assert mixed_in(worlds, worlds) == ()


def test_a_heartbeat_alone_is_steady_however_often_it_beats():
    beats = [{"beat": n} for n in range(1, 7)]
    assert mixed_in(beats[:3], beats) == ()


def test_a_heartbeat_among_checkpoints_is_mixed():
    first = [{"cursor": 1}, {"cursor": 1}, {"cursor": 2}]
    second = [{"cursor": 1}, {"cursor": 1}, {"cursor": 1}, {"cursor": 2}]
    assert mixed_in(first, second) == (SET,)


def test_it_is_mixed_also_where_both_runs_have_as_many_beats_by_chance():
    first = [{"cursor": 1}, {"cursor": 1}, {"cursor": 2}]
    second = [{"cursor": 1}, {"cursor": 2}, {"cursor": 2}]
    assert mixed_in(first, second) == (SET,)


def test_a_field_that_differs_now_and_then_is_not_noise():
    """The runs were not at the same point; to mask it would hide real worlds."""
    first = [{"redis": {"cursor": n, "took_ms": n * 7}} for n in (1, 2, 3)]
    second = [{"redis": {"cursor": n, "took_ms": n * 5}} for n in (1, 1, 3)]
    pairs = zip(first, second, strict=True)
    canon = learn(pairs, ("run-1", "run-2"), since=1e9)
    assert canon.volatile == {"redis:took_ms"}
