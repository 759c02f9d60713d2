"""The report of a campaign: what was tried, what was found, and what it proves."""

import shlex
from collections.abc import Mapping
from dataclasses import dataclass, field

from chaoskit.model.schedule import Schedule
from chaoskit.model.verdict import Finding, Severity, Verdict

CONTRACT_VERSION = 1


@dataclass(frozen=True)
class Shown:
    """A finding, the smallest schedule that shows it, and the trial that did.

    ``again`` says whether the same schedule, run once more, showed it again; ``trials``
    is the number of trials of the search that showed it, by whatever schedule;
    ``struck_at`` are the places in the history at which the faults fired, ``hit`` the
    processes of a long-lived agent that they struck.
    """

    finding: Finding
    schedule: Schedule
    trial: str
    again: bool = True
    trials: int = 1
    struck_at: tuple[int, ...] = ()
    hit: tuple[str, ...] = ()

    @property
    def order(self) -> tuple[object, ...]:
        """MUST first, causes before what follows, fewer faults, earlier ones."""
        must = self.finding.severity is Severity.MUST
        size, by_address = self.schedule.order
        follows = bool(self.finding.follows)
        return (
            not must,
            follows,
            size,
            self.struck_at,
            by_address,
            self.finding.requirement,
        )


@dataclass(frozen=True)
class Crossings:
    """Addresses of the fault-free run: at how many edges a fault really struck."""

    seen: int = 0
    hit: int = 0
    missed: tuple[str, ...] = ()


@dataclass(frozen=True)
class Repaid:
    """Tokens of requests to the model for a reply that had been asked for before.

    ``tokens`` is all of them; ``least``, ``median`` and ``most`` are for each kill,
    over the ``trials`` that had one.
    """

    tokens: int = 0
    trials: int = 0
    least: float = 0.0
    median: float = 0.0
    most: float = 0.0


@dataclass(frozen=True)
class Report:
    """Everything that a campaign leaves, for people and for programs.

    ``faults`` counts those that struck, by kind; ``kills`` are those that kill.
    ``wrecks`` counts the different worlds that kills left behind; ``states`` and
    ``depth`` are the closure's, ``endless`` says why it did not end (a doubt);
    ``volatile`` are the fields that were found to differ between any two runs, and so
    make no world a different one, ``volatile_listed`` those of which the scenario says
    so. ``tokens_repaid`` is what replies cost that were lost
    on their way. ``overrides`` are the words of the command line that took the place of
    what the scenario says; ``judged`` the requirements that every trial was judged by.
    """

    chaoskit: str
    scenario: str
    scenario_path: str
    agent: str
    store: str
    seed: int
    strategy: str
    trials: int = 0
    kills: int = 0
    faults: Mapping[str, int] = field(default_factory=dict)
    crossings: Crossings = Crossings()
    wrecks: int | None = None
    states: int | None = None
    depth: int | None = None
    endless: str = ""
    seconds: float = 0.0
    tokens_repaid: Repaid = Repaid()
    findings: tuple[Shown, ...] = ()
    doubts: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    periodic: tuple[str, ...] = ()
    volatile: tuple[str, ...] = ()
    volatile_listed: tuple[str, ...] = ()
    out: str = ""
    overrides: tuple[str, ...] = ()
    judged: tuple[str, ...] = ()

    @property
    def verdict(self) -> Verdict:
        """Fail outweighs inconclusive, which outweighs pass."""
        if any(shown.finding.severity is Severity.MUST for shown in self.findings):
            return Verdict.FAIL
        return Verdict.INCONCLUSIVE if self.doubts else Verdict.PASS

    @property
    def replay(self) -> str | None:
        """The command that shows the first finding again."""
        return self.replay_of(self.findings[0].schedule) if self.findings else None

    def replay_of(self, schedule: Schedule) -> str:
        """The command that runs a schedule of this scenario again."""
        words = ["chaoskit", "replay", self.scenario_path, str(schedule)]
        return shlex.join([*words, *self.overrides])
