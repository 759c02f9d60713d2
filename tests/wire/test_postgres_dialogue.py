"""A conversation is cut into steps at the ends of transactions, and nowhere else."""

import pytest

from chaoskit.wire.postgres.dialogue import GATHERED_BYTES_MAX, Dialogue
from chaoskit.wire.postgres.framing import (
    BEGIN,
    COMMIT,
    FLUSH,
    SYNC,
    message,
    query,
    ready,
)
from chaoskit.wire.postgres.sql import Classifier
from chaoskit.wire.postgres.steps import READY, Answer

INSERT = "INSERT INTO t VALUES (1)"


def parse(sql, name=""):
    return message(b"P", f"{name}\0{sql}\0".encode() + bytes(2))


def bind(name=""):
    return message(b"B", f"\0{name}\0".encode() + bytes(6))


EXECUTE = message(b"E", bytes(5))
CLOSE = message(b"C", b"S\0")
FAILED = b"E\0\0\0\4"


def statement(sql):
    return [parse(sql), bind(), EXECUTE]


class Talk:
    """A dialogue whose steps are answered as a test says, by default with success."""

    def __init__(self):
        self.dialogue = Dialogue(Classifier())
        self.steps = []

    def says(self, *messages, status=None, fails=False):
        """Read messages; returns the labels of the steps that they made."""
        labels = []
        for raw in messages:
            step = self.dialogue.read(raw)
            if step is None:
                continue
            self.steps.append(step)
            labels.append(step.label and "/".join(map(str, step.label)))
            part = step.commit if step.commit.raw else step.work
            answer = Answer(part.until)
            answer.failed = fails
            if part.until.readies:
                answer.status = status or (b"T" if self._in_block(fails) else b"I")
            self.dialogue.answered(answer)
        return labels

    def _in_block(self, fails):
        return self.dialogue.in_block


def test_a_simple_query_that_writes_is_a_step_with_two_parts():
    talk = Talk()
    assert talk.says(query(INSERT)) == ["insert/t"]
    (step,) = talk.steps
    assert step.work.raw == BEGIN + query(INSERT)
    assert step.commit.raw == COMMIT
    assert step.whole.raw == query(INSERT)
    assert step.wrapped


@pytest.mark.parametrize(
    "sql",
    [
        "DO 'x'",
        "CREATE INDEX CONCURRENTLY i ON t (a)",
        f"SET a = 1; {INSERT}",
        "CALL p()",
    ],
)
def test_what_cannot_be_in_a_block_is_left_as_it_is(sql):
    talk = Talk()
    talk.says(query(sql))
    (step,) = talk.steps
    assert (step.work.raw, step.commit.raw) == (b"", query(sql))


def test_extended_messages_are_held_until_their_sync():
    talk = Talk()
    each = [*statement(INSERT), *statement("SELECT 1")]
    assert talk.says(*each) == []
    assert talk.says(SYNC) == ["insert/t"]
    (step,) = talk.steps
    assert step.work.raw == b"".join(each) + FLUSH
    assert step.work.until.completions == len(each)
    assert step.commit == (SYNC, READY)


def test_what_is_flushed_is_passed_on_and_its_commit_is_not():
    talk = Talk()
    assert talk.says(*statement(INSERT), FLUSH) == [None]
    assert talk.dialogue.is_begun
    assert talk.says(*statement("SELECT 1"), FLUSH, SYNC) == [None, "insert/t"]
    assert talk.steps[-1].work.raw == b""
    assert not talk.dialogue.is_begun


def test_a_transaction_block_is_one_crossing_however_it_is_sent():
    talk = Talk()
    assert talk.says(query("BEGIN"), status=b"T") == [None]
    assert talk.says(query(INSERT), status=b"T") == [None]
    assert talk.says(*statement(INSERT), SYNC, status=b"T") == [None]
    assert talk.says(query("COMMIT"), status=b"I") == ["commit/tx"]
    assert talk.says(*statement("BEGIN"), *statement(INSERT)) == []
    assert talk.says(*statement("COMMIT")) == ["commit/tx"]
    assert talk.steps[-1].commit.raw == EXECUTE + FLUSH
    assert talk.says(*statement(INSERT), SYNC) == ["insert/t"]


@pytest.mark.parametrize(
    "statements",
    [
        ["BEGIN", "COMMIT"],
        ["BEGIN", "SELECT 1", "COMMIT"],
        ["BEGIN", INSERT, "ROLLBACK"],
        ["COMMIT"],
    ],
)
def test_a_transaction_that_keeps_nothing_is_no_crossing(statements):
    simple, extended = Talk(), Talk()
    open_ = False
    for sql in statements:
        open_ = sql not in ("COMMIT", "ROLLBACK") and (open_ or sql == "BEGIN")
        assert simple.says(query(sql), status=b"T" if open_ else b"I") == [None]
        extended.says(*statement(sql))
    assert extended.says(SYNC) == [None]


def test_a_transaction_that_has_failed_commits_nothing():
    talk = Talk()
    talk.says(query("BEGIN"), status=b"T")
    talk.says(query(INSERT), status=b"T")
    talk.says(query("SELECT 1/0"), status=b"E", fails=True)
    assert talk.says(query("COMMIT"), status=b"I") == [None]
    assert talk.says(query(INSERT)) == ["insert/t"]


def test_after_an_error_everything_is_skipped_up_to_the_sync():
    talk = Talk()
    assert talk.says(*statement("SELECT 1/0"), FLUSH, fails=True) == [None]
    assert talk.says(*statement(INSERT), FLUSH) == []
    assert talk.says(SYNC) == [None]
    assert talk.steps[-1].work.raw == SYNC
    assert talk.says(*statement(INSERT), SYNC) == ["insert/t"]


def test_an_error_of_the_relays_own_skips_as_well():
    talk = Talk()
    talk.says(*statement("BEGIN"), *statement(INSERT))
    talk.says(*statement("COMMIT"))
    talk.dialogue.failed(talk.steps[-1])
    assert talk.says(*statement(INSERT)) == []
    assert talk.says(SYNC) == [None]


def test_a_name_whose_parse_failed_keeps_its_meaning():
    talk = Talk()
    talk.says(parse("SELECT 1", "p"), SYNC)
    talk.says(parse(INSERT, "p"), SYNC, fails=True)
    assert talk.says(bind("p"), EXECUTE, SYNC) == [None]
    talk.says(parse(INSERT, "q"), CLOSE, SYNC)
    assert talk.says(bind("q"), EXECUTE, SYNC) == ["insert/t"]
    assert talk.says(query("EXECUTE q")) == ["insert/t"]


def test_a_copy_is_committed_at_its_end():
    talk = Talk()
    copies = Answer(READY)
    step = talk.dialogue.read(query("COPY t FROM STDIN"))
    assert step.label is None
    assert copies.take(message(b"G"))
    talk.dialogue.answered(copies)
    assert talk.says(message(b"d", b"row"), FLUSH, SYNC) == [None] * 3
    assert talk.says(message(b"c")) == ["copy/t"]
    assert talk.says(query("SELECT 1")) == [None]


def test_a_copy_that_fails_on_its_way_commits_nothing():
    talk = Talk()
    copies = Answer(READY)
    talk.dialogue.read(query("COPY t FROM STDIN"))
    copies.take(message(b"G"))
    talk.dialogue.answered(copies)
    talk.dialogue.told(FAILED)
    talk.dialogue.told(ready(b"I"))
    assert talk.says(message(b"d", b"row"), message(b"c")) == []
    assert talk.says(query(INSERT)) == ["insert/t"]


def test_an_extended_copy_is_committed_at_the_sync_behind_it():
    talk = Talk()
    copies = Answer(READY)
    talk.says(*statement("COPY t FROM STDIN"))
    step = talk.dialogue.read(SYNC)
    assert step.label is None
    copies.take(message(b"G"))
    talk.dialogue.answered(copies)
    assert talk.says(message(b"c"), SYNC) == [None, "copy/t"]


def test_too_much_is_passed_on_before_it_is_whole():
    talk = Talk()
    big = parse(INSERT + " --" + "x" * GATHERED_BYTES_MAX)
    assert talk.says(big, bind(), EXECUTE, SYNC) == [None, "insert/t"]
    assert talk.steps[-1].work.raw == bind() + EXECUTE + FLUSH


def test_a_function_call_is_a_write():
    talk = Talk()
    assert talk.says(message(b"F", b"...")) == ["function/None"]
    talk.says(query("BEGIN"), status=b"T")
    assert talk.says(message(b"F", b"..."), status=b"T") == [None]
    assert talk.says(query("END"), status=b"I") == ["commit/tx"]
