"""Chat Completions as a dialect: ``POST /v1/chat/completions`` is ``llm.chat``."""

from collections.abc import Mapping
from typing import Any

from chaoskit.wire import sse
from chaoskit.wire.openai import chat as openai_chat
from chaoskit.wire.openai import chat_stream as openai_chat_stream
from chaoskit.wire.openai.chat_conversation import Message, place, texts
from chaoskit.wire.openai.faults import FAULTS
from chaoskit.wire.said import Ids
from chaoskit.world.http import Reply, Request
from chaoskit.world.llm.dialect import LENGTH, Question, Stored, Told, Written
from chaoskit.world.llm.openai_access import failed, headers, read_body, refused


class Chat:
    """See `chaoskit.world.llm.dialect.Dialect`."""

    op = "chat"
    path = "/v1/chat/completions"

    def read(self, request: Request, goal: str, stored: Stored) -> Question:
        """Judge and place a request."""
        body, refusal = read_body(request)
        refusal = refusal or openai_chat.refusal(body)
        messages = _messages(body)
        found = place(messages, goal)
        said = tuple(text for message in messages for text in texts(message))
        if refusal is not None:
            return Question(found, said, body, refusal.message, refused(refusal))
        return Question(
            found,
            said,
            body,
            streamed=bool(body.get("stream")),
            prompt_tokens=openai_chat.prompt_tokens(body),
            choices=body.get("n") or 1,
            thought_tokens=openai_chat.reasoning(body),
        )

    def write(self, told: Told) -> Written:
        """The answer, whole or as chunks."""
        parts = told.question.body, told.said, told.ids
        if told.question.streamed:
            events = openai_chat_stream.events(*parts)
            said = len(events) - openai_chat_stream.tail(told.question.body)
            return Written(pieces=events, whole=said, headers=headers(told.ids))
        whole = openai_chat.completion(*parts)
        return Written(whole, headers=headers(told.ids))

    def fail(self, argument: str, ids: Ids) -> Reply:
        """The service's own error in place of a reply."""
        return failed(argument, ids)

    def break_off(self, told: Told, sent: int, argument: str) -> bytes:
        """An error inside a 200; after it the service says no more, not even DONE."""
        if argument == LENGTH:
            parts = told.question.body, told.said, told.ids
            return openai_chat_stream.at_limit(*parts)
        return sse.event(FAULTS[argument].body(told.ids.request))


def _messages(body: Mapping[str, Any]) -> list[Message]:
    """The messages of a request, as far as they look like ones."""
    messages = body.get("messages")
    found = messages if isinstance(messages, list) else []
    return [message for message in found if isinstance(message, dict)]
