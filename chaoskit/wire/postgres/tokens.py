"""SQL as PostgreSQL's lexer sees it, as far as telling statements apart needs it.

Comments, every kind of string, quoted names and SQL-standard function bodies are told
apart exactly; numbers and operators are only kept from being taken for words. See
"Lexical Structure" in PostgreSQL's documentation.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

_TOKEN = re.compile(
    r"""
      (?P<space> \s+ | --[^\n\r]* )
    | (?P<comment> /\* )
    | (?P<escaped> [eE]'(?:[^'\\]|''|\\.)*' )
    | (?P<string> (?:[bBxXnN]|[uU]&)?'(?:[^']|'')*' )
    | (?P<quoted> (?:[uU]&)?"(?:[^"]|"")*" )
    | (?P<dollar> \$(?P<mark>(?:[^\W\d]\w*)?)\$ )
    | (?P<word> [^\W\d][\w$]* )
    | (?P<other> \$\d+ | [\d][\w.]* | . )
    """,
    re.VERBOSE | re.DOTALL,
)
_COMMENT = re.compile(r"/\*|\*/")


@dataclass(frozen=True, slots=True)
class Token:
    """A piece of SQL. ``kind`` is word, name (in double quotes), string or other.

    ``text`` is in lower case for words, and without quotes for names and strings.
    """

    kind: str
    text: str


Tokens = tuple[Token, ...]


def tokens(sql: str) -> Iterator[Token]:
    """The tokens of a text; what no lexer would take is a token of one character."""
    at = 0
    while found := _TOKEN.match(sql, at):
        at = found.end()
        match found.lastgroup if found.lastgroup != "mark" else "dollar":
            case "space":
                continue
            case "comment":
                at = _after_comment(sql, at)
            case "dollar":
                begin, at = at, _after_dollars(sql, at, found[0])
                yield Token("string", sql[begin : at - len(found[0])])
            case "escaped" | "string":
                yield Token("string", found[0][found[0].index("'") + 1 : -1])
            case "quoted":
                inner = found[0][found[0].index('"') + 1 : -1]
                yield Token("name", inner.replace('""', '"'))
            case "word":
                yield Token("word", found[0].lower())
            case _:
                yield Token("other", found[0])


def statements(sql: str) -> list[Tokens]:
    """The statements of a text that says something."""
    return [statement for statement in _cut(tokens(sql)) if statement]


def _cut(each: Iterable[Token]) -> Iterator[Tokens]:
    """Cut at semicolons that do not stand in brackets, or in a function's body."""
    current: list[Token] = []
    depth = body = 0
    for token in each:
        if token.kind == "other":
            depth += (token.text == "(") - (token.text == ")")
            if token.text == ";" and depth <= 0 and not body:
                yield tuple(current)
                current, depth = [], 0
                continue
        elif token.kind == "word":
            body = _body_depth(body, current, token.text)
        current.append(token)
    yield tuple(current)


def _body_depth(depth: int, before: list[Token], word: str) -> int:
    """How deep in ``BEGIN ATOMIC ... END`` of a CREATE FUNCTION a word leads."""
    if word == "atomic" and before and before[-1] == Token("word", "begin"):
        return 1
    if not depth:
        return 0
    return depth + (word == "case") - (word == "end")


def _after_comment(sql: str, at: int) -> int:
    depth = 1
    while depth and (found := _COMMENT.search(sql, at)):
        depth += 1 if found[0] == "/*" else -1
        at = found.end()
    return len(sql) if depth else at


def _after_dollars(sql: str, at: int, mark: str) -> int:
    end = sql.find(mark, at)
    return len(sql) + len(mark) if end < 0 else end + len(mark)
