"""Responses as a dialect: ``POST /v1/responses`` is ``llm.responses``.

Answers are kept unless the request says ``store: false``, as the service does, so that
``previous_response_id``, references to items, and ``GET /v1/responses/ID`` find them.
"""

from pydantic import JsonValue

from chaoskit.wire.openai import responses as openai_responses
from chaoskit.wire.openai.faults import FAULTS
from chaoskit.wire.openai.responses_items import conversation, place, texts
from chaoskit.wire.openai.responses_stream import Stream
from chaoskit.wire.said import Ids
from chaoskit.world.http import Reply, Request
from chaoskit.world.llm.dialect import LENGTH, Question, Stored, Told, Written
from chaoskit.world.llm.openai_access import failed, headers, read_body, refused


class Responses:
    """See `chaoskit.world.llm.dialect.Dialect`."""

    op = "responses"
    path = "/v1/responses"

    def read(self, request: Request, goal: str, stored: Stored) -> Question:
        """Judge and place a request."""
        body, refusal = read_body(request)
        refusal = refusal or openai_responses.refusal(body, stored)
        items = conversation(body, stored)
        found = place(items, goal)
        given = body.get("instructions")
        system = [given] if isinstance(given, str) and given else []
        said = (*system, *(text for item in items for text in texts(item)))
        if refusal is not None:
            return Question(found, said, body, refusal.message, refused(refusal))
        return Question(
            found,
            said,
            {**body, "input": items},
            streamed=bool(body.get("stream")),
            prompt_tokens=openai_responses.prompt_tokens(body, stored),
            thought_tokens=openai_responses.thought_tokens(body),
        )

    def write(self, told: Told) -> Written:
        """The answer, whole or as events."""
        question = told.question
        body, prompt = question.body, question.prompt_tokens
        whole = openai_responses.whole(body, told.said, told.ids, prompt)
        kept: dict[str, JsonValue] = {}
        if body.get("store") is not False:
            kept[str(whole["id"])] = {"items": body["input"], "response": whole}
        if question.streamed:
            events = _stream(told).events()
            return Written(pieces=events, headers=headers(told.ids), stored=kept)
        return Written(whole, headers=headers(told.ids), stored=kept)

    def fail(self, argument: str, ids: Ids) -> Reply:
        """The service's own error in place of a reply."""
        return failed(argument, ids)

    def break_off(self, told: Told, sent: int, argument: str) -> bytes:
        """An error inside a 200, and the failed answer."""
        if argument == LENGTH:
            return _stream(told).at_limit(sent)
        return _stream(told).broken(sent, FAULTS[argument])


def _stream(told: Told) -> Stream:
    question = told.question
    return Stream(question.body, told.said, told.ids, question.prompt_tokens)
