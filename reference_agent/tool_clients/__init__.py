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
from typing import Any

from reference_agent.effects import Effect, ToolService
from reference_agent.settings import address, port, setting
from reference_agent.tools import TOOLS, Promise, Tool
from reference_agent.transitions import Outcome

MAIL = "send_mail"


def _http() -> ToolService:
    from reference_agent.tool_clients.http import HttpTools

    return HttpTools(address("CHAOSKIT_TOOLS_URL", "http", "https"))


def _mcp() -> ToolService:
    from reference_agent.tool_clients.mcp import McpTools

    return McpTools(address("CHAOSKIT_MCP_URL", "http", "https"))


def _smtp() -> ToolService:
    from reference_agent.tool_clients.smtp import SmtpMail

    return SmtpMail(setting("CHAOSKIT_SMTP_HOST"), port("CHAOSKIT_SMTP_PORT"))


TOOL_WAYS: dict[str, Callable[[], ToolService]] = {"http": _http, "mcp": _mcp}
MAIL_WAYS = ("http", "smtp")
"""With `http` a mail goes the way of all other tools, whichever that is."""


def connect(tools: str = "http", mail: str = "http") -> ToolService:
    """The services behind the tools, at the addresses that the environment has.

    Nothing is connected yet. Raises WrongSetting.
    """
    return Router(TOOL_WAYS[tools](), {MAIL: _smtp()} if mail == "smtp" else {})


def tool_table(mail: str = "http") -> dict[str, Tool]:
    """The tools as they are when mail goes that way.

    A mail server keeps what it accepts. It takes a second copy as it took the first,
    whatever its Message-ID, and tells nobody what it has: that is a blind tool. If
    yours drops repeats, or you can ask it, say so here.
    """
    if mail != "smtp":
        return TOOLS
    return TOOLS | {MAIL: replace(TOOLS[MAIL], promise=Promise.BLIND)}


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
