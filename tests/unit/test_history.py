"""Histories are JSON lines: what was written can be judged again years later."""

import json
import pickle

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from chaoskit.model import history
from chaoskit.model.history import Crossed, Logged, from_line, to_line
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import Trial

EVENTS = [
    kind
    for kind in vars(history).values()
    if isinstance(kind, type)
    and issubclass(kind, history._Event)
    and kind is not history._Event
]
HOLDS_JSON = {"args", "entry"}


@pytest.mark.parametrize("kind", EVENTS)
def test_each_kind_of_event_comes_back_as_itself(kind):
    holds_json = HOLDS_JSON & set(kind.model_fields)
    given_json = {name: st.just({"a": [1, None]}) for name in holds_json}
    finite = {
        n: st.floats(-1e6, 1e6) for n in {"t", "seconds"} & set(kind.model_fields)
    }

    @given(st.builds(kind, **given_json, **finite))
    def comes_back(event):
        line = to_line(event)
        assert "\n" not in line
        assert from_line(line) == event

    comes_back()


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.text(), JSON, max_size=3))
def test_a_log_line_comes_back_as_itself(entry):
    event = Logged(life=0, stream="stderr", line=1, entry=entry)
    assert from_line(to_line(event)) == event


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        (r'"\ud83d"', r"\ud83d"),
        ("NaN", "nan"),
        ("-1e999", "-inf"),
        ("[" * 900 + "]" * 900, None),
    ],
)
def test_whatever_an_agent_logs_can_be_written(text, kept):
    entry = json.loads(f'{{"event": "x", "value": {text}}}')
    event = Logged(life=0, stream="stderr", line=1, entry=entry)
    assert from_line(to_line(event)) == event
    assert kept is None or event.entry["value"] == kept


@pytest.mark.parametrize("line", ["", "{}", '{"kind": "x"}', "[]", '{"kind": "fault"}'])
def test_what_is_no_event_is_refused(line):
    with pytest.raises(ValidationError):
        from_line(line)


def test_a_crossing_that_is_made_unchecked_is_like_any_other():
    """It is made in a hurry, and nobody may notice later."""
    quick = Crossed.of(3, 0.5, 0, "0:redis.set[k]#1:after", None, late=True)
    slow = Crossed(seq=3, t=0.5, life=0, address="0:redis.set[k]#1:after", late=True)
    assert (quick, repr(quick), hash(quick)) == (slow, repr(slow), hash(slow))
    assert to_line(quick) == to_line(slow) == slow.model_dump_json()
    assert pickle.loads(pickle.dumps(quick)) == slow
    assert quick.model_copy(update={"t": 1.0}) == slow.model_copy(update={"t": 1.0})


def test_events_do_not_change():
    with pytest.raises(ValidationError):
        Crossed(life=0, address="0:llm.chat#1:after").life = 1


# --- a trial, read off its history ---------------------------------------------------


def test_how_a_trial_ended(told):
    assert told().done().trial().ended.outcome == "done"
    short = told().ask(0).trial().ended
    assert (short.outcome, short.reason) == ("endless", "the history stops short")
    assert Trial("1", "run", told().trial().schedule, ()).ended.outcome == "endless"


def test_the_life_after_done(told):
    assert told().done().trial().again == {1}
    assert told().parks().trial().again == frozenset()


def test_addresses_are_the_crossings_in_time_of_the_run(told):
    story = told().ask(0).call("pay", late=True, order="o-1").killed().resume().ask(0)
    story.end("done").start("again").ask(1).end("done").over("done")
    assert [str(address) for address in story.trial().addresses] == [
        "0:llm.chat#1:before",
        "0:llm.chat#1:after",
        "0:tools.pay[o-1]#1:before",
        "1:llm.chat#1:before",
        "1:llm.chat#1:after",
    ]


def test_a_kill_is_real_if_its_life_died_of_the_signal(told):
    story = told().ask(0).killed().resume().ask(0).killed().resume().fails()
    assert story.trial().kills == tuple(story.faults)
    assert story.trial().kills[0] == Fault.parse("kill@0:llm.chat#1:after")


def test_a_life_that_got_away_was_not_killed(told):
    story = told().ask(0).killed()
    end = next(e for e in story.events if e.kind == "life.ended")
    story.events[end.seq] = end.model_copy(update={"signal": None, "code": 0})
    assert story.trial().kills == ()


def test_a_death_in_a_restored_world_is_no_kill(told):
    assert told().ask(0).killed(cause="restored").trial().kills == ()
