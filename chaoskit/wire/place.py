"""How far a conversation has come, whichever API it is written in.

The model answers from the conversation alone, never from a counter: the place in the
script is the number of assistant turns since the task began. Ids that we issued say
where they belong, so a history that was cut short or summed up still finds its place.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from chaoskit.wire.said import issued


@dataclass
class Place:
    """How far a conversation has come, told one step at a time.

    ``turn`` is the place in the script that its answer comes from; ``carried`` names
    the calls, as ``turn.position``, whose results it holds, each with its text.
    """

    turn: int = 0
    carried: dict[str, str] = field(default_factory=dict)
    _names: dict[str, str] = field(default_factory=dict)

    def answered(self, calls: Sequence[object], others: Iterable[object] = ()) -> None:
        """Go past one turn of the model: the ids of its calls, and its other ids."""
        places = [at for each in (*others, *calls) if (at := issued(each))]
        if places:
            self.turn = places[-1][0]
        for position, call in enumerate(calls):
            self._names[str(call)] = f"{self.turn}.{position}"
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
