"""Whether a stored conversation pairs calls with results, whichever API it is for.

Chat messages, Responses items and Messages blocks are understood; of anything else
nothing is said. The calls of the last turn may still be without a result.
"""

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

from pydantic import JsonValue


class Mark(NamedTuple):
    """A call, a result, or (neither) words that stand between them."""

    kind: str
    identity: str = ""


def unpaired(transcript: JsonValue) -> str:
    """What is wrong with a conversation, in words, or nothing."""
    if not isinstance(transcript, list):
        return ""
    open_calls: list[str] = []
    known: set[str] = set()
    for mark in marks(transcript):
        if mark.kind == "call":
            open_calls.append(mark.identity)
            known.add(mark.identity)
        elif mark.kind == "result":
            if mark.identity not in known:
                return f"the result {mark.identity!r} belongs to no call"
            if mark.identity not in open_calls:
                return f"the call {mark.identity!r} has a second result"
            open_calls.remove(mark.identity)
        elif open_calls:
            return f"the call {open_calls[0]!r} has no result"
    return ""


def marks(transcript: Iterable[object]) -> Iterator[Mark]:
    """Calls, results and words, in order; nothing of what is not understood."""
    for entry in transcript:
        if isinstance(entry, dict):
            yield from _of_entry(entry)


def _of_entry(entry: dict[str, Any]) -> Iterator[Mark]:
    if entry.get("type") == "function_call":
        yield Mark("call", str(entry.get("call_id")))
    elif entry.get("type") == "function_call_output":
        yield Mark("result", str(entry.get("call_id")))
    elif entry.get("role") == "tool":
        yield Mark("result", str(entry.get("tool_call_id")))
    elif "role" in entry:
        yield from _of_message(entry)


def _of_message(message: dict[str, Any]) -> Iterator[Mark]:
    """Of its blocks, results come first: they answer the turn before."""
    blocks = _dicts(message.get("content"))
    results = [b for b in blocks if b.get("type") == "tool_result"]
    yield from (Mark("result", str(b.get("tool_use_id"))) for b in results)
    if len(results) < len(blocks) or not blocks:
        yield Mark("words")
    uses = (b for b in blocks if b.get("type") == "tool_use")
    yield from (Mark("call", str(b.get("id"))) for b in uses)
    for call in _dicts(message.get("tool_calls")):
        yield Mark("call", str(call.get("id")))


def _dicts(value: object) -> list[dict[str, Any]]:
    listed = value if isinstance(value, list) else []
    return [each for each in listed if isinstance(each, dict)]
