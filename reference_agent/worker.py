"""The worker: takes whatever run is due, moves it on, and lets go of it.

The store is the queue. A run is due when it runs and nobody has it, when its wait is
over, or when whoever had it is gone; so a worker that starts picks up all that its
predecessors left, and any worker may go on with any run.
"""

import traceback

from reference_agent import checkpoint, loop
from reference_agent.loop import HeldByAnother, Services
from reference_agent.owner import is_gone
from reference_agent.stores.base import (
    Due,
    Fenced,
    StoreUnavailable,
    UnreadableCheckpoint,
)

UNAVAILABLE_SECONDS = 1.0


class Worker:
    """Works until it is asked to stop. `poll_seconds`: the longest it looks away."""

    def __init__(self, services: Services, poll_seconds: float) -> None:
        self._services = services
        self._poll_seconds = poll_seconds
        self._unreadable: set[str] = set()

    def work(self) -> None:
        """Look after run after run."""
        stop, store = self._services.stop, self._services.store
        say = self._services.log.say
        while not stop.is_asked:
            try:
                due = [due for due in store.due() if self._may(due)]
                worked = [self._look_after(each) for each in due if not stop.is_asked]
                if not any(worked) and not stop.is_asked:
                    store.wait(self._poll_seconds)
            except StoreUnavailable as error:
                say("worker", f"the store cannot be reached: {error}")
                stop.nap(UNAVAILABLE_SECONDS)

    def _may(self, due: Due) -> bool:
        """Whether the run can be had: free, or held by one who is gone.

        What this very process holds it let fall, when the store was away.
        """
        if due.run_id in self._unreadable:
            return False
        owner = due.owner
        return owner is None or owner == self._services.owner or is_gone(owner)

    def _look_after(self, due: Due) -> bool:
        """Move one run on; False if nothing came of it.

        No run can end the worker: one that raises what nobody foresaw is let go, and
        set aside once that has happened too often.
        """
        services = self._services
        try:
            if (held := services.store.load(due.run_id)) is None:
                return False
            # Before the lease: what cannot be used must stay as it is.
            state = checkpoint.load(held.document, due.run_id)
            if not loop.can_move(state, services):  # others were faster
                return False
            loop.run(loop.take(due.run_id, services, over=due.owner), services)
        except (HeldByAnother, Fenced):
            return False
        except UnreadableCheckpoint as error:
            self._unreadable.add(due.run_id)
            services.log.unreadable(due.run_id, error)
            return False
        except StoreUnavailable:
            raise
        except Exception:
            services.log.say(f"run {due.run_id}", traceback.format_exc())
            services.stop.nap(UNAVAILABLE_SECONDS)
            return False
        return True
