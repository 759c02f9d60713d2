"""The model, through the OpenAI SDK: one question, one whole reply, nothing hidden.

Whether to ask again, when, and whom, is the run's to decide and to store (`loop`); the
SDK's own retries are off. The SDK takes half a second to import, so a life that has
nothing to ask does without.
"""

import asyncio
import os
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

from reference_agent.endpoints import Endpoint, listed
from reference_agent.endpoints import WrongEndpoints as WrongEndpoints
from reference_agent.model_reply import ModelTrouble as ModelTrouble
from reference_agent.model_reply import gathered, whole
from reference_agent.retry_after import retry_after
from reference_agent.transitions import Reply

if TYPE_CHECKING:
    from openai import APIError, AsyncOpenAI

TIMEOUT_SECONDS = 60.0
PASSING = (408, 409, 425, 429)
"""Refusals that may be gone at the next attempt, as is everything from 500 up."""
ELSEWHERE = (401, 402, 403, 404, 405, 410)
"""Refusals of this caller or this address, not of what is asked."""
SPENT = "insufficient_quota"
"""OpenAI's code of a 429 that no waiting ends: there is no money left."""
REQUEST_ID_MAX = 512


class OpenAIModel:
    """Asks Chat Completions at one of several endpoints (`endpoints`), streamed or not.

    `timeout_seconds` bounds a question from its first byte sent to the last byte of its
    reply: one that drips for ever is given up like one that never begins. (Looking a
    name up is the resolver's, which has limits of its own.) Raises WrongEndpoints.
    """

    def __init__(
        self,
        tools: list[dict[str, Any]],
        *,
        stream: bool = False,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._listed = listed(os.environ)
        self.endpoints = len(self._listed)
        self._asked: dict[str, Any] = {"tools": tools} if tools else {}
        self._timeout = timeout_seconds
        self._stream = stream
        if stream:
            self._asked |= {"stream": True, "stream_options": {"include_usage": True}}

    def ask(
        self,
        messages: tuple[dict[str, Any], ...],
        *,
        run_id: str,
        step: int,
        endpoint: int,
    ) -> Reply:
        """The reply to a conversation. Raises ModelTrouble."""
        at = self._listed[endpoint]
        question = self._asked | {"model": at.model, "messages": list(messages)}
        return asyncio.run(self._ask(at, question, run_id, step))

    async def _ask(
        self, at: Endpoint, question: dict[str, Any], run_id: str, step: int
    ) -> Reply:
        """Only an event loop can give up on time whatever it waits for."""
        import openai

        try:
            async with asyncio.timeout(self._timeout), _client(at) as client:
                return await self._reply(client, question, _headers(run_id, step))
        except (TimeoutError, openai.APITimeoutError):
            reason = f"no whole reply within {self._timeout:g} s"
        except openai.APIError as error:
            raise _trouble(error) from None
        except UnicodeEncodeError:
            reason = "what it was to be asked is no Unicode text"
            raise ModelTrouble(reason, passing=False) from None
        except (ValueError, RecursionError):
            reason = "its reply is no JSON"
        raise ModelTrouble(reason, passing=True) from None

    async def _reply(
        self, client: "AsyncOpenAI", question: dict[str, Any], headers: dict[str, str]
    ) -> Reply:
        answer = await client.chat.completions.create(**question, extra_headers=headers)
        if not self._stream:
            return whole(answer)
        async with answer:
            return gathered([chunk async for chunk in answer])


def _client(at: Endpoint) -> "AsyncOpenAI":
    """A client for one question: a connection that idled through a wait is no use."""
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient

    # Loading the certificates takes longer than a whole reply from this machine.
    http = DefaultAsyncHttpxClient(verify=not at.is_local)
    return AsyncOpenAI(
        base_url=at.base_url,
        api_key=at.key,
        max_retries=0,
        timeout=None,  # ours is for the whole
        http_client=http,
    )


def _headers(run_id: str, step: int) -> dict[str, str]:
    """The run and the step, where every endpoint takes them and OpenAI finds them.

    Not the body's `metadata`: OpenAI refuses it in requests that are not to be stored,
    and other servers refuse it as a field that they do not know. The header must be
    ASCII and of 512 characters at most; all attempts at one question share its value.
    """
    name = f"{quote(run_id, safe='')}/{step}"
    return {"X-Client-Request-Id": name[-REQUEST_ID_MAX:]}


def _trouble(error: "APIError") -> ModelTrouble:
    """What an error of the SDK's means, without its text."""
    import openai

    if error.code == SPENT:
        return ModelTrouble("its quota is used up", passing=False, elsewhere=True)
    if isinstance(error, openai.APIConnectionError):
        return ModelTrouble("no connection, or it broke", passing=True)
    if not isinstance(error, openai.APIStatusError):
        return ModelTrouble("it broke off with an error of its own", passing=True)
    status = error.status_code
    return ModelTrouble(
        f"it answered {status}",
        passing=status in PASSING or status >= 500,
        elsewhere=status in ELSEWHERE,
        retry_after=retry_after(error.response.headers),
    )
