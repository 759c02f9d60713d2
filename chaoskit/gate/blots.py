"""Secrets, and what stands in their place wherever something is written down.

A key that was escaped for a URL or a page, or encoded in base64, as in a dump of a
header, is the key all the same. In base64 its letters depend on where in a group of
three bytes it begins, and those at its ends on its neighbours: of each of the three
forms the part in between is looked for.
"""

import re
from base64 import b64encode, urlsafe_b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from html import escape
from json import dumps
from urllib.parse import quote, quote_plus

BLOT = "[canary]"
"""What stands in a history where the agent let its key out."""


def forms(secret: str) -> tuple[str, ...]:
    """The texts by which a secret is known: itself, escaped, in base64, in hex."""
    data = secret.encode(errors="surrogateescape")
    ways = (secret, *_escaped(secret, data), *_base64(data), *_cases(data.hex()))
    return tuple(dict.fromkeys(ways))


def _escaped(secret: str, data: bytes) -> Iterator[str]:
    """As it stands in JSON, in Python, in a shell, in a URL, in a page."""
    yield from (dumps(secret, ensure_ascii=plain)[1:-1] for plain in (True, False))
    yield repr(secret)[1:-1]
    yield from (secret.replace("'", quoted) for quoted in (r"'\''", "'\"'\"'"))
    for text in (quote(data), quote(data, safe=""), quote_plus(data)):
        yield from (text, _with_small_hex(text))
    page = escape(secret)
    yield from (page, page.replace("&#x27;", "&#39;"), escape(secret, quote=False))


def _with_small_hex(text: str) -> str:
    return re.sub("%..", lambda found: found[0].lower(), text)


def _cases(text: str) -> tuple[str, str]:
    return text, text.upper()


def _base64(data: bytes) -> Iterator[str]:
    for encode in (b64encode, urlsafe_b64encode):
        for before in range(3):
            text = encode(bytes(before) + data).decode()
            start = (before * 8 + 5) // 6
            yield text[start : (before + len(data)) * 8 // 6]


@dataclass(frozen=True)
class Blots:
    """What to write instead of each secret."""

    secrets: Mapping[str, str]
    _known: tuple[tuple[str, str], ...] = field(init=False)

    def __post_init__(self) -> None:
        pairs = (
            (form, blot)
            for secret, blot in self.secrets.items()
            for form in forms(secret)
        )
        # One that is part of another would leave half of that to be read.
        longest_first = sorted(pairs, key=lambda pair: -len(pair[0]))
        object.__setattr__(self, "_known", tuple(longest_first))

    def text(self, text: str) -> str:
        """The text without the secrets; the same object where it holds none."""
        for form, blot in self._known:
            if form in text:
                text = text.replace(form, blot)
        return text

    def data(self, data: bytes) -> bytes:
        """Bytes without the secrets; the same object where they hold none."""
        for form, blot in self._known:
            encoded = form.encode(errors="surrogateescape")
            if encoded in data:
                data = data.replace(encoded, blot.encode())
        return data
