"""How a life is started: its words, its environment, its output files."""

import os
import sys
from collections.abc import Mapping

from chaoskit.agents import Command
from chaoskit.agents.output import Output
from chaoskit.model.commands import fill, fill_text
from chaoskit.model.manifest import Launch, Manifest
from chaoskit.trial.course import Step
from chaoskit.trial.plan import Plan
from chaoskit.world.servers import DATABASE_URL_VARIABLE, REDIS_URL_VARIABLE

MEGABYTE = 2**20
LOOPBACK = "127.0.0.1,localhost"
NOT_THE_AGENTS = (
    *("REDIS_URL", "DATABASE_URL"),
    *(REDIS_URL_VARIABLE, DATABASE_URL_VARIABLE),
)
"""Stores of whoever runs chaoskit; the agent is told of the world's, or of none."""


def command(
    plan: Plan,
    step: Step,
    world: Mapping[str, str],
    output: Output,
    *,
    inherit: Mapping[str, int] | None = None,
    clock: bool = False,
) -> Command:
    """The command of one life; ``world`` are the variables that name the services.

    ``inherit`` are the files that services hand to it; ``clock``: a fault may set it.
    """
    manifest = plan.manifest
    values = {
        "run": plan.run,
        "goal": plan.scenario.task.goal,
        "store": manifest.store.value,
        "python": sys.executable,
        "answer": step.answer or "",
    }
    own = {name: fill_text(text, values) for name, text in manifest.env.items()}
    run = {"CHAOSKIT_RUN_ID": plan.run}
    return Command(
        argv=tuple(fill(_words(manifest, step), values)),
        cwd=plan.agent_folder,
        env=_around(manifest.launch) | own | dict(world) | run,
        stdout=output.stdout,
        stderr=output.stderr,
        inherit=inherit or {},
        memory_bytes=_bytes(plan.scenario.limits.memory_mb),
        file_bytes=_bytes(plan.scenario.limits.file_mb),
        clock=clock,
    )


def _bytes(megabytes: int | None) -> int | None:
    return None if megabytes is None else megabytes * MEGABYTE


def _around(launch: Launch) -> dict[str, str]:
    """What a life finds beside its own: a container has nothing of this machine."""
    if launch is Launch.DOCKER:
        return {"NO_PROXY": LOOPBACK, "no_proxy": LOOPBACK}
    return inherited_environment()


def inherited_environment() -> dict[str, str]:
    """The harness's own, without its stores, and with loopback clear of any proxy."""
    before = os.environ.get("no_proxy") or os.environ.get("NO_PROXY")
    exempt = f"{before},{LOOPBACK}" if before else LOOPBACK
    kept = {name: os.environ[name] for name in os.environ.keys() - {*NOT_THE_AGENTS}}
    return kept | {"NO_PROXY": exempt, "no_proxy": exempt}


def _words(manifest: Manifest, step: Step) -> tuple[str, ...]:
    if step.process is not None:
        return _words_of_a_fleet(manifest, step.process)
    if step.purpose == "answer":
        words = manifest.answer
    elif step.purpose == "start":
        words = manifest.start
    else:
        words = manifest.resume or manifest.start
    assert words is not None, "loading refuses a manifest without it"
    return words


def _words_of_a_fleet(manifest: Manifest, process: str) -> tuple[str, ...]:
    own = {name: process.command for name, process in manifest.fleet}
    single = {"submit": manifest.submit, "answer": manifest.answer}
    looks = {"status": manifest.status, "inspect": manifest.inspect}
    words = {**looks, **single, **own}[process]
    assert words is not None, "loading refuses a manifest without it"
    return words
