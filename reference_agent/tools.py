"""The tools: what the model may call, and what each service promises. Edit this table.

The promise decides what happens to a call that was cut off, when nobody knows whether
it was done (see `effects`). Ask the owner of the service; when in doubt, say `BLIND`.
"""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any


class Promise(StrEnum):
    """What a service does for a caller that may have to ask twice."""

    READ = "read"  # nothing happens: just ask again
    KEYED = "keyed"  # one Idempotency-Key is applied once, its answer repeated
    QUERYABLE = "queryable"  # no keys, but it can be asked what was done
    BLIND = "blind"  # neither


@dataclass(frozen=True)
class Tool:
    """One tool; `parameters` are JSON Schemas by name, all of them required."""

    name: str
    promise: Promise
    description: str
    parameters: dict[str, Any]

    def offer(self) -> dict[str, Any]:
        """The tool as Chat Completions wants it offered."""
        schema = {
            "type": "object",
            "properties": self.parameters,
            "required": list(self.parameters),
        }
        return {
            "type": "function",
            "function": {
                "name": self.name,
                "description": self.description,
                "parameters": schema,
            },
        }


ASK_HUMAN, WAIT = "ask_human", "wait"
"""Served by the agent itself: a human gate, and a wait that survives a restart."""

WAIT_SECONDS_MAX = 366 * 24 * 60 * 60

TEXT = {"type": "string"}
CENTS = {"type": "integer", "description": "An amount in cents"}
DATE = {"type": "string", "description": "A day, as YYYY-MM-DD"}

_ALL = (
    Tool("search_flights", Promise.READ, "Find flights.", {"to": TEXT}),
    Tool("hold_seat", Promise.KEYED, "Hold a seat.", {"order": TEXT, "seat": TEXT}),
    Tool("charge_card", Promise.KEYED, "Pay.", {"order": TEXT, "cents": CENTS}),
    Tool(
        "add_to_calendar",
        Promise.QUERYABLE,
        "Add a day to the calendar.",
        {"title": TEXT, "day": DATE},
    ),
    Tool("find_contact", Promise.READ, "Find a person's address.", {"name": TEXT}),
    Tool("read_invoice", Promise.READ, "Read an invoice.", {"number": TEXT}),
    Tool(
        "send_mail",
        Promise.QUERYABLE,
        "Send a mail.",
        {"to": TEXT, "subject": TEXT, "body": TEXT},
    ),
    Tool(ASK_HUMAN, Promise.READ, "Ask a person, and wait.", {"question": TEXT}),
    Tool(WAIT, Promise.READ, "Wait so long.", {"seconds": {"type": "number"}}),
    Tool("send_fax", Promise.BLIND, "Send a fax.", {"to": TEXT, "body": TEXT}),
)

TOOLS = {tool.name: tool for tool in _ALL}
