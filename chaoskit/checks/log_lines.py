"""A log line as the checks read it: what its event means, and a finding about it."""

import re
from collections.abc import Iterable
from typing import cast

from pydantic import JsonValue

from chaoskit.model.history import Logged
from chaoskit.model.manifest import Manifest
from chaoskit.model.verdict import Finding

PROMISE = "log"

# `tool.start`, `tool_start`, `toolStart`.
_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+")


def _words(line: Logged, manifest: Manifest) -> list[str]:
    event = str(line.entry.get(manifest.log.event, ""))
    return [word.lower() for word in _WORD.findall(event)]


def meaning(line: Logged, manifest: Manifest) -> str:
    """The last word of its event: ``start``, ``intent``, ``result``, ``end``."""
    return "".join(_words(line, manifest)[-1:])


def about(line: Logged, manifest: Manifest) -> str:
    """The words before that: ``tool``, ``model``, ``run``."""
    return ".".join(_words(line, manifest)[:-1])


def shown(line: Logged) -> str:
    """The line, cut to a length that a report can bear."""
    return str(line.entry)[:200]


def finding(
    requirement: str,
    message: str,
    expected: object,
    observed: object,
    lines: Iterable[Logged],
    subject: str = "",
) -> Finding:
    """A finding that rests on some lines."""
    return Finding(
        PROMISE,
        requirement,
        message,
        expected=cast(JsonValue, expected),
        observed=cast(JsonValue, observed),
        subject=subject,
        events=tuple(line.seq for line in lines),
    )
