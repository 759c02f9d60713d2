"""Addresses: where in a run a message crosses the gate.

The text form is ``life:service.op[key]#nth:edge``, for example
``0:tools.charge_card[o-1]#1:after``; an edge inside a reply that is sent in pieces is
``part:3``, after the third of them. Counting is per operation and life, never
global, so an address stays true when parallel calls change places.
"""

import re
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import ClassVar
from urllib.parse import quote, unquote

EVERY_LIFE = "*"

_TEXT = re.compile(
    r"(?P<life>\*|[0-9]{1,9}):(?P<service>[a-z]+)\.(?P<op>[^\s\[\]#:]+)"
    r"(?:\[(?P<key>[^\s\[\]#]*)\])?#(?P<nth>[1-9][0-9]{0,8})"
    r":(?P<edge>[a-z]+(?::[0-9]+)?)"
)
# Printable and not structural: these stand as they are inside the brackets.
_PLAIN = "".join(c for c in map(chr, range(33, 127)) if c not in "%[]#")
_PLAIN_OP = _PLAIN.replace(":", "")


@dataclass(frozen=True, slots=True, order=True)
class Edge:
    """Where a message is held; ``part`` is None for the two sides of the service."""

    name: str
    part: int | None = None

    BEFORE: ClassVar["Edge"]
    """The request is whole; nothing is applied."""
    AFTER: ClassVar["Edge"]
    """The request is applied; the reply is withheld."""

    @classmethod
    def of_part(cls, pieces: int) -> "Edge":
        """So many pieces of the reply (or bytes of a write) have passed, no more."""
        return cls("part", pieces)

    def __str__(self) -> str:
        return self.name if self.part is None else f"{self.name}:{self.part}"

    @classmethod
    def parse(cls, text: str) -> "Edge":
        """Read the text form; ValueError says what was expected."""
        name, _, number = text.partition(":")
        if name == "part" and number and int(number) > 0:
            return cls.of_part(int(number))
        if text in ("before", "after"):
            return cls(text)
        raise ValueError(f"{text!r} is no edge; expected before, after or part:K")


Edge.BEFORE = Edge("before")
Edge.AFTER = Edge("after")


@lru_cache(maxsize=1024)
def _quoted(text: str, plain: str) -> str:
    return quote(text, safe=plain)


def unquoted(text: str) -> str:
    """The text whose escapes these are.

    Raises:
        ValueError: with a sentence, where the bytes are no UTF-8.
    """
    try:
        return unquote(text, errors="strict")
    except UnicodeDecodeError as wrong:
        raise ValueError(
            f"{text!r}: %{wrong.object[wrong.start]:02X} is no text there; expected "
            "the escapes of UTF-8, for example %C3%A9"
        ) from None


@dataclass(frozen=True, slots=True)
class Operation:
    """What a service is asked to do, and to what: ``tools.charge_card[o-1]``."""

    service: str
    op: str
    key: str | None = None

    def __str__(self) -> str:
        brackets = "" if self.key is None else f"[{_quoted(self.key, _PLAIN)}]"
        return f"{self.service}.{_quoted(self.op, _PLAIN_OP)}{brackets}"


@dataclass(frozen=True)
class Address:
    """One message at one edge. ``life`` is None where it means every life."""

    life: int | None
    operation: Operation
    nth: int
    edge: Edge

    @cached_property
    def text(self) -> str:
        """The text form, made once: addresses are compared by it all the time."""
        life = EVERY_LIFE if self.life is None else self.life
        return f"{life}:{self.operation}#{self.nth}:{self.edge}"

    def __str__(self) -> str:
        return self.text

    @property
    def point(self) -> str:
        """The address without its life: the same place in any life."""
        return f"{self.operation}#{self.nth}:{self.edge}"

    def at_edge(self, edge: Edge) -> "Address":
        """The same message at an edge."""
        return replace(self, edge=edge)

    def in_every_life(self) -> "Address":
        """The same place, in whichever life reaches it."""
        return replace(self, life=None)

    @classmethod
    @lru_cache(maxsize=2**16)
    def parse(cls, text: str) -> "Address":
        """Read the text form.

        Raises:
            ValueError: with a sentence that says what was expected.
        """
        found = _TEXT.fullmatch(text)
        if found is None:
            raise ValueError(
                f"{text!r} is not an address; expected life:service.op[key]#nth:edge, "
                "for example 0:tools.charge_card[o-1]#1:after"
            )
        life, edge, key = found["life"], found["edge"], found["key"]
        try:
            held = Edge.parse(edge)
            op = unquoted(found["op"])
            key = None if key is None else unquoted(key)
        except ValueError as wrong:
            raise ValueError(f"{text!r}: {wrong}") from None
        operation = Operation(found["service"], op, key)
        number = None if life == EVERY_LIFE else int(life)
        return cls(number, operation, int(found["nth"]), held)
