"""Where runs are kept: the interface, small enough to write your own.

A store keeps for each run its newest document, one lease, and the time at which
somebody should look after it next. Three rules make a run safe to resume, whoever does
it:

- **Whole or not at all.** A save replaces the document in one atomic step. When it
  returns, the document is as durable as the store can make it; a document that `load`
  or `take` hands out is durable too, even if whoever saved it died before it was told.
- **One writer.** Each lease has a fencing token, greater than every one before it. A
  save under a token that is not the newest changes nothing and raises `Fenced`: a
  worker that was stopped, and continued after another took its run over, does no harm.
- **Never guessed.** What cannot be read stays as it is, byte for byte, and raises
  `UnreadableCheckpoint`. It is never taken for a run that does not exist.

`reference_agent.conformance` puts a store to the test.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

Document = dict[str, Any]
"""What JSON can hold, and what comes back from JSON equal and of the same types."""

NOW = 0.0
"""A `wake_at` that has always come."""

DEPTH_MAX = 200
"""How deep a document may be: its reader has a stack of its own."""


class StoreUnavailable(Exception):
    """The store did not answer, or refused: whether it saved is not known."""


class UnreadableCheckpoint(Exception):
    """Something is there that cannot be used; it must stay as it is.

    ``step`` and ``checkpoint_id`` are as far as they could be read, else 0.
    """

    def __init__(self, reason: str, *, step: int = 0, checkpoint_id: int = 0) -> None:
        super().__init__(reason)
        self.step = step
        self.checkpoint_id = checkpoint_id


class Fenced(Exception):
    """The lease is not the newest any more: whoever held it must let go of the run.

    A save that another overtook on its way may stand; then the other one has read it.
    """


@dataclass(frozen=True)
class Held:
    """A run as its store has it.

    ``token`` is the newest one given out, ``owner`` who holds an unexpired lease under
    it, ``takes`` how often the run was taken since its document was saved: lives that
    came to nothing.
    """

    document: Document
    token: int
    owner: str | None
    takes: int


@dataclass(frozen=True)
class Due:
    """A run that somebody should look after; ``owner`` as in `Held`."""

    run_id: str
    owner: str | None


class Store(Protocol):
    """Runs by their id. Every method raises StoreUnavailable.

    Times are seconds since the epoch, by the clock that `now` reads: the server's where
    there is one, so that no two workers can disagree.
    """

    def now(self) -> float:
        """The time by which leases expire and runs are woken."""

    def create(self, run_id: str, document: Document) -> bool:
        """Keep a new run, due at once and held by nobody; False if there is one.

        Raises ValueError for a document that would not come back as it is.
        """

    def load(self, run_id: str) -> Held | None:
        """The run, None if there never was one. Raises UnreadableCheckpoint."""

    def take(
        self, run_id: str, owner: str, seconds: float, *, over: str | None = None
    ) -> Held | None:
        """Lease the run for so long, under a new token; None if somebody else has it.

        A lease can be had if there is none, if it has expired, or if ``over`` is the
        one who holds it, because the caller knows that one to be gone. Raises
        UnreadableCheckpoint, and then nothing has changed.
        """

    def save(
        self,
        run_id: str,
        token: int,
        document: Document,
        *,
        wake_at: float | None = NOW,
        keep: bool = True,
    ) -> None:
        """Replace the document, and renew the lease by its own length, or end it.

        ``wake_at`` None: nobody needs to look after it, until it is taken by name.
        ``keep`` False: the lease ends with this write. Raises Fenced, and ValueError
        for a document that would not come back as it is, which changes nothing.
        """

    def release(self, run_id: str, token: int) -> None:
        """End the lease, if it is still the newest; the document stays."""

    def due(self) -> Sequence[Due]:
        """Runs whose time has come, the longest waiting first, leased ones too."""

    def wait(self, seconds: float) -> None:
        """Return when a run may have become due, at the latest after so long.

        A store that others can tell of a new run returns at once; one that can only be
        looked at, with the next wake-up that is known here.
        """

    def close(self) -> None:
        """Let connections and files go."""


def encode(document: Document, *, depth_max: int = DEPTH_MAX) -> str:
    """The document as one line of ASCII JSON.

    Raises ValueError for what would come back as something else: JSON knows no tuples,
    bytes, decimals, times, NaN, and no names but texts; and for what is nested deeper
    than JSON can be read again everywhere.
    """
    if type(document) is not dict:
        raise ValueError(f"a document is an object, and no {type(document).__name__}")
    _check(document, "$", depth_max)
    return json.dumps(document, allow_nan=False, separators=(",", ":"))


def decode(text: bytes | str) -> Document:
    """What `encode` wrote. Raises UnreadableCheckpoint."""
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UnreadableCheckpoint("it is not JSON; was it cut off?") from error
    if not isinstance(document, dict):
        raise UnreadableCheckpoint("it is JSON, but not an object")
    return document


def _check(value: object, path: str, depth: int) -> None:
    if type(value) in (dict, list) and not depth:
        raise ValueError(f"{path:.60}...: nested too deep")
    if type(value) is dict:
        for name, item in value.items():
            if type(name) is not str:
                raise ValueError(f"{path}: {name!r} is a name, and not a text")
            _check(item, f"{path}.{name}", depth - 1)
    elif type(value) is list:
        for number, item in enumerate(value):
            _check(item, f"{path}[{number}]", depth - 1)
    elif value is not None and type(value) not in (str, int, float, bool):
        kind = type(value).__name__
        raise ValueError(f"{path}: JSON has no {kind}; store it as a text or a number")
