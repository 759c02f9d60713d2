"""How an effect over HTTP goes wrong: the one form of error, and those of the faults.

No message says whether the effect was applied: a real service's does not either.
"""

from typing import NamedTuple

from chaoskit.model.schedule import Fault
from chaoskit.world.http import Reply

RETRY_AFTER_SECONDS = "1"


class _Form(NamedTuple):
    kind: str
    message: str
    headers: dict[str, str]


_WAIT = {"Retry-After": RETRY_AFTER_SECONDS}
_FORMS = {
    "429": _Form("rate_limited", "too many calls; try again later", _WAIT),
    "500": _Form("internal_error", "the tool failed inside", {}),
    "503": _Form("unavailable", "the tool is not available; try again later", _WAIT),
    "504": _Form("timeout", "the tool did not answer in time", {}),
}


def error(status: int, kind: str, message: str, **headers: str) -> Reply:
    """An error in the form that section 3 of the contract gives it."""
    return Reply({"error": {"message": message, "type": kind}}, status, headers)


def failure(fault: Fault) -> Reply:
    """The HTTP answer that an `error` fault names by its status."""
    status = fault.chosen or ""
    form = _FORMS[status]
    return error(int(status), form.kind, form.message, **form.headers)
