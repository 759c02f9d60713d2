"""The table of a self-test, for people."""

from collections.abc import Iterator, Sequence

from chaoskit.selftest.outcome import Outcome, Tested

_BROKEN = (
    *("broken specimen", "kind", "store", "mode"),
    *("caught by", "other", "faults", "smallest schedule"),
)
_CORRECT = ("correct specimen", "store", "mode", "alarms", "kills", "faults", "trials")


def as_table(outcome: Outcome) -> str:
    """Both halves, each a table, then why, where something is not as it must be."""
    parts = []
    if outcome.broken:
        parts.append(_table(_BROKEN, map(_broken, outcome.broken)))
    if outcome.correct:
        parts.append(_table(_CORRECT, map(_correct, outcome.correct)))
    parts += [_story(each) for each in outcome.tested if not each.is_as_expected]
    return "\n".join([*parts, _summary(outcome)])


def _broken(each: Tested) -> Sequence[str]:
    specimen, label = each.specimen, each.specimen.label
    return (
        specimen.name,
        ", ".join(label.kinds) or "-",
        specimen.store,
        specimen.mode,
        str(label.requirement) if each.found else "NOT FOUND",
        ", ".join(each.others) or "-",
        "-" if each.needed is None else str(each.needed),
        "-" if each.schedule is None else each.schedule or "(no fault)",
    )


def _correct(each: Tested) -> Sequence[str]:
    specimen = each.specimen
    alarms = ", ".join(each.others) or ("0" if each.is_as_expected else each.verdict)
    numbers = (each.kills, each.faults, each.trials)
    return (specimen.name, specimen.store, specimen.mode, alarms, *map(str, numbers))


def _table(head: Sequence[str], rows: Iterator[Sequence[str]]) -> str:
    lines = [head, *rows]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    return "".join(_line(line, widths) for line in lines)


def _line(cells: Sequence[str], widths: Sequence[int]) -> str:
    padded = (cell.ljust(width) for cell, width in zip(cells, widths, strict=True))
    return "  ".join(padded).rstrip() + "\n"


def _story(each: Tested) -> str:
    name, label = each.specimen.name, each.specimen.label
    if not each.specimen.is_broken:
        wanted = "it is correct, and must pass"
    else:
        wanted = f"{label.requirement} must be found, and nothing else"
    return f"{name}: {wanted}. {label.about}\n{each.told}"


def _summary(outcome: Outcome) -> str:
    broken, correct = outcome.broken, outcome.correct
    found = sum(each.is_as_expected for each in broken)
    alarms = sum(not each.is_as_expected for each in correct)
    kills = sum(each.kills for each in correct)
    word = "green" if outcome.is_green else "NOT GREEN"
    return (
        f"{word}: {found} of {len(broken)} broken specimens caught by their own promise"
        f" and no other; {alarms} alarms on {len(correct)} correct ones over {kills} "
        f"kills; {outcome.seconds:g} s\n"
    )
