"""What an API of the `llm` service is made of: the seam for one more.

How to add a dialect:

1. Write the codec in `chaoskit.wire`: what a request must look like, and an answer
   (`Said` and `Ids` in, JSON and events out). It is pure and knows no sockets.
2. Write a module beside this one with one class that meets `Api` (an address, its
   variables, its look-ups) and one class for each operation that meets `Dialect`.
   They hold no state: what an operation must remember goes through `Written.stored`.
3. Add the api to ``APIS`` in `chaoskit.world.llm.service`. That is all: the model
   counts, places, records, wobbles and crosses the gate for every dialect alike.

A dialect decides words and shapes only. It never decides which turn of the script is
told (`Place` does, from the conversation), nor whether a fault strikes (the gate does).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from pydantic import JsonValue

from chaoskit.wire.place import Place
from chaoskit.wire.said import Ids, Said
from chaoskit.world.http import Reply, Request

LENGTH = "length"
"""The argument of `error` that is no error: a reply cut by its limit on tokens."""

Stored = Mapping[str, JsonValue]
"""What the service keeps of its answers, by their ids."""


@dataclass(frozen=True)
class Question:
    """A request to the model, read. ``refused`` is the reply where it is no good."""

    place: Place
    texts: tuple[str, ...] = ()
    """What its messages say in words, in their order; only for the record."""
    body: Mapping[str, Any] = field(default_factory=dict)
    """The request as JSON; whole and valid unless it is refused."""
    problem: str | None = None
    """Why it is refused, in words."""
    refused: Reply | None = None
    streamed: bool = False
    prompt_tokens: int = 0
    choices: int = 1
    """How many alternatives are asked for; all of them are alike."""
    thought_tokens: int = 0
    """What thinking before each alternative costs, shown or not."""


@dataclass(frozen=True)
class Told:
    """All that an answer is made of."""

    question: Question
    said: Said
    ids: Ids


@dataclass(frozen=True)
class Written:
    """An answer in the words of its API.

    Not streamed it is ``body``; streamed it is ``pieces``, one event each, the last
    one included, and after ``whole`` of them nothing is missing but what it costs and
    that it is over. ``stored`` is what later requests may refer to.
    """

    body: JsonValue = None
    pieces: tuple[bytes, ...] = ()
    whole: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stored: Stored = field(default_factory=dict)


class Dialect(Protocol):
    """One operation of an API: ``POST path`` is the crossing ``llm.op``."""

    op: str
    path: str
    """Below the prefix of its API."""

    def read(self, request: Request, goal: str, stored: Stored) -> Question:
        """Judge and place a request; works on broken ones too, as well as may be."""

    def write(self, told: Told) -> Written:
        """The answer to a valid question, whole or as a stream, as it asks.

        ``said.cut`` is told as the API tells that its limit on tokens was reached.
        """

    def fail(self, argument: str, ids: Ids) -> Reply:
        """The service's own error, as `error(ARGUMENT)` names it, in place of a reply.

        `LENGTH` never comes here: that is written, cut short.
        """

    def break_off(self, told: Told, sent: int, argument: str) -> bytes:
        """What a stream says after ``sent`` of its pieces where an error strikes.

        For `LENGTH` it is the end of a stream whose limit on tokens was reached.
        """


class Api(Protocol):
    """The API of one vendor: where it lives, and how agents find it."""

    prefix: str
    """What its paths begin with; the longest prefix that fits is taken."""
    variables: ClassVar[Mapping[str, str]]
    """The variables that it sets, and what each means."""
    dialects: tuple[Dialect, ...]

    def environment(self, url: str, key: str) -> Mapping[str, str]:
        """The variables for a life; ``url`` is the service's, with the prefix."""

    def look_up(self, request: Request, stored: Stored) -> Reply:
        """Answer what is no operation: lists of models, unknown paths and methods.

        The request's path comes without the prefix. Nothing here crosses the gate.
        """
