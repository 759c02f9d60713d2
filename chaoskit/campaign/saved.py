"""What a campaign writes so that its trials can be judged again, and its text form.

Plain data, nothing that runs. `campaign.json` holds the scenario and the manifest as
they were tried and what the fault-free runs agreed on; a trial's folder holds, beside
its history, `trial.json` and `verdict.json`, which are written once it was judged. A
trial without them was cut short.
"""

import json
from dataclasses import asdict
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, JsonValue

from chaoskit import __version__
from chaoskit.checks import Judgement
from chaoskit.checks.case import Golden
from chaoskit.model.manifest import Manifest
from chaoskit.model.report import CONTRACT_VERSION
from chaoskit.model.scenario import Scenario, Search, Strategy
from chaoskit.model.trial import Trial
from chaoskit.report.text import writable

FORMAT = 1
"""Rises when what is written changes so that an older chaoskit cannot read it."""
CAMPAIGN, TRIAL, VERDICT = "campaign.json", "trial.json", "verdict.json"
THINNED = "thinned.json"
HISTORY, REPORT, TRIALS = "history.jsonl", "report.json", "trials"
MARK = ".chaoskit"
"""Shows that a folder is a campaign's; locked while one writes to it."""
CONFIRMING = "confirm-"
"""How the trials are named that show a finding of the search once more."""
ENV_BLOT = "[not saved]"
"""Stands for each value of the manifest's `env`: no verdict rests on one."""


class _File(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class CampaignFile(_File):
    """`campaign.json`."""

    format: Literal[1]
    chaoskit: str
    contract: int
    scenario: Scenario
    manifest: Manifest
    golden: Golden | None = None


class TrialFile(_File):
    """`trial.json`; ``golden``: it was held against what fault-free runs agree on."""

    name: str
    run_id: Annotated[str, Field(min_length=1)]
    schedule: str
    unfired: tuple[str, ...]
    golden: bool


class SavedFinding(BaseModel):
    """As much of a finding as says what it is about."""

    model_config = ConfigDict(frozen=True, extra="allow")

    requirement: str
    subject: str = ""

    @property
    def cause(self) -> tuple[str, str]:
        """See `Finding.cause`."""
        return self.requirement, self.subject


class VerdictFile(_File):
    """`verdict.json`, as far as it is read."""

    verdict: str
    findings: tuple[SavedFinding, ...]
    doubts: tuple[str, ...]
    notes: tuple[str, ...]


class ThinnedFile(_File):
    """`thinned.json`: how many trials were removed because they showed nothing."""

    removed: Annotated[int, Field(ge=0)]


class ReportFile(BaseModel):
    """`report.json`, as far as it is read."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    verdict: Literal["pass", "inconclusive", "fail"]
    trials: int
    findings: tuple[SavedFinding, ...]
    doubts: tuple[str, ...]
    strategy: str = ""
    periodic: tuple[str, ...] = ()


def campaign_text(
    scenario: Scenario, manifest: Manifest, golden: Golden | None = None
) -> str:
    """`campaign.json`."""
    env = dict.fromkeys(manifest.env, ENV_BLOT)
    plain = manifest.model_copy(update={"env": env})
    return _json(
        {
            "format": FORMAT,
            "chaoskit": __version__,
            "contract": CONTRACT_VERSION,
            "scenario": _judged(scenario).model_dump(mode="json", by_alias=True),
            "manifest": plain.model_dump(mode="json", by_alias=True),
            "golden": None if golden is None else asdict(golden),
        }
    )


def _judged(scenario: Scenario) -> Scenario:
    """A replay's schedule comes from the command line, and each trial says its own."""
    search = scenario.search
    if search.strategy is not Strategy.REPLAY or search.schedules:
        return scenario
    plain = Search(seed=search.seed, trials=search.trials)
    return scenario.model_copy(update={"search": plain})


def trial_text(trial: Trial, *, golden: bool) -> str:
    """`trial.json`."""
    return _json(
        {
            "name": trial.name,
            "run_id": trial.run_id,
            "schedule": str(trial.schedule),
            "unfired": [str(fault) for fault in trial.unfired],
            "golden": golden,
        }
    )


def verdict_text(judgement: Judgement) -> str:
    """`verdict.json`: all that the checks say; equal judgements are equal bytes."""
    findings = ({**asdict(f), "severity": f.severity.value} for f in judgement.findings)
    return _json(
        {
            "verdict": str(judgement.verdict),
            "findings": [*findings],
            "doubts": list(judgement.doubts),
            "notes": list(judgement.notes),
        }
    )


def thinned_text(removed: int) -> str:
    """`thinned.json`."""
    return _json({"removed": removed})


def _json(fields: dict[str, JsonValue]) -> str:
    return writable(json.dumps(fields, indent=2, ensure_ascii=False) + "\n")
