"""Where a run is kept: the interface, small enough to write your own.

A save replaces the whole checkpoint in one atomic write, or leaves the old one. When it
returns, the checkpoint is as durable as the store can make it.
"""

from typing import Protocol


class StoreUnavailable(Exception):
    """The store did not answer, or refused: whether it saved is not known."""


class Store(Protocol):
    """One document for each run."""

    def load(self, run_id: str) -> bytes | None:
        """The newest document of the run, None if it never had one. Raises
        StoreUnavailable, or UnreadableCheckpoint for something that is no document."""

    def save(self, run_id: str, document: str) -> None:
        """Replace the run's document. Raises StoreUnavailable."""
