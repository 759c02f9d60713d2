"""`junit.xml` of a certificate: a suite for each level, a case for each campaign in it.

A campaign is a case in the suite of its own level, and in that of each higher one that
it keeps from being reached: there it fails, and one that proves nothing is an error.
What is a known failure, or is demanded above the level that was asked for, is told and
does not fail.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from chaoskit.certify.certificate import Certificate
from chaoskit.certify.known import is_known
from chaoskit.certify.stops import Stop

# XML 1.0, section 2.2: what a document may hold.
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(certificate: Certificate) -> str:
    """The certificate as JUnit's XML, without times, which differ."""
    suites = Element("testsuites", name=_plain(certificate.label))
    for group, cases in _groups(certificate):
        suite = SubElement(suites, "testsuite", name=group)
        own = [stop for stop in certificate.stops if stop.level == group]
        _fill(suite, cases, own, certificate)
    _healed(suites, certificate)
    indent(suites)
    return tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


Case = tuple[str, str]
"""Scenario and campaign."""

NOT_DEMANDED = "found, and demanded above the level that was asked for only: "


def _groups(certificate: Certificate) -> Iterator[tuple[str, list[Case]]]:
    """Each level and tag that was tried, with its campaigns by scenario."""
    revision = certificate.certified.revision
    ran = {(ran.scenario, ran.campaign.id) for ran in certificate.results.ran}
    tags = ((tag.title, tag.campaigns) for tag in revision.tags)
    levels = ((level.id, level.campaigns) for level in revision.levels)
    for group, campaigns in (*levels, *tags):
        ids = {campaign.id for campaign in campaigns}
        stopped = {
            (s.scenario, s.campaign)
            for s in certificate.stops
            if s.level == group and s.campaign
        }
        cases = sorted({case for case in ran if case[1] in ids} | stopped)
        if cases:
            yield group, cases


def _fill(
    suite: Element,
    cases: Iterable[Case],
    stops: Sequence[Stop],
    certificate: Certificate,
) -> None:
    known, beyond = certificate.certified.known, certificate.standing.beyond
    counts = {"tests": 0, "failures": 0, "errors": 0, "skipped": 0}
    for scenario, campaign in cases:
        name = f"chaoskit.{scenario or 'installation'}"
        case = SubElement(suite, "testcase", classname=_plain(name), name=campaign)
        counts["tests"] += 1
        mine = _of((scenario, campaign), stops)
        listed = [stop for stop in mine if is_known(stop, known)]
        new = [stop for stop in mine if stop not in listed]
        if new:
            counts[_told(case, new)] += 1
        above = _of((scenario, campaign), beyond)
        told = (_text(listed, "known: "), _text(above, NOT_DEMANDED))
        if any(told):
            SubElement(case, "system-out").text = "\n\n".join(filter(None, told))
    for count, number in counts.items():
        suite.set(count, str(number))


def _of(case: Case, stops: Iterable[Stop]) -> list[Stop]:
    return [stop for stop in stops if (stop.scenario, stop.campaign) == case]


def _told(case: Element, stops: Sequence[Stop]) -> str:
    """A broken requirement is a failure, a doubt is an error; returns what to count."""
    broken = [stop for stop in stops if stop.requirement]
    first = (broken or stops)[0]
    tag = "failure" if broken else "error"
    told = SubElement(case, tag, type=first.requirement or "inconclusive")
    told.set("message", _plain(first.why))
    told.text = _text(stops)
    return "failures" if broken else "errors"


def _healed(suites: Element, certificate: Certificate) -> None:
    healed = certificate.healed
    if not healed:
        return
    counts = {"tests": str(len(healed)), "failures": str(len(healed))}
    suite = SubElement(suites, "testsuite", counts, name="known failures that pass")
    for entry in healed:
        name = f"chaoskit.{entry.scenario}"
        case = SubElement(suite, "testcase", classname=name, name=entry.requirement)
        why = f"listed as a known failure ({entry.reason}), and it passes: take it out"
        SubElement(case, "failure", type="known", message=_plain(why))


def _text(stops: Iterable[Stop], head: str = "") -> str:
    return _plain("\n\n".join(head + "\n".join(_lines(stop)) for stop in stops))


def _lines(stop: Stop) -> Iterator[str]:
    yield f"{stop.requirement or 'inconclusive'}: {stop.why}"
    if stop.replay:
        yield f"schedule: {stop.schedule or 'none: the fault-free run'}"
        yield f"replay: {stop.replay}"


def _plain(text: str) -> str:
    """The text with what XML cannot hold in escapes."""
    return _FORBIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
