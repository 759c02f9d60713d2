"""Scenario files given to pytest are tests, and fail with the report's story."""

import json
from pathlib import Path

import pytest

TOY = Path(__file__).parents[1] / "campaign" / "toy_agent.py"


@pytest.fixture
def scenario(pytester):
    """Write a scenario for the toy agent into the folder of the inner pytest."""

    def write(name: str, *flags: str, **changes: object) -> Path:
        manifest = {
            "name": "toy",
            "launch": "process",
            "start": ["{python}", str(TOY), "{run}", "{goal}", *flags],
            "store": "redis",
            "contract": {"effects": "exactly-once"},
        }
        fields = {
            "name": name,
            "agent": f"{name}-agent.yaml",
            "task": {"goal": "Pay the bill"},
            "llm": {"script": [{"call": {"pay": {"order": "o-1"}}}, {"say": "Paid."}]},
            "tools": {"pay": "keyed"},
            **changes,
        }
        (pytester.path / f"{name}-agent.yaml").write_text(json.dumps(manifest))
        path = pytester.path / f"{name}.yaml"
        path.write_text(json.dumps(fields))
        return path

    return write


def test_a_scenario_that_passes_is_a_passing_test(pytester, scenario):
    """One file, one test."""
    result = pytester.runpytest_subprocess(scenario("good"), "-v")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["good.yaml::good PASSED*"])


def test_a_scenario_that_fails_tells_the_story(pytester, scenario):
    """The finding, its schedule and the replay command; none of our stack."""
    result = pytester.runpytest_subprocess(scenario("bad", "no-key"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(
        [
            "*effects/once-across-kill*",
            "*schedule: kill@0:tools.pay?o-1?#1:after*",
            "*chaoskit replay *bad.yaml *",
        ]
    )
    result.stdout.no_fnmatch_line("*Traceback*")


def test_an_inconclusive_scenario_is_no_pass(pytester, scenario):
    """A run that proves nothing fails the test, in words."""
    result = pytester.runpytest_subprocess(scenario("idle", "idle"))
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["*applied no effect*"])


def test_a_damaged_scenario_fails_with_its_place(pytester, scenario):
    """File, line and what was expected."""
    path = scenario("broken", tools={"pay": "keyd"})
    result = pytester.runpytest_subprocess(path)
    assert result.ret != 0
    result.stdout.fnmatch_lines(["*did you mean 'keyed'*"])
    result.stdout.no_fnmatch_line("*Traceback*")


def test_yaml_files_that_nobody_named_are_left_alone(pytester, scenario):
    """A folder may hold YAML files of any kind."""
    scenario("good")
    pytester.makepyfile("def test_other(): pass")
    result = pytester.runpytest_subprocess(pytester.path)
    result.assert_outcomes(passed=1)


def test_scenarios_run_beside_ordinary_tests(pytester, scenario):
    """And can be chosen by name like any other test."""
    path = scenario("good")
    test = pytester.makepyfile("def test_other(): pass")
    result = pytester.runpytest_subprocess(test, path, "-k", "other")
    result.assert_outcomes(passed=1, deselected=1)
