"""`effects`: every logical call is applied as often as the contract allows.

The ledger outside the agent is the only witness. What is allowed follows from the
tool's class and from the guarantee that the manifest declares (contract, section 3).
A call that is sent before the model was asked for it is one that nobody asked for.
One cause is reported once: a call applied twice because its key changed is one
finding, and so is one that was swallowed because it shared another call's key. Where
no agent could have known, it is told all the same, as a warning (see `reach`).
"""

from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import replace
from functools import cached_property
from itertools import accumulate
from math import inf

from chaoskit.checks.case import Case
from chaoskit.checks.doubt import struck_calls
from chaoskit.checks.reach import Reach
from chaoskit.checks.script import Group, Script, asked_turns
from chaoskit.model.address import Edge
from chaoskit.model.calls import Identity, identity, spoken
from chaoskit.model.history import Applied, Crossed, Delivered
from chaoskit.model.manifest import Guarantee
from chaoskit.model.scenario import STRAY_MAIL, ToolClass, Via
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding, Severity

PROMISE = "effects"
REQUIREMENTS = {
    "effects/once-across-kill": (
        "A logical call is applied as often as section 3 allows, and no more."
    ),
    "effects/once-beyond-its-reach": (
        "A call is applied once even where no agent could have known."
    ),
    "effects/stable-key": (
        "Every attempt of one logical call carries the same idempotency key."
    ),
    "effects/distinct-key": "Different logical calls carry different idempotency keys.",
    "effects/none-lost": (
        "A run that says it is done has applied every call of its script."
    ),
    "effects/only-what-was-asked": (
        "No call reaches a tool that the model did not ask for."
    ),
}


def check(case: Case) -> Iterator[Finding]:
    """Judge the ledger of one trial."""
    trial, scenario, manifest = case.trial, case.scenario, case.manifest
    script = Script(scenario)
    guarantee = manifest.contract.effects
    shared = _shared_keys(trial, script)
    yield from shared.values()
    yield from _unasked(trial, script)
    reach = Reach(trial, scenario)
    for group in script.effects:
        seen = _Seen(trial, group)
        twice = _too_often(seen, guarantee, reach)
        if twice is not None:
            yield twice
            continue
        if unstable := _unstable_key(seen):
            yield unstable
        if group.identity in shared:
            continue
        if missing := _missing(seen, guarantee):
            yield missing


class _Seen:
    """What the ledger saw of one group of calls."""

    def __init__(self, trial: Trial, group: Group) -> None:
        self.trial = trial
        self.group = group
        names = group.identities
        sent = (e for e in trial.of(Delivered) if not e.duplicate)
        self.deliveries = [event for event in sent if identity(event) in names]
        self.keyed = [d for d in self.deliveries if d.idempotency_key is not None]
        applied = [e for e in trial.of(Applied) if identity(e) in names]
        # A key is there for the network's copies too; without one they count.
        keyed = group.tool_class is ToolClass.KEYED
        self.applied = [e for e in applied if e.first and (keyed or not e.duplicate)]

    @property
    def keys(self) -> list[str]:
        """The different keys that were sent, in order of first sight."""
        return list(dict.fromkeys(str(d.idempotency_key) for d in self.keyed))

    def calls_asked_for(self, seq: int) -> int:
        """How many calls of the group the model had asked for before an event."""
        last = self._newest_turns[bisect_left(self._asked_at, seq)]
        return sum(call.turn <= last for call in self.group.calls)

    @cached_property
    def _asked_at(self) -> list[int]:
        return [asked.seq for asked in asked_turns(self.trial.history)]

    @cached_property
    def _newest_turns(self) -> list[int]:
        """The last turn that was asked for, after so many requests."""
        asked = (each.turn for each in asked_turns(self.trial.history))
        return list(accumulate(asked, max, initial=-1))


def _too_often(seen: _Seen, guarantee: Guarantee, reach: Reach) -> Finding | None:
    """Whether there were ever more effects than calls that the model had asked for."""
    if guarantee is Guarantee.AT_LEAST_ONCE:
        return None
    beyond = tuple(filter(None, (reach.beyond(e, seen.group) for e in seen.applied)))
    spare = len(beyond)
    for count, event in enumerate(seen.applied, 1):
        calls = max(1, seen.calls_asked_for(event.seq))
        if count > calls + spare:
            return _applied_again(seen, guarantee, calls, reach)
    calls = max(1, seen.calls_asked_for(seen.applied[-1].seq)) if seen.applied else 1
    if len(seen.applied) > calls:
        found = _applied_again(seen, guarantee, calls, reach)
        return replace(
            found,
            requirement="effects/once-beyond-its-reach",
            severity=Severity.SHOULD,
            message=f"{found.message} {beyond[0]}",
        )
    return None


def _applied_again(
    seen: _Seen, guarantee: Guarantee, calls: int, reach: Reach
) -> Finding:
    group, count = seen.group, len(seen.applied)
    places = " and ".join(_place(seen.trial, event) for event in seen.applied)
    return Finding(
        PROMISE,
        "effects/once-across-kill",
        f"{group} was applied {_times(count)}, {_allowed(group, guarantee, calls)}: "
        f"at {places}.{_why_again(seen)}{reach.background(seen.applied[-1])}",
        expected=calls,
        observed=count,
        subject=str(group),
        events=tuple(event.seq for event in seen.applied),
    )


def _why_again(seen: _Seen) -> str:
    if len({identity(event) for event in seen.applied}) > 1:
        forms = dict.fromkeys(spoken(event.tool, event.args) for event in seen.applied)
        return f" The model was asked again and said it otherwise: {', '.join(forms)}."
    if seen.group.tool_class is not ToolClass.KEYED:
        return " The tool cannot tell a repeat; the agent has to."
    if len(seen.keyed) < len(seen.deliveries):
        return " It was sent without an idempotency key, so the tool took it for new."
    listed = ", ".join(map(repr, seen.keys))
    return f" Each attempt sent a key of its own ({listed})."


def _unstable_key(seen: _Seen) -> Finding | None:
    """Whether there were ever more keys than calls that the model had asked for.

    A key is known per tool: another tool, chosen in its place, may get another key.
    """
    keys: defaultdict[str, set[str | None]] = defaultdict(set)
    for delivery in seen.keyed:
        keys[delivery.tool].add(delivery.idempotency_key)
        calls = max(1, seen.calls_asked_for(delivery.seq))
        if len(keys[delivery.tool]) > calls:
            return _unstable(seen, calls)
    return None


def _unstable(seen: _Seen, calls: int) -> Finding:
    return Finding(
        PROMISE,
        "effects/stable-key",
        f"{seen.group} was sent with {len(seen.keys)} different idempotency keys "
        f"({', '.join(map(repr, seen.keys))}) for {_times(calls, 'call')}: "
        "a key must be the same in each attempt of one logical call.",
        expected=calls,
        observed=len(seen.keys),
        subject=str(seen.group),
        events=tuple(delivery.seq for delivery in seen.keyed),
    )


def _shared_keys(trial: Trial, script: Script) -> dict[Identity, Finding]:
    """Keys used for two different calls of one tool, by the later call's identity."""
    first: dict[tuple[str, str], Delivered] = {}
    found: dict[Identity, Finding] = {}
    for group, delivery in script.deliveries(trial):
        key = delivery.idempotency_key
        if key is None or group is None:
            continue
        owner = first.setdefault((delivery.tool, key), delivery)
        if identity(owner) not in group.identities:
            found.setdefault(group.identity, _shared(key, owner, delivery))
    for group in script.effects:
        seen = _Seen(trial, group)
        if _equal_calls_share(seen):
            finding = _shared(seen.keys[0], seen.deliveries[0], seen.deliveries[-1])
            found.setdefault(group.identity, finding)
    return found


def _equal_calls_share(seen: _Seen) -> bool:
    """Whether equal calls of the script, all made, went out under fewer keys."""
    calls, made = len(seen.group), len(seen.deliveries)
    if seen.trial.ended.outcome != "done" or not made >= calls > 1:
        return False
    last = seen.deliveries[-1]
    all_made = seen.calls_asked_for(last.seq) >= calls
    return all_made and len(seen.keyed) == made and len(seen.keys) < calls


def _shared(key: str, first: Delivered, second: Delivered) -> Finding:
    one, other = (spoken(each.tool, each.args) for each in (first, second))
    calls = f"two different calls: {one} and {other}"
    if identity(first) == identity(second):
        calls = f"two calls that the model made, both of them {other}"
    return Finding(
        PROMISE,
        "effects/distinct-key",
        f"The idempotency key {key!r} stands for {calls}; "
        "the tool answers the second with the first one's result.",
        expected="a key of its own for each logical call",
        observed=key,
        subject=other,
        events=(first.seq, second.seq),
    )


def _missing(seen: _Seen, guarantee: Guarantee) -> Finding | None:
    group, count = seen.group, len(seen.applied)
    said_done = seen.trial.ended.outcome == "done"
    if not said_done or guarantee is Guarantee.AT_MOST_ONCE:
        return None
    if count + _refused_for_good(seen) >= len(group):
        return None
    return Finding(
        PROMISE,
        "effects/none-lost",
        f"The run says it is done, but {group} was applied {_times(count)}, "
        f"{_allowed(group, guarantee, len(group))}.",
        expected=len(group),
        observed=count,
        subject=str(group),
        events=(*(e.seq for e in seen.applied), seen.trial.ended.seq),
    )


def _refused_for_good(seen: _Seen) -> int:
    """How many calls the tool has refused in words that leave the agent no choice.

    It is told to the model, which may know better, and is no effect that was lost.
    """
    return sum(
        fault.is_final and fault.at.edge == Edge.BEFORE
        for call, fault in struck_calls(seen.trial)
        if call in seen.group.identities
    )


def _unasked(trial: Trial, script: Script) -> Iterator[Finding]:
    told: set[Identity] = set()
    asked_at = {g.identity: _first_asked(trial, g) for g in script.effects}
    for group, delivery in script.deliveries(trial):
        too_early = group is not None and delivery.seq < asked_at[group.identity]
        if identity(delivery) in told or (group is not None and not too_early):
            continue
        told.add(identity(delivery))
        if group is not None:
            yield _not_yet_asked(group, delivery)
        else:
            yield _never_asked(delivery, script)


def _first_asked(trial: Trial, group: Group) -> float:
    """The request whose reply is the first to ask for such a call, or a later one."""
    first = min(call.turn for call in group.calls)
    asked = (e.seq for e in asked_turns(trial.history) if e.turn >= first)
    return next(asked, inf)


def _not_yet_asked(group: Group, delivery: Delivered) -> Finding:
    turn = min(call.turn for call in group.calls)
    call = spoken(delivery.tool, delivery.args)
    return Finding(
        PROMISE,
        "effects/only-what-was-asked",
        f"{call} reached the tool before the model had asked for it: that is what "
        f"turn {turn} says, and no request for it had been made.",
        expected=f"{call} once turn {turn} is known",
        observed=f"{call} before that",
        subject=call,
        events=(delivery.seq,),
    )


def _never_asked(delivery: Delivered, script: Script) -> Finding:
    calls = [str(g) for g in script.effects if _was_meant(g, delivery, script)]
    asked = ", ".join(calls) or "no call of that tool"
    call = spoken(delivery.tool, delivery.args)
    return Finding(
        PROMISE,
        "effects/only-what-was-asked",
        f"{call} reached the tool, and the model never asked for it; the script "
        f"has {asked}.",
        expected=asked,
        observed=call,
        subject=call,
        events=(delivery.seq,),
    )


def _was_meant(group: Group, delivery: Delivered, script: Script) -> bool:
    """Whether a call that nobody asked for may have been meant as one of these."""
    by_mail = script.scenario.tools[group.tool].via is Via.SMTP
    return group.tool == delivery.tool or (by_mail and delivery.tool == STRAY_MAIL)


def _place(trial: Trial, applied: Applied) -> str:
    """The address under which an application crossed, with its event.

    The door holds one message at a time, so the next crossing is its own.
    """
    later = (e for e in trial.of(Crossed) if e.seq > applied.seq)
    crossed = next(later, None)
    place = f"life {applied.life}" if crossed is None else crossed.address
    return f"{place} (event {applied.seq})"


def allowance(tool_class: ToolClass, guarantee: Guarantee) -> str:
    """How often one logical call may be applied, in words; for the contract."""
    if tool_class is ToolClass.READ:
        return "anything"
    if guarantee is Guarantee.AT_MOST_ONCE:
        return "0 or 1"
    keyed, blind = tool_class is ToolClass.KEYED, tool_class is ToolClass.BLIND
    if guarantee is Guarantee.AT_LEAST_ONCE:
        return "1 or more" + (", one key for all attempts" if keyed else "")
    return "1" + ("; 0 or 1 where the run stops in doubt" if blind else "")


def _allowed(group: Group, guarantee: Guarantee, calls: int) -> str:
    return f"where {guarantee} of a {group.tool_class} tool asks for {calls}"


def _times(count: int, noun: str = "") -> str:
    if noun:
        return f"{count} {noun}" + ("" if count == 1 else "s")
    return {0: "never", 1: "once", 2: "twice"}.get(count, f"{count} times")
