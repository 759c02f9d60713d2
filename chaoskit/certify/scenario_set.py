"""What a certifying set must hold, so that what is declared can be verified.

Nothing is inferred from what happens to be there: the manifest declares capabilities,
and a set that leaves one of them untried, or needs one that is not declared, is an
error and no certificate.
"""

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from chaoskit.certify.revision import Campaign, Revision, Tag
from chaoskit.explore.baseline import untouched
from chaoskit.model.manifest import Capability, Manifest
from chaoskit.model.scenario import (
    AskTurn,
    CallTurn,
    Scenario,
    ToolClass,
    WaitTurn,
    Wobble,
)
from chaoskit.model.script import Args

ATTEMPTS_MIN = 3
"""Two deaths at one call, as in a pair of kills, must not excuse what fails then."""

NEEDED_BY: Mapping[Capability, tuple[str, Callable[[Scenario], bool]]] = {
    Capability.PARALLEL_TOOLS: (
        "a turn with several calls",
        lambda scenario: any(len(turn.call) > 1 for turn in _calls(scenario)),
    ),
    Capability.APPROVAL: (
        "an `ask` turn",
        lambda scenario: any(isinstance(t, AskTurn) for t in scenario.llm.script),
    ),
    Capability.TIMERS: (
        "a `wait` turn",
        lambda scenario: any(isinstance(t, WaitTurn) for t in scenario.llm.script),
    ),
}
"""What of a scenario needs a capability, in words and as a rule."""


def flaws(manifest: Manifest, scenarios: Sequence[Scenario]) -> Iterator[str]:
    """Why this set certifies nothing for this agent, each with what to do."""
    yield from _same_names(scenarios)
    if not any(_has_effects(scenario) for scenario in scenarios):
        yield (
            "no scenario of the set has an effect, so nothing could be applied twice "
            "or lost: add one that calls a tool that is keyed, queryable or blind"
        )
    for capability, (what, needs) in NEEDED_BY.items():
        needing = [scenario.name for scenario in scenarios if needs(scenario)]
        if capability in manifest.capabilities and not needing:
            yield (
                f"{manifest.name} declares {capability}, and no scenario of the set "
                f"needs it: add one with {what}, or take it out of `capabilities`"
            )
        if capability not in manifest.capabilities and needing:
            yield (
                f"{needing[0]} has {what}, and {manifest.name} does not declare "
                f"{capability}: add it to `capabilities`, or leave the scenario out"
            )
    yield from _workers(manifest)
    yield from _gives_up_early(manifest)
    for scenario in scenarios:
        yield from _idle_variants(scenario)


def _idle_variants(scenario: Scenario) -> Iterator[str]:
    """An `or` that names the call itself: nothing would ever be called otherwise."""
    for number, turn in enumerate(scenario.llm.script):
        calls = turn.call if isinstance(turn, CallTurn) else ()
        for position, call in enumerate(calls):
            if call.others and all(_same(call.args, each) for each in call.others):
                yield (
                    f"the `or` of call {number}.{position} ({call.tool}) of "
                    f"{scenario.name} names the arguments that the call has already, "
                    "so that the model would never call with others: name other "
                    "arguments, or take this `or` out, and some will be chosen"
                )


def _same(one: Args, other: Args) -> bool:
    """Whether both are the same as JSON, where 1 is not true."""
    first, second = (json.dumps(each, sort_keys=True) for each in (one, other))
    return first == second


def _gives_up_early(manifest: Manifest) -> Iterator[str]:
    """A run may fail after so many deaths: so what kills are to show is excused."""
    attempts = manifest.contract.max_attempts
    if attempts is not None and attempts < ATTEMPTS_MIN:
        yield (
            f"{manifest.name} declares `max_attempts: {attempts}`, and runs are killed "
            f"twice, which must not end by that: expected {ATTEMPTS_MIN} or "
            "more, or no such limit"
        )


def _workers(manifest: Manifest) -> Iterator[str]:
    declared = Capability.WORKER in manifest.capabilities
    if declared and len(manifest.fleet) < 2:
        yield (
            f"{manifest.name} declares worker, and its `processes` are fewer than two: "
            "certify a manifest with `copies: 2`, or take it out of `capabilities`"
        )
    if manifest.fleet and not declared:
        yield (
            f"{manifest.name} is long-lived and does not declare worker: add it to "
            "`capabilities`"
        )


def _same_names(scenarios: Sequence[Scenario]) -> Iterator[str]:
    names = [scenario.name for scenario in scenarios]
    for name in sorted({name for name in names if names.count(name) > 1}):
        yield f"two scenarios of the set are called {name}: give each a name of its own"


def tags_tried(revision: Revision, manifest: Manifest) -> tuple[Tag, ...]:
    """The tags that this agent may earn."""
    return tuple(
        tag
        for tag in revision.tags
        if tag.capability in manifest.capabilities or manifest.store in tag.stores
    )


def not_for(
    campaign: Campaign,
    manifest: Manifest,
    scenario: Scenario,
    unfit: str | None,
    *,
    can_vary: bool,
) -> str:
    """Why a campaign makes no sense here; empty if it does.

    ``unfit`` is why scenario and agent do not go together under it; ``can_vary`` says
    whether the model could call with other arguments.
    """
    if manifest.store not in campaign.stores:
        return f"it is for the stores {', '.join(campaign.stores)} only"
    has_choice = any(turn.others for turn in _calls(scenario))
    if campaign.needs == "choices" and not has_choice:
        return "the scenario has no other steps under `or` to choose from"
    if campaign.wobble is Wobble.ARGUMENTS and not can_vary:
        return "no call of the scenario has an argument that could be another"
    if campaign.needs == "restorable" and unfit:
        return unfit
    return ""


def has_waits(scenario: Scenario) -> bool:
    """Whether time counts: a world is restored late, when a wait is over."""
    return any(isinstance(turn, WaitTurn) for turn in scenario.llm.script)


def unseen(
    scenarios: Iterable[Scenario], manifest: Manifest, seen: Mapping[str, set[str]]
) -> Iterator[str]:
    """What was declared and did not cross in the fault-free run, at both its edges.

    ``seen`` are the operations that did, by service.
    """
    if not seen.get("llm"):
        yield "the model was not asked over OPENAI_BASE_URL or ANTHROPIC_BASE_URL"
    used = set().union(*(seen.get(name, set()) for name in ("tools", "mcp", "smtp")))
    declared = {tool for scenario in scenarios for tool in scenario.tools}
    for tool in sorted(declared - used):
        yield f"the tool {tool} is declared, and no call of it was seen"
    yield from filter(None, [untouched(manifest.store, seen)])


def _calls(scenario: Scenario) -> Iterator[CallTurn]:
    return (turn for turn in scenario.llm.script if isinstance(turn, CallTurn))


def _has_effects(scenario: Scenario) -> bool:
    called = {call.tool for call in scenario.calls()}
    return any(scenario.tools[tool].cls is not ToolClass.READ for tool in called)
