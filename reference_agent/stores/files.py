"""Plain files: an fsynced log of events for each run. No lock is relied on.

    <folder>/<quoted run id>.run/1.log    the events, see `event_log`
    <folder>/<quoted run id>.run/...      see `run_folder`

A save appends what changed, and syncs it. A take appends too: a line of the log gives
out the new token, and what a stale holder appends after it is never the next event. So
his save changes nothing and is `Fenced`, and no save that returned is ever passed over.
What may happen, and why it does no harm:

- **Two create**: each makes a whole folder under a name of its own, syncs it and
  renames it to the run's. One wins, and no run is ever there in half.
- **Two take**: they let each other try in turn, as a courtesy that keeps losers' lines
  out of the log. Whoever dies in it lets go; who was stopped in it is passed over soon,
  and then the log decides. Of a take that died, the line is there or nothing is.
- **A death in an append** leaves a torn tail, which the next line is not glued to.
- **A death before the sync** leaves a line that can be read and still be lost: `load`
  syncs what it has read, `take` its own line behind it, before they hand it out.
- **Loss of power**: a name is durable once its folder was synced, and so is a rename.
  Both folders are synced when a run is created, and when a log is first opened; a file
  gets its name only when its content is durable.
- **A log that grew long** is moved by its holder: its last event says so, and the next
  log is made before older ones are removed. If its mover dies, the next comer does it.

A disk that says it has synced and has not may lose what it likes. The clock is this
machine's: all who use the folder are processes of one machine.
"""

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from reference_agent.stores import run_folder
from reference_agent.stores.base import (
    NOW,
    Document,
    Due,
    Fenced,
    Held,
    StoreUnavailable,
    UnreadableCheckpoint,
    decode,
    encode,
)
from reference_agent.stores.changes import difference
from reference_agent.stores.event_log import EventLog, Run, microseconds
from reference_agent.stores.files_due import DueRuns

SNAPSHOT_EVERY = 50
POLL_SECONDS = 0.1


class _Overtaken(Exception):
    """Another event came first: look again."""


class FileStore:
    """A `Store` in a folder.

    ``snapshot_every`` is the least number of events between two snapshots.
    """

    def __init__(self, folder: Path, *, snapshot_every: int = SNAPSHOT_EVERY) -> None:
        self._root = folder
        self._snapshot_every = snapshot_every
        self._logs: dict[str, EventLog] = {}  # of the runs that are held
        self._due = DueRuns(folder)
        self._told: Sequence[Due] = []  # what `due` said last

    def now(self) -> float:
        """See `Store.now`: this machine's clock."""
        return time.time()

    def create(self, run_id: str, document: Document) -> bool:
        """See `Store.create`."""
        run = Run(1, run_id, decode(encode(document)))
        with _in_words():
            run_folder.make_folder(self._root)
            place = self._place(run_id)
            is_new = not place.exists() and run_folder.make(place, run)
            run_folder.sync_folder(self._root)
            return is_new

    def load(self, run_id: str) -> Held | None:
        """See `Store.load`."""
        with _in_words():
            if (log := self._newest(run_id)) is None:
                return None
            try:
                log.sync()
                return _held(log.run, self.now())
            finally:
                log.close()

    def take(
        self, run_id: str, owner: str, seconds: float, *, over: str | None = None
    ) -> Held | None:
        """See `Store.take`."""
        with self._using(run_id):
            while log := self._open(run_id):
                with suppress(_Overtaken):
                    if held := self._take(log, owner, seconds, over):
                        return held
                    self._drop(run_id)
                    return None
            return None

    def save(
        self,
        run_id: str,
        token: int,
        document: Document,
        *,
        wake_at: float | None = NOW,
        keep: bool = True,
    ) -> None:
        """See `Store.save`."""
        encode(document)
        with self._using(run_id):
            log = self._of(run_id, token)
            until = microseconds(self.now() + log.run.seconds) if keep else 0
            wake = None if wake_at is None else microseconds(wake_at)
            fields = {"wake_at": wake, "until": until, "takes": 0}
            if not log.append(fields, difference(log.run.document, document)):
                raise Fenced(f"run {run_id} was taken over before it was saved")
            if self._should_move(log, token) and log.append({"moved": True}):
                run_folder.move(log)
                self._drop(run_id)
            if keep:  # a holder who was overtaken meanwhile must not act on it
                self._of(run_id, token)
            else:
                self._drop(run_id)

    def release(self, run_id: str, token: int) -> None:
        """See `Store.release`."""
        with suppress(Fenced), self._using(run_id):
            self._of(run_id, token).append({"until": 0})
            self._drop(run_id)

    def due(self) -> Sequence[Due]:
        """See `Store.due`."""
        with _in_words():
            self._told = self._due.at(self.now())
            return self._told

    def wait(self, seconds: float) -> None:
        """See `Store.wait`: compares with what `due` told last, now and then."""
        end = time.monotonic() + seconds
        with _in_words():
            while self._due.at(self.now()) == self._told:
                if (left := end - time.monotonic()) <= 0:
                    return
                time.sleep(min(left, POLL_SECONDS))

    def close(self) -> None:
        """See `Store.close`."""
        for run_id in list(self._logs):
            self._drop(run_id)

    def _place(self, run_id: str) -> Path:
        return self._root / run_folder.name_of(run_id)

    def _newest(self, run_id: str) -> EventLog | None:
        """The newest log, read, its name durable; None if there never was one."""
        place = self._place(run_id)
        while place.exists():
            with suppress(FileNotFoundError):  # it was removed since it was listed
                log = EventLog(run_folder.newest(place))
                run_folder.sync_folder(place)
                run_folder.sync_folder(self._root)
                log.catch_up()  # syncing takes its time
                return log
        return None

    def _open(self, run_id: str) -> EventLog | None:
        """The newest log, kept open, read to its end; not a moved one."""
        if log := self._logs.get(run_id):
            log.catch_up()
        while log is None or log.run.moved:
            if log is not None:
                run_folder.move(log)
                self._drop(run_id)
            if (log := self._newest(run_id)) is None:
                return None
            self._logs[run_id] = log
        return log

    def _of(self, run_id: str, token: int) -> EventLog:
        log = self._open(run_id)
        if log is None or log.run.token != token:
            raise Fenced(f"run {run_id} was taken over")
        return log

    def _should_move(self, log: EventLog, token: int) -> bool:
        # Whoever took the run since may be in a save, which a move would fence off.
        return log.run.token == token and log.is_long(self._snapshot_every)

    @contextmanager
    def _using(self, run_id: str) -> Iterator[None]:
        """After an error nobody knows how the log stands: it is read again, if ever."""
        try:
            with _in_words():
                yield
        except (Fenced, StoreUnavailable, UnreadableCheckpoint):
            self._drop(run_id)
            raise

    def _drop(self, run_id: str) -> None:
        if log := self._logs.pop(run_id, None):
            log.close()

    def _take(
        self, log: EventLog, owner: str, seconds: float, over: str | None
    ) -> Held | None:
        if log.run.holder(self.now()) not in (None, over):
            return None
        with log.turn():
            run, now = log.run, self.now()
            if run.holder(now) not in (None, over):
                return None
            taken = run.taken(owner, now, seconds)
            if not log.append(taken.lease()):
                raise _Overtaken
        # The log may have gone on already; this is what was taken.
        return _held(taken, now)


def _held(run: Run, now: float) -> Held:
    # A copy: the caller may change it, and the next change is told from ours.
    document = decode(encode(run.document))
    return Held(document, run.token, run.holder(now), run.takes)


@contextmanager
def _in_words() -> Iterator[None]:
    try:
        yield
    except (NotADirectoryError, IsADirectoryError) as error:
        reason = f"{error.filename}: a run is a folder, and a log in it a file"
        raise UnreadableCheckpoint(reason) from error
    except OSError as error:
        raise StoreUnavailable(f"files: {error.strerror}: {error.filename}") from error
