"""What a statement means to the gate: whether it may change what the server keeps.

It has to be known before the server has seen the statement, so that only its words can
tell. The words of a statement say too much rather than too little: an UPDATE that finds
no row, or a CREATE TABLE IF NOT EXISTS that has nothing to do, counts as a write.

A SELECT writes where it holds an INSERT, UPDATE, DELETE or MERGE, creates a table
(INTO), or calls a function that may write: one of the server's own like ``nextval``, or
one that somebody has made there and that is volatile (`Classifier`). Row locks,
advisory locks, LISTEN and NOTIFY change nothing that is kept.
"""

from dataclasses import replace

from chaoskit.wire.postgres.meaning import LOOK, READ, TX, Kind, Meaning
from chaoskit.wire.postgres.tokens import Token, Tokens, statements
from chaoskit.wire.postgres.verbs import (
    DATA,
    SCHEMA,
    VERBS,
    data_change,
    first_text,
    into_table,
    is_word,
    schema_change,
)

CACHED_MAX = 4096
"""So many texts are kept with their meaning."""
SERVER_WRITERS = frozenset(
    {"nextval", "setval", "lo_create", "lo_creat", "lo_unlink", "lo_import"}
    | {"lo_from_bytea", "lo_put", "lo_truncate", "lo_truncate64", "lowrite"}
    | {"pg_logical_emit_message", "dblink_exec"}
)
"""Functions that come with the server and change what it keeps."""


class Classifier:
    """Tells the meaning of SQL texts; ``functions`` are those made there that write."""

    def __init__(self) -> None:
        self._functions: frozenset[str] = frozenset()
        self._known: dict[bytes, tuple[Meaning, ...]] = {}

    @property
    def functions(self) -> frozenset[str]:
        """Names, without schema, of functions in the database that may write."""
        return self._functions

    @functions.setter
    def functions(self, names: frozenset[str]) -> None:
        if names != self._functions:
            self._functions = names
            self._known.clear()

    def meanings(self, sql: bytes) -> tuple[Meaning, ...]:
        """What each statement of a text means; nothing for an empty one."""
        known = self._known.get(sql)
        if known is None:
            text = sql.decode("utf-8", "replace")
            known = tuple(map(self._meaning, statements(text)))
            if len(self._known) >= CACHED_MAX:
                self._known.clear()
            self._known[sql] = known
        return known

    def _meaning(self, each: Tokens) -> Meaning:
        first = each[0].text if each[0].kind == "word" else ""
        if first in SCHEMA:
            return schema_change(each)
        if first in VERBS:
            return self._told(VERBS[first](each), each, alone=data_change(each) is None)
        if first == "explain":
            return self._explained(each)
        if first == "prepare":
            return self._prepared(each)
        if first in ("select", "with", "values", "table") or each[0].text == "(":
            return self._select(each)
        return READ

    def _select(self, each: Tokens) -> Meaning:
        if (change := data_change(each)) is not None:
            return self._told(change, each)
        return into_table(each) or self._call(each) or LOOK

    def _told(self, change: Meaning, each: Tokens, *, alone: bool = True) -> Meaning:
        """Whether the server tells all that it changes, by the rows that it counts.

        A function changes what nobody counts: one that it calls, or that a trigger
        does, of which the words say nothing. And so does another change inside it.
        """
        is_told = alone and not self._functions and self._call(each) is None
        return replace(change, counted=change.counted and is_told)

    def _call(self, each: Tokens) -> Meaning | None:
        for at in range(len(each) - 1):
            name = each[at].text
            if each[at + 1].text != "(" or each[at].kind not in ("word", "name"):
                continue
            if name in SERVER_WRITERS:
                return Meaning(Kind.WRITE, name, first_text(each[at + 2 :]))
            if name in self._functions:
                return Meaning(Kind.WRITE, "select", name, locks=True, schema=True)
        return None

    def _explained(self, each: Tokens) -> Meaning:
        words = [token.text for token in each]
        begins = [i for i, w in enumerate(words) if w in (*DATA, "select", "with")]
        if not begins or not {"analyze", "analyse"} & set(words[: begins[0]]):
            return READ
        # Its own tag is EXPLAIN, and counts no rows.
        return replace(self._meaning(each[begins[0] :]), counted=False)

    def _prepared(self, each: Tokens) -> Meaning:
        if is_word(each, 1, "transaction"):
            return Meaning(Kind.COMMIT, "prepare_transaction", TX)
        name = each[1].text if len(each) > 1 else ""
        as_ = [i for i, token in enumerate(each) if token == Token("word", "as")]
        of = self._meaning(each[as_[0] + 1 :]) if as_ and each[as_[0] + 1 :] else READ
        return Meaning(Kind.PREPARE, name=name, of=of)
