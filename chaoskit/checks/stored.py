"""What two looks at a stored conversation say of each other.

Compared is what was said and done, and not what may be new at each reading: ids, times,
counters. A context that was summed up or cut at its beginning is another conversation,
of which nothing is said. Two readings of one checkpoint may differ in what the model is
instructed to do as well: that is often put together when it is needed, with the time.
"""

from pydantic import JsonValue

from chaoskit.checks.pairs import Mark, marks

_INSTRUCTS = ("system", "developer")
_MEANS = frozenset(
    {
        *("role", "type", "content", "text", "name", "input", "arguments", "output"),
        *("function", "tool_calls", "is_error", "refusal"),
    }
)


def said(transcript: JsonValue) -> list[JsonValue] | None:
    """The entries without what may differ; None where it is no list of objects."""
    if not isinstance(transcript, list):
        return None
    if not all(isinstance(entry, dict) for entry in transcript):
        return None
    return [_plain(entry) for entry in transcript]


def goes_on(before: JsonValue, now: JsonValue) -> bool:
    """Whether a conversation has all that was there before, and perhaps more."""
    one, other = said(before), said(now)
    return one is not None and other is not None and other[: len(one)] == one


def is_shorter(before: JsonValue, now: JsonValue, *, same: bool = False) -> bool:
    """Whether the end of a conversation is gone; one that was rewritten is not.

    ``same``: both were read as the same checkpoint.
    """
    if same:
        before, now = _talk(before), _talk(now)
    return goes_on(now, before) and not goes_on(before, now)


def ends_open(transcript: JsonValue) -> bool:
    """Whether calls are still without a result: who resumes may drop that turn.

    Where calls or results have no ids nobody can say.
    """
    found = list(marks(transcript)) if isinstance(transcript, list) else []
    if any(mark.kind == "unnamed" for mark in found):
        return True
    results = {mark.identity for mark in found if mark.kind == "result"}
    return any(m.kind == "call" and m.identity not in results for m in found)


def differs(before: JsonValue, now: JsonValue) -> bool:
    """Whether of one checkpoint neither reading is the beginning of the other."""
    before, now = _talk(before), _talk(now)
    known = said(before) is not None and said(now) is not None
    return known and not goes_on(before, now) and not goes_on(now, before)


def lost_result(before: JsonValue, now: JsonValue) -> str:
    """The call whose result was there, and only the call still is; or nothing."""
    if not isinstance(before, list) or not isinstance(now, list):
        return ""
    kept = set(marks(now))
    for mark in marks(before):
        call = Mark("call", mark.identity)
        if mark.kind == "result" and call in kept and mark not in kept:
            return mark.identity
    return ""


def _talk(transcript: JsonValue) -> JsonValue:
    """The entries without instructions; anything else as it is."""
    if not isinstance(transcript, list):
        return transcript
    return [each for each in transcript if not _instructs(each)]


def _instructs(entry: JsonValue) -> bool:
    return isinstance(entry, dict) and entry.get("role") in _INSTRUCTS


def _plain(value: JsonValue) -> JsonValue:
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {k: _plain(v) for k, v in sorted(value.items()) if k in _MEANS}
