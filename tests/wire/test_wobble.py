"""What the model says to one who asks again: by the script, and never by chance."""

import json

import pytest

from chaoskit.model.script import Llm
from chaoskit.wire.wobble import calls_at, said_at, ways

SCRIPT = [
    {
        "call": [
            {"tool": "hold", "args": {"seat": "12A"}, "or": [{"seat": "12a"}]},
            {"tool": "pay", "args": {"c": 1}, "or": [{"c": 1.0}, {"c": "1"}]},
        ],
        "or": [
            [{"tool": "wait_list", "args": {}}, {"tool": "pay", "args": {"c": 2}}],
        ],
    },
    {"ask": "Approve?"},
    {"wait": 2},
    {"say": "Booked."},
]


def _llm(wobble):
    return Llm.model_validate({"script": SCRIPT, "wobble": wobble})


def _made(wobble, told, turn=0):
    return [
        (tool, json.loads(arguments))
        for tool, arguments in said_at(_llm(wobble), turn, told).called
    ]


@pytest.mark.parametrize("wobble", ["none", "wording", "arguments", "choice"])
def test_the_first_answer_is_the_scripts_own(wobble):
    assert _made(wobble, 0) == [("hold", {"seat": "12A"}), ("pay", {"c": 1})]
    assert said_at(_llm(wobble), 0).content is None
    assert said_at(_llm(wobble), 3).content == "Booked."


def test_without_wobble_it_says_the_same_for_ever():
    assert {said_at(_llm("none"), 0, told) for told in range(9)} == {
        said_at(_llm("none"), 0)
    }


def test_wording_changes_words_and_no_call():
    llm = _llm("wording")
    assert [_made("wording", told) for told in range(3)] == [_made("none", 0)] * 3
    said = [said_at(llm, 3, told).content for told in range(4)]
    assert len(set(said)) == 3
    assert said[3] == said[0]
    assert all("Booked." in words for words in said)
    asked = {said_at(llm, 1, told).called for told in range(3)}
    assert len(asked) == 3, "a question to a human is words too"
    assert len({said_at(llm, 0, told).content for told in range(3)}) == 3


def test_arguments_take_their_turns_call_by_call():
    llm = _llm("arguments")
    told = [tuple(json.dumps(made) for made in _made("arguments", n)) for n in range(6)]
    assert told[1] == ('["hold", {"seat": "12a"}]', '["pay", {"c": 1.0}]')
    assert told[2] == ('["hold", {"seat": "12A"}]', '["pay", {"c": "1"}]')
    assert len(set(told)) == ways(llm, 0) == 6
    assert _made("arguments", 6) == _made("arguments", 0)
    assert ways(llm, 3) == 1


def test_choice_takes_another_step_as_a_whole():
    assert _made("choice", 1) == [("wait_list", {}), ("pay", {"c": 2})]
    assert _made("choice", 2) == _made("choice", 0)
    assert ways(_llm("choice"), 0) == 2


@pytest.mark.parametrize("wobble", ["wording", "arguments", "choice"])
def test_a_wait_and_the_end_of_the_script_are_told_as_they_are(wobble):
    assert _made(wobble, 1, turn=2) == [("wait", {"seconds": 2})]
    assert said_at(_llm(wobble), 9, 0).content == "Booked."


@pytest.mark.parametrize("wobble", ["none", "wording", "arguments", "choice"])
def test_after_as_many_tellings_as_there_are_ways_it_begins_anew(wobble):
    llm = _llm(wobble)
    for turn in range(len(SCRIPT)):
        count = ways(llm, turn)
        told = [said_at(llm, turn, n) for n in range(2 * count)]
        assert told[:count] == told[count:]
        assert len(set(told)) == count


def test_a_call_is_known_in_each_way_in_which_it_may_be_made():
    own = ("hold", {"seat": "12A"})
    assert calls_at(_llm("none"), 0, 0) == (own,)
    assert calls_at(_llm("arguments"), 0, 0) == (own, ("hold", {"seat": "12a"}))
    assert calls_at(_llm("choice"), 0, 0) == (own, ("wait_list", {}))
    assert calls_at(_llm("none"), 1, 0) == (("ask_human", {"question": "Approve?"}),)
    assert calls_at(_llm("none"), 2, 0) == (("wait", {"seconds": 2}),)
    for turn, position in ((0, 2), (3, 0), (99, 0)):
        assert calls_at(_llm("none"), turn, position) == ()
