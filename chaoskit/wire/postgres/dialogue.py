"""One client's conversation with PostgreSQL, cut into steps, as a relay follows it.

What counts is the end of a transaction, since only that changes what is kept. So the
messages between two ends belong together, and become one `Step`:

- a simple query that commits what it writes, or a COMMIT, is a step of its own;
- extended messages are gathered until a Sync, which commits what they did, a Flush, or
  the Execute of a COMMIT, and are one step up to there;
- the rows of a COPY are passed on, and its end is the step that commits them.

A step that commits has two parts where that can be: its ``work``, which takes its time
and its locks and keeps nothing, and its ``commit``. So a relay can hold the door for
the commit alone: who waits for another's lock does not keep the other from freeing it.

A relay `read`s each message when its turn comes, carries out the step, if there is one,
and says what was `answered` before it reads the next.
"""

from chaoskit.wire.postgres.framing import BEGIN, COMMIT, FLUSH, SYNC
from chaoskit.wire.postgres.gathered import Gathered
from chaoskit.wire.postgres.meaning import Kind
from chaoskit.wire.postgres.names import Meanings, Names
from chaoskit.wire.postgres.sql import Classifier
from chaoskit.wire.postgres.steps import (
    NOTHING,
    READY,
    UNDO_COPY,
    Answer,
    Label,
    Part,
    Step,
    Until,
)
from chaoskit.wire.postgres.transaction import Transaction

GATHERED_BYTES_MAX = 1024 * 1024
"""More is passed on before it is whole; its commit is held all the same."""

_IDLE = b"I"


class Dialogue:
    """The state of one connection, once it is set up."""

    def __init__(self, classifier: Classifier) -> None:
        self._names = Names(classifier)
        self._transaction = Transaction(self._names)
        self._gathered = Gathered()
        self._is_skipping = False
        self._is_copying = False
        self._is_simple = True
        self._is_begun = False
        self._rows = 0

    @property
    def in_block(self) -> bool:
        """Whether a transaction block is open."""
        return self._transaction.in_block

    @property
    def is_begun(self) -> bool:
        """Whether the server has something that is neither committed nor dropped."""
        return self.in_block or self._is_begun

    @property
    def rows(self) -> int | None:
        """How many rows the transaction has changed so far; None if not all counts."""
        return self._rows if self._transaction.counted else None

    def read(self, message: bytes) -> Step | None:
        """The next message's turn has come; None where it needs those that follow."""
        tag = message[:1]
        if tag == b"X":
            return Step(Part(message), ends=True)
        if self._is_copying:
            return self._copy(message)
        if self._is_skipping and tag != b"S":
            return None
        match tag:
            case b"Q":
                return self._query(message)
            case b"P" | b"B" | b"D" | b"E" | b"C":
                return self._gather(message)
            case b"H":
                return self._flush()
            case b"S":
                return self._sync()
            case b"F":
                return self._function_call(message)
            case b"d" | b"c" | b"f":  # the rest of a COPY that has failed
                return None
        return Step(Part(message, READY))

    def answered(self, answer: Answer) -> None:
        """A part of a step, the client's own, was answered like this."""
        self._names.answered(answer)
        self._rows += answer.rows
        if answer.status:
            self._is_at(answer.status)
        elif answer.failed:
            self._is_skipping = True
        self._is_copying |= answer.copies

    def told(self, reply: bytes) -> None:
        """The server said something unasked: a COPY may have failed on its way."""
        if reply[:1] == b"E" and self._is_copying:
            self._is_copying, self._is_skipping = False, not self._is_simple
        elif reply[:1] == b"Z":
            self._is_at(reply[5:6])

    def failed(self, step: Step) -> None:
        """The step was answered with an error by the relay, which rolled back."""
        self._is_at(_IDLE)
        self._is_skipping = not step.syncs
        self._names.rolled_back()

    def _is_at(self, status: bytes) -> None:
        self._transaction.is_at(status)
        self._is_skipping = self._is_begun = self._is_copying = False
        if status == _IDLE:
            self._rows = 0

    def _take_gathered(self) -> Gathered:
        gathered, self._gathered = self._gathered, Gathered()
        return gathered

    # Simple queries

    def _query(self, message: bytes) -> Step:
        self._is_simple = True
        meanings = self._names.queried(message)
        before = self._take_gathered().joined
        whole = Part(before + message, READY)
        copies = any(each.kind is Kind.COPY_IN for each in meanings)
        label = self._transaction.walk(meanings)
        locks = any(each.locks for each in meanings)
        if copies or label is None:
            # What a COPY copies is committed at its end, with all that is beside it.
            self._transaction.written = label or self._transaction.written
            return Step(whole, locks=locks)
        return self._committing_query(message, meanings, whole, label, locks=locks)

    def _committing_query(
        self,
        message: bytes,
        meanings: Meanings,
        whole: Part,
        label: Label,
        *,
        locks: bool,
    ) -> Step:
        schema = self._transaction.take_schema()
        if whole.raw != message or not self._may_be_wrapped(meanings):
            return Step(Part(), whole, label=label, schema=schema)
        work = Part(BEGIN + message, Until(readies=2))
        commit = Part(COMMIT, READY)
        step = Step(work, commit, whole, label, locks=locks, schema=schema)
        return step._replace(wrapped=True)

    def _may_be_wrapped(self, meanings: Meanings) -> bool:
        plain = (Kind.READ, Kind.WRITE)
        return not self.is_begun and all(
            each.kind in plain and not each.alone and each.op for each in meanings
        )

    def _function_call(self, message: bytes) -> Step:
        part, transaction = Part(message, READY), self._transaction
        transaction.counted = False
        if transaction.in_block:
            transaction.written = transaction.written or ("function", None)
            return Step(part)
        return Step(Part(), part, label=("function", None), schema=True)

    # Extended messages

    def _gather(self, message: bytes) -> Step | None:
        match message[:1]:
            case b"P":
                self._names.parse(message)
            case b"B":
                self._names.bind(message)
            case b"E":
                return self._execute(message)
        self._gathered.add(message)
        return self._flush() if self._gathered.size > GATHERED_BYTES_MAX else None

    def _execute(self, message: bytes) -> Step | None:
        for each in self._names.executed(message):
            if self._transaction.commits(each):
                return self._commit(message, self._transaction.commit(each))
            if not self._transaction.control(each):
                self._transaction.note(each)
                self._gathered.note(each)
        self._gathered.add(message)
        return None

    def _commit(self, message: bytes, label: Label | None) -> Step:
        """The Execute of a COMMIT commits at once, whatever follows it."""
        gathered, schema = self._take_gathered(), self._transaction.take_schema()
        self._is_begun = False
        work, commit = gathered.part, Part(message + FLUSH, Until(completions=1))
        done = Until(completions=work.until.completions + 1)
        whole = Part(work.raw + commit.raw, done)
        step = Step(work, commit, whole, label, locks=gathered.locks, schema=schema)
        return step._replace(syncs=False)

    def _flush(self) -> Step:
        gathered, transaction = self._take_gathered(), self._transaction
        if not gathered.raw:
            return Step(Part(FLUSH), syncs=False)
        self._is_begun, self._is_simple = True, False
        if gathered.alone and transaction.written and not transaction.in_block:
            label, schema = transaction.take_written(), transaction.take_schema()
            commit = gathered.part
            return Step(Part(), commit, label=label, schema=schema, syncs=False)
        return Step(gathered.part, locks=gathered.locks, syncs=False)

    def _sync(self) -> Step:
        gathered, transaction = self._take_gathered(), self._transaction
        self._is_begun, self._is_simple = True, False
        whole, locks = Part(gathered.joined + SYNC, READY), gathered.locks
        if transaction.in_block or transaction.written is None or gathered.copies:
            return Step(whole, locks=locks)
        label, schema = transaction.take_written(), transaction.take_schema()
        if gathered.alone:
            return Step(Part(), whole, label=label, schema=schema)
        commit = Part(SYNC, READY)
        return Step(gathered.part, commit, whole, label, locks=locks, schema=schema)

    # COPY FROM STDIN

    def _copy(self, message: bytes) -> Step | None:
        if message[:1] in (b"c", b"f"):
            return self._end_copy(message)
        # The server overlooks a Flush and a Sync here, and takes the rest for an error.
        part = Part(message, NOTHING if message[:1] in b"dHS" else READY)
        return Step(part)

    def _end_copy(self, message: bytes) -> Step:
        simple, self._is_copying = self._is_simple, False
        until = READY if simple else Until(completions=1)
        part = Part(message if simple else message + FLUSH, until)
        if not simple or self.in_block or message[:1] == b"f":
            return Step(part, syncs=simple)
        label, schema = (
            self._transaction.take_written(),
            self._transaction.take_schema(),
        )
        step = Step(Part(), part, label=label, schema=schema)
        return step._replace(undo=UNDO_COPY)
