"""The certificate: what was certified, how far it came, and what stopped it. Pure.

Everything in it is the same when the command that it names is run again; how long
things took is kept elsewhere.
"""

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from chaoskit import __version__
from chaoskit.certify.asked import Certified
from chaoskit.certify.known import Known, is_known, passed
from chaoskit.certify.levels import Evidence, Outcome, Standing, Stop, standing
from chaoskit.certify.revision import Campaign, Level, digest
from chaoskit.certify.run import Ran, Results
from chaoskit.certify.scenario_set import tags_tried
from chaoskit.model.scenario import Strategy
from chaoskit.model.verdict import Verdict

NO_LEVEL = "no level"
KILL = "kill"
"""The campaign whose crossings are the kill points of the label."""


@dataclass(frozen=True)
class Certificate:
    """All that a certifying run says.

    ``healed`` are the known failures that passed, and have to be taken out.
    """

    certified: Certified
    standing: Standing
    results: Results
    server: str
    healed: tuple[Known, ...] = ()

    @classmethod
    def of(cls, certified: Certified, results: Results, server: str) -> "Certificate":
        """Weigh what was shown."""
        evidence = results.evidence(certified)
        revision, asked = certified.revision, certified.asked.level
        tags = tags_tried(revision, certified.manifest)
        return cls(
            certified,
            standing(revision, evidence, asked, tags),
            results,
            server,
            passed(certified.known, revision, evidence),
        )

    @property
    def verdict(self) -> Verdict:
        """Pass: all that was asked for holds, or what stopped it is known."""
        stops = self.standing.stops + self.standing.tag_stops
        new = [stop for stop in stops if not is_known(stop, self.certified.known)]
        if self.healed or any(stop.requirement for stop in new):
            return Verdict.FAIL
        return Verdict.INCONCLUSIVE if new else Verdict.PASS

    @property
    def has_badge(self) -> bool:
        """L0 is a level, and no badge."""
        lowest = self.certified.revision.order[0]
        return self.standing.level not in (None, lowest)

    @property
    def level_name(self) -> str:
        """The level in words, `L2 effect-safe`."""
        for level in self.certified.revision.levels:
            if level.id == self.standing.level:
                return f"{level.id} {level.name}"
        return NO_LEVEL

    @property
    def store(self) -> str:
        """The store and its settings, `redis always`."""
        settings = self.certified.durability
        name = self.certified.manifest.store.value
        return name if settings is None else f"{name} {settings}"

    @property
    def label(self) -> str:
        """One line that says it all."""
        kills = sum(ran.report.kills for ran in self.results.ran)
        points = [r.report.crossings for r in self.results.ran if r.campaign.id == KILL]
        hit, seen = (sum(getattr(p, each) for p in points) for each in ("hit", "seen"))
        tags = "".join(f" +{tag}" for tag in self.standing.tags)
        level = self.standing.level or NO_LEVEL
        revision = self.certified.revision.revision
        head = f"chaoskit {revision} {level}{tags} · {self.store}"
        return f"{head} · {hit}/{seen} kill points · {kills} kills"


def as_json(certificate: Certificate) -> str:
    """`certificate.json`."""
    return json.dumps(_fields(certificate), indent=2, ensure_ascii=False) + "\n"


def _fields(certificate: Certificate) -> dict[str, Any]:
    certified, stands = certificate.certified, certificate.standing
    revision, asked = certified.revision, certified.asked
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
        "agent": _agent(certified),
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
        "stopped": _stops(stands.stops, certified.known),
        "tags_stopped": _stops(stands.tag_stops, certified.known),
        "warnings": _stops(stands.warnings, ()),
        "known_failures": [asdict(entry) for entry in certified.known],
        "known_failures_that_pass": [asdict(entry) for entry in certificate.healed],
        "reproduce": asked.command,
    }


def _agent(certified: Certified) -> dict[str, Any]:
    manifest = certified.manifest
    return {
        "name": manifest.name,
        "version": manifest.version,
        "manifest": str(certified.manifest_path),
        "sha256": certified.manifest_sha256,
        "launch": manifest.launch.value,
        "effects": manifest.contract.effects.value,
        "resumes": manifest.contract.resumes.value,
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
            "campaign": stop.campaign,
            "requirement": stop.requirement or None,
            "why": stop.why,
            "schedule": stop.schedule,
            "replay": stop.replay or None,
            "known": is_known(stop, known),
        }
        for stop in stops
    ]
