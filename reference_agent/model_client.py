"""The model, through the OpenAI SDK: one question, one whole reply, no hidden retries.

The SDK takes half a second to import, so a life that has nothing to ask does without.
"""

import os
from functools import cached_property
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from reference_agent.transitions import Reply

if TYPE_CHECKING:
    from openai import OpenAI
    from openai.types.chat import ChatCompletion, ChatCompletionMessage

TIMEOUT_SECONDS = 60
PASSING = (408, 409, 429)
"""Refusals that may be gone at the next attempt, as is everything from 500 up."""


class ModelTrouble(Exception):
    """No usable reply. `passing`: asking again may help.

    The reason carries no text of the SDK's: that may quote the prompt or the key."""

    def __init__(self, reason: str, *, passing: bool) -> None:
        super().__init__(reason)
        self.passing = passing


class OpenAIModel:
    """Asks Chat Completions; the SDK takes the address and the key from OPENAI_*."""

    def __init__(self, model: str, tools: list[dict[str, Any]]) -> None:
        self._model = model
        self._tools = tools

    def ask(self, messages: tuple[dict[str, Any], ...]) -> Reply:
        """The reply to a conversation. Raises ModelTrouble."""
        import openai

        question: dict[str, Any] = {"model": self._model, "messages": list(messages)}
        if self._tools:
            question["tools"] = self._tools
        try:
            return _reply(self._client.chat.completions.create(**question))
        except openai.APIStatusError as error:
            status = error.status_code
            passing = status in PASSING or status >= 500
            raise ModelTrouble(f"it answered {status}", passing=passing) from None
        except (openai.APIError, ValueError) as error:  # ValueError: it was no JSON
            reason = f"no answer: {type(error).__name__}"
            raise ModelTrouble(reason, passing=True) from None

    @cached_property
    def _client(self) -> "OpenAI":
        from openai import DefaultHttpxClient, OpenAI

        # Loading the certificates takes longer than a whole reply from this machine.
        http = DefaultHttpxClient(verify=not _is_loopback())
        return OpenAI(max_retries=0, timeout=TIMEOUT_SECONDS, http_client=http)


def _is_loopback() -> bool:
    url = urlsplit(os.environ.get("OPENAI_BASE_URL", ""))
    hosts = ("127.0.0.1", "::1", "localhost")
    return url.scheme == "http" and url.hostname in hosts


def _reply(completion: "ChatCompletion") -> Reply:
    try:
        choice = completion.choices[0]
        usage = completion.usage
        reply = Reply(
            completion.id,
            _message(choice.message),
            usage.prompt_tokens if usage else 0,
            usage.completion_tokens if usage else 0,
        )
    except (AttributeError, IndexError, TypeError):  # the SDK does not check replies
        raise ModelTrouble("its reply is no completion", passing=True) from None
    if choice.finish_reason == "length":
        raise ModelTrouble("its reply was cut off", passing=True)
    return reply


def _message(message: "ChatCompletionMessage") -> dict[str, Any]:
    """The message as it goes into the next question: no more than what must."""
    said: dict[str, Any] = {"role": "assistant", "content": message.content}
    calls = [
        {
            "id": call.id,
            "type": "function",
            "function": {
                "name": call.function.name,
                "arguments": call.function.arguments,
            },
        }
        for call in message.tool_calls or ()
        if call.type == "function"
    ]
    return said | ({"tool_calls": calls} if calls else {})
