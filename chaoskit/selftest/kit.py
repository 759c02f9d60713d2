"""A small client kit for specimens: the world of section 2 of the contract.

It knows the model (Chat Completions), the tools, mail and the log; it keeps no state
and decides nothing, so that what a specimen does right or wrong is its own. Any error
of a service ends the life: the next one goes on.
"""

import argparse
import json
import os
import smtplib
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from email.message import EmailMessage
from typing import Any, NoReturn

PARKED = 75
FAILED = 65
SECONDS_MAX = 30

Message = dict[str, Any]


@dataclass(frozen=True)
class Words:
    """What the command line says; ``answer`` is a person's, where one was brought."""

    run: str
    goal: str
    answer: str | None
    resumed: bool


@dataclass(frozen=True)
class Call:
    """A call that the model made; ``id`` is the model's own name for it."""

    id: str
    tool: str
    args: dict[str, Any]


def words(argv: Sequence[str] | None = None) -> Words:
    """Read `RUN [--goal TEXT] [--resume] [--answer TEXT]` from the command line."""
    parser = argparse.ArgumentParser(description="One life of a specimen.")
    parser.add_argument("run")
    parser.add_argument("--goal", default="")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--answer")
    found = parser.parse_args(argv)
    return Words(found.run, found.goal, found.answer, found.resume)


def ask(messages: Sequence[Message]) -> Message:
    """The model's next turn, as it goes into the conversation."""
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    reply = post(url, {"model": "any", "messages": list(messages)}, headers)
    choice = reply["choices"][0]
    if choice["finish_reason"] == "length":
        raise SystemExit("the reply was cut off; the next life asks again")
    message: Message = choice["message"]
    return {name: value for name, value in message.items() if value is not None}


def user(text: str) -> Message:
    """The message by which a conversation begins."""
    return {"role": "user", "content": text}


def result(call: Call, text: str) -> Message:
    """What came of a call, as the model is told."""
    return {"role": "tool", "tool_call_id": call.id, "content": text}


def calls(message: Message) -> tuple[Call, ...]:
    """The calls of an assistant's message; none where it only speaks."""
    return tuple(
        Call(
            each["id"],
            each["function"]["name"],
            json.loads(each["function"]["arguments"]),
        )
        for each in message.get("tool_calls") or ()
    )


def is_over(messages: Sequence[Message]) -> bool:
    """Whether the model has said its last word."""
    last = messages[-1]
    return last["role"] == "assistant" and not last.get("tool_calls")


def unanswered(messages: Sequence[Message]) -> tuple[Call, ...]:
    """The calls of the newest turn that have no result yet, in their order."""
    asked = [message for message in messages if message["role"] == "assistant"]
    told = {each["tool_call_id"] for each in messages if each["role"] == "tool"}
    newest = calls(asked[-1]) if asked else ()
    return tuple(call for call in newest if call.id not in told)


def turn_of(messages: Iterable[Message]) -> int:
    """The number of the newest turn of the model, from 0; -1 before the first."""
    return len([each for each in messages if each["role"] == "assistant"]) - 1


def tool(name: str, args: Mapping[str, Any], key: str | None = None) -> str:
    """Do an effect; its result, as text for the model."""
    url = f"{os.environ['CHAOSKIT_TOOLS_URL']}/{name}"
    headers = {} if key is None else {"Idempotency-Key": key}
    return json.dumps(post(url, args, headers)["result"])


def look_up(name: str, args: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The effects already there whose arguments match these (queryable tools only)."""
    query = urllib.parse.urlencode(args)
    url = f"{os.environ['CHAOSKIT_TOOLS_URL']}/{name}?{query}"
    effects: list[dict[str, Any]] = _answer(urllib.request.Request(url))["effects"]
    return effects


def mail(to: str, subject: str, body: str, message_id: str) -> None:
    """Send one mail; its identity is its Message-ID, such as `<run-1@specimen>`."""
    letter = EmailMessage()
    letter["From"] = "agent@specimen.test"
    letter["To"], letter["Subject"], letter["Message-ID"] = to, subject, message_id
    letter.set_content(body)
    host, port = os.environ["CHAOSKIT_SMTP_HOST"], os.environ["CHAOSKIT_SMTP_PORT"]
    with smtplib.SMTP(host, int(port), timeout=SECONDS_MAX) as server:
        server.send_message(letter)


def post(url: str, body: Any, headers: Mapping[str, str]) -> Any:
    """Send JSON, get JSON."""
    whole = {"Content-Type": "application/json", **headers}
    return _answer(urllib.request.Request(url, json.dumps(body).encode(), whole))


def _answer(request: urllib.request.Request) -> Any:
    try:
        with urllib.request.urlopen(request, timeout=SECONDS_MAX) as response:
            return json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            raise SystemExit(f"{error.code} from {request.full_url}") from None


def log(event: str, run: str, step: int, checkpoint_id: int, **more: Any) -> None:
    """One line of the log: where the run is, and nothing of what was said."""
    line = {"level": "info", "event": event, "run_id": run, "step": step}
    line |= {"checkpoint_id": checkpoint_id, **more}
    print(json.dumps(line), file=sys.stderr, flush=True)  # noqa: T201


def park(why: str) -> NoReturn:
    """End this life: the run waits, and holds no process."""
    print(why, file=sys.stderr, flush=True)  # noqa: T201
    raise SystemExit(PARKED)


def fail(why: str) -> NoReturn:
    """End the run for good, and say why."""
    print(why, file=sys.stderr, flush=True)  # noqa: T201
    raise SystemExit(FAILED)


def finish(answer: str) -> int:
    """Say the final answer; the exit code of a life that is done."""
    print(answer, flush=True)  # noqa: T201
    return 0
