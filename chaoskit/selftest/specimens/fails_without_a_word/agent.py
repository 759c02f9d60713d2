"""Sends mails, and gives up where the mail server says that one is never wanted."""

import json
import os
import smtplib
from typing import Any

import redis

from chaoskit.selftest import kit


def do(run: str, place: int, call: kit.Call) -> str:
    """One mail; a refusal for good ends the run."""
    mail = call.args
    try:
        message_id = f"<{run}.{place}@specimen.test>"
        kit.mail(mail["to"], mail["subject"], mail["body"], message_id)
    except (smtplib.SMTPResponseException, smtplib.SMTPRecipientsRefused):
        raise SystemExit(kit.FAILED) from None
    return "sent"


def main() -> int:
    """One life."""
    words = kit.words()
    store = redis.Redis.from_url(os.environ["REDIS_URL"], decode_responses=True)
    name = f"run:{words.run}"
    found: Any = store.get(name)
    messages = json.loads(found) if found else [kit.user(words.goal)]
    while not kit.is_over(messages):
        for call in kit.unanswered(messages):
            told = do(words.run, len(messages), call)
            messages.append(kit.result(call, told))
        messages.append(kit.ask(messages))
        store.set(name, json.dumps(messages))
    return kit.finish(messages[-1]["content"])
