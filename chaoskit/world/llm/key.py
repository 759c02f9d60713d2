"""The API key that agents are given: a canary."""

import hashlib

CANARY = "sk-chaoskit-canary-" + hashlib.sha256(b"chaoskit canary").hexdigest()[:32]
"""It opens every API of the `llm` service, and must be in no store, log or report."""


def without_canary(text: str) -> str:
    """The text as it may be recorded."""
    return text.replace(CANARY, "{canary}")
