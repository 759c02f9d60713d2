"""Reads the certifying set, and finds out before anything runs whether it is one."""

import hashlib
import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from chaoskit.campaign.options import GIVEN_SERVERS
from chaoskit.certify import revision as revisions
from chaoskit.certify.asked import (
    DURABILITIES,
    Asked,
    Certified,
    CertifyError,
    Member,
    has_own_settings,
)
from chaoskit.certify.known import load_known
from chaoskit.certify.revision import Campaign, Revision
from chaoskit.certify.scenario_set import flaws
from chaoskit.loading import load_scenario, unfit
from chaoskit.loading.nodes import plain
from chaoskit.loading.text import read_text
from chaoskit.loading.yaml_source import parse


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
    sha256 = _sha256(members[0].loaded.manifest_path)
    whole = Certified(asked, revision, members, sha256, known)
    if asked.level not in revision.order:
        raise CertifyError(
            f"--level {asked.level}: expected one of {', '.join(revision.order)}"
        )
    _one_agent(whole)
    _settings(whole)
    found = (
        *flaws(whole.manifest, [m.loaded.scenario for m in members]),
        *untriable(revision, asked.level, members),
    )
    if found:
        raise CertifyError(_listed("This set certifies nothing", found))
    return whole


def _member(path: Path, asked: Asked) -> Member:
    loaded = load_scenario(path, asked.agent, asked.store)
    document = plain(parse(str(path), read_text(path)).root)
    return Member(loaded, document, _sha256(path))


def unchanged(whole: Certified, member: Member) -> None:
    """What a campaign is about to run is what the certificate will name.

    Raises:
        CertifyError: a file is another by now.
    """
    files = (
        (member.loaded.scenario_path, member.sha256),
        (whole.manifest_path, whole.manifest_sha256),
    )
    for path, sha256 in files:
        if not path.is_file() or _sha256(path) != sha256:
            raise CertifyError(
                f"{path} was changed while the run went on, so that its certificate "
                "would be about two agents: run it again, and leave the file alone"
            )


def untriable(
    revision: Revision, level: str, members: Sequence[Member]
) -> Iterator[str]:
    """The campaigns that a level demands and that this agent cannot be put to at all.

    They are no more skipped than others, and it is told before an hour has passed.
    """
    for each in revision.up_to(level):
        for campaign in each.campaigns:
            for member in members:
                why = (
                    ""
                    if campaign.needs == "restorable"
                    else unfit_for(campaign, member)
                )
                if why:
                    yield (
                        f"`{campaign.id}` of {each.id} cannot be run on {member.name}: "
                        f"{why}; or ask for less, with --level"
                    )


def unfit_for(campaign: Campaign, member: Member) -> str:
    """Why scenario and agent do not go together under a campaign; empty if they do."""
    scenario, faults = member.loaded.scenario, campaign.faults
    search = scenario.search.model_copy(update={"strategy": campaign.strategy})
    update = {"search": search, "faults": faults or scenario.faults}
    return unfit(scenario.model_copy(update=update), member.loaded.manifest) or ""


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
    if given is not None and has_own_settings(store):
        raise CertifyError(
            f"--durability {given}: {GIVEN_SERVERS[store]} names a server of your own, "
            "whose settings chaoskit neither makes nor knows; leave one of them out"
        )
    if given is not None and given not in choices:
        expected = f"one of {', '.join(choices)}" if choices else "none"
        raise CertifyError(
            f"--durability {given}: expected {expected}, since the store is {store}"
        )
    if given is None and choices and not has_own_settings(store):
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
