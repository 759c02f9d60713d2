"""Which runs in a folder are due, looked up often and cheaply.

A log only grows, so one that has the size it had is not read again: a run that has
ended costs two looks at the folder, however long it was.
"""

import os
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from reference_agent.stores import run_folder
from reference_agent.stores.base import Due, UnreadableCheckpoint
from reference_agent.stores.event_log import EventLog, Run, microseconds


@dataclass(frozen=True)
class _Seen:
    """A log when it had that size, and its run without the document."""

    path: Path
    size: int
    run: Run


class DueRuns:
    """See the module's docstring. Raises OSError for the folder, not for a run in it.

    A run that cannot be read is due: whoever takes it is told why.
    """

    def __init__(self, root: Path) -> None:
        self._root = root
        self._seen: dict[str, _Seen] = {}

    def at(self, now: float) -> list[Due]:
        """Those whose time has come by then, the longest waiting first."""
        found = [
            (run.wake_at, Due(run.run_id, run.holder(now)))
            for run in self._runs()
            if run.wake_at is not None and run.wake_at <= microseconds(now)
        ]
        return [due for _, due in sorted(found, key=lambda each: each[0])]

    def _runs(self) -> Iterator[Run]:
        for name in os.listdir(self._root) if self._root.exists() else ():
            if run_folder.is_run(name):
                # A log may be removed after it was listed, and then there is a newer
                # one, which will be seen the next time.
                with suppress(FileNotFoundError):
                    yield self._look(name)

    def _look(self, name: str) -> Run:
        try:
            path = run_folder.newest(self._root / name)
            size, seen = path.stat().st_size, self._seen.get(name)
            if seen is None or (seen.path, seen.size) != (path, size):
                seen = self._seen[name] = _Seen(path, size, _read(path))
            return seen.run
        except FileNotFoundError:
            raise
        except (UnreadableCheckpoint, OSError):
            return Run(0, run_folder.id_of(name), {})


def _read(path: Path) -> Run:
    log = EventLog(path)
    log.close()
    return replace(log.run, document={})
