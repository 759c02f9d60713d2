"""What counts as a reply: from what the endpoint sent, whole or in pieces.

The rest of the agent acts on what it is given here. So a reply that was cut off, that
lacks what makes it one, or that is none at all is trouble and nothing else.
Format: Chat Completions, objects `chat.completion` and `chat.completion.chunk`.
"""

import json
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from reference_agent.transitions import Reply

if TYPE_CHECKING:
    from openai.types.chat import ChatCompletion, ChatCompletionChunk

ENDED = ("stop", "tool_calls")
"""How a reply ends that is whole. Some servers say `stop` after calls, too."""


class ModelTrouble(Exception):
    """No usable reply. The reason is in our own words: those of the SDK or the endpoint
    may quote the prompt or the key.

    `passing`: the same endpoint may answer when it is asked again, after `retry_after`
    seconds where it says so. `elsewhere`: this endpoint is of no use as things are
    here, and the next one may be. Neither: the question itself finds no answer.
    """

    def __init__(
        self,
        reason: str,
        *,
        passing: bool,
        elsewhere: bool = False,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(reason)
        self.passing = passing
        self.elsewhere = elsewhere
        self.retry_after = retry_after


def whole(completion: "ChatCompletion") -> Reply:
    """The reply of an answer in one piece. Raises ModelTrouble."""
    with suppress(AttributeError, IndexError, TypeError):  # the SDK checks nothing
        said = _Said()
        said.about(completion)
        choice = completion.choices[0]
        said.ended = choice.finish_reason
        said.add(choice.message, enumerate(choice.message.tool_calls or ()))
        return said.reply()
    raise ModelTrouble("its reply is no completion", passing=True)


def gathered(chunks: "Iterable[ChatCompletionChunk]") -> Reply:
    """The reply of a stream that came to its end. Raises ModelTrouble."""
    with suppress(AttributeError, IndexError, TypeError):
        said = _Said()
        for chunk in chunks:
            said.about(chunk)
            for choice in chunk.choices[:1]:  # the chunk of the usage has none
                said.ended = choice.finish_reason or said.ended
                calls = choice.delta.tool_calls or ()
                said.add(choice.delta, ((call.index, call) for call in calls))
        return said.reply()
    raise ModelTrouble("its stream is no completion", passing=True)


@dataclass
class _Call:
    """A tool call: named by its first piece, and no later piece may name another."""

    id: str = ""
    name: str = ""
    arguments: str = ""

    def add(self, piece: Any) -> None:
        self.id = _same(self.id, piece.id)
        if piece.function is not None:
            self.name = _same(self.name, piece.function.name)
            self.arguments += piece.function.arguments or ""

    def told(self) -> dict[str, Any]:
        function = {"name": self.name, "arguments": self.arguments}
        return {"id": self.id, "type": "function", "function": function}


@dataclass
class _Said:
    """All that was said so far."""

    id: str = ""
    content: str = ""
    refusal: str = ""
    calls: dict[int, _Call] = field(default_factory=dict)
    ended: str | None = None
    usage: Any = None

    def about(self, answer: Any) -> None:
        self.id = self.id or answer.id or ""
        self.usage = answer.usage or self.usage

    def add(self, message: Any, calls: Iterable[tuple[int, Any]]) -> None:
        self.content += message.content or ""
        self.refusal += message.refusal or ""
        for index, call in calls:
            self.calls.setdefault(index, _Call()).add(call)

    def reply(self) -> Reply:
        """What was said, if it may be acted on."""
        self._check_end()
        message: dict[str, Any] = {"role": "assistant", "content": self.content or None}
        calls = [call.told() for _, call in sorted(self.calls.items())]
        if calls:
            message["tool_calls"] = calls
        self._check_parts(message)
        return Reply(
            self.id,
            message,
            _count(self.usage, "prompt_tokens"),
            _count(self.usage, "completion_tokens"),
        )

    def _check_end(self) -> None:
        if self.ended is None:
            raise ModelTrouble("its reply was cut off", passing=True)
        if self.ended == "length":
            reason = "its reply was cut off by the limit on tokens"
            raise ModelTrouble(reason, passing=True)
        if self.refusal or self.ended == "content_filter":
            # A decision and no accident: neither asked again nor asked of others.
            raise ModelTrouble("it refuses to answer this", passing=False)
        if self.ended not in ENDED:
            raise ModelTrouble("its reply has an unknown end", passing=True)

    def _check_parts(self, message: dict[str, Any]) -> None:
        calls = self.calls.values()
        if not (self.content or calls) or (self.ended == "tool_calls" and not calls):
            raise ModelTrouble("its reply is empty", passing=True)
        named = all(call.id and call.name for call in calls)
        if not (self.id and named) or len({call.id for call in calls}) < len(calls):
            raise ModelTrouble("its reply lacks ids or names", passing=True)
        texts = [self.id, *(t for call in calls for t in (call.id, call.name))]
        if not all(isinstance(text, str) for text in texts):
            raise ModelTrouble("its ids and names are no texts", passing=True)
        if not _is_sendable([self.id, message]):
            raise ModelTrouble("its reply is no Unicode text", passing=True)


def _same(known: str, given: str | None) -> str:
    if known and given and known != given:
        raise ModelTrouble("its calls are mixed up", passing=True)
    return known or given or ""


def _is_sendable(said: list[Any]) -> bool:
    """Whether it is text that can be stored and sent on: no half of a pair."""
    try:
        return bool(json.dumps(said, ensure_ascii=False).encode())
    except UnicodeEncodeError:
        return False


def _count(usage: Any, name: str) -> int:
    """Tokens, as far as the endpoint tells them."""
    count = getattr(usage, name, 0)
    return count if type(count) is int else 0
