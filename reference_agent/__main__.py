"""The command line: one life of one run, or one part of a fleet.

    python -m reference_agent --task ID --goal TEXT [--resume | --answer TEXT]
    python -m reference_agent submit --task ID --goal TEXT
    python -m reference_agent worker
    python -m reference_agent answer --task ID --answer TEXT
    python -m reference_agent status | inspect --task ID

A task id names one run. Where that run has a checkpoint, both ways to start go on from
it: a supervisor that only knows the start command must not clobber a run that is half
done. `--resume` says that its last process is gone, and takes the run over whoever has
it; where there is no checkpoint, the agent says so and starts.

Exit codes: 0 it is done, and the answer is the last line of standard output; 75 it is
parked; 65 it gave up for good; 69 start it again later, since the store cannot be
reached or another process has the run; 64 the caller must change something; 128+n it
was asked to end by signal n, and can go on. Reasons go to standard error.
"""

import json
import sys
from argparse import Namespace
from collections.abc import Callable
from contextlib import closing

from reference_agent import one_shot, owner, tool_clients
from reference_agent.effects import Effect, ToolService
from reference_agent.logs import Log
from reference_agent.loop import HeldByAnother, Model, Services
from reference_agent.model_client import OpenAIModel, WrongEndpoints
from reference_agent.one_shot import UsageError
from reference_agent.options import USAGE, read
from reference_agent.settings import WrongSetting
from reference_agent.state import State, Status
from reference_agent.stop import Stop
from reference_agent.stores import open_store
from reference_agent.stores.base import (
    Fenced,
    Store,
    StoreUnavailable,
    UnreadableCheckpoint,
)
from reference_agent.transitions import Outcome, Reply
from reference_agent.worker import Worker

LATER = 69
EXITS = {Status.DONE: 0, Status.PARKED: 75, Status.FAILED: 65}


ASKING = ("run", "worker")
"""The modes that need a model and tools; the others do without their settings."""


class Nobody:
    """A `Model` and a `ToolService` for those who ask nothing and do nothing."""

    endpoints = 0

    def ask(self, *_: object, **__: object) -> Reply:
        """Never called, as are the others."""
        raise AssertionError("this mode asks nothing")

    def do(self, *_: object) -> Outcome:
        """See `ask`."""
        raise AssertionError("this mode does nothing")

    def done(self, *_: object) -> list[Effect]:
        """See `ask`."""
        raise AssertionError("this mode looks for nothing")


def main() -> int:
    """One process of the agent, by the words in `sys.argv`; returns its exit code."""
    options = read(__doc__, sys.argv[1:])
    log = Log(sys.stderr)
    try:
        store = open_store(options.store, ttl_seconds=options.ttl_seconds)
        with closing(store):
            return MODES[options.mode](options, _services(options, store, log))
    except UnreadableCheckpoint as error:
        log.unreadable(options.task, error)
        return EXITS[Status.FAILED]
    except StoreUnavailable as error:
        code, reason = LATER, f"the store cannot be reached: {error}"
    except (HeldByAnother, Fenced):
        code, reason = LATER, "another process has the run"
    except (UsageError, WrongSetting, WrongEndpoints) as error:
        code, reason = USAGE, str(error)
    log.say(options.who, reason)
    return code


def _services(options: Namespace, store: Store, log: Log) -> Services:
    tools = tool_clients.tool_table(mail=options.mail)
    model: Model = Nobody()
    service: ToolService = Nobody()
    if options.mode in ASKING:
        offers = [tool.offer() for tool in tools.values()]
        model = OpenAIModel(offers, stream=options.stream)
        service = tool_clients.connect(tools=options.tools, mail=options.mail)
    return Services(
        store=store,
        model=model,
        tool_service=service,
        tools=tools,
        log=log,
        stop=Stop(),
        owner=owner.me(),
        lease_seconds=options.lease_seconds,
    )


def _run(options: Namespace, services: Services) -> int:
    """One life of one run."""
    services.stop.listen()
    if options.answer is not None:
        one_shot.answer(options.task, options.answer, options.gate, services)
    state = one_shot.go_on(options.task, options.goal, services, resumes=options.resume)
    return _finish(state, options, services)


def _finish(state: State, options: Namespace, services: Services) -> int:
    if state.status is Status.RUNNING:
        services.log.say(options.who, "asked to end; it can be resumed")
        return 128 + services.stop.asked_by
    _tell(state, options, services)
    return EXITS[state.status]


def _tell(state: State, options: Namespace, services: Services) -> None:
    """The answer to whoever asked, or words for whoever wonders."""
    if state.status is Status.DONE:
        print(state.answer)
    elif state.resume_at is not None:
        services.log.say(options.who, "it waits for its time")
    elif (question := one_shot.question(state)) is not None:
        services.log.say(options.who, f"it waits for a person: {question}")
    elif state.reason is not None:
        services.log.say(options.who, f"{state.status}: {state.reason}")


def _submit(options: Namespace, services: Services) -> int:
    one_shot.submit(options.task, options.goal, services)
    return 0


def _answer(options: Namespace, services: Services) -> int:
    one_shot.answer(options.task, options.answer, options.gate, services)
    return 0


def _work(options: Namespace, services: Services) -> int:
    services.stop.listen()
    Worker(services, options.poll_seconds).work()
    return 0


def _status(options: Namespace, services: Services) -> int:
    try:
        state = one_shot.find(options.task, services)
    except UnreadableCheckpoint as error:
        print(Status.FAILED)
        services.log.say(options.who, f"the checkpoint cannot be used: {error}")
        return 0
    print(state.status, flush=True)
    _tell(state, options, services)
    return 0


def _inspect(options: Namespace, services: Services) -> int:
    """What the next life would read back, for a harness that checks it."""
    state = one_shot.find(options.task, services)
    fields = {
        "checkpoint_id": state.checkpoint_id,
        "status": state.status,
        "transcript": state.messages,
    }
    print(json.dumps(fields))
    return 0


MODES: dict[str, Callable[[Namespace, Services], int]] = {
    "run": _run,
    "submit": _submit,
    "worker": _work,
    "answer": _answer,
    "status": _status,
    "inspect": _inspect,
}

if __name__ == "__main__":
    sys.exit(main())
