"""What no agent could have known: effects that are twofold and that nobody can prevent.

Two things are out of every agent's reach, whatever it saves and however it looks. A
call that has yet to land is seen by no look-up (see `takeover`). And where a store has
forgotten that a call of a blind tool was to be made, nobody remembers it (see
`losses`). What came of it was still done twice, and whoever runs the agent has to know:
it is a warning that the tool needs a key, or the store another setting.
"""

import json
from dataclasses import dataclass
from functools import cached_property

from pydantic import JsonValue

from chaoskit.checks.losses import Losses
from chaoskit.checks.script import Group
from chaoskit.checks.takeover import Stray, strays
from chaoskit.model.address import Edge
from chaoskit.model.history import Applied, Crossed, Delivered, LifeStarted
from chaoskit.model.scenario import Scenario, ToolClass
from chaoskit.model.trial import Trial

_UNSEEN = (
    "A look-up had found nothing, for the other call had yet to land: no agent can "
    "prevent that. A tool that takes idempotency keys can."
)
_FORGOTTEN = (
    "The store had forgotten that the call was made, and nothing else can tell: no "
    "agent can prevent that. A tool that takes idempotency keys can, or a store that "
    "keeps what it has acknowledged."
)


@dataclass(frozen=True)
class Reach:
    """Judges the applications of one trial."""

    trial: Trial
    scenario: Scenario

    def beyond(self, applied: Applied, group: Group) -> str:
        """Why nobody could prevent this application, or nothing."""
        if group.tool_class is ToolClass.QUERYABLE:
            return _UNSEEN if self._was_unseen(applied) else ""
        if group.tool_class is ToolClass.BLIND:
            return _FORGOTTEN if self._was_forgotten(applied) else ""
        return ""

    def background(self, applied: Applied) -> str:
        """What the store had done before, if it had a part in it."""
        lost = ", ".join(str(loss.fault) for loss in self._losses.before(applied.seq))
        if not lost:
            return ""
        return f" The store had forgotten what it had acknowledged ({lost})."

    @cached_property
    def _losses(self) -> Losses:
        return Losses.of(self.trial, self.scenario)

    @cached_property
    def _strays(self) -> dict[int, Stray]:
        return {stray.delivery.message: stray for stray in strays(self.trial)}

    def _was_unseen(self, applied: Applied) -> bool:
        """Whether another was made after a look-up that could not see this one."""
        stray = self._strays.get(applied.message)
        return stray is not None and any(
            looked.seq < other.seq
            for looked in self._look_ups(applied, stray)
            for other in self.trial.of(Applied)
            if other.tool == applied.tool and other.message != applied.message
        )

    def _look_ups(self, applied: Applied, stray: Stray) -> list[Crossed]:
        """The look-ups of the same call that were answered before it landed."""
        keys = {self._key(applied), *map(_text, applied.args.values())}
        return [
            crossed
            for crossed in self.trial.of(Crossed)
            if stray.since < crossed.seq < applied.seq
            and (at := crossed.at).edge == Edge.AFTER
            and at.operation.op == f"{applied.tool}?"
            and at.operation.key in keys
        ]

    def _key(self, applied: Applied) -> str | None:
        """The key that the call had at the gate."""
        later = (
            crossed.at.operation
            for crossed in self.trial.of(Crossed)
            if crossed.seq > applied.seq and crossed.life == applied.life
        )
        return next((o.key for o in later if o.op == applied.tool), None)

    def _was_forgotten(self, applied: Applied) -> bool:
        """Whether its life found a store that had forgotten an earlier one."""
        starts = (s for s in self.trial.of(LifeStarted) if s.life == applied.life)
        made = (
            sent.seq
            for sent in self.trial.of(Delivered)
            if (sent.tool, sent.args) == (applied.tool, applied.args)
        )
        first = min(made, default=applied.seq)
        start = next(starts, None)
        if start is None:  # a look of the harness's own
            return False
        return first < start.seq and self._losses.found_by(start)


def _text(value: JsonValue) -> str:
    return value if isinstance(value, str) else json.dumps(value)
