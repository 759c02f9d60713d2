"""The ledger: what the tools have done, and what each class of tool can say of it.

It is the only witness of effects outside the agent, and it is the same whichever way a
call came: HTTP, MCP or mail. Classes of tools: section 3 of the contract. A tool that
no scenario declares is blind: `STRAY_MAIL` stands for mail that is no call at all.
"""

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from chaoskit.model.calls import canonical
from chaoskit.model.scenario import Call, Scenario, ToolClass, Via
from chaoskit.wire.json_text import as_text

NAME_LENGTH_MAX = 64
KEY_LENGTH_MAX = 255
_KEPT = 48

Args = Mapping[str, JsonValue]


@dataclass(frozen=True)
class Effect:
    """One application of a tool, and what it answered.

    ``raw`` is the mail that it came as, word for word.
    """

    tool: str
    args: dict[str, JsonValue]
    result: JsonValue
    idempotency_key: str | None = None
    raw: bytes | None = None

    def listed(self) -> dict[str, JsonValue]:
        """As look-ups and views show it."""
        return {
            "args": self.args,
            "result": self.result,
            "idempotency_key": self.idempotency_key,
        }


class Ledger:
    """All effects of one trial, in the order in which they were applied."""

    def __init__(self, scenario: Scenario) -> None:
        self.tools = scenario.tools
        self._first: dict[str, str | None] = {}
        self._plain: dict[str, str] = {}
        for call in forms(scenario):
            self._first.setdefault(call.tool, next(iter(call.args), None))
            name = self._name(call.tool, call.args)
            self._plain.setdefault(name, canonical(call.args))
        self.effects: tuple[Effect, ...] = ()

    def key(self, tool: str, args: Args) -> str | None:
        """What a call is about: its first argument in the script's order, as text.

        A tool that the script never calls is named by the first argument that came.
        """
        first = self._first.get(tool, next(iter(args), None))
        if first is None or first not in args:
            return None
        return shortened(as_text(args[first]))

    def class_of(self, tool: str) -> ToolClass:
        """What the tool promises."""
        return self.tools[tool].cls if tool in self.tools else ToolClass.BLIND

    def by(self, via: Via) -> list[str]:
        """The tools that are called this way."""
        return [name for name, tool in self.tools.items() if tool.via is via]

    def is_read(self, tool: str) -> bool:
        """Whether the tool has no effect."""
        return self.class_of(tool) is ToolClass.READ

    def read(self, tool: str) -> JsonValue:
        """What a tool without effect answers."""
        return self._answer(tool, {"status": "ok"})

    def earlier(self, tool: str, idempotency_key: str | None) -> Effect | None:
        """The effect that a keyed tool repeats instead of doing it again."""
        if idempotency_key is None or self.class_of(tool) is not ToolClass.KEYED:
            return None
        return next(
            (e for e in self._of(tool) if e.idempotency_key == idempotency_key), None
        )

    def apply(
        self,
        tool: str,
        args: dict[str, JsonValue],
        idempotency_key: str | None,
        raw: bytes | None = None,
    ) -> Effect:
        """Do the effect, once more, whatever was done before."""
        done: JsonValue = {"status": "applied", "id": self._receipt(tool, args)}
        effect = Effect(tool, args, self._answer(tool, done), idempotency_key, raw)
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
            tool: [effect.listed() for effect in self._of(tool)]
            for tool in sorted({effect.tool for effect in self.effects})
        }

    def _of(self, tool: str) -> list[Effect]:
        return [effect for effect in self.effects if effect.tool == tool]

    def _receipt(self, tool: str, args: Args) -> str:
        """What an effect of this call is known by.

        Only equal calls are counted: of two others, made side by side, either may come
        first, and each has its receipt all the same.
        """
        name, text = self._name(tool, args), canonical(args)
        if self._plain.get(name, text) != text:
            name = f"{name}~{_digest(text)}"
        before = [e for e in self._of(tool) if canonical(e.args) == text]
        return f"{name}#{len(before) + 1}"

    def _name(self, tool: str, args: Args) -> str:
        key = self.key(tool, args)
        return tool if key is None else f"{tool}[{key}]"

    def _answer(self, tool: str, default: JsonValue) -> JsonValue:
        scripted = self.tools[tool].result if tool in self.tools else None
        return default if scripted is None else scripted


def forms(scenario: Scenario) -> tuple[Call, ...]:
    """Every form that a call of the script may have, in the script's order."""
    return tuple(
        form
        for call in scenario.calls()
        for form in call.variants or (Call(tool=call.tool, args=call.args),)
    )


def key_flaw(key: object) -> str | None:
    """What is wrong with an idempotency key, in words; None if nothing is."""
    plain = isinstance(key, str) and key.isascii() and key.isprintable()
    if plain and 0 < len(str(key)) <= KEY_LENGTH_MAX:
        return None
    return (
        f"was {key!r}; expected one key of 1 to {KEY_LENGTH_MAX} printable ASCII "
        "characters"
    )


def shortened(text: str) -> str:
    """A text that is short enough for an address, and still its own."""
    if len(text) <= NAME_LENGTH_MAX:
        return text
    return f"{text[:_KEPT]}~{_digest(text)}"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]
