"""Which faults a search tries at a crossing that a run was seen to pass."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from chaoskit.model.address import Address
from chaoskit.model.fault_table import tried
from chaoskit.model.faults import Wanted
from chaoskit.model.schedule import Fault
from chaoskit.model.trial import Trial


@dataclass(frozen=True)
class Strikes:
    """The faults that are wanted, laid over the crossings of a run."""

    wanted: tuple[Wanted, ...]

    def at(self, trial: Trial, addresses: Iterable[Address]) -> Iterator[Fault]:
        """Every wanted fault at each of these crossings of a trial that can take it."""
        for address in addresses:
            pieces = trial.pieces.get(str(address))
            for kind, argument in self.wanted:
                for edge, chosen in tried(kind, argument, address, pieces):
                    yield Fault(kind, address.at_edge(edge), chosen)

    def homeless(
        self, trial: Trial, addresses: Iterable[Address]
    ) -> tuple[Wanted, ...]:
        """The wanted faults that none of these crossings can take."""
        crossings = tuple(addresses)
        return tuple(
            wanted
            for wanted in self.wanted
            if not any(True for _ in Strikes((wanted,)).at(trial, crossings))
        )
