"""What follows from what: one cause is reported once, what comes of it names it.

Checks do not know each other, so this is said after all of them have spoken.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding

# Whoever asks for a turn again makes its calls again; not the other way round.
_WENT_BACK = "cost/not-asked-again"
_SAME_CALL = {
    "effects/once-across-kill": "progress/not-again",
    "effects/stable-key": "progress/not-again",
}
_SAME_TOOL = {"effects/none-lost": "effects/only-what-was-asked"}
_SAME_TRIAL: dict[str, tuple[str, ...]] = {
    "answer/same": ("loud/no-silent-success",),
    "cost/not-asked-again": (
        *("human/asked-once", "loud/unreadable-kept"),
        *("store/newest", "store/whole", "fence/no-effect"),
    ),
    "effects/none-lost": ("loud/no-silent-success",),
    "effects/once-across-kill": (_WENT_BACK,),
    "effects/stable-key": (_WENT_BACK, "effects/distinct-key"),
    "transcript/right-result": ("effects/distinct-key", "human/own-answer"),
    "transcript/valid-request": ("transcript/stored-pairs",),
    "progress/not-again": (
        *("loud/unreadable-kept", "human/asked-once", _WENT_BACK),
        *("store/newest", "store/whole", "fence/no-effect"),
    ),
    "progress/resume-after-done": ("store/newest", "store/whole"),
    "transcript/stored-pairs": ("fence/no-checkpoint",),
    "log/checkpoint-ids-never-fall": (
        *("loud/unreadable-kept", "store/newest", "store/ids-rise"),
    ),
    "loud/no-silent-success": ("progress/resume-after-done",),
    "fence/no-checkpoint": ("fence/no-effect",),
    "fence/no-status": ("fence/no-effect",),
    "store/newest": ("fence/no-effect", "fence/no-checkpoint", "fence/no-status"),
    "store/ids-rise": ("fence/no-effect", "fence/no-checkpoint", "fence/no-status"),
    "store/whole": ("fence/no-effect", "fence/no-checkpoint", "fence/no-status"),
    "progress/ends": (
        *("transcript/valid-request", "progress/waits-its-time", "store/readable"),
    ),
    "progress/fails-for-a-reason": ("transcript/valid-request", "store/readable"),
    "progress/parks-for-a-reason": ("transcript/valid-request",),
}
_AGAIN = "progress/resume-after-done"


def linked(findings: Sequence[Finding], trial: Trial) -> tuple[Finding, ...]:
    """The findings, each with the requirement that it follows from."""
    return tuple(
        replace(finding, follows=next(_causes(finding, findings, trial), ""))
        for finding in findings
    )


def _causes(
    finding: Finding, findings: Iterable[Finding], trial: Trial
) -> Iterator[str]:
    for other in findings:
        if _comes_from(finding, other, trial):
            yield other.requirement


def _comes_from(finding: Finding, other: Finding, trial: Trial) -> bool:
    cause, of = other.requirement, finding.requirement
    if cause == _AGAIN and finding.promise == "effects":
        return any(trial.history[seq].life in trial.again for seq in finding.events)
    if cause == _SAME_CALL.get(of):
        return finding.subject == other.subject
    if cause == _SAME_TOOL.get(of):
        return _tool(finding) == _tool(other)
    return cause in _SAME_TRIAL.get(of, ())


def _tool(finding: Finding) -> str:
    return finding.subject.partition("(")[0]
