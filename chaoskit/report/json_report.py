"""`report.json`: the fields of the contract's section 8, and a few more."""

import json

from pydantic import JsonValue

from chaoskit.model.report import CONTRACT_VERSION, Repaid, Report, Shown
from chaoskit.report.text import writable


def as_json(report: Report) -> str:
    """The report as JSON text, with a line's end."""
    text = json.dumps(_fields(report), indent=2, ensure_ascii=False) + "\n"
    return writable(text)


def _fields(report: Report) -> dict[str, JsonValue]:
    return {
        "chaoskit": report.chaoskit,
        "contract": CONTRACT_VERSION,
        "scenario": report.scenario,
        "agent": report.agent,
        "store": report.store,
        "seed": report.seed,
        "strategy": report.strategy,
        "verdict": str(report.verdict),
        "trials": report.trials,
        "kills": report.kills,
        "faults": dict(report.faults),
        "crossings": {
            "seen": report.crossings.seen,
            "hit": report.crossings.hit,
            "missed": len(report.crossings.missed),
            "missed_at": list(report.crossings.missed),
        },
        "wrecks": report.wrecks,
        "states": report.states,
        "depth": report.depth,
        "seconds": report.seconds,
        "tokens_repaid": report.tokens_repaid.tokens,
        "tokens_repaid_per_kill": _per_kill(report.tokens_repaid),
        "findings": [_finding(shown) for shown in report.findings],
        "doubts": list(report.doubts),
        "notes": list(report.notes),
        "periodic": list(report.periodic),
        "volatile": list(report.volatile),
        "volatile_listed": list(report.volatile_listed),
        "replay": report.replay,
    }


def _per_kill(paid: Repaid) -> JsonValue:
    """None where nothing was killed."""
    if not paid.trials:
        return None
    return {"min": paid.least, "median": paid.median, "max": paid.most}


def _finding(shown: Shown) -> JsonValue:
    finding = shown.finding
    return {
        "promise": finding.promise,
        "requirement": finding.requirement,
        "subject": finding.subject,
        "severity": finding.severity.value,
        "message": finding.message,
        "expected": finding.expected,
        "observed": finding.observed,
        "events": list(finding.events),
        "follows": finding.follows or None,
        "schedule": str(shown.schedule),
        "hit": list(shown.hit),
        "trial": shown.trial,
        "shown_again": shown.again,
        "shown_in": shown.trials,
    }
