"""The folder that a certifying run leaves, to be published as it is."""

import json
import shlex
import shutil
import stat
from pathlib import Path

from chaoskit.campaign.saved import THINNED, TRIALS, thinned_text
from chaoskit.certify.as_json import as_json
from chaoskit.certify.certificate import Certificate
from chaoskit.certify.junit import as_junit
from chaoskit.certify.observed import CLEAN
from chaoskit.certify.page import as_html
from chaoskit.certify.results import Ran
from chaoskit.certify.text import as_text
from chaoskit.report.badge import GREEN, badge

CERTIFICATE = "certificate.json"
JUNIT = "junit.xml"


def leave(certificate: Certificate, out: Path, seconds: float) -> None:
    """Write the certificate in all its forms, and thin out the trials.

    Of a campaign's trials those stay that show a finding, and the fault-free one: a
    level runs thousands, and a line in the journal says what came of each. How many
    went is noted, so that `chaoskit judge` says why they are missing.
    """
    (out / CERTIFICATE).write_text(as_json(certificate), encoding="utf-8")
    (out / "certificate.txt").write_text(as_text(certificate), encoding="utf-8")
    (out / "certificate.html").write_text(as_html(certificate), encoding="utf-8")
    (out / JUNIT).write_text(as_junit(certificate), encoding="utf-8")
    if certificate.has_badge:
        (out / "badge.svg").write_text(_badge(certificate), encoding="utf-8")
    _reproduce(certificate, out / "reproduce")
    _seconds(certificate, out / "seconds.json", seconds)
    for ran in certificate.results.ran:
        campaign = out / "campaigns" / ran.scenario / ran.campaign.id
        _thin_out(ran, campaign)
        # What a campaign alone does not prove is no error here: there is one for all.
        (campaign / JUNIT).unlink(missing_ok=True)


def _badge(certificate: Certificate) -> str:
    stands = certificate.standing
    tags = "".join(f" +{tag}" for tag in stands.tags)
    revision = certificate.certified.revision.revision
    said = f"{stands.level}{tags}{certificate.weaker} on {certificate.store}"
    return badge(f"chaoskit {revision}", said, GREEN)


def _reproduce(certificate: Certificate, path: Path) -> None:
    """The paths in it begin where it was run, so it goes there first."""
    place = f"cd -- {shlex.quote(str(Path.cwd()))} || exit 2"
    command = certificate.certified.asked.again
    path.write_text(f"#!/bin/sh\n{place}\n{command}\n", "utf-8")
    path.chmod(path.stat().st_mode | stat.S_IXUSR | stat.S_IXGRP | stat.S_IXOTH)


def _seconds(certificate: Certificate, path: Path, seconds: float) -> None:
    """How long it took: apart, since it differs each time."""
    each = {
        f"{ran.scenario}/{ran.campaign.id}": ran.report.seconds
        for ran in certificate.results.ran
    }
    fields = {"seconds": round(seconds, 1), "campaigns": each}
    path.write_text(json.dumps(fields, indent=2) + "\n", encoding="utf-8")


def _thin_out(ran: Ran, out: Path) -> None:
    kept = {*CLEAN, *(shown.trial for shown in ran.report.findings)}
    folders = [each for each in (out / TRIALS).iterdir() if each.name not in kept]
    if not folders:
        return
    (out / THINNED).write_text(thinned_text(len(folders)), encoding="utf-8")
    for folder in folders:
        shutil.rmtree(folder)
