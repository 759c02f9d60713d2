"""Verdicts under faults that kill nobody: right both ways, with a real agent.

A correct agent passes whatever the world does to it. For each thing that is excused
there, an agent is shown that does it without that excuse, and it is found.
"""

import pytest

# One call: two questions, one effect and three checkpoints.
SHORT = {
    "llm": {"script": [{"call": {"pay": {"order": "o-1"}}}, {"say": "Paid."}]},
    "tools": {"pay": "keyed"},
}
TWICE = "effects/once-across-kill"


def of_class(name):
    return SHORT | {"tools": {"pay": name}}


@pytest.fixture
def verdict(write_scenario, chaoskit):
    """What the toy agent with these flags is found to break under some faults."""

    def run(faults, *flags, cls="keyed"):
        words = [word for fault in faults for word in ("--fault", fault)]
        result = chaoskit("run", write_scenario(*flags, **of_class(cls)), *words)
        assert result.report["doubts"] == [], result.stdout
        return {
            finding["requirement"]
            for finding in result.report["findings"]
            if finding["severity"] == "must"
        }

    return run


@pytest.mark.parametrize(
    "faults",
    [
        ("drop_reply", "refuse", "tear", "delay(0.05)", "duplicate"),
        ("error", "full"),
        ("restart", "rollback", "rollback(4)", "expire"),
        ("term", "int", "kill_one", "skew"),
    ],
)
def test_a_correct_agent_passes_whatever_the_world_does(verdict, faults):
    assert verdict(faults) == set()


def test_one_that_takes_half_a_reply_for_a_whole_one_is_found(verdict):
    """Its conversation is broken for good."""
    assert "progress/ends" in verdict(["error(length)"], "takes-halves")


@pytest.mark.parametrize("cls", ["keyed", "queryable"])
def test_one_that_gives_way_passes_a_pause(verdict, cls):
    """Its last call may land late; a look-up that came before is all that it can do."""
    flags = ("fenced", "looks")[: 1 if cls == "keyed" else 2]
    assert verdict(["pause"], *flags, cls=cls) == set()


def test_one_that_goes_on_after_another_took_over_is_found(verdict):
    """It was told by nothing, since it does not ask."""
    assert "progress/not-again" in verdict(["pause"])


def test_one_that_does_not_look_is_found(verdict):
    """Two payments by two lives, neither of which looked."""
    assert TWICE in verdict(["pause"], "fenced", cls="queryable")


def test_a_store_that_forgets_is_no_excuse_to_pay_twice(verdict):
    """With a key of its own in each attempt; and without a look at what is there."""
    assert TWICE in verdict(["rollback(4)"], "fresh-key")
    assert TWICE in verdict(["rollback(4)"], cls="queryable")
    assert verdict(["rollback(4)"], "looks", cls="queryable") == set()


def test_a_second_attempt_after_an_open_answer_is_found(verdict):
    """After 429 nothing was done, and it may; after 503 nobody knows."""
    found = {
        name: verdict([f"error({name})"], "retries-errors", cls="queryable")
        for name in ("429", "503")
    }
    assert found == {"429": set(), "503": {TWICE}}


def test_who_parks_after_a_plain_refusal_is_found(verdict):
    """A blind call: after 429 there is no doubt, and after 503 there is."""
    found = {
        name: verdict([f"error({name})"], "parks-on-errors", cls="blind")
        for name in ("429", "503")
    }
    assert found == {"429": {"progress/parks-for-a-reason"}, "503": set()}


def test_who_tells_the_model_instead_of_trying_again_has_lost_a_call(verdict):
    assert verdict(["error(503)"], "tells-errors") == {"effects/none-lost"}


def test_the_network_s_copy_without_a_key_is_found(verdict):
    """A proxy that retries is why keys are there."""
    assert verdict(["duplicate"], "no-key") == {TWICE}


def test_lives_that_end_because_of_faults_are_not_counted(write_scenario, chaoskit):
    """Seven of them, of five that it may have; one that always crashes has six."""
    schedule = " + ".join(f"refuse@{life}:llm.chat#1:before" for life in range(7))
    result = chaoskit("replay", write_scenario(**SHORT), schedule)
    assert result.code == 0, result.stdout
    result = chaoskit("replay", write_scenario("crash", **SHORT), "")
    assert result.requirements == ["progress/ends"]
