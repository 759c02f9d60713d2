"""The tool service over HTTP: `POST <url>/<tool>` does, `GET` tells what was done.

One connection a call and no retries of its own: sending again is a decision that
`effects` makes and a checkpoint records.
"""

import json
from collections.abc import Mapping
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any
from urllib.parse import quote, urlencode, urlsplit

from reference_agent.effects import Effect, NoLookUp, Trouble
from reference_agent.tool_clients.answers import as_text, effects, result
from reference_agent.transitions import Outcome

TIMEOUT_SECONDS = 30
NOT_FOUND, TIMED_OUT, IN_USE, TOO_MANY = 404, 408, 409, 429


class HttpTools:
    """A `ToolService` at a base URL."""

    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)

    def do(self, tool: str, arguments: dict[str, Any], key: str) -> Outcome:
        """See `ToolService.do`. A refusal is an outcome: the model may know better."""
        headers = {"Content-Type": "application/json", "Idempotency-Key": key}
        status, body = self._exchange(
            "POST", self._path(tool), json.dumps(arguments), headers
        )
        if status in (TIMED_OUT, IN_USE):  # the first attempt may still be under way
            raise Trouble(f"it answered {status}", sent=True)
        if status >= 400:
            return Outcome(f"Error {status}: {body}", applied=False)
        return Outcome(result(body), applied=True)

    def done(self, tool: str, arguments: dict[str, Any]) -> list[Effect]:
        """See `ToolService.done`."""
        query = urlencode({name: as_text(value) for name, value in arguments.items()})
        status, body = self._exchange("GET", f"{self._path(tool)}?{query}")
        if status == NOT_FOUND:
            raise NoLookUp
        if status >= 400:
            raise Trouble(f"the look-up of {tool} answered {status}", sent=False)
        return effects(body, arguments)

    def _path(self, tool: str) -> str:
        return f"{self._url.path.rstrip('/')}/{quote(tool, safe='')}"

    def _exchange(
        self,
        method: str,
        path: str,
        body: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[int, str]:
        acts = method != "GET"
        connection = self._connection()
        try:
            _connect(connection)
            connection.request(method, path, body, dict(headers or {}))
            response = connection.getresponse()
            status, text = response.status, response.read().decode()
        except (OSError, HTTPException, ValueError) as error:
            raise Trouble(f"no answer: {type(error).__name__}", sent=acts) from error
        finally:
            connection.close()
        if status == TOO_MANY or status >= 500:
            raise Trouble(f"it answered {status}", sent=acts and status != TOO_MANY)
        return status, text

    def _connection(self) -> HTTPConnection:
        kind = HTTPSConnection if self._url.scheme == "https" else HTTPConnection
        return kind(self._url.netloc, timeout=TIMEOUT_SECONDS)


def _connect(connection: HTTPConnection) -> None:
    try:
        connection.connect()
    except OSError as error:
        raise Trouble(f"no connection: {type(error).__name__}", sent=False) from error
