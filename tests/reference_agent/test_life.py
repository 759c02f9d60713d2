"""Real processes, really killed: the command line, its exit codes, and its log."""

import json
import signal
from collections import Counter
from os import kill
from typing import Any

import pytest

from reference_agent.tools import TOOLS

CHECKPOINT = "agent:checkpoint:r1"
KEY = "sk-canary-5d1f"
GOAL = "Book a flight to NYC"
MAIL = ("send_mail", {"to": "ann", "subject": "hi", "body": "x"})
FAX = ("send_fax", {"to": "hotel", "body": "x"})
BOOK = [
    [("search_flights", {"to": "NYC"})],
    [("hold_seat", {"order": "o-1"}), ("charge_card", {"order": "o-1", "cents": 3})],
    [MAIL],
    "Booked: your flight to NYC leaves on Monday.",
]
ONCE = {"search_flights": 1, "hold_seat": 1, "charge_card": 1, "send_mail": 1}


@pytest.fixture
def book(agent: Any) -> Any:
    agent.world.script = BOOK
    agent.world.promises = {tool.name: tool.promise for tool in TOOLS.values()}
    return agent


def test_a_calm_run_and_the_life_after_it(book: Any, redis: Any) -> None:
    life = book.live()
    assert life.code == 0
    assert life.out.splitlines()[-1] == BOOK[-1]
    assert book.world.counts() == ONCE
    assert book.world.problems == []
    assert len(life.log) == len(life.err.splitlines())  # JSON, every line
    check_log(life.log)
    crossed, stored = len(book.world.crossed), redis.get(CHECKPOINT)

    book.environment["PYTHONPROFILEIMPORTTIME"] = "1"
    again = book.live("--resume")
    imported = [line for line in again.err.splitlines() if line[:6] == "import"]
    assert any(line.endswith("reference_agent.loop") for line in imported)
    assert not any(line.endswith("openai") for line in imported)  # it takes 0.5 s
    assert (again.code, again.out) == (0, life.out)
    assert again.events == []
    assert (len(book.world.crossed), redis.get(CHECKPOINT)) == (crossed, stored)
    assert KEY not in stored.decode() + life.out + life.err


@pytest.mark.parametrize(
    ("options", "seconds"), [((), 86_400), (("--ttl-seconds", "100"), 100)]
)
def test_a_checkpoint_lives_for_a_day_or_as_long_as_is_said(
    book: Any, redis: Any, options: tuple[str, ...], seconds: int
) -> None:
    assert book.live(*options).code == 0
    assert seconds - 60 < redis.ttl(CHECKPOINT) <= seconds


def check_log(lines: list[dict[str, Any]]) -> None:
    """Where the run is, on every line, and nothing of what was said."""
    assert [line["checkpoint_id"] for line in lines] == sorted(
        line["checkpoint_id"] for line in lines
    )
    assert all(line["run_id"] == "r1" and "step" in line for line in lines)
    saved = [line["checkpoint_id"] for line in lines if line["event"] == "checkpoint"]
    assert saved == list(range(1, len(saved) + 1))
    text = json.dumps(lines)
    assert GOAL not in text
    assert "leaves on Monday" not in text
    assert "o-1" not in text  # of the arguments
    assert "applied" not in text  # of the results
    hashes = [line["prompt_hash"] for line in lines if line["event"] == "model.start"]
    assert len(set(hashes)) == 4
    events = Counter(line["event"] for line in lines)
    assert events["model.start"] == events["model.end"] == 4
    assert events["tool.intent"] == events["tool.result"] == 4


@pytest.mark.parametrize(
    "kill_at",
    ["model#2:after", "send_mail#1:before", "send_mail#1:after"],
)
def test_killed_and_resumed_nobody_sees_anything(book: Any, kill_at: str) -> None:
    book.world.kill_at = kill_at
    killed = book.live()
    assert killed.code == -9
    life = book.live("--resume")
    assert (life.code, life.out.strip()) == (0, BOOK[-1])
    assert book.world.counts() == ONCE
    assert book.world.problems == []
    assert life.events[0] == "run.resume"
    lost = kill_at.startswith("model")
    assert sorted(book.world.asked) == [0, 1, 1, 2, 3] if lost else [0, 1, 2, 3]
    ids = [line["checkpoint_id"] for line in killed.log + life.log]
    assert ids == sorted(ids)


def test_a_killed_keyed_call_is_sent_under_one_key(book: Any) -> None:
    """And `start`, where a checkpoint is, goes on from it."""
    book.world.kill_at = "hold_seat#1:after"
    assert book.live().code == -9
    assert book.live().code == 0
    assert book.world.seen["hold_seat"] == 2
    keys = [key for key in book.world.keys if key and key.endswith("hold_seat")]
    assert keys == ["r1/2/0/hold_seat"] * 2


def test_a_blind_call_in_doubt_parks(book: Any) -> None:
    book.world.script = [[FAX], "Sent."]
    book.world.kill_at = "send_fax#1:after"
    assert book.live().code == -9
    life = book.live("--resume")
    assert (life.code, life.out) == (75, "")
    assert "send_fax may have been done, and it cannot be asked" in life.err
    assert life.events[-1] == "run.end"
    assert book.world.counts()["send_fax"] == 1


@pytest.mark.parametrize("damage", [b'{"run_id": "r1", "st', b"", b'{"schema": 99}'])
def test_an_unreadable_checkpoint_is_left_as_it_is(
    book: Any, redis: Any, damage: bytes
) -> None:
    redis.set(CHECKPOINT, damage)
    life = book.live("--resume")
    assert (life.code, life.out) == (65, "")
    assert "the checkpoint cannot be used and was left as it is" in life.err
    assert "Traceback" not in life.err
    assert redis.get(CHECKPOINT) == damage
    assert redis.keys() == [CHECKPOINT.encode()]  # not even a lease
    assert book.world.crossed == []


def test_resuming_without_a_checkpoint_says_so_and_starts(book: Any) -> None:
    life = book.live("--resume")
    assert life.code == 0
    assert life.events[:2] == ["checkpoint", "run.start"]
    assert "no checkpoint to resume from: starting fresh" in life.err


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_asked_to_end_it_makes_the_call_in_hand_and_can_be_resumed(
    book: Any, number: signal.Signals
) -> None:
    """A blind call that is cut off is in doubt; one that is ended gently is not, nor is
    the next one, which was announced."""
    book.world.script = [[FAX, FAX], "Sent."]
    book.world.hooks["send_fax#1:before"] = lambda: kill(book.world.pid, number)
    life = book.live()
    assert (life.code, life.out) == (128 + number, "")
    assert "asked to end; it can be resumed" in life.err
    assert life.log[-1] | {"event": "run.end", "status": "running"} == life.log[-1]
    assert book.world.counts() == {"send_fax": 1}
    life = book.live("--resume")
    assert (life.code, life.out.strip()) == (0, "Sent.")
    assert book.world.counts() == {"send_fax": 2}


def test_input_that_cannot_be_used_is_refused_in_words(book: Any, redis: Any) -> None:
    """Nothing is asked, nothing is written."""
    no_goal = book.live("--resume", goal=None)
    assert no_goal.code == 64
    assert "without --goal nothing to start" in no_goal.err
    assert redis.keys() == []
    book.world.kill_at = "model#1:before"
    assert book.live().code == -9
    stored = redis.get(CHECKPOINT)
    other = book.live(goal="Something else")
    assert other.code == 64
    assert "a run with another goal" in other.err
    assert redis.get(CHECKPOINT) == stored


def test_a_refusal_after_a_lost_answer_proves_nothing_and_asks_a_person(
    book: Any,
) -> None:
    """The first attempt was applied; the second one met a gateway that had enough."""
    book.world.kill_at = "charge_card#1:after"
    assert book.live().code == -9
    book.world.errors = {"charge_card#2": (401, "token expired")}
    life = book.live("--resume")
    assert life.code == 75
    assert "charge_card may have been done, and is refused now" in life.err
    assert book.live("--answer", "done", goal=None).code == 0
    assert book.world.counts() == ONCE


def test_an_outage_that_does_not_end_asks_a_person_what_became_of_the_call(
    book: Any,
) -> None:
    """To fail would say that nothing was done."""
    book.world.errors = {f"charge_card#{n}": (503, "") for n in range(1, 9)}
    book.program = ("-c", IMPATIENT)
    life = book.live()
    assert life.code == 75
    assert "gave up after 8 attempts" in life.err
    assert "it may have been done" in life.err
    book.world.errors = {}
    assert book.live("--answer", "not done", goal=None).code == 0
    assert book.world.counts() == ONCE


IMPATIENT = """
import sys
from reference_agent import transitions
from reference_agent.__main__ import main

transitions.BACKOFF_SECONDS = 0.001
sys.exit(main())
"""


def test_a_start_leaves_a_run_to_whoever_has_it_and_lives(book: Any) -> None:
    """Fired twice by mistake. `--resume` says that the other one is gone."""
    codes: list[int] = []

    def start_again() -> None:
        book.world.hooks.clear()
        codes.append(book.live_beside().code)

    book.world.hooks["send_mail#1:before"] = start_again
    assert book.live().code == 0
    assert codes == [69]
    assert book.world.counts() == ONCE


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("--ttl-seconds", "0"), "invalid number of seconds value: '0'"),
        (("--lease-seconds", "nan"), "invalid number of seconds value: 'nan'"),
        (("--store", "mongo"), "invalid choice: 'mongo'"),
        (("--answer", ""), "--answer is empty"),
        (("--task", "x" * 1001), "invalid run id"),
        (("--task", "\udcff"), "invalid run id"),
    ],
)
def test_words_that_are_no_use_end_it_before_anything_is_begun(
    book: Any, redis: Any, words: tuple[str, ...], said: str
) -> None:
    life = book.live(*words)
    assert (life.code, life.out) == (64, "")
    assert said in life.err
    assert "Traceback" not in life.err
    assert redis.keys() == []


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CHAOSKIT_TOOLS_URL", ""),
        ("REDIS_URL", "foo"),
        ("OPENAI_API_KEY", ""),
    ],
)
def test_a_setting_that_is_no_use_costs_no_life(
    book: Any, redis: Any, name: str, value: str
) -> None:
    book.environment[name] = value
    life = book.live()
    assert life.code == 64
    assert name in life.err
    assert redis.keys() == []


def test_an_outage_of_the_tools_is_outlasted(book: Any) -> None:
    """The effect was applied, its answer was an error: the key sees to it."""
    book.world.errors = {"charge_card#1": (503, "")}
    life = book.live()
    assert life.code == 0
    assert book.world.counts() == ONCE
    assert life.events.count("tool.trouble") == 1


def test_a_blind_call_whose_answer_was_lost_parks_without_a_death(book: Any) -> None:
    book.world.script = [[FAX], "Sent."]
    book.world.errors = {"send_fax#1": (503, "")}
    life = book.live()
    assert life.code == 75
    assert book.world.seen["send_fax"] == 1


def test_a_store_that_is_away_ends_the_life_not_the_run(book: Any) -> None:
    book.environment["REDIS_URL"] += "-none"
    life = book.live("--resume")
    assert life.code == 69
    assert "the store cannot be reached: Redis: ConnectionError" in life.err
    assert book.world.crossed == []


def test_a_model_that_refuses_fails_the_run(book: Any) -> None:
    book.world.errors = {"model#2": (400, "{}")}
    life = book.live()
    assert life.code == 65
    assert "failed: the model: it answered 400" in life.err
    assert book.live("--resume").code == 65
    assert book.world.seen["model"] == 2


@pytest.mark.parametrize("options", [(), ("--stream",)])
def test_replies_are_streamed_where_that_is_asked_for(
    book: Any, options: tuple[str, ...]
) -> None:
    """What comes of it is tested in the same process; this is the option."""
    book.world.errors = {"model#1": (400, "{}")}
    assert book.live(*options).code == 65
    assert book.world.streamed == [bool(options)]
