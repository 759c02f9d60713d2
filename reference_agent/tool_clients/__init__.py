"""How the tools are reached: over HTTP or MCP, and mail over SMTP if that is wanted.

| way    | the call's key travels as      | what was done can be looked up        |
|--------|--------------------------------|---------------------------------------|
| `http` | `Idempotency-Key`              | `GET`                                 |
| `mcp`  | `_meta.idempotency_key`        | a resource                            |
| `smtp` | `Message-ID`                   | no: SMTP hands in, and that is all    |

No other module of the agent knows one way from another.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from reference_agent.effects import Effect, ToolService
from reference_agent.stores import MissingSetting, setting
from reference_agent.tools import TOOLS, Promise, Tool
from reference_agent.transitions import Outcome

MAIL = "send_mail"


def _http() -> ToolService:
    from reference_agent.tool_clients.http import HttpTools

    return HttpTools(setting("CHAOSKIT_TOOLS_URL"))


def _mcp() -> ToolService:
    from reference_agent.tool_clients.mcp import McpTools

    return McpTools(setting("CHAOSKIT_MCP_URL"))


def _smtp() -> ToolService:
    from reference_agent.tool_clients.smtp import SmtpMail

    return SmtpMail(setting("CHAOSKIT_SMTP_HOST"), _port("CHAOSKIT_SMTP_PORT"))


TOOL_WAYS: dict[str, Callable[[], ToolService]] = {"http": _http, "mcp": _mcp}
MAIL_WAYS = ("http", "smtp")
"""With `http` a mail goes the way of all other tools, whichever that is."""


def connect(tools: str = "http", mail: str = "http") -> ToolService:
    """The services behind the tools, at the addresses that the environment has.

    It is read at the first use, which raises MissingSetting: who only asks for a run's
    status needs none of it.
    """
    others = Lazily(TOOL_WAYS[tools])
    return Router(others, {MAIL: Lazily(_smtp)} if mail == "smtp" else {})


def tool_table(mail: str = "http") -> dict[str, Tool]:
    """The tools as they are when mail goes that way.

    A mail server keeps what it accepts. It takes a second copy as it took the first,
    whatever its Message-ID, and tells nobody what it has: that is a blind tool. If
    yours drops repeats, or you can ask it, say so here.
    """
    if mail != "smtp":
        return TOOLS
    return TOOLS | {MAIL: replace(TOOLS[MAIL], promise=Promise.BLIND)}


class Lazily:
    """A `ToolService` that is made when it is first used."""

    def __init__(self, make: Callable[[], ToolService]) -> None:
        self._make = make

    @cached_property
    def _service(self) -> ToolService:
        return self._make()

    def do(self, tool: str, arguments: dict[str, Any], key: str) -> Outcome:
        """See `ToolService.do`."""
        return self._service.do(tool, arguments, key)

    def done(self, tool: str, arguments: dict[str, Any]) -> Sequence[Effect]:
        """See `ToolService.done`."""
        return self._service.done(tool, arguments)


class Router:
    """A `ToolService` that sends some tools elsewhere than the others."""

    def __init__(self, others: ToolService, own: dict[str, ToolService]) -> None:
        self._others = others
        self._own = own

    def do(self, tool: str, arguments: dict[str, Any], key: str) -> Outcome:
        """See `ToolService.do`."""
        return self._own.get(tool, self._others).do(tool, arguments, key)

    def done(self, tool: str, arguments: dict[str, Any]) -> Sequence[Effect]:
        """See `ToolService.done`."""
        return self._own.get(tool, self._others).done(tool, arguments)


def _port(name: str) -> int:
    text = setting(name)
    if text.isascii() and text.isdigit() and 0 < int(text) < 2**16:
        return int(text)
    raise MissingSetting(f"{name} is {text!r}; expected a port, from 1 to 65535")
