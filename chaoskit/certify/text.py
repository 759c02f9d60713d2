"""The certificate in words, for a terminal and for people who read the folder."""

from collections.abc import Iterator

from chaoskit import __version__
from chaoskit.certify.certificate import SELFTEST, Certificate
from chaoskit.certify.not_judged import NotJudged
from chaoskit.certify.results import Ran
from chaoskit.certify.stops import Stop
from chaoskit.model.errors import printable
from chaoskit.report.text import writable

COVERS = "It covers this agent on this store only."


def as_text(certificate: Certificate) -> str:
    """The whole of it; how long it took is left out."""
    return writable("\n".join(_lines(certificate)) + "\n")


def _lines(certificate: Certificate) -> Iterator[str]:
    certified = certificate.certified
    yield certificate.label
    for name, value in facts(certificate):
        yield f"  {name:<13} {value}"
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
    again = certified.asked.again
    yield f"{COVERS} To see it again: {again}"


def facts(certificate: Certificate) -> Iterator[tuple[str, str]]:
    """What stands beside the label, by name."""
    certified, manifest = certificate.certified, certificate.certified.manifest
    version = f" {manifest.version}" if manifest.version else ""
    yield "chaoskit", __version__
    path = printable(str(certified.manifest_path))
    yield "agent", f"{manifest.name}{version} ({path})"
    if image := certificate.results.image:
        yield "image", image
    yield "promises", certificate.contract
    server = f", {certificate.server}" if certificate.server else ""
    yield "store", certificate.store + server
    revision = certified.revision
    yield "requirements", f"{revision.revision}, contract {revision.contract}"
    yield "level", certificate.level_name
    if levels := certificate.not_tried:
        asked = certified.asked.level
        yield "not tried", f"{', '.join(levels)}: {asked} was asked for"
    yield "tags", ", ".join(certificate.standing.tags) or "none"
    green = "not green" if certificate.results.base.selftest else "green"
    extent = "each broken agent by what shows it, few kills"
    yield "self-test", f"{green}, {SELFTEST}: {extent}"
    for each in certificate.not_judged:
        yield "not judged", unjudged(each)
    for left in certificate.not_varied:
        place = f"{left.scenario}/{left.campaign}"
        yield "not varied", f"{', '.join(left.calls)}: {left.why} ({place})"


def unjudged(each: NotJudged) -> str:
    """The requirements, why they were not judged, and where, if not anywhere."""
    where = f" ({', '.join(each.where)})" if each.where else ""
    return f"{', '.join(each.requirements)}: {each.why}{where}"


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
        for entry in certificate.certified.known:
            if entry.covers(stop):
                yield f"   known:    {entry.reason}"
    asked = certificate.certified.asked.level
    for stop in stands.beyond:
        yield ""
        yield from _stop(stop, f"found, not demanded at {asked}")
    for stop in stands.warnings:
        yield ""
        yield from _stop(stop, "warning")


def _stop(stop: Stop, head: str = "") -> Iterator[str]:
    place = ", ".join(filter(None, (stop.scenario, stop.campaign)))
    where = f" ({place})" if place else ""
    head = head or f"{stop.level} was not reached"
    yield f"{head}{where}: {stop.requirement}".rstrip(": ")
    yield f"   {stop.why}"
    if stop.replay:
        yield f"   schedule: {stop.schedule or 'none: the fault-free run'}"
        yield f"   replay:   {stop.replay}"
