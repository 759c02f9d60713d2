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

from dataclasses import dataclass, field

from chaoskit.wire.postgres.framing import BEGIN, COMMIT, FLUSH, SYNC, words
from chaoskit.wire.postgres.meaning import Kind, Meaning
from chaoskit.wire.postgres.sql import Classifier
from chaoskit.wire.postgres.steps import (
    NOTHING,
    READY,
    UNDO_COPY,
    Answer,
    Part,
    Step,
    Until,
)

GATHERED_BYTES_MAX = 1024 * 1024
"""More is passed on before it is whole; its commit is held all the same."""

_STATUS_IDLE, _STATUS_FAILED = b"I", b"E"


@dataclass
class _Gathered:
    """Extended messages that are not passed on yet."""

    raw: list[bytes] = field(default_factory=list)
    size: int = 0
    completions: int = 0
    alone: bool = False
    locks: bool = False
    copies: bool = False

    def add(self, message: bytes) -> None:
        self.raw.append(message)
        self.size += len(message)
        self.completions += 1

    def part(self, *more: bytes) -> Part:
        """All of it, to be answered at once."""
        raw = b"".join((*self.raw, *more, FLUSH))
        return Part(raw, Until(completions=self.completions + len(more)))


class Dialogue:
    """The state of one connection, once it is set up."""

    def __init__(self, classifier: Classifier) -> None:
        self._classifier = classifier
        self._statements: dict[str, tuple[Meaning, ...]] = {}
        self._portals: dict[bytes, tuple[Meaning, ...]] = {}
        self._parsing: list[tuple[str, tuple[Meaning, ...] | None]] = []
        self._gathered = _Gathered()
        self.in_block = False
        """Whether a transaction block is open."""
        self._is_doomed = False
        self._is_skipping = False
        self._written: tuple[str, str | None] | None = None
        self._schema = False
        self._is_copying = False
        self._is_simple = True
        self._is_begun = False

    @property
    def is_begun(self) -> bool:
        """Whether the server has something that is neither committed nor dropped."""
        return self.in_block or self._is_begun

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
        for name, before in self._parsing[answer.parsed :] if answer.failed else ():
            if before is None:
                self._statements.pop(name, None)
            else:
                self._statements[name] = before
        del self._parsing[: len(self._parsing) if answer.failed else answer.parsed]
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
        self._is_at(_STATUS_IDLE)
        self._is_skipping = not step.syncs
        for name, _ in self._parsing:
            self._statements.pop(name, None)
        self._parsing.clear()

    def _is_at(self, status: bytes) -> None:
        self._is_doomed = status == _STATUS_FAILED
        self.in_block = status != _STATUS_IDLE
        self._is_skipping = self._is_begun = False
        self._is_copying = False
        if not self.in_block:
            self._written, self._schema = None, False

    # Simple queries

    def _query(self, message: bytes) -> Step:
        self._is_simple = True
        meanings = self._resolved(words(message, 1)[0])
        before = b"".join(self._gathered.raw)
        self._gathered = _Gathered()
        whole = Part(before + message, READY)
        copies = any(each.kind is Kind.COPY_IN for each in meanings)
        label = self._walk(meanings)
        locks = any(each.locks for each in meanings)
        if copies or label is None:
            # What a COPY copies is committed at its end, with all that is beside it.
            self._written = label or self._written
            return Step(whole, locks=locks)
        schema = self._take_schema()
        if before or not self._may_be_wrapped(meanings):
            return Step(Part(), whole, label=label, schema=schema)
        work = Part(BEGIN + message, Until(readies=2))
        commit = Part(COMMIT, READY)
        step = Step(work, commit, whole, label, locks=locks, schema=schema)
        return step._replace(wrapped=True)

    def _may_be_wrapped(self, meanings: tuple[Meaning, ...]) -> bool:
        plain = (Kind.READ, Kind.WRITE)
        return not self.is_begun and all(
            each.kind in plain and not each.alone and each.op for each in meanings
        )

    def _walk(self, meanings: tuple[Meaning, ...]) -> tuple[str, str | None] | None:
        """What is committed by statements that are sent in one query."""
        open_, doomed, committed = self.in_block, self._is_doomed, None
        for each in meanings:
            if each.kind in (Kind.COMMIT, Kind.ROLLBACK):
                if each.kind is Kind.COMMIT and self._written and not doomed:
                    committed = (each.op, each.key) if open_ else self._written
                self._written, doomed, open_ = None, False, each.chain
            elif each.kind is Kind.BEGIN:
                open_ = True
            elif not doomed:
                self._note(each)
        if not open_ and self._written:
            committed, self._written = committed or self._written, None
        return committed

    def _note(self, each: Meaning) -> None:
        if each.kind in (Kind.WRITE, Kind.COPY_IN):
            self._written = self._written or (each.op, each.key)
            self._schema = self._schema or each.schema
        elif each.kind is Kind.PREPARE and each.of is not None:
            self._statements[each.name] = (each.of,)

    def _take_schema(self) -> bool:
        schema, self._schema = self._schema, False
        return schema

    def _resolved(self, sql: bytes) -> tuple[Meaning, ...]:
        """Meanings, with that of a prepared statement for each EXECUTE."""
        found: list[Meaning] = []
        for each in self._classifier.meanings(sql):
            if each.kind is Kind.EXECUTE:
                found += self._statements.get(each.name, ())
            else:
                found.append(each)
        return tuple(found)

    def _function_call(self, message: bytes) -> Step:
        part = Part(message, READY)
        if self.in_block:
            self._written = self._written or ("function", None)
            return Step(part)
        return Step(Part(), part, label=("function", None), schema=True)

    # Extended messages

    def _gather(self, message: bytes) -> Step | None:
        gathered = self._gathered
        match message[:1]:
            case b"P":
                name, sql = words(message, 2)
                self._parse(name.decode("utf-8", "replace"), sql)
            case b"B":
                portal, name = words(message, 2)
                known = self._statements.get(name.decode("utf-8", "replace"), ())
                self._portals[portal] = known
            case b"E":
                return self._execute(message)
        gathered.add(message)
        return self._flush() if gathered.size > GATHERED_BYTES_MAX else None

    def _parse(self, name: str, sql: bytes) -> None:
        self._parsing.append((name, self._statements.get(name)))
        self._statements[name] = self._classifier.meanings(sql)

    def _execute(self, message: bytes) -> Step | None:
        for each in self._portals.get(words(message, 1)[0], ()):
            for real in self._done_by(each):
                if real.kind is Kind.COMMIT and self._written and not self._is_doomed:
                    return self._commit(message, real)
                self._executed(real)
        self._gathered.add(message)
        return None

    def _done_by(self, each: Meaning) -> tuple[Meaning, ...]:
        if each.kind is Kind.EXECUTE:
            return self._statements.get(each.name, ())
        return (each,)

    def _executed(self, each: Meaning) -> None:
        if each.kind in (Kind.COMMIT, Kind.ROLLBACK):
            self._written, self.in_block, self._is_doomed = None, each.chain, False
        elif each.kind is Kind.BEGIN:
            self.in_block = True
        else:
            self._note(each)
            self._gathered.alone |= each.alone
            self._gathered.locks |= each.locks
            self._gathered.copies |= each.kind is Kind.COPY_IN

    def _commit(self, message: bytes, each: Meaning) -> Step:
        """The Execute of a COMMIT commits at once, whatever follows it."""
        label = (each.op, each.key) if self.in_block else self._written
        work = self._gathered.part() if self._gathered.raw else Part()
        locks, schema = self._gathered.locks, self._take_schema()
        commit = Part(message + FLUSH, Until(completions=1))
        self._gathered, self._written = _Gathered(), None
        self.in_block, self._is_begun = each.chain, False
        done = Until(completions=work.until.completions + 1)
        whole = Part(work.raw + commit.raw, done)
        step = Step(work, commit, whole, label, locks=locks, schema=schema)
        return step._replace(syncs=False)

    def _flush(self) -> Step:
        gathered, self._gathered = self._gathered, _Gathered()
        if not gathered.completions:
            return Step(Part(FLUSH), syncs=False)
        self._is_begun, self._is_simple = True, False
        if gathered.alone and self._written and not self.in_block:
            label, self._written = self._written, None
            schema = self._take_schema()
            part = gathered.part()
            return Step(Part(), part, label=label, schema=schema, syncs=False)
        return Step(gathered.part(), locks=gathered.locks, syncs=False)

    def _sync(self) -> Step:
        gathered, self._gathered = self._gathered, _Gathered()
        before = b"".join(gathered.raw)
        self._is_begun, self._is_simple = True, False
        if self.in_block or self._written is None or gathered.copies:
            return Step(Part(before + SYNC, READY), locks=gathered.locks)
        label, self._written = self._written, None
        locks, schema = gathered.locks, self._take_schema()
        whole = Part(before + SYNC, READY)
        if gathered.alone:
            return Step(Part(), whole, label=label, schema=schema)
        work = gathered.part() if gathered.raw else Part()
        return Step(work, Part(SYNC, READY), whole, label, locks=locks, schema=schema)

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
        raw = message if simple else message + FLUSH
        part = Part(raw, until)
        if not simple or self.in_block or message[:1] == b"f":
            return Step(part, syncs=simple)
        label, self._written = self._written, None
        step = Step(Part(), part, label=label, schema=self._take_schema())
        return step._replace(undo=UNDO_COPY)
