"""Operations that mix a heartbeat with changes of the state are known for it."""

from dataclasses import replace

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.fingerprint import Canon, learn
from chaoskit.explore.steadiness import steadiness
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
    return steadiness(Baseline(one, other), (here, there), CANON).mixed


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


def test_a_name_that_is_fresh_in_each_run_makes_no_heartbeat():
    """As that of a temporary file that bears the number of its process."""
    first = [{"tmp.41": n, "cursor": n} for n in (1, 2, 3)]
    second = [{"tmp.57": n, "cursor": n} for n in (1, 2, 3)]
    assert mixed_in(first, second) == ()


def test_parallel_calls_that_come_in_another_order_are_no_heartbeat():
    first = [{"a": 1}, {"a": 1, "b": 1}, {"a": 1, "b": 1, "c": 1}]
    second = [{"c": 1}, {"a": 1, "c": 1}, {"a": 1, "b": 1, "c": 1}]
    assert mixed_in(first, second) == ()


def rows(*ids):
    """A table whose rows are sorted by what is random."""
    return {"rows": [{"id": each, "value": "x"} for each in sorted(ids)]}


A, B, C = (f"{letter * 8}-0000-4000-8000-000000000001" for letter in "abc")


def test_batches_of_rows_that_come_in_another_order_are_no_heartbeat():
    """One of two rows, committed with the second, and one of one row."""
    first = [rows(), rows(A, C), rows(A, B, C)]
    second = [rows(A), rows(A), rows(A, B, C)]
    assert mixed_in(first, second) == ()


def test_rows_that_are_updated_now_and_then_are_mixed():
    """As many as by chance; what is overwritten may be a heartbeat."""

    def beaten(beat, *ids):
        table = rows(*ids)
        return {"rows": [{**row, "beat": beat} for row in table["rows"]]}

    first = [beaten(1, A), beaten(2, A), beaten(3, A), beaten(3, A, B)]
    second = [beaten(1, A), beaten(2, A), beaten(2, A, B), beaten(3, A, B)]
    assert mixed_in(first, second) == (SET,)


def test_rows_that_one_run_lacks_are_mixed():
    first = [rows(A), rows(A), rows(A, B)]
    second = [rows(A), rows(A, B), rows(A, B, C)]
    assert mixed_in(first, second) == (SET,)


def test_a_checkpoint_that_lands_while_a_beat_is_on_its_way_is_not_the_beats():
    """It crosses between the two edges of the beat, on another connection."""
    save, beat = Operation("redis", "set", "run"), Operation("redis", "set", "beat")
    order = [(beat, 1), (save, 1), (beat, 2), (save, 2), (beat, 3)]
    events, views, world = [], {}, {"beat": 0, "n": 0}

    def cross(operation, number, edge):
        address = str(Address(0, operation, number, edge))
        events.append(Crossed(life=0, address=address))
        views[address] = {"redis": dict(world)}

    for operation, number in order:
        if operation is beat:
            cross(beat, number, Edge.BEFORE)
            if number == 2:
                world["n"] += 1
                cross(save, 9, Edge.AFTER)
            cross(beat, number, Edge.AFTER)
        else:
            cross(save, number, Edge.BEFORE)
            world["n"] += 1
            cross(save, number, Edge.AFTER)
    trial = Trial("0001", "run-1", Schedule(), tuple(events))
    fewer = Trial("0002", "run-2", Schedule(), tuple(events[:-2]))
    found = steadiness(Baseline(trial, fewer), (views, views), CANON)
    assert beat not in found.mixed
    assert found.idle == {beat}


def test_a_field_that_differs_now_and_then_is_not_noise():
    """The runs were not at the same point; to mask it would hide real worlds."""
    first = [{"redis": {"cursor": n, "took_ms": n * 7}} for n in (1, 2, 3)]
    second = [{"redis": {"cursor": n, "took_ms": n * 5}} for n in (1, 1, 3)]
    pairs = zip(first, second, strict=True)
    canon = learn(pairs, ("run-1", "run-2"), since=1e9)
    assert canon.volatile == {"redis:took_ms"}


def test_a_claim_that_others_try_in_vain_is_struck_where_it_changes_something():
    """Both runs agree on what changed, and later tries changed nothing."""
    first, second = {"by": 1}, {"by": 2}
    (one, here), (other, there) = seen(first, second), seen(first, second, second)
    baseline = Baseline(one, other)
    found = steadiness(baseline, (here, there), CANON)
    assert found.mixed == ()
    assert found.changing == {SET: {1, 2}}
    struck = replace(baseline, changing=found.changing).targets
    assert [address.nth for address in struck] == [1, 1, 2, 2]
    assert [address.nth for address in baseline.targets] == [1, 1]
