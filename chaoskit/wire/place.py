"""How far a conversation has come, whichever API it is written in.

The model answers from the conversation alone, never from a counter: the place in the
script is the number of assistant turns since the task began. Ids that we issued say
where they belong, so a history that was cut short or summed up still finds its place.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, cast

from pydantic import JsonValue

from chaoskit.wire.json_text import parse
from chaoskit.wire.said import issued


@dataclass(frozen=True)
class Made:
    """A call of the model's, as a conversation tells it; anything may be of any type.

    ``arguments`` is JSON text where the API writes it so, else the value.
    """

    id: object
    tool: object
    arguments: Any

    @property
    def args(self) -> JsonValue:
        """The arguments as a value; text that is no JSON stays text."""
        if not isinstance(self.arguments, str):
            return cast(JsonValue, self.arguments)
        try:
            return parse(self.arguments.encode())
        except ValueError:
            return self.arguments


@dataclass
class Place:
    """How far a conversation has come, told one step at a time.

    ``turn`` is the place in the script that its answer comes from; ``carried`` names
    the calls, as ``turn.position``, whose results it holds, each with its text.
    ``made`` are the calls that it tells under an id of ours, by their place.
    """

    turn: int = 0
    carried: dict[str, str] = field(default_factory=dict)
    made: dict[tuple[int, int], Made] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def answered(self, calls: Sequence[Made], others: Iterable[object] = ()) -> None:
        """Go past one turn of the model: its calls, and its other ids."""
        ours = {at: call for call in calls if (at := issued(call.id))}
        places = [*filter(None, map(issued, others)), *ours]
        if places:
            self.turn = places[-1][0]
        for position, call in enumerate(calls):
            self._names[str(call.id)] = f"{self.turn}.{position}"
        self.made |= ours
        self.turn += 1

    def result(self, call: object, texts: Iterable[str]) -> None:
        """Go past the result of a call: the first one, where there are several."""
        ours = issued(call)
        name = "{}.{}".format(*ours) if ours else self._names.get(str(call))
        if name is not None:
            self.carried.setdefault(name, "\n".join(texts))


def began(goal: str, users: Iterable[tuple[int, str]]) -> int:
    """Where the task began, among the user's messages given by index and text.

    That is the first one that holds the goal, else the first one, else the start.
    """
    listed = list(users)
    named = [index for index, text in listed if goal in text]
    return (named or [index for index, _ in listed] or [0])[0]
