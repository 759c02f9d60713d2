"""What the transaction of one connection has written so far, and when it commits."""

from chaoskit.wire.postgres.meaning import Kind, Meaning
from chaoskit.wire.postgres.names import Meanings, Names
from chaoskit.wire.postgres.steps import Label

_STATUS_IDLE, _STATUS_FAILED = b"I", b"E"


class Transaction:
    """Follows the statements; corrected by what the server says of its state.

    ``written`` is the label of the first statement that has written something. With
    ``in_block`` a transaction block is open, which ``is_doomed`` once a statement in it
    has failed. ``counted``: the rows that the server counts are all it has changed.
    """

    def __init__(self, names: Names) -> None:
        self.in_block = False
        self.is_doomed = False
        self.written: Label | None = None
        self.counted = True
        self._schema = False
        self._names = names

    def is_at(self, status: bytes) -> None:
        """The server says where it stands."""
        self.is_doomed = status == _STATUS_FAILED
        self.in_block = status != _STATUS_IDLE
        if not self.in_block:
            self.written, self.counted, self._schema = None, True, False

    def note(self, each: Meaning) -> None:
        """A statement is about to be done."""
        if each.kind in (Kind.WRITE, Kind.COPY_IN):
            self.written = self.written or (each.op, each.key)
            self.counted = self.counted and each.counted
            self._schema = self._schema or each.schema
        elif each.kind is Kind.PREPARE:
            self._names.prepare(each)

    def control(self, each: Meaning) -> bool:
        """Begin or end a block, if that is what the statement does."""
        if each.kind in (Kind.COMMIT, Kind.ROLLBACK):
            self.written, self.in_block, self.is_doomed = None, each.chain, False
        elif each.kind is Kind.BEGIN:
            self.in_block = True
        else:
            return False
        return True

    def commits(self, each: Meaning) -> bool:
        """Whether a statement would commit something that is written."""
        return each.kind is Kind.COMMIT and bool(self.written) and not self.is_doomed

    def commit(self, each: Meaning) -> Label | None:
        """A statement commits; returns what it is called."""
        label = (each.op, each.key) if self.in_block else self.written
        self.written, self.in_block = None, each.chain
        return label

    def walk(self, meanings: Meanings) -> Label | None:
        """What is committed by statements that are sent in one query.

        Whether a block is open at its end is said by the server.
        """
        open_, doomed, committed = self.in_block, self.is_doomed, None
        for each in meanings:
            if each.kind in (Kind.COMMIT, Kind.ROLLBACK):
                if each.kind is Kind.COMMIT and self.written and not doomed:
                    committed = (each.op, each.key) if open_ else self.written
                self.written, doomed, open_ = None, False, each.chain
            elif each.kind is Kind.BEGIN:
                open_ = True
            elif not doomed:
                self.note(each)
        if not open_ and self.written:
            committed, self.written = committed or self.written, None
        return committed

    def take_written(self) -> Label | None:
        """What is committed now, by itself."""
        label, self.written = self.written, None
        return label

    def take_schema(self) -> bool:
        """Whether there may be other functions once that is committed."""
        schema, self._schema = self._schema, False
        return schema
