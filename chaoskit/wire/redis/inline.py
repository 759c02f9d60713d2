"""A command that a person types: a line of words, quoted as redis-cli quotes them."""

import re
from collections.abc import Iterator

from chaoskit.wire.redis.resp import WireError

# Bare, or with a quoted end that a space must follow.
_WORD = re.compile(
    rb"""\s*+([^\s"']*)(?:"((?:[^"\\]|\\.)*)"|'((?:[^'\\]|\\.)*)')?(?=\s|\Z)""",
    re.DOTALL,
)
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|(.))", re.DOTALL)
_ESCAPED = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"b": b"\b", b"a": b"\a"}


def split(line: bytes) -> Iterator[bytes]:
    """The words of a line.

    Raises:
        WireError: a quote is not closed.
    """
    at, end = 0, len(line.rstrip())
    while at < end:
        found = _WORD.match(line, at, end)
        if found is None:
            raise WireError("unbalanced quotes in request")
        bare, double, single = found.groups()
        yield bare + (
            _ESCAPE.sub(_unescape, double)
            if double is not None
            else (single or b"").replace(b"\\'", b"'")
        )
        at = found.end()


def _unescape(found: re.Match[bytes]) -> bytes:
    code, letter = found.groups()
    return bytes.fromhex(code.decode()) if code else _ESCAPED.get(letter, letter)
