"""What a campaign concludes, with real kills of a real agent."""

import re

import pytest

from chaoskit.campaign.again import judge_folder
from chaoskit.model.verdict import Verdict


@pytest.mark.parametrize("launch", ["process", "fork"])
def test_a_correct_agent_passes_and_every_edge_was_hit(
    write_scenario, chaoskit, launch
):
    """Pass means: a kill was real at both edges of every crossing."""
    result = chaoskit("run", write_scenario(launch=launch), "--jobs", "2")
    assert result.code == 0, result.stdout + result.stderr
    crossings = result.report["crossings"]
    assert crossings["missed"] == 0
    assert crossings["seen"] == crossings["hit"] == result.report["kills"]
    # 3 questions, 3 effects and 6 checkpoints, each at two edges.
    assert crossings["seen"] == 24
    assert result.report["verdict"] == "pass"


@pytest.mark.parametrize("strategy", ["sweep", "closure", "sample"])
def test_an_agent_without_keys_is_found_by_every_strategy(
    write_scenario, chaoskit, strategy
):
    """The double payment is found, named, and shown by one kill."""
    words = ("--strategy", strategy, "--trials", "20")
    result = chaoskit("run", write_scenario("no-key"), *words)
    assert result.code == 1, result.stdout + result.stderr
    assert "effects/once-across-kill" in result.requirements
    first = result.report["findings"][0]
    assert first["schedule"].count("kill@") == 1
    assert first["observed"] == 2
    assert re.search(r"(pay|note)\(.*\) was applied twice", result.stdout)


def test_a_key_made_anew_in_each_life_is_found_before_it_pays_twice(
    write_scenario, chaoskit
):
    """Held before it applied, a delivery still shows that its key is not stable."""
    schedule = "kill@0:tools.pay[o-1]#1:before"
    result = chaoskit("replay", write_scenario("fresh-key"), schedule)
    assert result.code == 1
    assert result.requirements == ["effects/stable-key"]


def test_noise_in_the_state_is_no_finding_and_the_closure_ends(
    write_scenario, chaoskit
):
    """Clocks and random words in a checkpoint do not make a state new."""
    quiet = chaoskit("run", write_scenario(), "--strategy", "closure")
    noisy = chaoskit("run", write_scenario("noisy"), "--strategy", "closure")
    assert quiet.code == noisy.code == 0, noisy.stdout
    assert quiet.report["states"] == noisy.report["states"] > 5


def test_a_counter_of_lives_makes_the_closure_endless_and_is_named(
    write_scenario, chaoskit
):
    """The report says which field keeps moving, and claims nothing."""
    path = write_scenario("counts-lives", search={"strategy": "closure", "trials": 40})
    result = chaoskit("run", path)
    assert result.code == 3
    assert "lives" in " ".join(result.report["doubts"])


def test_a_counter_that_is_declared_volatile_is_left_out(write_scenario, chaoskit):
    """What the scenario lists makes no state."""
    search = {"strategy": "closure", "trials": 100}
    volatile = ["redis:*.lives", "redis:*.n"]
    path = write_scenario("counts-lives", search=search, volatile=volatile)
    assert chaoskit("run", path).code == 0


def test_a_heartbeat_of_its_own_key_is_periodic_and_harmless(write_scenario, chaoskit):
    """It is listed, struck once, and makes no baseline unrepeatable.

    A beat that did not come is excused, and so it is when that is judged again.
    """
    path = write_scenario("beats")
    for strategy in ("sweep", "closure"):
        result = chaoskit("run", path, "--strategy", strategy)
        assert result.code == 0, result.stdout
        assert result.report["periodic"] in ([], ["redis.set[beat:{run}]"])
        again = judge_folder(result.out)
        assert (again.verdict, again.changed) == (Verdict.PASS, ())


def test_a_heartbeat_among_the_checkpoints_earns_no_green_light(
    write_scenario, chaoskit
):
    """Sweep cannot strike each crossing, and says so; closure restores each world."""
    path = write_scenario("beats-among-saves")
    sweep = chaoskit("run", path)
    assert sweep.code == 3, sweep.stdout
    told = " ".join(sweep.report["doubts"])
    assert "cannot be told apart" in told or "never fired" in told
    closure = chaoskit("run", path, "--strategy", "closure")
    assert closure.code == 0, closure.stdout
    assert not [path for path in closure.report["volatile"] if "cursor" in path]


def test_no_list_of_fields_makes_such_a_heartbeat_harmless(write_scenario, chaoskit):
    """That a field means nothing is said of closures; a sweep strikes as before."""
    path = write_scenario("beats-among-saves", volatile=["redis:*"])
    sweep = chaoskit("run", path)
    assert sweep.code == 3, sweep.stdout
    assert sweep.report["volatile_listed"] == ["redis:*"]
    told = " ".join(sweep.report["doubts"])
    assert "cannot be told apart" in told or "never fired" in told


def test_an_agent_without_effects_is_inconclusive(write_scenario, chaoskit):
    """A run that does nothing cannot show that it does it once."""
    for flag in ("idle", "no-effects"):
        result = chaoskit("run", write_scenario(flag))
        assert result.code == 3, flag
        assert "applied no effect" in result.stdout


def test_a_baseline_that_does_not_repeat_is_inconclusive(write_scenario, chaoskit):
    """One run asks the model once more than the other: no yardstick, no verdict."""
    result = chaoskit("run", write_scenario("unsteady"))
    assert result.code == 3, result.stdout
    assert "does not repeat" in result.stdout
    assert result.requirements == []


def test_a_fault_that_never_fires_is_inconclusive(write_scenario, chaoskit):
    """A green light must be earned."""
    result = chaoskit("replay", write_scenario(), "kill@0:tools.refund[o-1]#1:after")
    assert result.code == 3
    assert "was scheduled and never fired" in result.stdout


def test_a_fault_that_is_scheduled_twice_is_not_taken_for_a_slip(
    write_scenario, chaoskit
):
    """The hint does not ask whether the very same place was meant."""
    fault = "kill@0:tools.pay[o-1]#1:after"
    result = chaoskit("replay", write_scenario(), f"{fault} + {fault}")
    assert result.code == 3
    assert "was reached once only" in result.stdout
    assert "did you mean" not in result.stdout


@pytest.mark.parametrize("kind", ["kill", "kill_one"])
def test_a_fault_that_strikes_in_every_life_proves_nothing(
    write_scenario, chaoskit, kind
):
    """No agent ends a run in which each of its lives is struck."""
    path = write_scenario(limits={"trial_seconds": 3})
    result = chaoskit("replay", path, f"{kind}@*:tools.pay[o-1]#1:after")
    assert result.code == 3, result.stdout
    assert "strikes in every life" in result.stdout


def test_a_pause_in_every_life_ends(write_scenario, chaoskit):
    """The life that took over is let to its end, and so is the run."""
    path = write_scenario("fenced")
    result = chaoskit("replay", path, "pause@*:tools.pay[o-1]#1:after")
    assert result.code == 0, result.stdout


def test_ten_megabytes_in_the_store_are_judged_as_soon_as_anything(
    write_scenario, chaoskit
):
    """A look at the world holds their hash, in which the run's id means nothing."""
    schedule = "kill@0:tools.pay[o-1]#1:after"
    result = chaoskit("replay", write_scenario("bulky"), schedule)
    assert result.code == 0, result.stdout
    assert result.report["volatile"] == []


def test_the_canary_reaches_no_report(write_scenario, chaoskit):
    """An agent that prints its key does not get it into what chaoskit leaves."""
    result = chaoskit("replay", write_scenario("leaks-key", "crash"), "")
    written = [path for path in result.out.rglob("*") if path.is_file()]
    assert any("[canary]" in path.read_text() for path in written)
    for path in written:
        assert not re.search(r"canary-[0-9a-f]{8}", path.read_text()), path
