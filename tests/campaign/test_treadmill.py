"""The treadmill with real kills: one run, killed at every crossing that it has."""

import pytest


@pytest.mark.parametrize("flags", [(), ("counts-lives",)])
def test_a_correct_agent_is_killed_at_every_crossing_of_one_run(
    write_scenario, chaoskit, flags
):
    """A counter in its state, which makes a closure endless, changes nothing."""
    result = chaoskit("run", write_scenario(*flags), "--strategy", "treadmill")
    assert result.code == 0, result.stdout + result.stderr
    report = result.report
    assert report["trials"] == 3
    assert report["crossings"]["hit"] == report["crossings"]["seen"] == report["kills"]


def test_what_it_finds_is_shown_by_a_schedule_that_replays(write_scenario, chaoskit):
    path = write_scenario("no-key")
    result = chaoskit("run", path, "--strategy", "treadmill")
    assert result.code == 1, result.stdout + result.stderr
    first = result.report["findings"][0]
    assert first["requirement"] == "effects/once-across-kill"
    assert first["shown_again"]
    # Two at the look-up of the state, two at the question, two at the payment.
    assert first["schedule"].count("kill@") <= 8
    again = chaoskit("replay", path, first["schedule"])
    assert again.code == 1, again.stdout + again.stderr
    assert again.report["kills"] == first["schedule"].count("kill@")
