"""`certificate.json`: the certificate for programs."""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict
from typing import Any

from chaoskit import __version__
from chaoskit.certify.certificate import SELFTEST, Certificate
from chaoskit.certify.evidence import Evidence, Outcome
from chaoskit.certify.known import Known, is_known
from chaoskit.certify.results import Ran
from chaoskit.certify.revision import Campaign, Level, digest
from chaoskit.certify.stops import Stop
from chaoskit.model.scenario import Strategy


def as_json(certificate: Certificate) -> str:
    """`certificate.json`."""
    return json.dumps(_fields(certificate), indent=2, ensure_ascii=False) + "\n"


def _fields(certificate: Certificate) -> dict[str, Any]:
    certified, stands = certificate.certified, certificate.standing
    revision, asked, known = certified.revision, certified.asked, certified.known
    return {
        "chaoskit": __version__,
        "contract": revision.contract,
        "requirements": {
            "revision": revision.revision,
            "sha256": digest(revision.revision),
        },
        "label": certificate.label,
        "level": stands.level,
        "level_name": certificate.level_name,
        "tags": list(stands.tags),
        "asked": asked.level,
        "agent": _agent(certificate),
        "selftest": {
            "extent": SELFTEST,
            "green": not certificate.results.base.selftest,
        },
        "store": {
            "name": certified.manifest.store.value,
            "durability": certified.durability,
            "server": certificate.server or None,
        },
        "scenarios": [
            {
                "name": member.name,
                "path": str(member.loaded.scenario_path),
                "sha256": member.sha256,
            }
            for member in certified.members
        ],
        "levels": [_level(level, certificate) for level in revision.levels],
        "stopped": _stops(stands.stops, known),
        "tags_stopped": _stops(stands.tag_stops, known),
        "found_and_not_demanded": _stops(stands.beyond, known),
        "warnings": _stops(stands.warnings, known),
        "not_judged": [asdict(each) for each in certificate.not_judged],
        "not_varied": [asdict(each) for each in certificate.not_varied],
        "known_failures": _entries(known),
        "known_failures_that_pass": _entries(certificate.healed),
        "reproduce": asked.again,
    }


def _agent(certificate: Certificate) -> dict[str, Any]:
    certified = certificate.certified
    manifest, contract = certified.manifest, certified.contract
    return {
        "name": manifest.name,
        "version": manifest.version,
        "manifest": str(certified.manifest_path),
        "sha256": certified.manifest_sha256,
        "launch": manifest.launch.value,
        "image": certificate.results.image or None,
        "effects": contract.effects.value,
        "resumes": contract.resumes.value,
        "max_attempts": contract.max_attempts,
        "max_lives": contract.max_lives,
        "capabilities": [capability.value for capability in manifest.capabilities],
    }


def _level(level: Level, certificate: Certificate) -> dict[str, Any]:
    order = certificate.certified.revision.order
    held = certificate.standing.level
    reached = held is not None and order.index(level.id) <= order.index(held)
    evidence = certificate.results.evidence(certificate.certified)
    return {
        "id": level.id,
        "name": level.name,
        "holds_when": level.holds,
        "reached": reached,
        "campaigns": list(_campaigns(level.campaigns, certificate, evidence)),
    }


def _campaigns(
    campaigns: Iterable[Campaign], certificate: Certificate, evidence: Evidence
) -> Iterator[dict[str, Any]]:
    for campaign in campaigns:
        for scenario in evidence.scenarios:
            outcome = evidence.of(scenario, campaign.id)
            if outcome is None:
                continue
            ran = _ran(certificate.results.ran, scenario, campaign.id)
            yield _campaign(campaign, outcome, ran)


def _ran(ran: Sequence[Ran], scenario: str, campaign: str) -> Ran | None:
    found = (r for r in ran if (r.scenario, r.campaign.id) == (scenario, campaign))
    return next(found, None)


def _campaign(campaign: Campaign, outcome: Outcome, ran: Ran | None) -> dict[str, Any]:
    fields: dict[str, Any] = {
        "id": campaign.id,
        "scenario": outcome.scenario,
        "about": campaign.about,
        "strategy": campaign.strategy.value,
        "depth": campaign.depth,
        "faults": list(campaign.faults),
        "wobble": campaign.wobble.value,
    }
    if outcome.within:
        return {**fields, "within": outcome.within}
    if ran is None:
        return {**fields, "not_for": outcome.not_for}
    return {**fields, **_figures(ran)}


def _figures(ran: Ran) -> dict[str, Any]:
    report = ran.report
    figures: dict[str, Any] = {
        "verdict": str(ran.verdict),
        "seed": report.seed,
        "trials": report.trials,
        "kills": report.kills,
        "struck": dict(report.faults),
        "pairs": ran.pairs,
    }
    if ran.campaign.has_targets:
        crossings = report.crossings
        figures["crossings"] = {
            "seen": crossings.seen,
            "hit": crossings.hit,
            "missed": len(crossings.missed),
        }
    if ran.campaign.strategy is Strategy.CLOSURE:
        figures["closure"] = _closure(ran)
    return figures


def _closure(ran: Ran) -> dict[str, Any]:
    report = ran.report
    return {
        "states": report.states,
        "ended": ran.is_closed,
        "depth_reached": report.depth,
        "followed_for": ran.campaign.depth if ran.campaign.thorough else None,
    }


def _stops(stops: Iterable[Stop], known: Sequence[Known]) -> list[dict[str, Any]]:
    return [
        {
            "level": stop.level,
            "scenario": stop.scenario or None,
            "campaign": stop.campaign or None,
            "requirement": stop.requirement or None,
            "subject": stop.subject or None,
            "why": stop.why,
            "schedule": stop.schedule,
            "replay": stop.replay or None,
            "known": is_known(stop, known),
        }
        for stop in stops
    ]


def _entries(known: Iterable[Known]) -> list[dict[str, str | None]]:
    names = ("requirement", "scenario", "reason", "level", "subject")
    return [{name: getattr(entry, name) for name in names} for entry in known]
