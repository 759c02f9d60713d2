"""The world: every service that the agent can reach, behind one gate.

Services live as long as a campaign and are emptied between trials, never restarted:
an empty store costs microseconds where a new server costs tens of milliseconds.
"""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager

from chaoskit.gate import Gate
from chaoskit.model.scenario import Scenario
from chaoskit.model.state import View
from chaoskit.world.service import (
    Inherited,
    Searched,
    Service,
    Sheltered,
    Stateful,
    Volatile,
)


class World:
    """All services of one worker process, addressed together."""

    def __init__(self, services: Sequence[Service]) -> None:
        self.services = tuple(services)

    async def start(self) -> None:
        """Start each service, in order; stop those that did if one cannot."""
        for number, service in enumerate(self.services):
            try:
                await service.start()
            except BaseException:
                await World(self.services[:number]).stop()
                raise

    async def reset(self, gate: Gate, scenario: Scenario) -> None:
        """Empty every service and hand it the gate of the next trial."""
        for service in self.services:
            await service.reset(gate, scenario)

    async def open(self, life: int) -> dict[str, str]:
        """Fresh sockets for a life; returns the environment that names them."""
        environment: dict[str, str] = {}
        for service in self.services:
            environment |= await service.open(life)
        return environment

    def inherited(self, life: int) -> dict[str, int]:
        """The files that an open life is to inherit, by the variable naming each."""
        files: dict[str, int] = {}
        for service in self.services:
            if isinstance(service, Inherited):
                files |= service.inherited(life)
        return files

    async def close(self, life: int) -> None:
        """Drop every connection of a life."""
        for service in self.services:
            await service.close(life)

    async def snapshot(self) -> dict[str, object]:
        """The state of every service that has one."""
        return {service.name: await service.snapshot() for service in self._stateful}

    async def restore(self, snapshots: Mapping[str, object]) -> None:
        """Bring every stateful service to an earlier state."""
        for service in self._stateful:
            await service.restore(snapshots[service.name])

    async def lose_power(self, loss: str | None = None) -> None:
        """Let every service forget what was not synced."""
        for service in self.services:
            if isinstance(service, Volatile):
                await service.lose_power(loss)

    async def view(self) -> View:
        """What a look at every stateful service shows."""
        return {service.name: await service.view() for service in self._stateful}

    def holding(self, words: Sequence[bytes]) -> Iterator[str]:
        """The places that hold one of these words and that no view shows whole."""
        for service in self.services:
            if isinstance(service, Searched):
                yield from service.holding(words)

    @asynccontextmanager
    async def sheltered(self) -> AsyncIterator[None]:
        """Within it a look changes nothing that the next life could find."""
        async with AsyncExitStack() as shelters:
            for service in self.services:
                if isinstance(service, Sheltered):
                    await shelters.enter_async_context(service.sheltered())
            yield

    async def stop(self) -> None:
        """Stop each service, the last one first."""
        for service in reversed(self.services):
            await service.stop()

    @property
    def _stateful(self) -> tuple[Stateful, ...]:
        return tuple(s for s in self.services if isinstance(s, Stateful))
