"""One file -> one model, or all the problems of that file."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Generic, TypeVar

from pydantic import BaseModel, TypeAdapter, ValidationError

from chaoskit.loading.explain import explained, placed
from chaoskit.loading.nodes import Node, deepest, plain
from chaoskit.loading.sugar import in_full
from chaoskit.loading.text import read_text
from chaoskit.loading.yaml_source import Document, parse
from chaoskit.model.errors import Flaw, InputError, Problem
from chaoskit.model.manifest import (
    COMMANDS,
    Exits,
    Launch,
    Manifest,
    Store,
    manifest_flaws,
)
from chaoskit.model.scenario import (
    FaultText,
    Scenario,
    Strategy,
    Turn,
    scenario_flaws,
    search_flaws,
)

M = TypeVar("M", bound=BaseModel)
T = TypeVar("T")

TURN: TypeAdapter[Turn] = TypeAdapter(Turn)
EXITS = TypeAdapter(Exits)
FAULT: TypeAdapter[str] = TypeAdapter(FaultText)
STRATEGY = TypeAdapter(Strategy)
LAUNCH = TypeAdapter(Launch)


@dataclass(frozen=True)
class Checked(Generic[M]):
    """What became of a file. The tree is there even if the model could not be made."""

    model: M | None
    root: Node | None
    problems: tuple[Problem, ...]


def check_scenario(path: Path) -> Checked[Scenario]:
    """Read and judge a scenario."""
    try:
        document = parse(str(path), read_text(path))
    except InputError as error:
        return Checked(None, None, error.problems)
    if _is_manifest(document.root):
        return Checked(None, None, (_a_manifest(document.root),))
    root, misshapen = in_full(document.root)
    document = Document(root, document.problems + misshapen)
    return _judged(document, Scenario, _scenario_flaws(root))


def _is_manifest(root: Node) -> bool:
    keys = root.entries.keys()
    return "launch" in keys and bool({"start", "submit"} & keys) and "llm" not in keys


def _a_manifest(root: Node) -> Problem:
    remedy = "name the scenario here, and the manifest under its `agent` or by --agent"
    expected = "a scenario, with `task` and `llm`"
    return root.place.problem(root.path, "a manifest", expected, remedy)


def check_manifest(path: Path, store: Store | None) -> Checked[Manifest]:
    """Read and judge a manifest, with another store than it names if one is given."""
    try:
        document = parse(str(path), read_text(path))
    except InputError as error:
        return Checked(None, None, error.problems)
    root = document.root
    if store and "store" in root.entries:
        other = replace(root.entries["store"], value=store.value)
        root = replace(root, value={**root.entries, "store": other})
    document = replace(document, root=root)
    return _judged(document, Manifest, _manifest_flaws(root))


def _judged(document: Document, model: type[M], flaws: Iterator[Flaw]) -> Checked[M]:
    root, problems = document.root, list(document.problems)
    made = None
    try:
        made = model.model_validate(plain(root), by_alias=True, by_name=False)
    except ValidationError as error:
        problems.extend(explained(error, root, model))
    problems.extend(placed(flaw, root) for flaw in flaws)
    return Checked(None if problems else made, root, _each_once(problems))


def _each_once(problems: list[Problem]) -> tuple[Problem, ...]:
    """In the file's order. What is wrong in itself is not judged a second time."""
    first: dict[tuple[str, int | None], Problem] = {}
    for problem in problems:
        first.setdefault((problem.path, problem.line), problem)
    return tuple(sorted(first.values(), key=lambda p: (p.line or 0, p.column or 0)))


def first_gate(scenario: Node) -> Node | None:
    """The first `ask` of a scenario, whatever else may be wrong with it."""
    asks = (turn.entries["ask"] for turn in _script(scenario) if "ask" in turn.entries)
    return next(asks, None)


def _script(scenario: Node) -> tuple[Node, ...]:
    script, missing = deepest(scenario, ("llm", "script"))
    return () if missing else script.items


def _scenario_flaws(root: Node) -> Iterator[Flaw]:
    turns = [_salvaged(TURN, turn) for turn in _script(root)]
    tools = root.entries["tools"].value if "tools" in root.entries else {}
    classes = (
        {name: _class(tool) for name, tool in tools.items()}
        if (isinstance(tools, Mapping))
        else None
    )
    human = root.entries["human"].value if "human" in root.entries else ()
    yield from scenario_flaws(
        turns,
        classes,
        len(human) if isinstance(human, tuple) else None,
    )
    strategy, missing = deepest(root, ("search", "strategy"))
    faults = root.entries["faults"].items if "faults" in root.entries else ()
    yield from search_flaws(
        None if missing else _salvaged(STRATEGY, strategy),
        [_salvaged(FAULT, fault) for fault in faults],
    )


def _class(tool: Node) -> object:
    return tool.entries["class"].value if "class" in tool.entries else None


def _manifest_flaws(root: Node) -> Iterator[Flaw]:
    exits, launch = root.entries.get("exits"), root.entries.get("launch")
    return manifest_flaws(
        (_salvaged(EXITS, exits) if exits else None) or Exits(),
        _salvaged(LAUNCH, launch) if launch else None,
        {key for key, node in root.entries.items() if node.value is not None},
        {key: _words(root.entries[key]) for key in COMMANDS if key in root.entries},
    )


def _words(command: Node) -> tuple[object, ...]:
    return tuple(node.value for node in command.items)


def _salvaged(adapter: TypeAdapter[T], node: Node) -> T | None:
    """A part that is right in itself, though the whole may not be."""
    try:
        return adapter.validate_python(plain(node))
    except ValidationError:
        return None
