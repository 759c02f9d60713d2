"""The ledger: what the tools have done, and what each class of tool can say of it.

It is the only witness of effects outside the agent, and it is the same whichever way a
call came: HTTP, MCP or mail. Classes of tools: section 3 of the contract.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from chaoskit.model.scenario import Scenario, ToolClass
from chaoskit.wire.json_text import as_text

NAME_LENGTH_MAX = 64
_KEPT = 48

Args = Mapping[str, JsonValue]


@dataclass(frozen=True)
class Effect:
    """One application of a tool, and what it answered."""

    tool: str
    args: dict[str, JsonValue]
    result: JsonValue
    idempotency_key: str | None = None


class Ledger:
    """All effects of one trial, in the order in which they were applied."""

    def __init__(self, scenario: Scenario) -> None:
        self.tools = scenario.tools
        self._first: dict[str, str | None] = {}
        for call in scenario.calls():
            self._first.setdefault(call.tool, next(iter(call.args), None))
        self.effects: tuple[Effect, ...] = ()

    def key(self, tool: str, args: Args) -> str | None:
        """What a call is about: its first argument in the script's order, as text.

        A tool that the script never calls is named by the first argument that came.
        """
        first = self._first.get(tool, next(iter(args), None))
        if first is None or first not in args:
            return None
        return _shortened(as_text(args[first]))

    def is_read(self, tool: str) -> bool:
        """Whether the tool has no effect."""
        return self.tools[tool].cls is ToolClass.READ

    def read(self, tool: str) -> JsonValue:
        """What a tool without effect answers."""
        return self._answer(tool, {"status": "ok"})

    def earlier(self, tool: str, idempotency_key: str | None) -> Effect | None:
        """The effect that a keyed tool repeats instead of doing it again."""
        if idempotency_key is None or self.tools[tool].cls is not ToolClass.KEYED:
            return None
        return next(
            (e for e in self._of(tool) if e.idempotency_key == idempotency_key), None
        )

    def apply(
        self, tool: str, args: dict[str, JsonValue], idempotency_key: str | None
    ) -> Effect:
        """Do the effect, once more, whatever was done before."""
        done: JsonValue = {"status": "applied", "id": self._receipt(tool, args)}
        effect = Effect(tool, args, self._answer(tool, done), idempotency_key)
        self.effects += (effect,)
        return effect

    def look_up(self, tool: str, wanted: Iterable[tuple[str, str]]) -> list[Effect]:
        """The effects of a tool whose arguments have these texts."""
        pairs = set(wanted)
        return [
            effect
            for effect in self._of(tool)
            if pairs <= {(name, as_text(arg)) for name, arg in effect.args.items()}
        ]

    def view(self) -> dict[str, JsonValue]:
        """The effects by tool. Across tools their order leaves no trace anywhere."""
        return {
            tool: [
                {
                    "args": effect.args,
                    "result": effect.result,
                    "idempotency_key": effect.idempotency_key,
                }
                for effect in self._of(tool)
            ]
            for tool in sorted({effect.tool for effect in self.effects})
        }

    def _of(self, tool: str) -> list[Effect]:
        return [effect for effect in self.effects if effect.tool == tool]

    def _receipt(self, tool: str, args: Args) -> str:
        key = self.key(tool, args)
        name = tool if key is None else f"{tool}[{key}]"
        before = [e for e in self._of(tool) if self.key(tool, e.args) == key]
        return f"{name}#{len(before) + 1}"

    def _answer(self, tool: str, default: JsonValue) -> JsonValue:
        scripted = self.tools[tool].result
        return default if scripted is None else scripted


def _shortened(text: str) -> str:
    if len(text) <= NAME_LENGTH_MAX:
        return text
    return f"{text[:_KEPT]}~{hashlib.sha256(text.encode()).hexdigest()[:8]}"
