"""`log/no-content`: no message content longer than 24 characters at info level.

Content is what was said to the model and by it: the goal, the texts of the messages,
the arguments of the calls. The names of tools are none.
"""

from collections.abc import Iterable, Iterator

from pydantic import JsonValue

from chaoskit.checks.case import Case
from chaoskit.checks.doubt import deaths, pauses, struck_calls
from chaoskit.checks.log_lines import finding
from chaoskit.checks.script import Script, name_of
from chaoskit.model.history import Asked, Logged
from chaoskit.model.scenario import AskTurn, SayTurn
from chaoskit.model.trial import Trial
from chaoskit.model.verdict import Finding

CONTENT_LENGTH_MAX = 24
_QUIET_LEVELS = frozenset(
    {"trace", "debug", "notset", "verbose", "silly", "fine", "finer", "finest"}
)
_QUIET_NUMBER_MAX = 10
"""Python's DEBUG and pino's trace; 20 is INFO to one and debug to the other."""


def discreet(case: Case) -> Iterator[Finding]:
    """Find the first line that quotes a message."""
    trial, manifest = case.trial, case.manifest
    secret = _pieces(_contents(case)) - _pieces(case.scenario.tools)
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


def _contents(case: Case) -> Iterator[str]:
    """What was said to the model and by it: in words, and in the calls it made."""
    scenario, no_results = case.scenario, _said_in_place_of_results(case)
    yield scenario.task.goal
    for asked in case.trial.of(Asked):
        yield from (text for text in asked.contents if text not in no_results)
    for call in scenario.calls():
        for args in call.all_args:
            yield from _texts(args)
    for turn in scenario.llm.script:
        if isinstance(turn, SayTurn | AskTurn):
            yield turn.say if isinstance(turn, SayTurn) else turn.ask


def _said_in_place_of_results(case: Case) -> set[str]:
    """What the model was told of calls that had none, because of a fault.

    That is the error that the tool answered with, or what the agent says of a call that
    it left undecided. Where it is what the fault-free runs told it was a result.
    """
    usual = case.golden.results
    told = (each for asked in case.trial.of(Asked) for each in asked.results.items())
    others = [(c, text) for c, text in told if usual.get(c) != case.without_run(text)]
    if not others:
        return set()
    script = Script(case.scenario)
    struck = _struck(case.trial, script)
    left = {call for names in _stops(case.trial, script) for call in names} & set(usual)
    texts = [text for call, text in others if call in struck | left]
    return {part for text in texts for part in (text, *text.split("\n"))}


def _stops(trial: Trial, script: Script) -> Iterator[frozenset[str]]:
    yield from deaths(trial, script, asked=True)
    yield from pauses(trial, script)


def _struck(trial: Trial, script: Script) -> set[str]:
    """The calls that a fault of their service struck, by name."""
    return {
        name_of(call)
        for struck, fault in struck_calls(trial)
        if fault.spoils_its_message and struck in script.groups
        for call in script.groups[struck].calls
    }


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
