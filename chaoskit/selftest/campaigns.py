"""Campaigns of the self-test: each a `chaoskit` in a process of its own.

So it is what is installed that is tried, verbs and exit codes too, and several run at
the same time. They are forked from one clean process that has imported all of it.
"""

import multiprocessing
import os
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from multiprocessing.connection import wait
from multiprocessing.context import ForkServerContext, ForkServerProcess
from pathlib import Path
from threading import Lock

END_SECONDS_MAX = 30


class Ended(Exception):
    """No campaign is begun any more; the text says why."""


def _context() -> ForkServerContext:
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["chaoskit.cli"])
    return context


@dataclass
class Campaigns:
    """Those that run now; none of them outlives us.

    ``scratch`` is the folder for what they say.
    """

    scratch: Path
    _context: ForkServerContext = field(default_factory=_context)
    _running: set[ForkServerProcess] = field(default_factory=set)
    _over: bool = False
    _lock: Lock = field(default_factory=Lock)

    def __enter__(self) -> "Campaigns":
        return self

    def __exit__(self, *_: object) -> None:
        self.end()

    def run(self, words: Sequence[str]) -> tuple[int, str]:
        """The exit code of one, and all that it said.

        Raises:
            Ended: it is too late for it.
        """
        with tempfile.TemporaryDirectory(prefix="told-", dir=self.scratch) as folder:
            told = Path(folder) / "told"
            code = self._run(list(words), told)
            text = told.read_text(errors="replace") if told.exists() else ""
        return code, text

    def _run(self, words: list[str], told: Path) -> int:
        process = self._context.Process(target=_campaign, args=(words, str(told)))
        with self._lock:
            if self._over:
                raise Ended("interrupted")
            process.start()
            self._running.add(process)
        # To start one is to read how the others ended, and that can be read once only:
        # who reads it second takes it for lost, and the exit code for 255.
        wait([process.sentinel])
        with self._lock:
            process.join()
            self._running.discard(process)
            if self._over:
                raise Ended("interrupted")
        assert process.exitcode is not None, "it was waited for"
        return process.exitcode

    def end(self) -> None:
        """End what runs, as Ctrl-C would, so that each clears up behind itself."""
        with self._lock:
            self._over = True
            running = list(self._running)
        for process in running:
            process.terminate()
        for process in running:
            # Whoever runs it joins it; two that join at a time get in each other's way.
            if not wait([process.sentinel], END_SECONDS_MAX):
                process.kill()


def _campaign(words: list[str], told: str) -> None:
    """Run a verb of the program; Ctrl-C is for whoever started the self-test."""
    from chaoskit.cli import run_words

    os.setsid()
    file = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    for stream in (1, 2):
        os.dup2(file, stream)
    sys.exit(run_words(words))
