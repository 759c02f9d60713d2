"""Mail: what a message says, and which call of the script it is. Pure.

A mail is a call when every argument of the call is found in it:

- an address, or several as a list or with commas: together they are the recipients of
  the envelope, all of them and no others; under the names ``from``, ``sender`` and
  ``reply_to`` they stand in the headers instead;
- any other text or number: somewhere in the subject or in the text of the body, as
  whole words, any white space being one space;
- true, false and null are not looked for; what lists and objects hold is.

So ``send_mail(to='ann@example.org', subject='Booked', body='See you.')`` is found in a
mail to that address alone that has both texts, wherever it says them and whatever else
it says. Of several calls that are found, the one whose arguments say the most is meant;
the first in the script, if they say the same.
"""

import html
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from email import message_from_bytes
from email.errors import HeaderParseError
from email.header import decode_header, make_header
from email.message import Message
from functools import cached_property

from pydantic import JsonValue

from chaoskit.model.scenario import Call
from chaoskit.wire.json_text import as_text

_SENDERS = ("from", "sender", "reply_to")
_BARE = re.compile(r"[^@\s<>,]+@[^@\s<>,]+")
_ADDRESS = rf"(?:[^<>@,]*<{_BARE.pattern}>|{_BARE.pattern})"
_ADDRESSES = re.compile(rf"\s*{_ADDRESS}\s*(?:,\s*{_ADDRESS}\s*)*")
_TAG = re.compile(r"<[^>]*>")


@dataclass(frozen=True)
class Mail:
    """A message with its envelope."""

    sender: str
    recipients: tuple[str, ...]
    raw: bytes

    @cached_property
    def message_id(self) -> str | None:
        """Its identity, with its angle brackets; None if it has none."""
        return self._header("message-id") or None

    @cached_property
    def subject(self) -> str:
        """The subject, decoded, on one line."""
        return self._header("subject")

    @cached_property
    def text(self) -> str:
        """What its parts of text say, any white space being one space."""
        return _plain(" ".join(_texts(self._parsed)))

    @cached_property
    def args(self) -> dict[str, JsonValue]:
        """What it says, as the arguments of a call that nobody scripted."""
        recipients: list[JsonValue] = [*self.recipients]
        return {"to": recipients, "subject": self.subject, "body": self.text}

    @cached_property
    def senders(self) -> frozenset[str]:
        """Every address that it says it is from."""
        names = ("from", "sender", "reply-to")
        said = [self.sender, *(self._header(name) for name in names)]
        return frozenset(each.lower() for text in said for each in _BARE.findall(text))

    @cached_property
    def _parsed(self) -> "Message[str, str]":
        return message_from_bytes(self.raw)

    def _header(self, name: str) -> str:
        sent = (text for each, text in self._parsed.raw_items() if each.lower() == name)
        value = (
            str(next(sent, ""))
            .encode("utf-8", "surrogateescape")
            .decode("utf-8", "replace")
        )
        try:
            return _plain(str(make_header(decode_header(value))))
        except (HeaderParseError, LookupError, ValueError):
            return _plain(value)


def scripted(mail: Mail, calls: Iterable[Call]) -> Call | None:
    """The call that a mail is; None if it is none of these."""
    found = [(said, call) for call in calls if (said := _said(mail, call)) is not None]
    return max(found, key=lambda pair: pair[0], default=(0, None))[1]


def _said(mail: Mail, call: Call) -> int | None:
    """How much of a mail the arguments of a call are; None if one is not found."""
    recipients: set[str] = set()
    said = 0
    for name, text in _leaves(call.args):
        if not _ADDRESSES.fullmatch(text):
            if not _stands_in(text, mail):
                return None
        elif name in _SENDERS:
            if not _addresses(text) <= mail.senders:
                return None
        else:
            recipients |= _addresses(text)
        said += len(text)
    meant = {each.lower() for each in mail.recipients}
    return said if not recipients or recipients == meant else None


def _addresses(text: str) -> set[str]:
    return {each.lower() for each in _BARE.findall(text)}


def _stands_in(text: str, mail: Mail) -> bool:
    whole = re.compile(rf"(?<!\w){re.escape(text)}(?!\w)")
    return bool(whole.search(mail.subject) or whole.search(mail.text))


def _leaves(value: JsonValue, name: str = "") -> Iterator[tuple[str, str]]:
    """The texts and numbers in arguments, each with the argument's name."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, name or key)
    elif isinstance(value, list):
        for inner in value:
            yield from _leaves(inner, name)
    elif value is not None and not isinstance(value, bool):
        yield name, _plain(as_text(value))


def _texts(message: "Message[str, str]") -> Iterator[str]:
    for part in message.walk():
        payload = part.get_payload(decode=True)
        if part.get_content_maintype() != "text" or not isinstance(payload, bytes):
            continue
        text = _decoded(payload, part.get_content_charset("utf-8"))
        is_html = part.get_content_subtype() == "html"
        yield html.unescape(_TAG.sub(" ", text)) if is_html else text


def _decoded(payload: bytes, charset: str) -> str:
    try:
        return payload.decode(charset, "replace")
    except LookupError:
        return payload.decode("utf-8", "replace")


def _plain(text: str) -> str:
    return " ".join(text.split())
