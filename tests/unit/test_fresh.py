"""Keys that are fresh in each run and do not look it are learned from two runs."""

import re

import pytest

from chaoskit.explore.baseline import Baseline
from chaoskit.explore.fresh import fresh_patterns
from chaoskit.gate import FreshNames


@pytest.fixture
def learned(told):
    """The patterns of two runs that write these keys."""

    def learn(one, other, op="set"):
        runs = []
        for keys in (one, other):
            story = told()
            for key in keys:
                story.cross("redis", op, key)
            runs.append(story.done().trial())
        return fresh_patterns(Baseline(*runs))

    return learn


def test_a_short_random_word_shows_by_its_absence_from_the_other_run(learned):
    (pattern,) = learned(["agent:state", "lease:k3f9"], ["agent:state", "lease:p0x2"])
    assert re.fullmatch(pattern, "lease:zzzz")[1] == "zzzz"
    assert not re.fullmatch(pattern, "agent:state")


def test_with_its_pattern_a_key_is_the_same_in_every_run(learned):
    patterns = learned(["lease:k3f9:holder"], ["lease:p0x2:holder"])
    one, other = (FreshNames("run-1", patterns=patterns) for _ in range(2))
    assert one("lease:k3f9:holder") == other("lease:p0x2:holder") == "lease:{1}:holder"
    assert one("lease:k3f9:holder") == "lease:{1}:holder"
    assert one("lease:a1b2:holder") == "lease:{2}:holder"
    assert one("queue:k3f9") == "queue:k3f9"


def test_a_word_of_the_scenario_stays_though_a_pattern_fits(learned):
    patterns = learned(["lease:k3f9"], ["lease:p0x2"])
    assert (
        FreshNames("run-1", said="main", patterns=patterns)("lease:main")
        == "lease:main"
    )


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (["a", "b"], ["a", "b"]),
        (["a", "beat:1"], ["a"]),
        (["x:1"], ["x:1:2"]),
        (["x:1"], ["x/1"]),
        (["x."], ["x:"]),
    ],
)
def test_other_differences_teach_nothing(learned, one, other):
    assert learned(one, other) == ()


def test_what_is_special_in_a_pattern_stands_for_itself(learned):
    (pattern,) = learned(["a.(b)+[k3f9]"], ["a.(b)+[p0x2]"])
    assert re.fullmatch(pattern, "a.(b)+[zzzz]")
    assert not re.fullmatch(pattern, "aX(b)+[zzzz]")
