"""The API key that agents are given: a canary."""

import hashlib
from collections.abc import Iterable

from chaoskit.gate import forms

CANARY = "sk-chaoskit-canary-" + hashlib.sha256(b"chaoskit canary").hexdigest()[:32]
"""It opens every API of the `llm` service, and must be in no store, log or report."""

CANARY_FORMS = forms(CANARY)
"""The texts by which it is known, escaped or encoded."""
_FORMS = tuple(form.encode() for form in CANARY_FORMS)


def holds_canary(parts: Iterable[str | bytes]) -> bool:
    """Whether it stands in one of these, in whatever form."""
    each = (p if isinstance(p, bytes) else p.encode(errors="replace") for p in parts)
    whole = b"\n".join(each)
    return any(form in whole for form in _FORMS)


def without_canary(text: str) -> str:
    """The text as it may be recorded."""
    return text.replace(CANARY, "{canary}")
