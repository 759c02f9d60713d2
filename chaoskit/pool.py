"""Workers: processes that each own a world and run one trial after the other.

The pool is a `concurrent.futures` executor, so that a campaign needs one seam whether
its workers are here or on other machines. A worker dies with its coordinator, and
everything that a worker starts dies with the worker.
"""

import asyncio
import multiprocessing
import os
import signal
import sys
from collections.abc import Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import resource_tracker
from pathlib import Path
from types import TracebackType
from typing import Self

from chaoskit.agents import Launcher
from chaoskit.agents.fork import ForkLauncher
from chaoskit.agents.linux import die_with_parent
from chaoskit.agents.process import ProcessLauncher
from chaoskit.model.commands import fill_text
from chaoskit.model.manifest import Launch, Manifest, Store
from chaoskit.model.visit import Visited
from chaoskit.trial import Plan, inherited_environment, run_trial
from chaoskit.world import World
from chaoskit.world.book import Book
from chaoskit.world.files import Files
from chaoskit.world.llm import Llm
from chaoskit.world.marks import Marks
from chaoskit.world.mcp import Mcp
from chaoskit.world.redis import Redis
from chaoskit.world.servers import MissingServer
from chaoskit.world.service import Service
from chaoskit.world.smtp import Smtp
from chaoskit.world.tools import Tools


@dataclass(frozen=True)
class Setup:
    """What every worker of a campaign needs before its first trial.

    ``scratch`` is the campaign's temporary folder, ``out`` where trials are kept,
    ``server_url`` a server of the user's to take for the agent's store.
    """

    manifest: Manifest
    agent_folder: Path
    scratch: Path
    out: Path
    server_url: str | None = None


class Pool:
    """Up to ``jobs`` workers, started as trials are submitted.

    ``tag`` is put into the environment of everything that is started, so that the
    campaign's folder can find what is left of it, however it ends.
    """

    def __init__(self, setup: Setup, jobs: int, tag: Mapping[str, str]) -> None:
        # Python's own bookkeeper outlives the workers on purpose: it is not tagged.
        resource_tracker.ensure_running()
        self._executor = ProcessPoolExecutor(
            jobs,
            mp_context=multiprocessing.get_context("spawn"),
            initializer=_begin,
            initargs=(setup, os.getpid()),
        )
        self._untagged = {name: os.environ.get(name) for name in tag}
        os.environ.update(tag)

    def submit(self, plan: Plan) -> "Future[Visited]":
        """Queue a trial; its future raises what the trial raised."""
        # A worker may be started here, and is born deaf to Ctrl-C (see `_begin`).
        before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
        try:
            return self._executor.submit(_run, plan)
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, before)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        """Let the workers end; where something went wrong, wait for none of them.

        Whoever owns the campaign's folder ends those that are left.
        """
        try:
            self._executor.shutdown(wait=error is None, cancel_futures=True)
        finally:
            self._untag()

    def _untag(self) -> None:
        for name, value in self._untagged.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value


class _Worker:
    def __init__(self, setup: Setup) -> None:
        self.setup = setup
        self.world = World(_services(setup))
        self.launcher = _launcher(setup)
        self.runner = asyncio.Runner()
        self.runner.run(self.world.start())

    def run(self, plan: Plan) -> Visited:
        folder = self.setup.out / plan.name
        trial = run_trial(plan, self.world, self.launcher, folder)
        try:
            return self.runner.run(trial)
        except ConnectionError as lost:
            raise MissingServer(
                f"a server of the world went away during trial {plan.name}: {lost}. "
                "That is no fault of the agent; run the campaign again"
            ) from lost


_setup: Setup | None = None
_worker: _Worker | None = None


def _begin(setup: Setup, coordinator: int) -> None:
    """Runs once in each worker; what can fail is left to its first trial."""
    global _setup
    die_with_parent(coordinator)
    # Ctrl-C reaches the whole foreground group; the coordinator alone answers it.
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})
    _setup = setup


def _run(plan: Plan) -> Visited:
    global _worker
    if _worker is None:
        assert _setup is not None
        _worker = _Worker(_setup)
    return _worker.run(plan)


def _services(setup: Setup) -> list[Service]:
    book = Book()
    services: list[Service] = [Llm(), Tools(book), Mcp(book), Smtp(book)]
    if setup.manifest.launch is not Launch.DOCKER:
        services.append(Marks())
    folder = setup.scratch / f"{setup.manifest.store}-{os.getpid()}"
    match setup.manifest.store:
        case Store.REDIS:
            services.append(Redis(folder, setup.server_url))
        case Store.POSTGRES:
            # Only whoever keeps his state there waits for its driver to be imported.
            from chaoskit.world.postgres import Postgres

            services.append(Postgres(folder, setup.server_url))
        case Store.FILES | Store.SQLITE:
            services.append(Files(folder))
    return services


def _launcher(setup: Setup) -> Launcher:
    manifest = setup.manifest
    if manifest.launch is Launch.PROCESS:
        return ProcessLauncher(_clock_folder(setup))
    docker = manifest.docker
    if docker is not None and manifest.launch is Launch.DOCKER:
        # Only whoever wants containers waits for the SDK to be imported.
        from chaoskit.agents.docker.launcher import DockerLauncher

        return DockerLauncher(docker.image, docker.disk, setup.scratch)
    fork = manifest.fork
    assert fork is not None
    return ForkLauncher(
        python=fill_text(manifest.program, {"python": sys.executable}),
        preload=fork.preload,
        call=fork.call,
        cwd=setup.agent_folder,
        env=inherited_environment(),
        folder=_clock_folder(setup),
    )


def _clock_folder(setup: Setup) -> Path:
    return setup.scratch / f"clock-{os.getpid()}"
