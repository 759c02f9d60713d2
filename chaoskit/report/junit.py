"""`junit.xml`: a test case for each requirement that was judged, for CI systems.

The form is the one that CI systems read in common, and that the schema of Jenkins
describes (junit-10.xsd of its xUnit plugin): `testsuites`, `testsuite`, `testcase` with
`failure`, `error`, `skipped` or `system-out`. Characters that XML cannot hold are
written as escapes. A requirement of a promise that was not judged is skipped: it did
not pass.
"""

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from chaoskit.model.report import Report, Shown
from chaoskit.model.verdict import Severity
from chaoskit.report.text import story

# XML 1.0, section 2.2: what a document may hold.
_NOT_JUDGED = re.compile(r"(?P<promise>\w+) was not judged: (?P<why>.*)", re.DOTALL)
_FORBIDDEN = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")


def as_junit(report: Report) -> str:
    """The whole report as JUnit's XML."""
    suites = Element("testsuites", name="chaoskit")
    suite = SubElement(suites, "testsuite", _counts(report))
    suite.set("name", _plain(f"{report.scenario} ({report.store})"))
    suite.set("time", f"{report.seconds:.3f}")
    for requirement in _judged(report):
        shown = [e for e in report.findings if e.finding.requirement == requirement]
        _case(suite, report, requirement, shown)
    if report.doubts:
        _doubts(suite, report)
    indent(suites)
    return tostring(suites, encoding="unicode", xml_declaration=True) + "\n"


def _judged(report: Report) -> list[str]:
    found = (shown.finding.requirement for shown in report.findings)
    return list(dict.fromkeys((*report.judged, *found)))


def _counts(report: Report) -> dict[str, str]:
    failed = {e.finding.requirement for e in report.findings if _is_must(e)}
    found = {e.finding.requirement for e in report.findings}
    skipped = [r for r in _judged(report) if r not in found and _why_not(report, r)]
    cases = len(_judged(report)) + bool(report.doubts)
    return {
        "tests": str(cases),
        "failures": str(len(failed)),
        "errors": str(int(bool(report.doubts))),
        "skipped": str(len(skipped)),
    }


def _is_must(shown: Shown) -> bool:
    return shown.finding.severity is Severity.MUST


def _case(suite: Element, report: Report, requirement: str, found: list[Shown]) -> None:
    name = f"chaoskit.{report.scenario}"
    case = SubElement(suite, "testcase", classname=_plain(name), name=requirement)
    case.set("time", "0")
    failures = [shown for shown in found if _is_must(shown)]
    if failures:
        first = failures[0]
        failure = SubElement(case, "failure", type=requirement)
        failure.set("message", _plain(first.finding.message))
        failure.text = _plain("\n\n".join(story(report, each) for each in failures))
    warnings = [shown for shown in found if not _is_must(shown)]
    if warnings:
        said = "\n\n".join(story(report, shown) for shown in warnings)
        SubElement(case, "system-out").text = _plain(said)
    if not found and (why := _why_not(report, requirement)):
        SubElement(case, "skipped", message=_plain(why))


def _why_not(report: Report, requirement: str) -> str:
    """Why nothing was judged by a requirement, as a note says; empty if it was."""
    promise = requirement.partition("/")[0]
    found = filter(None, map(_NOT_JUDGED.fullmatch, report.notes))
    return next((note["why"] for note in found if note["promise"] == promise), "")


def _doubts(suite: Element, report: Report) -> None:
    """What a run leaves open is no pass, and no fault of the agent."""
    name = f"chaoskit.{report.scenario}"
    case = SubElement(suite, "testcase", classname=_plain(name), name="conclusive")
    case.set("time", "0")
    error = SubElement(case, "error", type="inconclusive")
    error.set("message", _plain(report.doubts[0]))
    error.text = _plain("\n".join(report.doubts))


def _plain(text: str) -> str:
    """The text with what XML cannot hold in escapes."""
    return _FORBIDDEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text)
