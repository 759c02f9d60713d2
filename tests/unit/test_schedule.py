"""Schedules: a text form that can be typed again, and one total order."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.model.address import Address, Edge, Operation
from chaoskit.model.fault_table import flaw_of
from chaoskit.model.faults import FaultKind
from chaoskit.model.schedule import Fault, Schedule

FEW = st.sampled_from(["a", "b", "+", " + kill@0:a.b#1:after", ""])
ADDRESSES = st.builds(
    Address,
    st.none() | st.integers(0, 2),
    st.builds(
        Operation,
        st.sampled_from(["llm", "tools"]),
        st.sampled_from(["x", "y", "+"]),
        st.none() | FEW | st.text(max_size=5),
    ),
    st.integers(1, 3),
    st.sampled_from([Edge.BEFORE, Edge.AFTER, Edge.of_part(1), Edge.of_part(2)]),
)
ARGUMENTS = st.none() | st.sampled_from(["0.5", "429", "-60"])
SCHEDULES = st.builds(
    Schedule,
    st.lists(
        st.builds(Fault, st.sampled_from(FaultKind), ADDRESSES, ARGUMENTS).filter(
            lambda fault: flaw_of(fault.kind, fault.argument, fault.at) is None
        ),
        max_size=3,
    ).map(tuple),
)
ONE = "kill@0:tools.charge_card[o-1]#1:after"
TWO = "kill@1:llm.chat#1:before"


@given(SCHEDULES)
def test_text_and_back(schedule):
    assert Schedule.parse(str(schedule)) == schedule


@given(SCHEDULES, SCHEDULES)
def test_two_schedules_are_equal_in_order_only_if_they_are_equal(one, other):
    assert (one.order == other.order) == (one == other)
    assert (one.order < other.order) != (one.order >= other.order)


@given(st.lists(SCHEDULES, max_size=6), st.randoms(use_true_random=False))
def test_the_order_does_not_hang_on_where_one_begins(schedules, dice):
    mixed = dice.sample(schedules, len(schedules))
    one, other = (sorted(s.order for s in each) for each in (schedules, mixed))
    assert one == other
    assert [order[0] for order in one] == sorted(map(len, schedules))


def test_the_form_that_the_contract_shows():
    schedule = Schedule.parse(f"{ONE} + {TWO}")
    assert [str(fault) for fault in schedule.faults] == [ONE, TWO]
    assert str(schedule) == f"{ONE} + {TWO}"
    assert schedule == Schedule.parse(ONE).then(Fault.parse(TWO))


@pytest.mark.parametrize("text", ["", "  ", "\n"])
def test_no_fault_is_the_clean_run(text):
    assert Schedule.parse(text) == Schedule()
    assert str(Schedule()) == ""


def test_room_around_a_fault_does_not_matter():
    assert Schedule.parse(f"  {ONE}  +  {TWO}\n") == Schedule.parse(f"{ONE} + {TWO}")


def test_fewer_faults_come_first_then_earlier_places():
    texts = [
        "",
        "kill@*:llm.chat#1:before",
        "kill@0:llm.chat#1:before",
        "kill@0:llm.chat#1:after",
        "kill@0:llm.chat#2:before",
        "kill@0:llm.chat#10:before",
        "kill@0:tools.pay#1:before",
        "kill@0:tools.pay[]#1:before",
        "kill@0:tools.pay[a]#1:before",
        "kill@1:llm.chat#1:before",
        "kill@10:llm.chat#1:before",
        f"{ONE} + {TWO}",
    ]
    schedules = [Schedule.parse(text) for text in texts]
    schedules.reverse()
    schedules.sort(key=lambda schedule: schedule.order)
    assert [str(schedule) for schedule in schedules] == texts


@pytest.mark.parametrize(
    ("text", "part", "expected"),
    [
        ("0:llm.chat#1:after", "'0:llm.chat#1:after'", "KIND@ADDRESS"),
        ("murder@0:llm.chat#1:after", "'murder'", "one of kill, kill_one"),
        ("KILL@0:llm.chat#1:after", "'KILL'", "did you mean 'kill'?"),
        ("error(418)@0:llm.chat#1:before", "error(418)", "429, 500, 503, 529"),
        ("delay(soon)@0:llm.chat#1:before", "delay(soon)", "a number of seconds"),
        ("delay(1_0)@0:llm.chat#1:before", "delay(1_0)", "a number of seconds"),
        ("skew(٣)@0:llm.chat#1:before", "skew(٣)", "a number of seconds"),
        ("rollback(0.5)@0:redis.set[k]#1:after", "(0.5)", "a whole number of writes"),
        ("rollback(1.5)@0:redis.set[k]#1:after", "(1.5)", "a whole number of writes"),
        ("rollback(0)@0:redis.set[k]#1:after", "(0)", "a whole number of writes"),
        (
            "rollback(1.5)@0:postgres.commit[tx]#1:after",
            "(1.5)",
            "a whole number of commits",
        ),
        ("expire()@0:redis.set[k]#1:after", "expire()", "expected a key"),
        ("drop_reply@0:llm.chat#1:before", "before", "expected after"),
        ("restart@0:llm.chat#1:after", "restart", "llm holds no state"),
        ("kill(now)@0:llm.chat#1:before", "kill(now)", "expected no argument"),
        ("kil@0:llm.chat#1:after", "'kil'", "did you mean 'kill'?"),
        ("kill@0:nosuch.chat#1:after", "'nosuch'", "expected one of llm, tools, mcp"),
        ("kill@0:tool.pay#1:after", "'tool'", "did you mean 'tools'?"),
        ("kill@0:tools.pay[%ff]#1:after", "%FF", "expected the escapes of UTF-8"),
        ("expire(%ff)@0:redis.set[k]#1:after", "%FF", "expected the escapes of UTF-8"),
        ("kill@nowhere", "'nowhere'", "life:service.op[key]#nth:edge"),
        (f"{ONE} + {TWO}x", "'1:llm.chat#1:beforex'", "before, after or part:K"),
        (f"{ONE} + ", "''", "KIND@ADDRESS"),
        (f"{ONE}+{TWO}", "0:tools.charge_card", "life:service.op[key]#nth:edge"),
    ],
)
def test_what_is_no_schedule_is_said_in_a_sentence(text, part, expected):
    with pytest.raises(ValueError, match=r"expected|did you mean|has") as caught:
        Schedule.parse(text)
    assert part in str(caught.value)
    assert expected in str(caught.value)
