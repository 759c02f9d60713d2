"""What users write becomes the data that the rest of chaoskit works with."""

import re
from enum import EnumType, StrEnum
from pathlib import Path
from textwrap import dedent

import pytest
from pydantic import ValidationError

from chaoskit.loading import load_scenario
from chaoskit.loading.later import CHOICES
from chaoskit.loading.yaml_source import parse
from chaoskit.model import faults, manifest, script
from chaoskit.model import scenario as scenario_model
from chaoskit.model.errors import InputError
from chaoskit.model.faults import FaultKind
from chaoskit.model.manifest import Launch, Manifest, Store, fill
from chaoskit.model.scenario import (
    AskTurn,
    Call,
    CallTurn,
    Llm,
    LogicalCall,
    PromiseId,
    SayTurn,
    Scenario,
    Strategy,
    Task,
    Tool,
    ToolClass,
    WaitTurn,
)

SCENARIO = dedent("""\
    name: book-flight
    about: A booking killed anywhere is booked and paid once.
    agent: agents/agent.yaml
    task: {goal: "Book a flight to NYC"}
    llm:
      script:
        - call: {search_flights: {to: NYC}}
        - call: [{hold_seat: {order: o-1}}, {charge_card: {order: o-1, cents: 42000}}]
        - ask: "Approve?"
        - wait: 3
        - say: "Booked."
    tools:
      search_flights: {class: read, result: [{flight: 7, seats: null}]}
      hold_seat: keyed
      charge_card: queryable
    search: {strategy: sample, depth: 2, seed: 7, trials: 40}
    faults: [kill]
    promises: [effects, log]
    limits: {life_seconds: 1.5}
    human: [approve]
    """)
MANIFEST = dedent("""\
    name: reference-agent
    version: 1.4.0
    launch: fork
    start: [python, -m, agent, --task, "{run}", --goal, "{goal}"]
    answer: [python, -m, agent, --answer, "{answer}"]
    store: redis
    exits: {done: [0, 3]}
    contract: {effects: exactly-once, max_attempts: 10}
    capabilities: [parallel-tools, timers]
    log: {call: call_name}
    env: {MY_FLAG: "1", WHERE: "{store}"}
    fork: {preload: [agent.main], call: "agent.main:main"}
    """)


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A sound scenario, with its manifest in a folder beside it."""
    path = tmp_path / "scenario.yaml"
    path.write_text(SCENARIO)
    (tmp_path / "agents").mkdir()
    (tmp_path / "agents" / "agent.yaml").write_text(MANIFEST)
    return path


def test_scenario_as_written(scenario: Path) -> None:
    loaded = load_scenario(scenario).scenario
    assert loaded.tools["search_flights"].cls is ToolClass.READ
    assert loaded.tools["search_flights"].result == [{"flight": 7, "seats": None}]
    assert loaded.tools["charge_card"] == Tool(cls=ToolClass.QUERYABLE)
    assert loaded.search.strategy is Strategy.SAMPLE
    assert loaded.promises == (PromiseId.EFFECTS, PromiseId.LOG)
    assert (loaded.limits.life_seconds, loaded.limits.trial_seconds) == (1.5, 120)
    assert loaded.llm.script[2:] == (
        AskTurn(ask="Approve?"),
        WaitTurn(wait=3),
        SayTurn(say="Booked."),
    )


def test_calls_are_numbered_by_turn_and_position(scenario: Path) -> None:
    assert load_scenario(scenario).scenario.calls() == (
        LogicalCall(0, 0, "search_flights", {"to": "NYC"}),
        LogicalCall(1, 0, "hold_seat", {"order": "o-1"}),
        LogicalCall(1, 1, "charge_card", {"order": "o-1", "cents": 42000}),
    )


def test_manifest_as_written(scenario: Path) -> None:
    loaded = load_scenario(scenario)
    agent = loaded.manifest
    assert loaded.manifest_path == scenario.parent / "agents/agent.yaml"
    assert agent.version == "1.4.0"
    assert agent.launch is Launch.FORK
    assert agent.fork is not None
    assert agent.fork.call == "agent.main:main"
    assert (agent.exits.done, agent.exits.parked) == ((0, 3), (75,))
    assert (agent.log.call, agent.log.run_id) == ("call_name", "run_id")
    assert (agent.resume, agent.inspect) == (None, None)


def test_defaults_of_a_minimal_scenario(scenario: Path) -> None:
    scenario.write_text(
        "{name: s, agent: agents/agent.yaml, task: {goal: g}, "
        "llm: {script: [{say: done}]}}"
    )
    loaded = load_scenario(scenario).scenario
    assert loaded.faults == (FaultKind.KILL,)
    assert loaded.search.strategy is Strategy.SWEEP
    assert (loaded.promises, loaded.tools, loaded.human) == (None, {}, ())


def test_overrides_take_the_place_of_what_is_written(scenario: Path) -> None:
    other = scenario.parent / "other.yaml"
    other.write_text(MANIFEST.replace("store: redis", "store: postgres"))
    scenario.write_text(SCENARIO.replace("agents/agent.yaml", "agents/gone.yaml"))
    loaded = load_scenario(scenario, agent=other, store=Store.NONE)
    assert loaded.manifest_path == other
    assert loaded.manifest.store is Store.NONE


def test_anchors_and_equal_turns_are_allowed(scenario: Path) -> None:
    once = "- call: {search_flights: {to: NYC}}"
    twice = "- call: &again {search_flights: {to: NYC}}\n    - call: *again"
    scenario.write_text(SCENARIO.replace(once, twice))
    calls = load_scenario(scenario).scenario.calls()
    assert calls[0].args == calls[1].args == {"to": "NYC"}


@pytest.mark.parametrize(
    ("written", "value"),
    [
        ("yes", "yes"),
        ("on", "on"),
        ("'2026-01-05'", "2026-01-05"),
        ("12:30", "12:30"),
        ("1_000", "1_000"),
        ("true", True),
        ("~", None),
        ("0o17", 15),
        ("0x1F", 31),
        ("-7", -7),
        ("1e3", 1000.0),
        ("'7'", "7"),
        ("|\n  two\n  lines\n", "two\nlines\n"),
    ],
)
def test_scalars_mean_what_yaml_1_2_says(written: str, value: object) -> None:
    found = parse("file", f"key: {written}")
    assert found.root.entries["key"].value == value
    assert not found.problems


def test_a_byte_order_mark_and_windows_line_ends_are_fine(scenario: Path) -> None:
    scenario.write_bytes(SCENARIO.replace("\n", "\r\n").encode("utf-8-sig"))
    assert load_scenario(scenario).scenario.name == "book-flight"


def test_problems_of_both_files_are_told_together(scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("trials: 40", "trials: forty"))
    agent = scenario.parent / "agents/agent.yaml"
    agent.write_text(MANIFEST.replace("store: redis", "store: reddis"))
    with pytest.raises(InputError) as caught:
        load_scenario(scenario)
    places = [(Path(p.file).name, p.line, p.path) for p in caught.value.problems]
    assert places == [
        ("scenario.yaml", 16, "$.search.trials"),
        ("agent.yaml", 6, "$.store"),
    ]


def test_a_human_gate_needs_an_answer_command(scenario: Path) -> None:
    agent = scenario.parent / "agents/agent.yaml"
    agent.write_text(re.sub("answer: .*", "", MANIFEST, count=1))
    with pytest.raises(InputError) as caught:
        load_scenario(scenario)
    (problem,) = caught.value.problems
    assert (problem.file, problem.path) == (str(agent), "$.answer")
    assert problem.hint == f"the scenario asks in {scenario} line 9"


def test_a_problem_is_told_with_all_its_parts(scenario: Path) -> None:
    scenario.write_text(SCENARIO.replace("hold_seat: keyed", "hold_seat: keyd"))
    with pytest.raises(InputError) as caught:
        load_scenario(scenario)
    assert str(caught.value) == (
        f'{scenario}:14:14: $.tools.hold_seat: found "keyd"\n'
        "    expected a tool's class: read, keyed, queryable, blind; "
        "did you mean 'keyed'?"
    )


def test_quoted_values_are_short_and_printable(scenario: Path) -> None:
    evil = r'"\e[31m\u202e' + "x" * 500 + '"'
    scenario.write_text(SCENARIO.replace("name: book-flight", f"name: {evil}"))
    with pytest.raises(InputError) as caught:
        load_scenario(scenario)
    (problem,) = caught.value.problems
    assert problem.value.startswith(r'"\u001b[31m\u202exxx')
    assert len(problem.value) < 70
    assert all(line.isprintable() for line in str(caught.value).splitlines())


@pytest.mark.parametrize(
    ("word", "filled"),
    [
        ("{run}", "r-1"),
        ("--goal={goal}!", "--goal=a {run} b!"),
        ("{{run}}", "{run}"),
        ("{{{run}}}", "{r-1}"),
        ('{{"a": {{}}}}', '{"a": {}}'),
        ("plain", "plain"),
    ],
)
def test_placeholders_are_filled_once(word: str, filled: str) -> None:
    """A value with braces of its own is not filled again."""
    values = {"run": "r-1", "goal": "a {run} b"}
    assert fill((word,), values) == [filled]


def test_every_closed_set_of_names_is_known_to_the_messages() -> None:
    """A name that has arrived must leave the list of names that are still to come."""
    modules = (manifest, scenario_model, script)
    members = (each for module in modules for each in vars(module).values())
    sets = {each for each in members if isinstance(each, EnumType)} - {StrEnum}
    assert sets == set(CHOICES) | {faults.FaultKind}
    for names, choice in CHOICES.items():
        assert not {*names} & {*choice.later}


def test_models_made_in_code_keep_the_rules_too() -> None:
    call = CallTurn(call=(Call(tool="pay", args={}),))
    script = Llm(script=(call, SayTurn(say="Done.")))
    with pytest.raises(ValidationError, match="a tool declared under `tools`"):
        Scenario(name="s", agent="a", task=Task(goal="g"), llm=script)
    with pytest.raises(ValidationError, match="`launch` is fork"):
        Manifest.model_validate(
            {
                "name": "a",
                "launch": "fork",
                "start": ["a"],
                "store": "none",
                "contract": {"effects": "exactly-once"},
            }
        )


def test_a_manifest_in_the_place_of_a_scenario_is_called_one(tmp_path):
    """One sentence, not a list of everything that a scenario has."""
    path = tmp_path / "agent.yaml"
    path.write_text("name: a\nlaunch: process\nstart: [a]\nstore: none\n")
    with pytest.raises(InputError) as caught:
        load_scenario(path)
    (problem,) = caught.value.problems
    assert problem.value == "a manifest"
    assert "--agent" in str(problem)
