"""What a certifying run is asked for, and the set that was read for that."""

import shlex
from dataclasses import dataclass
from pathlib import Path

from chaoskit.campaign import given_server, jobs_by_default
from chaoskit.certify.derive import Document
from chaoskit.certify.known import Known
from chaoskit.certify.revision import Revision
from chaoskit.loading import Loaded
from chaoskit.model.manifest import AgentContract, Manifest, Store
from chaoskit.model.scenario import PostgresDurability, RedisDurability


class CertifyError(Exception):
    """The set cannot be certified as it is; the text says why and what to do."""


DURABILITIES: dict[Store, tuple[str, ...]] = {
    Store.REDIS: tuple(RedisDurability),
    Store.POSTGRES: tuple(PostgresDurability),
}
"""The stores whose settings chaoskit sets, and the settings that there are."""


AGAIN = "-again"
"""What the folder of a second run is called beside the first one's name."""


@dataclass(frozen=True)
class Asked:
    """The words of the command line. ``level`` is the highest one to try for.

    ``jobs`` is how many trials run at the same time; without it, one for each core.
    """

    scenarios: tuple[Path, ...]
    out: Path
    agent: Path | None = None
    store: Store | None = None
    durability: str | None = None
    level: str = "L4"
    known: Path | None = None
    budget: int | None = None
    jobs: int | None = None

    @property
    def again(self) -> str:
        """The one command that does it again; jobs change nothing and are left out.

        It leaves what it finds in another folder, or it would empty this one.
        """
        words = ["chaoskit", "certify", *map(str, self.scenarios)]
        given = {
            "--agent": self.agent,
            "--store": self.store,
            "--durability": self.durability,
            "--level": self.level,
            "--known": self.known,
            "--budget": self.budget,
            "--out": f"{self.out}{AGAIN}",
        }
        for option, value in given.items():
            words += [option, str(value)] if value is not None else []
        return shlex.join(words)

    @property
    def overrides(self) -> tuple[str, ...]:
        """The words that every replay needs, too."""
        agent = () if self.agent is None else ("--agent", str(self.agent))
        return agent if self.store is None else (*agent, "--store", self.store.value)


@dataclass(frozen=True)
class Member:
    """One scenario of the set, as its file has it."""

    loaded: Loaded
    document: Document
    sha256: str

    @property
    def name(self) -> str:
        """What the scenario is called."""
        return self.loaded.scenario.name


@dataclass(frozen=True)
class Certified:
    """The set that was asked for, read and found fit to be certified."""

    asked: Asked
    revision: Revision
    members: tuple[Member, ...]
    manifest_sha256: str
    """The hash of the manifest's file as it was read."""
    known: tuple[Known, ...] = ()

    @property
    def manifest(self) -> Manifest:
        """The agent; one for the whole set."""
        return self.members[0].loaded.manifest

    @property
    def contract(self) -> AgentContract:
        """What the agent promises."""
        return self.manifest.contract

    @property
    def manifest_path(self) -> Path:
        """Where its manifest was read."""
        return self.members[0].loaded.manifest_path

    @property
    def inputs(self) -> dict[str, Path]:
        """The files that no output folder may hold, by what they are."""
        inputs = {"the agent's manifest": self.manifest_path}
        for member in self.members:
            inputs[f"the scenario {member.name}"] = member.loaded.scenario_path
        if self.asked.known is not None:
            inputs["the file of known failures"] = self.asked.known
        return inputs

    @property
    def jobs(self) -> int:
        """How many trials run at the same time."""
        # On one port only one trial at a time can have an agent listen.
        has_a_port = any(process.ready for _, process in self.manifest.fleet)
        default = 1 if has_a_port else jobs_by_default(self.manifest.store)
        return self.asked.jobs or default

    @property
    def durability(self) -> str | None:
        """The settings of the store; None where chaoskit sets none."""
        store = self.manifest.store
        if store not in DURABILITIES or has_own_settings(store):
            return None
        own = str(getattr(self.members[0].loaded.scenario.durability, store.value))
        return self.asked.durability or own


def has_own_settings(store: Store) -> bool:
    """Whether it is a server of the user's, and keeps what it was told to keep.

    On a PostgreSQL server chaoskit makes a role of its own, with settings of its own.
    """
    return store is Store.REDIS and given_server(store) is not None
