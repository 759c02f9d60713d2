"""Which faults a search tries where: only those that the crossing can take."""

import pytest

from chaoskit.explore.strikes import Strikes
from chaoskit.model.faults import Wanted
from chaoskit.model.history import Crossed
from chaoskit.model.schedule import Schedule
from chaoskit.model.trial import Trial


def trial(*crossings):
    """A run that passed these; ``address/9`` is a message of nine pieces."""
    events = []
    for seq, crossing in enumerate(crossings):
        address, _, pieces = crossing.partition("/")
        number = int(pieces) if pieces else None
        events.append(Crossed(life=0, seq=seq, address=address, pieces=number))
    return Trial("t", "run-1", Schedule(), tuple(events))


def tried(wanted, *crossings):
    run = trial(*crossings)
    strikes = Strikes(tuple(map(Wanted.parse, wanted)))
    return [str(fault) for fault in strikes.at(run, run.addresses)]


BOTH = ("0:llm.chat#1:before", "0:llm.chat#1:after")


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("kill", ["kill@0:llm.chat#1:before", "kill@0:llm.chat#1:after"]),
        ("drop_reply", ["drop_reply@0:llm.chat#1:after"]),
        ("refuse", ["refuse@0:llm.chat#1:before"]),
        (
            "error(429)",
            ["error(429)@0:llm.chat#1:before", "error(429)@0:llm.chat#1:after"],
        ),
        ("tear", ["tear@0:llm.chat#1:part:1"]),
        ("restart", []),
    ],
)
def test_a_fault_is_tried_at_the_edges_that_it_has(wanted, found):
    assert tried([wanted], *BOTH) == found


def test_without_an_argument_every_error_is_tried():
    found = tried(["error"], BOTH[0])
    assert len(found) >= 4
    assert all(fault.endswith("@0:llm.chat#1:before") for fault in found)
    assert len(set(found)) == len(found)


def test_a_stream_is_torn_after_every_piece_but_the_last():
    found = tried(["tear"], "0:llm.chat#1:before", "0:llm.chat#1:after/4")
    assert found == [f"tear@0:llm.chat#1:part:{n}" for n in (1, 2, 3)]


def test_an_error_can_come_inside_a_stream_and_inside_nothing_else():
    streamed = tried(["error(500)"], "0:llm.chat#1:after/3")
    assert streamed == [
        f"error(500)@0:llm.chat#1:{edge}" for edge in ("after", "part:1", "part:2")
    ]
    assert tried(["error(500)"], BOTH[1]) == ["error(500)@0:llm.chat#1:after"]


def test_a_write_is_torn_after_its_first_byte_in_the_middle_and_before_the_last():
    write = "0:files.write[a]#1"
    found = tried(["tear"], f"{write}:before/10", f"{write}:after/10")
    assert found == [f"tear@{write}:part:{n}" for n in (1, 5, 9)]
    assert tried(["tear"], f"{write}:before/1") == [], "one byte lands or does not"
    assert tried(["tear"], "0:files.rename[a]#1:before") == []


@pytest.mark.parametrize(
    ("service", "denials", "others"),
    [
        ("tools.pay", ["429"], ["500", "503", "504"]),
        ("mcp.pay", ["429"], ["-32603", "isError", "503"]),
        ("smtp.send", ["451", "421", "452", "550"], []),
        ("redis.set", ["LOADING", "OOM", "READONLY"], []),
        ("postgres.commit", ["40001", "40P01", "55P03", "53300"], ["57P01"]),
    ],
)
def test_no_search_has_a_service_lie(service, denials, others):
    """Who is told that nothing was done may try again; it must not have been done.

    A schedule that somebody writes may say so all the same.
    """
    for name in (*denials, *others):
        fault = f"error({name})@0:{service}#1"
        found = tried(
            [f"error({name})"], f"0:{service}#1:before", f"0:{service}#1:after"
        )
        lies = [] if name in denials else [f"{fault}:after"]
        assert found == [f"{fault}:before", *lies]
        assert str(Schedule.parse(f"{fault}:after")) == f"{fault}:after"


def test_what_no_crossing_can_take_is_known():
    run = trial(*BOTH)
    strikes = Strikes((Wanted.parse("kill"), Wanted.parse("restart")))
    assert strikes.homeless(run, run.addresses) == (Wanted.parse("restart"),)
