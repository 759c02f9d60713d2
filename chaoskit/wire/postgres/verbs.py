"""The meaning of a statement by the verb that it begins with.

What makes or changes an object of the schema has the verb and the kind of object as its
operation: ``CREATE UNIQUE INDEX i ON t`` is ``create_index`` with the key ``t``.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace

from chaoskit.wire.postgres.meaning import READ, TX, Kind, Meaning
from chaoskit.wire.postgres.tokens import Token, Tokens

DATA = ("insert", "update", "delete", "merge")
SCHEMA = (
    *("create", "alter", "drop", "comment", "grant", "revoke", "refresh"),
    *("import", "security", "reassign"),
)
_ALONE = {"database", "tablespace", "subscription", "system", "concurrently"}
_MODIFIERS = {
    *("or", "replace", "temp", "temporary", "global", "local", "unlogged", "unique"),
    *("recursive", "trusted", "procedural", "constraint", "default", "only"),
    *("if", "not", "exists", "concurrently", "all", "on"),
}
_OF_TWO_WORDS = {"materialized", "foreign", "event", "text", "access", "operator"}
_ON_A_TABLE = {"index", "trigger", "policy"}


def is_word(each: Tokens, at: int, *words: str) -> bool:
    """Whether one of these words stands at a place."""
    return at < len(each) and each[at].kind == "word" and each[at].text in words


def _name(each: Tokens, at: int) -> str | None:
    """The name, maybe of several parts, that stands there."""
    parts = []
    while at < len(each) and each[at].kind in ("word", "name"):
        parts.append(each[at].text)
        if at + 1 >= len(each) or each[at + 1].text != ".":
            break
        at += 2
    return ".".join(parts) or None


def _after(each: Tokens, at: int, *skipped: str) -> int:
    while is_word(each, at, *skipped):
        at += 1
    return at


def _written(op: str, *skipped: str) -> Callable[[Tokens], Meaning]:
    def meaning(each: Tokens) -> Meaning:
        name = _name(each, _after(each, 1, *skipped))
        return Meaning(Kind.WRITE, op, name, counted=True)

    return meaning


def data_change(each: Tokens) -> Meaning | None:
    """An INSERT, UPDATE, DELETE or MERGE behind what WITH says, or else in brackets."""
    depth, found, changes = 0, dict[int, int](), 0
    for at in range(1, len(each)):
        bracket = each[at - 1].text
        depth += (bracket == "(") - (bracket == ")")
        if bracket in ("(", ")") and is_word(each, at, *DATA) and not _locks(each, at):
            found.setdefault(depth, at)
            changes += 1
    if not found:
        return None
    outermost = each[found[min(found)] :]
    meaning = VERBS[outermost[0].text](outermost)
    return replace(meaning, counted=changes == 1 and 0 in found)


def _locks(each: Tokens, at: int) -> bool:
    """Whether it is the UPDATE of a SELECT that locks rows."""
    return is_word(each, at, "update") and is_word(each, at + 1, "of", "nowait", "skip")


def into_table(each: Tokens) -> Meaning | None:
    """A SELECT that makes a table."""
    depth = 0
    for at, token in enumerate(each):
        depth += (token.text == "(") - (token.text == ")")
        if not depth and token == Token("word", "into"):
            skipped = ("temporary", "temp", "unlogged", "table")
            name = _name(each, _after(each, at + 1, *skipped))
            return Meaning(Kind.WRITE, "create_table", name)
    return None


def first_text(each: Tokens) -> str | None:
    """The text that comes first, if it is one."""
    return each[0].text if each and each[0].kind == "string" else None


def _truncate(each: Tokens) -> Meaning:
    name = _name(each, _after(each, 1, "table", "only"))
    return Meaning(Kind.WRITE, "truncate", name, locks=True)


def _copy(each: Tokens) -> Meaning:
    if len(each) > 1 and each[1].text == "(":
        return data_change(each) or READ
    for at in range(2, len(each)):
        if is_word(each, at, "to"):
            return READ
        if is_word(each, at, "from"):
            stdin = is_word(each, at + 1, "stdin")
            kind = Kind.COPY_IN if stdin else Kind.WRITE
            return Meaning(kind, "copy", _name(each, 1))
    return READ


def _end(kind: Kind) -> Callable[[Tokens], Meaning]:
    def meaning(each: Tokens) -> Meaning:
        if is_word(each, 1, "prepared"):
            op = f"{each[0].text}_prepared"
            return Meaning(Kind.WRITE, op, TX, alone=True)
        at = _after(each, 1, "work", "transaction")
        if is_word(each, at, "to"):
            return READ
        chain = is_word(each, at, "and") and is_word(each, at + 1, "chain")
        return Meaning(kind, "commit", TX, chain=chain)

    return meaning


def _begin(each: Tokens) -> Meaning:
    return Meaning(Kind.BEGIN)


def _start(each: Tokens) -> Meaning:
    return Meaning(Kind.BEGIN) if is_word(each, 1, "transaction") else READ


def _by_itself(op: str) -> Callable[[Tokens], Meaning]:
    def meaning(each: Tokens) -> Meaning:
        name = _name(each, 1)
        return Meaning(Kind.WRITE, op, name, alone=True, locks=True, schema=True)

    return meaning


def _do(each: Tokens) -> Meaning:
    return Meaning(Kind.WRITE, "do", alone=True, locks=True, schema=True)


def _lock(each: Tokens) -> Meaning:
    return Meaning(locks=True)


def _execute(each: Tokens) -> Meaning:
    return Meaning(Kind.EXECUTE, name=each[1].text if len(each) > 1 else "")


def schema_change(each: Tokens) -> Meaning:
    """``CREATE UNIQUE INDEX i ON t``: op ``create_index``, key ``t``."""
    verb, at = each[0].text, _after(each, 1, *_MODIFIERS)
    op, kind = verb, each[at].text if at < len(each) else ""
    if verb in ("create", "alter", "drop", "refresh"):
        if kind in _OF_TWO_WORDS:
            at += 1
            kind = f"{kind}_{each[at].text}" if at < len(each) else kind
        op, at = f"{verb}_{kind}", at + 1
    words = {token.text for token in each if token.kind == "word"}
    return Meaning(
        Kind.WRITE,
        op,
        _subject(each, at, op, kind),
        alone=bool(_ALONE & {kind, *words & {"concurrently"}}),
        locks=verb in ("alter", "drop", "refresh"),
        schema=True,
    )


def _subject(each: Tokens, at: int, op: str, kind: str) -> str | None:
    if op in ("grant", "revoke", "comment") or kind in _ON_A_TABLE:
        for place in range(at, len(each)):
            if is_word(each, place, "on"):
                at = place + 1
                break
    return _name(each, _after(each, at, *_MODIFIERS, "table"))


VERBS: Mapping[str, Callable[[Tokens], Meaning]] = {
    "insert": _written("insert", "into"),
    "update": _written("update", "only"),
    "delete": _written("delete", "from", "only"),
    "merge": _written("merge", "into", "only"),
    "truncate": _truncate,
    "copy": _copy,
    "begin": _begin,
    "start": _start,
    "commit": _end(Kind.COMMIT),
    "end": _end(Kind.COMMIT),
    "rollback": _end(Kind.ROLLBACK),
    "abort": _end(Kind.ROLLBACK),
    "execute": _execute,
    "call": _by_itself("call"),
    "do": _do,
    "lock": _lock,
}
