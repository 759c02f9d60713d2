"""`log/no-content`: no message content longer than 24 characters at info level.

Content is what was said to the model and by it: the goal, the texts of the messages,
the arguments of the calls. The names of tools are none.
"""

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from chaoskit.checks.log_lines import finding
from chaoskit.model.history import Asked, Logged
from chaoskit.model.manifest import Manifest
from chaoskit.model.scenario import AskTurn, SayTurn, Scenario
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding

CONTENT_LENGTH_MAX = 24
_QUIET_LEVELS = frozenset(
    {"trace", "debug", "notset", "verbose", "silly", "fine", "finer", "finest"}
)
_QUIET_NUMBER_MAX = 10
"""Python's DEBUG and pino's trace; 20 is INFO to one and debug to the other."""


def discreet(trial: Trial, scenario: Scenario, manifest: Manifest) -> Iterator[Finding]:
    """Find the first line that quotes a message."""
    secret = _pieces(_contents(trial, scenario)) - _pieces(scenario.tools)
    for line in trial.of(Logged):
        level = line.entry.get(manifest.log.level, "info")
        if _is_quiet(level):
            continue
        for text in _texts(line.entry):
            if found := _quoted(text, secret):
                yield finding(
                    "log/no-content",
                    f"A log line of {trial.spoken(line.life)} at level {level} holds "
                    f"message content ({found!r}...); log a hash of it.",
                    expected=f"at most {CONTENT_LENGTH_MAX} characters of any message",
                    observed=text[:80],
                    subject=str(line.entry.get(manifest.log.event)),
                    lines=[line],
                )
                return


def _is_quiet(level: JsonValue) -> bool:
    if isinstance(level, int | float):
        return level <= _QUIET_NUMBER_MAX
    return str(level).lower() in _QUIET_LEVELS


def _contents(trial: Trial, scenario: Scenario) -> Iterator[str]:
    """What was said to the model and by it: in words, and in the calls it made."""
    yield scenario.task.goal
    for asked in trial.of(Asked):
        yield from asked.contents
    for call in scenario.calls():
        for args in call.all_args:
            yield from _texts(args)
    for turn in scenario.llm.script:
        if isinstance(turn, SayTurn | AskTurn):
            yield turn.say if isinstance(turn, SayTurn) else turn.ask


def _pieces(contents: Iterable[str]) -> frozenset[str]:
    """Every stretch of the contents that is one character too long to be quoted.

    A line of dashes or blanks says nothing, so it is no content.
    """
    return frozenset(
        piece
        for text in contents
        for piece in _windows(text)
        if any(map(str.isalnum, piece))
    )


def _quoted(text: str, pieces: frozenset[str]) -> str | None:
    return next((window for window in _windows(text) if window in pieces), None)


def _windows(text: str) -> Iterator[str]:
    size = CONTENT_LENGTH_MAX + 1
    return (text[start : start + size] for start in range(len(text) - size + 1))


def _texts(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from _texts(item)
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
