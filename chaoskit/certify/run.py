"""Runs the campaigns that the levels ask for, one level after the other.

It goes on to a higher level as long as nothing stands in its way but known failures.
A server, image or package that is missing ends it with an error: nothing is skipped.
"""

import json
import os
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from chaoskit.campaign import Listener, Options, Progress, given_server, run_campaign
from chaoskit.certify.asked import Certified, CertifyError, Member
from chaoskit.certify.derive import can_vary, derived
from chaoskit.certify.evidence import Base, Outcome
from chaoskit.certify.known import is_known
from chaoskit.certify.levels import stops_of
from chaoskit.certify.observed import (
    chased,
    clean,
    inside_replies,
    journal,
    kills_in,
    operations,
    pairs,
    takeovers,
)
from chaoskit.certify.outcomes import is_whole, outcome
from chaoskit.certify.reading import unchanged, unfit_for
from chaoskit.certify.results import Ran, Results
from chaoskit.certify.revision import TRIALS_MAX, Campaign
from chaoskit.certify.scenario_set import has_waits, not_for, tags_tried, unseen
from chaoskit.certify.server import image_of
from chaoskit.loading import Loaded, load_scenario
from chaoskit.model.faults import FaultKind
from chaoskit.model.manifest import Capability, Manifest
from chaoskit.model.report import Report
from chaoskit.model.scenario import Strategy
from chaoskit.model.schedule import Schedule
from chaoskit.model.verdict import Verdict

Selftest = Callable[[], tuple[str, ...]]
"""Reasons for which the self-test of this installation is not green; none if it is."""

NO_TAKEOVER = (
    "no pause at all led to a takeover: whoever was to go on with the run of a paused "
    "life could not, as where it waits for a lock that this one holds"
)
SELFTEST_GOES_ON = "the self-test of this installation, which takes some minutes"
CLEAN_RUNS = 2
"""How often the fault-free run is made beside the two that every campaign has."""


class Certifier:
    """One certifying run; `run` it once."""

    def __init__(
        self, certified: Certified, selftest: Selftest, listener: Listener
    ) -> None:
        self._certified = certified
        self._revision = certified.revision
        self._asked = certified.asked
        self._selftest = selftest
        self._listener = listener
        self.results = Results()

    def run(self) -> Results:
        """All levels up to the one asked for, as far as they hold; then the tags.

        Raises:
            CertifyError: what the manifest declares cannot be verified.
        """
        for level in self._revision.up_to(self._asked.level):
            self._run_all(level.campaigns)
            if level.id == self._revision.order[0]:
                self._look_at_the_base()
            if self._is_held_up(level.id):
                break
        evidence = self.results.evidence(self._certified)
        lowest = self._revision.order[:2][-1]
        if not any(stops_of(self._revision, evidence, lowest)):
            for tag in tags_tried(self._revision, self._certified.manifest):
                self._run_all(tag.campaigns)
        return self.results

    def _run_all(self, campaigns: tuple[Campaign, ...]) -> None:
        for campaign in campaigns:
            for member in self._certified.members:
                self.results.outcomes.append(self._run(campaign, member))

    def _is_held_up(self, level: str) -> bool:
        """Whether anything but known failures keeps a level from being reached."""
        evidence = self.results.evidence(self._certified)
        stops = stops_of(self._revision, evidence, level)
        return not all(is_known(stop, self._certified.known) for stop in stops)

    def _look_at_the_base(self) -> None:
        seen: dict[str, set[str]] = {}
        streamed = False
        for member in self._certified.members:
            trial = clean(self._folder(member, "clean"))
            for service, operation in operations(trial):
                seen.setdefault(service, set()).add(operation)
            streamed |= any(True for _ in inside_replies(trial))
        manifest = self._certified.manifest
        _verify_streaming(manifest, streamed=streamed)
        scenarios = [member.loaded.scenario for member in self._certified.members]
        missing = tuple(unseen(scenarios, manifest, seen))
        self.results.image = image_of(manifest)
        self._listener(Progress(0, 0, 0, SELFTEST_GOES_ON))
        self.results.base = Base(missing, self._selftest())

    def _run(self, campaign: Campaign, member: Member) -> Outcome:
        if why := self._why_not(campaign, member):
            return Outcome(member.name, campaign.id, not_for=why)
        if within := self._within(campaign, member):
            return Outcome(member.name, campaign.id, within=within)
        schedules = self._schedules(campaign, member)
        if schedules is not None and not schedules:
            none = "no crossing came after any of its faults"
            return Outcome(member.name, campaign.id, not_for=none)
        out = self._folder(member, campaign.id)
        loaded = self._derived(campaign, member)
        report = self._campaign(campaign, loaded, schedules or (), out)
        found = outcome(member.name, campaign, report)
        if FaultKind.PAUSE in campaign.faults and not takeovers(out):
            found = replace(found, doubts=(*found.doubts, NO_TAKEOVER))
        doubtful = Verdict.INCONCLUSIVE if found.doubts else Verdict.PASS
        verdict = report.verdict if report.verdict is Verdict.FAIL else doubtful
        tried = pairs(journal(out))
        self.results.ran.append(Ran(member.name, campaign, report, verdict, tried))
        return found

    def _within(self, campaign: Campaign, member: Member) -> str:
        """In which closure all that it would try was tried; empty if in none."""
        if campaign.within is None or has_waits(member.loaded.scenario):
            return ""
        wider = self._ran(member, campaign.within)
        evidence = self.results.evidence(self._certified)
        found = evidence.of(member.name, campaign.within)
        if wider is None or found is None or not is_whole(found, wider.report):
            return ""
        states = f"{wider.report.states} states"
        struck = kills_in(self._folder(member, campaign.within), wider.report.periodic)
        return f"within {campaign.within}: {states}, {struck} kills"

    def _why_not(self, campaign: Campaign, member: Member) -> str:
        return not_for(
            campaign,
            member.loaded.manifest,
            member.loaded.scenario,
            unfit_for(campaign, member),
            can_vary=can_vary(member.document),
        )

    def _campaign(
        self,
        campaign: Campaign,
        loaded: Loaded,
        schedules: tuple[Schedule, ...],
        out: Path,
    ) -> Report:
        options = Options(
            out=out,
            jobs=self._certified.jobs,
            server_url=given_server(loaded.manifest.store),
            schedules=schedules,
            times=CLEAN_RUNS if campaign.schedules == "clean" else 1,
            overrides=self._asked.overrides,
            thorough=campaign.thorough,
            deep=campaign.depth if campaign.thorough else None,
        )
        if campaign.strategy is Strategy.REPLAY:
            loaded = _with_strategy(loaded, campaign.strategy)
        name = f"{loaded.scenario.name} {campaign.id}"
        return run_campaign(loaded, options, _naming(name, self._listener))

    def _derived(self, campaign: Campaign, member: Member) -> Loaded:
        """Write the scenario as this campaign runs it, and read it as a user would."""
        path = self._asked.out / "scenarios" / f"{member.name}.{campaign.id}.yaml"
        path.parent.mkdir(parents=True, exist_ok=True)
        store, durability = member.loaded.manifest.store, self._certified.durability
        document = derived(
            member.document,
            campaign,
            os.path.relpath(member.loaded.manifest_path, path.parent),
            min(campaign.trials, self._asked.budget or TRIALS_MAX),
            {} if durability is None else {store.value: durability},
        )
        path.write_text(_as_yaml(document), encoding="utf-8")
        loaded = load_scenario(path, self._asked.agent, self._asked.store)
        unchanged(self._certified, member)
        return loaded

    def _schedules(
        self, campaign: Campaign, member: Member
    ) -> tuple[Schedule, ...] | None:
        """What `replay` runs; None for what another strategy chooses."""
        match campaign.schedules:
            case "clean":
                return (Schedule(),)
            case "inside-replies":
                trial = clean(self._folder(member, "clean"))
                return tuple(inside_replies(trial))
            case "chased":
                assert campaign.chased is not None, "the revision holds together"
                periodic = self._periodic(member, campaign.chased)
                out = self._folder(member, campaign.chased)
                return tuple(chased(out, periodic))
            case None:
                return None

    def _periodic(self, member: Member, campaign: str) -> tuple[str, ...]:
        ran = self._ran(member, campaign)
        return () if ran is None else ran.report.periodic

    def _ran(self, member: Member, campaign: str) -> Ran | None:
        ran = (r for r in self.results.ran if r.scenario == member.name)
        return next((r for r in ran if r.campaign.id == campaign), None)

    def _folder(self, member: Member, campaign: str) -> Path:
        return self._asked.out / "campaigns" / member.name / campaign


def _verify_streaming(manifest: Manifest, *, streamed: bool) -> None:
    if Capability.STREAMING in manifest.capabilities and not streamed:
        raise CertifyError(
            f"{manifest.name} declares streaming, and no reply of the model was "
            "streamed to it: have it ask for streams, or take streaming out of "
            "`capabilities`"
        )


def _with_strategy(loaded: Loaded, strategy: Strategy) -> Loaded:
    search = loaded.scenario.search.model_copy(update={"strategy": strategy})
    scenario = loaded.scenario.model_copy(update={"search": search})
    return replace(loaded, scenario=scenario)


def _naming(name: str, listener: Listener) -> Listener:
    """Says which campaign it is that goes on."""

    def tell(now: Progress) -> None:
        listener(replace(now, stage=f"{name}: {now.stage}"))

    return tell


def _as_yaml(document: object) -> str:
    """JSON, which is YAML, and needs no writer."""
    return json.dumps(document, indent=2, ensure_ascii=False) + "\n"
