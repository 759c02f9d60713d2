"""What a service is to the rest of chaoskit, and what one that holds state adds."""

from collections.abc import Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol, runtime_checkable

from pydantic import JsonValue

from chaoskit.gate import Gate
from chaoskit.model.scenario import Scenario


class Service(Protocol):
    """Something the agent can reach. It lives for a whole campaign."""

    name: str

    async def start(self) -> None:
        """Make ready, once in each worker process."""

    async def reset(self, gate: Gate, scenario: Scenario) -> None:
        """Forget everything; from now on messages cross this gate."""

    async def open(self, life: int) -> dict[str, str]:
        """Open fresh sockets for a life; returns the variables that name them."""

    async def close(self, life: int) -> None:
        """Drop every connection of a life at once."""

    async def stop(self) -> None:
        """Give everything back."""


@runtime_checkable
class Stateful(Protocol):
    """A service whose state survives the agent's death."""

    name: str

    async def snapshot(self) -> object:
        """All of its state, in a form that can be pickled."""

    async def restore(self, snapshot: object) -> None:
        """Take up the state of an earlier snapshot; called after `reset`."""

    async def view(self) -> JsonValue:
        """Its state as JSON, for fingerprints and for people."""


@runtime_checkable
class Searched(Protocol):
    """A service that holds more than its view shows: bytes of files, say."""

    def holding(self, words: Sequence[bytes]) -> Iterable[str]:
        """The places that hold one of these words, such as ``file agent.db``."""


@runtime_checkable
class Sheltered(Protocol):
    """A service that can lend its state to a guest who leaves no trace."""

    def sheltered(self) -> AbstractAsyncContextManager[None]:
        """What is changed within it is undone, unless somebody else is there."""


@runtime_checkable
class Volatile(Protocol):
    """A service that holds what a loss of power would take."""

    async def lose_power(self, loss: str | None = None) -> None:
        """Forget what was not synced, or what of it the fault's argument says."""


@runtime_checkable
class Inherited(Protocol):
    """A service that a life reaches by files that it inherits."""

    def inherited(self, life: int) -> Mapping[str, int]:
        """Descriptors to hand to an open life, by the variable that is to name each."""
