"""The verb `chaoskit selftest`: pick specimens, test them, print the table."""

import sys
from collections.abc import Sequence
from pathlib import Path

from chaoskit.report.show import show
from chaoskit.selftest.catalogue import UnknownSpecimen, specimens
from chaoskit.selftest.outcome import Tested
from chaoskit.selftest.run import SelftestError, default_jobs, selftest
from chaoskit.selftest.table import as_table

EXIT_GREEN, EXIT_NOT_GREEN, EXIT_WRONG_INPUT = 0, 1, 2


def verb(
    names: Sequence[str], jobs: int | None, *, quick: bool, out: Path | None
) -> int:
    """Run it; returns the exit code of the program."""
    try:
        picked = specimens(names)
        outcome = selftest(
            picked, jobs or default_jobs(), quick=quick, out=out, listener=_told
        )
    except (SelftestError, UnknownSpecimen) as error:
        show(f"{error}\n", sys.stderr)
        return EXIT_WRONG_INPUT
    show(as_table(outcome))
    return EXIT_GREEN if outcome.is_green else EXIT_NOT_GREEN


def _told(each: Tested) -> None:
    """A line on standard error as soon as a specimen is through."""
    word = "as expected" if each.is_as_expected else "NOT as expected"
    line = f"{each.specimen.name}: {word}, {each.trials} trials, {each.seconds:g} s"
    show(f"{line}\n", sys.stderr)
