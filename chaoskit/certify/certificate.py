"""The certificate: what was certified, how far it came, and what stopped it. Pure.

Everything in it is the same when the same command is run again; how long things took
is kept elsewhere.
"""

from collections.abc import Iterator
from dataclasses import dataclass

from chaoskit.certify.asked import Certified, has_own_settings
from chaoskit.certify.known import Known, is_known, passed
from chaoskit.certify.levels import Standing, standing
from chaoskit.certify.not_judged import NotJudged, not_judged
from chaoskit.certify.not_varied import NotVaried, not_varied
from chaoskit.certify.results import Results
from chaoskit.certify.scenario_set import tags_tried
from chaoskit.certify.stops import Stop
from chaoskit.model.manifest import AgentContract, Guarantee, Resumes
from chaoskit.model.verdict import Verdict

NO_LEVEL = "no level"
KILL = "kill"
"""The campaign whose crossings are the kill points of the label."""
SETTINGS_UNKNOWN = "settings not known"
SELFTEST = "quick"
"""How much of the self-test a certifying run makes: what shows each broken agent."""


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
    not_judged: tuple[NotJudged, ...] = ()
    not_varied: tuple[NotVaried, ...] = ()

    @classmethod
    def of(cls, certified: Certified, results: Results, server: str) -> "Certificate":
        """Weigh what was shown."""
        evidence = results.evidence(certified)
        revision, asked = certified.revision, certified.asked.level
        scenarios = [member.loaded.scenario for member in certified.members]
        tags = tags_tried(revision, certified.manifest)
        return cls(
            certified,
            standing(revision, evidence, asked, tags),
            results,
            server,
            passed(certified.known, revision, evidence),
            tuple(not_judged(revision, results.ran, scenarios)),
            tuple(not_varied(certified.members, results.ran)),
        )

    @property
    def stops(self) -> tuple[Stop, ...]:
        """All that stands in the way of what was asked for, known failures too."""
        return self.standing.stops + self.standing.tag_stops

    @property
    def verdict(self) -> Verdict:
        """Pass: all that was asked for holds, or what stopped it is known."""
        new = [stop for stop in self.stops if not is_known(stop, self.certified.known)]
        if self.healed or any(stop.requirement for stop in new):
            return Verdict.FAIL
        return Verdict.INCONCLUSIVE if new else Verdict.PASS

    @property
    def not_tried(self) -> tuple[str, ...]:
        """The levels above the one that was asked for."""
        order = self.certified.revision.order
        return tuple(order[order.index(self.certified.asked.level) + 1 :])

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
        store, settings = self.certified.manifest.store, self.certified.durability
        if has_own_settings(store):
            return f"{store.value} ({SETTINGS_UNKNOWN})"
        return store.value if settings is None else f"{store.value} {settings}"

    @property
    def weaker(self) -> str:
        """How the agent's contract falls short of the strongest; empty if it does not.

        It belongs beside the level wherever that is said: less was asked of the agent.
        """
        return "".join(f" · {term}" for term in _weaker(self.certified.contract))

    @property
    def label(self) -> str:
        """One line that says it all."""
        kills = sum(ran.report.kills for ran in self.results.ran)
        points = [r.report.crossings for r in self.results.ran if r.campaign.id == KILL]
        hit, seen = (sum(getattr(p, each) for p in points) for each in ("hit", "seen"))
        tags = "".join(f" +{tag}" for tag in self.standing.tags)
        level = self.standing.level or NO_LEVEL
        revision = self.certified.revision.revision
        head = f"chaoskit {revision} {level}{tags}{self.weaker} · {self.store}"
        return f"{head} · {hit}/{seen} kill points · {kills} kills"

    @property
    def contract(self) -> str:
        """What the agent's manifest promises, in words."""
        return ", ".join(_promised(self.certified.contract))


def _weaker(contract: AgentContract) -> Iterator[str]:
    if contract.effects is not Guarantee.EXACTLY_ONCE:
        yield contract.effects.value
    if contract.resumes is not Resumes.LAST_CHECKPOINT:
        yield f"resumes from {contract.resumes}"


def _promised(contract: AgentContract) -> Iterator[str]:
    """Limits too, where they are not what every agent has."""
    yield contract.effects.value
    yield f"resumes from {contract.resumes}"
    if contract.max_attempts is not None:
        yield f"gives up after {contract.max_attempts} deaths at one call"
    if contract.max_lives > AgentContract.model_fields["max_lives"].default:
        yield f"may take {contract.max_lives} lives that no fault ended"
