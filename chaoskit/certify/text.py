"""The certificate in words, for a terminal and for people who read the folder."""

from collections.abc import Iterator

from chaoskit.certify.certificate import Certificate
from chaoskit.certify.levels import Stop
from chaoskit.certify.run import Ran
from chaoskit.report.text import writable


def as_text(certificate: Certificate) -> str:
    """The whole of it; how long it took is left out."""
    return writable("\n".join(_lines(certificate)) + "\n")


def _lines(certificate: Certificate) -> Iterator[str]:
    certified, stands = certificate.certified, certificate.standing
    manifest = certified.manifest
    yield certificate.label
    version = f" {manifest.version}" if manifest.version else ""
    yield f"  agent         {manifest.name}{version} ({certified.manifest_path})"
    server = f", {certificate.server}" if certificate.server else ""
    yield f"  store         {certificate.store}{server}"
    revision = certified.revision
    yield f"  requirements  {revision.revision}, contract {revision.contract}"
    yield f"  level         {certificate.level_name}"
    yield f"  tags          {', '.join(stands.tags) or 'none'}"
    yield ""
    for ran in certificate.results.ran:
        yield f"  {ran.scenario}: {ran.campaign.id}: {figures(ran)}"
    for aside in certificate.results.outcomes:
        if why := aside.within or aside.not_for:
            yield f"  {aside.scenario}: {aside.campaign}: not run: {why}"
    yield from _stopped(certificate)
    for entry in certificate.healed:
        yield ""
        yield (
            f"{entry.requirement} of {entry.scenario} is listed as a known failure "
            f"and passes: take it out of {certified.asked.known}."
        )
    yield ""
    again = certified.asked.command
    yield f"It covers this agent on this store only. To see it again: {again}"


def figures(ran: Ran) -> str:
    """What one campaign came to, in a line."""
    report, campaign = ran.report, ran.campaign
    words = [str(ran.verdict), f"{report.trials} trials", f"{report.kills} kills"]
    words += [f"{ran.pairs} pairs"] if campaign.depth > 1 else []
    words += [_crossings(ran)] if campaign.has_targets else []
    if report.states is not None:
        end = "closed" if ran.is_closed else "not closed"
        words.append(f"{report.states} states, {end}, {report.depth} kills deep")
    return ", ".join(words)


def _crossings(ran: Ran) -> str:
    crossings = ran.report.crossings
    return f"{crossings.hit}/{crossings.seen} edges"


def _stopped(certificate: Certificate) -> Iterator[str]:
    stands = certificate.standing
    for stop in (*stands.stops, *stands.tag_stops):
        yield ""
        yield from _stop(stop)
    for stop in stands.warnings:
        yield ""
        yield from _stop(stop, "warning")


def _stop(stop: Stop, head: str = "") -> Iterator[str]:
    place = ", ".join(filter(None, (stop.scenario, stop.campaign)))
    yield f"{head or f'{stop.level} was not reached'} ({place}): {stop.requirement}"
    yield f"   {stop.why}"
    if stop.replay:
        yield f"   schedule: {stop.schedule or 'none: the fault-free run'}"
        yield f"   replay:   {stop.replay}"
