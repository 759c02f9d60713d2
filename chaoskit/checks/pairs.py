"""Whether a stored conversation pairs calls with results, whichever API it is for.

Chat messages, Responses items and Messages blocks are understood; of anything else
nothing is said, nor of a conversation that names its calls otherwise. The calls of the
last turn may still be without a result. What follows a call in a chat, or a message of
blocks, ends its turn. Not so with Responses items: the same reply may go on, and what
others say may come in between, as long as the model is not asked anew.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

from pydantic import JsonValue

_CALL, _RESULT = "function_call", "function_call_output"


class Mark(NamedTuple):
    """A ``call`` or a ``result`` by its identity, or ``words`` by the role of whoever
    says them. ``unnamed``: a call or a result without the id that its API asks for.
    """

    kind: str
    identity: str = ""


_WORDS = Mark("words", "assistant")


def unpaired(transcript: JsonValue, *, is_over: bool = False) -> str:
    """What is wrong with a conversation, in words, or nothing.

    ``is_over``: the run is done, and so nothing is still to come.
    """
    entries = transcript if isinstance(transcript, list) else []
    found = list(marks(entries))
    if any(mark.kind == "unnamed" for mark in found):
        return ""
    known: set[str] = set()
    left: list[int] = []
    for place, mark in enumerate(found):
        if mark.kind == "call":
            left.append(place)
            known.add(mark.identity)
        elif mark.kind == "result":
            if mark.identity not in known:
                return f"the result {mark.identity!r} belongs to no call"
            mine = [call for call in left if found[call].identity == mark.identity]
            if not mine:
                return f"the call {mark.identity!r} has a second result"
            left.remove(mine[0])
        elif left and not _are_items(entries):
            return f"the call {found[left[0]].identity!r} has no result"
    return _gone_on(found, left, is_over=is_over)


def _gone_on(found: Sequence[Mark], left: Iterable[int], *, is_over: bool) -> str:
    """Calls without a result of a reply that was not the last one."""
    for call in left:
        later = found[call + 1 :]
        begun = (n for n, mark in enumerate(later) if not _is_the_models(mark))
        asked_anew = any(map(_is_the_models, later[next(begun, len(later)) :]))
        if asked_anew or (is_over and _WORDS in later):
            return f"the call {found[call].identity!r} has no result"
    return ""


def _is_the_models(mark: Mark) -> bool:
    return mark.kind == "call" or mark == _WORDS


def _are_items(entries: Iterable[object]) -> bool:
    kinds = (entry.get("type") for entry in entries if isinstance(entry, dict))
    return any(kind in (_CALL, _RESULT) for kind in kinds)


def marks(transcript: Iterable[object]) -> Iterator[Mark]:
    """Calls, results and words, in order; nothing of what is not understood."""
    for entry in transcript:
        if isinstance(entry, dict):
            yield from _of_entry(entry)


def _of_entry(entry: dict[str, Any]) -> Iterator[Mark]:
    if entry.get("type") == _CALL:
        yield _named("call", entry, "call_id")
    elif entry.get("type") == _RESULT:
        yield _named("result", entry, "call_id")
    elif entry.get("role") == "tool":
        yield _named("result", entry, "tool_call_id")
    elif "role" in entry:
        yield from _of_message(entry)


def _named(kind: str, entry: dict[str, Any], key: str) -> Mark:
    identity = entry.get(key)
    return Mark("unnamed") if identity is None else Mark(kind, str(identity))


def _of_message(message: dict[str, Any]) -> Iterator[Mark]:
    """Of its blocks, results come first: they answer the turn before."""
    blocks = _dicts(message.get("content"))
    results = [b for b in blocks if b.get("type") == "tool_result"]
    yield from (_named("result", b, "tool_use_id") for b in results)
    if len(results) < len(blocks) or not blocks:
        yield Mark("words", str(message["role"]))
    uses = (b for b in blocks if b.get("type") == "tool_use")
    yield from (_named("call", b, "id") for b in uses)
    for call in _dicts(message.get("tool_calls")):
        yield _named("call", call, "id")


def _dicts(value: object) -> list[dict[str, Any]]:
    listed = value if isinstance(value, list) else []
    return [each for each in listed if isinstance(each, dict)]
