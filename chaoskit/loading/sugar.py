"""What users write for short -> what the model is made from, keeping every place.

Only the shape of tools, turns and calls is looked at here; what they hold is for the
model to judge. A turn that is reported here is replaced by one that is never wrong, so
that nothing is reported twice.
"""

from collections.abc import Callable
from dataclasses import replace

from chaoskit.loading.nodes import Node
from chaoskit.model.errors import InputError, Problem, did_you_mean
from chaoskit.model.script import TURNS

KINDS = ", ".join(TURNS)
OTHERS = "or"
"""What else a call or a step may be, where the model wobbles."""


def in_full(scenario: Node) -> tuple[Node, tuple[Problem, ...]]:
    """The scenario without shorthand, and the problems with its turns."""
    problems: list[Problem] = []

    def turn(node: Node) -> Node:
        try:
            return _turn(node)
        except InputError as error:
            problems.extend(error.problems)
            return replace(node, value={"say": replace(node, value="reported")})

    def llm(node: Node) -> Node:
        return _changed(node, "script", lambda script: _each(script, turn))

    scenario = _changed(scenario, "tools", _tools)
    return _changed(scenario, "llm", llm), tuple(problems)


def _changed(node: Node, key: str, change: Callable[[Node], Node]) -> Node:
    if key not in node.entries:
        return node
    return replace(node, value={**node.entries, key: change(node.entries[key])})


def _each(node: Node, change: Callable[[Node], Node]) -> Node:
    if not isinstance(node.value, tuple):
        return node
    return replace(node, value=tuple(change(item) for item in node.value))


def _tools(node: Node) -> Node:
    if not node.entries:
        return node
    return replace(node, value={key: _tool(each) for key, each in node.entries.items()})


def _tool(node: Node) -> Node:
    if isinstance(node.value, tuple) or node.entries:
        return node
    return replace(node, value={"class": node})


def _turn(node: Node) -> Node:
    kind = next((key for key in node.entries if key in TURNS), None)
    for key, entry in node.entries.items():
        if kind is None:
            guess = did_you_mean(key, TURNS)
            raise _Wrong(entry.key_problem(key, f"one of {KINDS}", guess))
        if key != kind and (kind, key) != ("call", OTHERS):
            only = f"nothing beside `{kind}` in this turn"
            raise _Wrong(entry.key_problem(key, only, "begin each turn with a dash"))
    if kind is None:
        raise _Wrong(node.problem(f"a turn: one of {KINDS}", 'as in `say: "Done."`'))
    steps = _changed(_changed(node, "call", _calls), OTHERS, _steps)
    return replace(steps, text=node.shown())


def _steps(node: Node) -> Node:
    if not isinstance(node.value, tuple):
        remedy = "as in `or: [{take_bus: {}}]` below `call: {take_train: {}}`"
        raise _Wrong(node.problem("a list of other steps, each as `call`", remedy))
    return _each(node, _calls)


def _calls(node: Node) -> Node:
    if isinstance(node.value, tuple):
        return _each(node, _call)
    return replace(node, value=(_call(node),))


def _call(node: Node) -> Node:
    others = node.entries.get(OTHERS)
    named = [(name, args) for name, args in node.entries.items() if name != OTHERS]
    if len(named) != 1:
        shape = "one tool with its arguments, {tool: {argument: value}}"
        parallel = "parallel calls are a list: [{tool: {...}}, {tool: {...}}]"
        raise _Wrong(node.problem(shape, parallel if node.entries else None))
    ((name, args),) = named
    for each in (args, *_other_arguments(others)):
        if not isinstance(each.value, dict):
            none = f"a call without arguments is {{{name}: {{}}}}"
            raise _Wrong(each.problem("arguments by name, {argument: value}", none))
    tool = Node(name, args.path, args.key_place, args.key_place)
    value = {"tool": tool, "args": args}
    return replace(node, value=value | ({OTHERS: others} if others else {}))


def _other_arguments(node: Node | None) -> tuple[Node, ...]:
    if node is None or isinstance(node.value, tuple):
        return node.items if node else ()
    remedy = "as in {hold_seat: {seat: 12A}, or: [{seat: 12a}]}"
    raise _Wrong(node.problem("a list of other arguments of the same call", remedy))


class _Wrong(InputError):
    def __init__(self, problem: Problem) -> None:
        super().__init__((problem,))
