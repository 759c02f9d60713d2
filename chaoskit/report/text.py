"""The report as text: the verdict first, then each story with its way to replay it."""

from collections.abc import Iterator

from chaoskit.model.report import Report, Shown
from chaoskit.model.verdict import Severity, Verdict

_ADDRESSES_SHOWN_MAX = 10


def as_text(report: Report) -> str:
    """The whole report, for a terminal or a log."""
    return writable("\n".join(_lines(report)) + "\n")


def writable(text: str) -> str:
    """Text in which half a surrogate pair, which an agent may log, is escaped."""
    return text.encode(errors="backslashreplace").decode()


def story(report: Report, shown: Shown) -> str:
    """One finding: what happened, when, and the command that shows it again."""
    return "\n".join(_story(report, shown))


def _lines(report: Report) -> Iterator[str]:
    yield f"{report.scenario}: {str(report.verdict).upper()}"
    yield f"  agent      {report.agent}, store {report.store}"
    yield f"  search     {_search(report)}"
    yield f"  crossings  {_crossings(report)}"
    yield from (f"             not hit: {at}" for at in crossings_missed(report))
    yield from (f"  tokens     {told}" for told in repaid(report))
    if report.periodic:
        yield f"  periodic   {', '.join(report.periodic)}"
    if report.volatile:
        yield f"  volatile   {', '.join(report.volatile)}"
    if report.volatile_listed:
        listed = ", ".join(report.volatile_listed)
        yield f"  volatile   {listed} (so the scenario says)"
    yield from (f"  note       {note}" for note in report.notes)
    for number, shown in enumerate(report.findings, 1):
        yield ""
        yield f"{number}. {story(report, shown)}"
    if report.doubts:
        yield ""
        yield _doubts_head(report)
        yield from (f"  - {doubt}" for doubt in report.doubts)
    yield ""
    yield f"Everything is in {report.out}"


def _search(report: Report) -> str:
    what = f"{report.strategy}, seed {report.seed}: {report.trials} trials, "
    if report.states is not None:
        what += f"{report.states} crash states, up to {report.depth} kills deep"
    else:
        what += _struck(report)
    if report.wrecks is not None and report.states is None:
        what += f" that left {report.wrecks} different world{_s(report.wrecks)}"
    return f"{what}, {report.seconds:.1f} s"


def _struck(report: Report) -> str:
    """What struck, by kind where it was not kills alone."""
    if set(report.faults) <= {"kill"}:
        return f"{report.kills} kills"
    return ", ".join(f"{count} x {kind}" for kind, count in report.faults.items())


def _s(count: int) -> str:
    return "" if count == 1 else "s"


def _crossings(report: Report) -> str:
    crossings = report.crossings
    return f"{crossings.seen} edges in the fault-free run, {crossings.hit} of them hit"


def repaid(report: Report) -> Iterator[str]:
    """What lost replies have cost: no finding, and yet somebody pays."""
    paid = report.tokens_repaid
    if paid.trials:
        few, usual, most = map(_number, (paid.least, paid.median, paid.most))
        spread = f"{usual} for each kill (median, {few} to {most})"
        yield f"{paid.tokens} paid again after replies were lost: {spread}"
    elif paid.tokens:
        yield f"{paid.tokens} paid again after replies were lost"


def _number(value: float) -> str:
    return f"{value:.1f}".removesuffix(".0")


def crossings_missed(report: Report) -> list[str]:
    """Where a search that means to strike everywhere did not, the first of many."""
    missed = report.crossings.missed
    if report.strategy not in ("sweep", "treadmill"):
        return []
    more = len(missed) - _ADDRESSES_SHOWN_MAX
    shown = list(missed[:_ADDRESSES_SHOWN_MAX])
    return [*shown, f"and {more} more"] if more > 0 else shown


def _story(report: Report, shown: Shown) -> Iterator[str]:
    finding = shown.finding
    warns = "" if finding.severity is Severity.MUST else " (a warning)"
    yield f"{finding.requirement}{warns}"
    yield f"   {finding.message}"
    if finding.follows:
        yield f"   It follows from {finding.follows}, which this trial broke too."
    yield f"   expected: {finding.expected}; observed: {finding.observed}"
    yield f"   schedule: {shown.schedule or 'none: the fault-free run'}"
    if shown.hit:
        yield f"   it hit:   {', then '.join(shown.hit)}"
    yield f"   trial:    {report.out}/trials/{shown.trial}"
    if shown.trials > 1:
        yield f"   shown in: {shown.trials} of {report.trials} trials"
    if not shown.again:
        yield "   The same schedule, run once more, did not show it: the agent does not"
        yield "   behave equally each time. What was seen was seen all the same."
    yield f"   replay:   {report.replay_of(shown.schedule)}"


def _doubts_head(report: Report) -> str:
    if report.verdict is Verdict.FAIL:
        return "Besides, this remains open:"
    return "This run proves nothing yet:"
