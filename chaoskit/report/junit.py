"""`junit.xml`: a test case for each requirement that was judged, for CI systems.

The form is the one that CI systems read in common: `testsuites`, `testsuite`,
`testcase` with `failure`, `error` or `system-out`. Characters that XML cannot hold are
written as escapes.
"""

import re
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from chaoskit.model.report import Report, Shown
from chaoskit.model.verdict import Severity
from chaoskit.report.text import story

# XML 1.0, section 2.2: what a document may hold.
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
    cases = len(_judged(report)) + bool(report.doubts)
    return {
        "tests": str(cases),
        "failures": str(len(failed)),
        "errors": str(int(bool(report.doubts))),
        "skipped": "0",
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
