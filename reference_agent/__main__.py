"""The command line: start a run, or go on with it.

    python -m reference_agent --task ID --goal TEXT [--resume]

A task id names one run. Where that run has a checkpoint, both forms go on from it: a
supervisor that only knows the start command must not clobber a run that is half done.
`--resume` says that a checkpoint is expected; without one the agent says so and starts.

Exit codes: 0 the run is done, its answer is the last line of standard output; 75 it is
parked; 65 it gave up for good; 69 the store cannot be reached, so start it again later;
64 the caller must change something. Reasons go to standard error.
"""

import os
import sys
from argparse import ArgumentParser, Namespace
from contextlib import closing
from dataclasses import dataclass

from reference_agent import checkpoint, loop, transitions
from reference_agent.checkpoint import UnreadableCheckpoint
from reference_agent.logs import Log
from reference_agent.loop import Services
from reference_agent.model_client import OpenAIModel
from reference_agent.redis_store import DAY_SECONDS, RedisStore
from reference_agent.state import State, Status
from reference_agent.store import StoreUnavailable
from reference_agent.tool_client import HttpTools
from reference_agent.tools import TOOLS

USAGE, UNREACHABLE = 64, 69
EXITS = {Status.DONE: 0, Status.PARKED: 75, Status.FAILED: 65}


class UsageError(Exception):
    """The caller must change something."""


@dataclass(frozen=True)
class Nowhere:
    """The place of a run whose checkpoint cannot be read, as far as it is known."""

    run_id: str
    step: int
    checkpoint_id: int


def main() -> int:
    """One life of one run; returns its exit code."""
    options = _options()
    log = Log(sys.stderr)
    try:
        return _live(options, log)
    except UnreadableCheckpoint as error:
        place = Nowhere(options.task, error.step, error.checkpoint_id)
        log(place, "run.end", "error", status=Status.FAILED)
        reason = f"the checkpoint cannot be used and was left as it is: {error}"
        return _say(options, reason, EXITS[Status.FAILED])
    except StoreUnavailable as error:
        return _say(options, f"the store cannot be reached: {error}", UNREACHABLE)
    except UsageError as error:
        return _say(options, str(error), USAGE)


def _options() -> Namespace:
    parser = ArgumentParser(prog="reference_agent", description="One life of one run.")
    parser.add_argument("--task", required=True, help="the run's id")
    parser.add_argument("--goal", help="what it is for; needed to start")
    parser.add_argument("--resume", action="store_true", help="expect a checkpoint")
    parser.add_argument(
        "--ttl-seconds", type=int, default=DAY_SECONDS, help="of a checkpoint (a day)"
    )
    return parser.parse_args()


def _live(options: Namespace, log: Log) -> int:
    with closing(
        RedisStore(_env("REDIS_URL"), ttl_seconds=options.ttl_seconds)
    ) as store:
        services = Services(
            store=store,
            model=OpenAIModel(
                os.environ.get("OPENAI_MODEL", "gpt-4.1"),
                [tool.offer() for tool in TOOLS.values()],
            ),
            tool_service=HttpTools(_env("CHAOSKIT_TOOLS_URL")),
            tools=TOOLS,
            log=log,
        )
        return _finish(loop.run(_enter(options, services), services), options, log)


def _enter(options: Namespace, services: Services) -> State:
    """The run as it was found, or a new one."""
    document = services.store.load(options.task)
    if document is None:
        return _begin(options, services)
    state = transitions.resumed(checkpoint.load(document))
    if options.goal is not None and options.goal != state.goal:
        raise UsageError("this task id belongs to a run with another goal")
    services.log(state, "run.resume", phase=state.phase, prompt_hash=state.prompt_hash)
    return state


def _begin(options: Namespace, services: Services) -> State:
    if options.goal is None:
        raise UsageError("there is no checkpoint, and without --goal nothing to start")
    state = transitions.begin(options.task, options.goal)
    if options.resume:
        services.log(state, "checkpoint.missing", "warning")
        _say(options, "there is no checkpoint to resume from: starting fresh", 0)
    services.log(state, "run.start")
    return loop.save(state, services)


def _finish(state: State, options: Namespace, log: Log) -> int:
    log(state, "run.end", status=state.status, reason=state.reason)
    if state.status is Status.DONE:
        print(state.answer)
    elif state.reason is not None:
        _say(options, f"{state.status}: {state.reason}", EXITS[state.status])
    return EXITS[state.status]


def _env(name: str) -> str:
    if value := os.environ.get(name):
        return value
    raise UsageError(f"{name} is not set")


def _say(options: Namespace, reason: str, code: int) -> int:
    """Words for a person, beside the log; passes the exit code on."""
    print(f"run {options.task}: {reason}", file=sys.stderr)
    return code


if __name__ == "__main__":
    sys.exit(main())
