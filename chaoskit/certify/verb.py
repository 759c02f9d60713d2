"""The verb `chaoskit certify`: read the set, run the levels, print the certificate."""

import sys
from contextlib import AbstractContextManager

from chaoskit.campaign import Listener
from chaoskit.certify import Asked, CertifyError, certify, read
from chaoskit.certify.text import as_text
from chaoskit.model.verdict import Verdict
from chaoskit.report.show import show
from chaoskit.selftest.run import SelftestError, unexpected

EXITS = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.INCONCLUSIVE: 3}
EXIT_WRONG_INPUT = 2
NOT_GREEN = (
    "the self-test of this installation is not green, so that what it says proves "
    "nothing: {odd}; `chaoskit selftest {names}` shows more"
)


def verb(asked: Asked, progress: AbstractContextManager[Listener]) -> int:
    """Run it; returns the exit code of the program."""
    try:
        certified = read(asked)
        with progress as listener:
            certificate = certify(
                certified, lambda: _selftest(certified.jobs), listener
            )
    except (CertifyError, SelftestError) as error:
        show(f"{error}\n", sys.stderr)
        return EXIT_WRONG_INPUT
    show(as_text(certificate))
    return EXITS[certificate.verdict]


def _selftest(jobs: int) -> tuple[str, ...]:
    odd = unexpected(jobs)
    told = ", ".join(each.in_short for each in odd)
    names = " ".join(each.specimen.name for each in odd)
    return (NOT_GREEN.format(odd=told, names=names),) if odd else ()
