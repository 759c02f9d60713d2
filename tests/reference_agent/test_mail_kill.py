"""A mail sent at step 3, its worker killed over it: one mail in the end.

The worker is a process that is really killed, by chaoskit's own mail server, while it
holds the whole message: before it keeps it, or after.
"""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from threading import Thread
from typing import Any

import pytest

from chaoskit.gate import FreshNames, Gate, Recorder
from chaoskit.model.history import Cause
from chaoskit.model.scenario import Scenario
from chaoskit.model.schedule import Schedule
from chaoskit.world.smtp import Smtp
from reference_agent.tools import TOOLS

MAIL = {"to": "ann@example.org", "subject": "Invoice 17", "body": "It is still open."}
AT = "0:smtp.send[ann@example.org]#1"
CALLS = [("find_contact", {"name": "Ann"}), ("read_invoice", {"number": "17"})]
PROMISES = {tool.name: tool.promise for tool in TOOLS.values()}
SCENARIO = Scenario.model_validate(
    {
        "name": "test",
        "agent": "agent.yaml",
        "task": {"goal": "Remind Ann"},
        "llm": {
            "script": [
                {"call": [{"tool": "send_mail", "args": MAIL}]},
                {"say": "Sent."},
            ]
        },
        "tools": {"send_mail": {"class": "blind", "via": "smtp"}},
    }
)


class MailServer:
    """Chaoskit's, served by a thread; kills the agent once, at an edge."""

    def __init__(self, agent: Any, edge: str) -> None:
        self.agent, self.smtp = agent, Smtp()
        schedule = Schedule.parse(f"kill@{AT}:{edge}")
        self.gate = Gate(Recorder(), FreshNames("r1"), schedule, self._end_life)
        self.loop = asyncio.new_event_loop()
        self.thread = Thread(target=self.loop.run_forever)

    def start(self) -> None:
        self.thread.start()
        self._run(self.smtp.start())
        self._run(self.smtp.reset(self.gate, SCENARIO))
        self.open(0)

    def open(self, life: int) -> None:
        """Serve a life, as nothing but a live process may be served."""
        self.agent.environment.update(self._run(self.smtp.open(life)))

    def stop(self) -> None:
        self._run(self.smtp.stop())
        self.loop.call_soon_threadsafe(self.loop.stop)
        self.thread.join()
        self.loop.close()

    def _run(self, course: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(course, self.loop).result(10)

    async def _end_life(self, life: int, cause: Cause) -> None:
        os.kill(self.agent.world.pid, signal.SIGKILL)
        await self.smtp.close(life)


@pytest.fixture
def killer(agent: Any) -> Iterator[Callable[[str], MailServer]]:
    """A mail server that kills at an edge: `killer("before")`."""
    started = []

    def start(edge: str) -> MailServer:
        server = MailServer(agent, edge)
        started.append(server)
        server.start()
        return server

    agent.world.script = [*([call] for call in CALLS), [("send_mail", MAIL)], "Sent."]
    agent.world.promises = PROMISES
    yield start
    for server in started:
        server.stop()


@pytest.mark.parametrize(
    ("edge", "kept", "found"), [("before", 0, "not done"), ("after", 1, "done")]
)
def test_over_smtp_a_person_looks_and_there_is_one_mail(
    killer: Callable[[str], MailServer], agent: Any, edge: str, kept: int, found: str
) -> None:
    """SMTP cannot be asked, so the agent asks whoever can look into the mailbox."""
    server = killer(edge)
    assert agent.live("--mail", "smtp").code == -signal.SIGKILL
    assert len(server.smtp.mails) == kept
    server.open(1)
    parked = agent.live("--mail", "smtp", "--resume")
    assert parked.code == 75
    assert "send_mail may have been done" in parked.err
    done = agent.live("--mail", "smtp", "--answer", found, goal=None)
    assert (done.code, done.out.splitlines()[-1]) == (0, "Sent.")
    assert len(server.smtp.mails) == 1
    assert agent.world.problems == []


@pytest.mark.parametrize("edge", ["before", "after"])
def test_where_the_service_can_be_asked_nobody_needs_to_look(
    agent: Any, edge: str
) -> None:
    world = agent.world
    world.script = [*([call] for call in CALLS), [("send_mail", MAIL)], "Sent."]
    world.promises = PROMISES
    world.kill_at = f"send_mail#1:{edge}"
    assert agent.live().code == -signal.SIGKILL
    assert agent.live("--resume").code == 0
    assert world.counts()["send_mail"] == 1
    assert world.problems == []
