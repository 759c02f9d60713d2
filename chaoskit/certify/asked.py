"""What a certifying run is asked for, and the set that it reads for that."""

import hashlib
import os
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from chaoskit.campaign import jobs_by_default
from chaoskit.certify import revision as revisions
from chaoskit.certify.derive import Document
from chaoskit.certify.known import Known, load_known
from chaoskit.certify.revision import Revision
from chaoskit.certify.scenario_set import flaws
from chaoskit.loading import Loaded, load_scenario
from chaoskit.loading.nodes import plain
from chaoskit.loading.text import read_text
from chaoskit.loading.yaml_source import parse
from chaoskit.model.manifest import Manifest, Store
from chaoskit.model.scenario import PostgresDurability, RedisDurability


class CertifyError(Exception):
    """The set cannot be certified as it is; the text says why and what to do."""


DURABILITIES: dict[Store, tuple[str, ...]] = {
    Store.REDIS: tuple(RedisDurability),
    Store.POSTGRES: tuple(PostgresDurability),
}
"""The stores whose settings chaoskit sets, and the settings that there are."""


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
    def command(self) -> str:
        """The one command that does it again; jobs change nothing and are left out."""
        words = ["chaoskit", "certify", *map(str, self.scenarios)]
        given = {
            "--agent": self.agent,
            "--store": self.store,
            "--durability": self.durability,
            "--level": self.level,
            "--known": self.known,
            "--budget": self.budget,
            "--out": self.out,
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
    known: tuple[Known, ...] = ()

    @property
    def manifest(self) -> Manifest:
        """The agent; one for the whole set."""
        return self.members[0].loaded.manifest

    @property
    def manifest_path(self) -> Path:
        """Where its manifest was read."""
        return self.members[0].loaded.manifest_path

    @cached_property
    def manifest_sha256(self) -> str:
        """The hash of the manifest's file."""
        return _sha256(self.manifest_path)

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
        if store not in DURABILITIES:
            return None
        own = str(getattr(self.members[0].loaded.scenario.durability, store.value))
        return self.asked.durability or own


def read(asked: Asked, revision: Revision | None = None) -> Certified:
    """Read everything that a certifying run needs, before it runs anything.

    Raises:
        InputError: a file is wrong.
        CertifyError: the set is none that can certify this agent.
    """
    revision = revision or revisions.load()
    members = tuple(_member(path, asked) for path in asked.scenarios)
    names = tuple(member.name for member in members)
    known = load_known(asked.known, revision, names) if asked.known else ()
    whole = Certified(asked, revision, members, known)
    if asked.level not in revision.order:
        raise CertifyError(
            f"--level {asked.level}: expected one of {', '.join(revision.order)}"
        )
    _one_agent(whole)
    _settings(whole)
    found = tuple(flaws(whole.manifest, [m.loaded.scenario for m in members]))
    if found:
        raise CertifyError(_listed("This set certifies nothing", found))
    return whole


def _member(path: Path, asked: Asked) -> Member:
    loaded = load_scenario(path, asked.agent, asked.store)
    document = plain(parse(str(path), read_text(path)).root)
    return Member(loaded, document, _sha256(path))


def _sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def _one_agent(whole: Certified) -> None:
    first = whole.manifest_path
    for member in whole.members[1:]:
        path = member.loaded.manifest_path
        if not os.path.samefile(path, first):
            raise CertifyError(
                f"{member.loaded.scenario_path} is for another agent ({path}) than "
                f"{whole.members[0].loaded.scenario_path} ({first}); a certificate is "
                "for one: name it with --agent"
            )


def _settings(whole: Certified) -> None:
    """The store's settings are one for the whole set, and ones that there are."""
    store, given = whole.manifest.store, whole.asked.durability
    choices = DURABILITIES.get(store, ())
    if given is not None and given not in choices:
        expected = f"one of {', '.join(choices)}" if choices else "none"
        raise CertifyError(
            f"--durability {given}: expected {expected}, since the store is {store}"
        )
    if given is None and choices:
        own = {
            str(getattr(member.loaded.scenario.durability, store.value))
            for member in whole.members
        }
        if len(own) > 1:
            raise CertifyError(
                f"the scenarios have {store} under different settings "
                f"({', '.join(sorted(own))}), and a certificate is for one: choose it "
                "with --durability"
            )


def _listed(head: str, lines: Sequence[str]) -> str:
    return "\n".join([f"{head}:", *(f"  - {line}" for line in lines)])
