"""A mail, made from the arguments of a call. Pure.

Its Message-ID comes from the call's key, so each copy of one mail has the same: who
gets two by accident can tell, and many mailboxes drop the second.
"""

from dataclasses import dataclass
from datetime import datetime
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from hashlib import sha256
from typing import Any

POLICY = SMTP.clone(cte_type="7bit")
"""CRLF, and nothing that a server might not pass on."""


class Unsendable(Exception):
    """No mail can be made of these arguments; the reason is for the model."""


@dataclass(frozen=True)
class Letter:
    """A message and its envelope."""

    sender: str
    recipients: tuple[str, ...]
    message_id: str
    raw: bytes


def compose(arguments: dict[str, Any], key: str, sender: str, date: datetime) -> Letter:
    """The mail that a call of `send_mail(to, subject, body)` is. Raises Unsendable."""
    to, subject, body = (_text(arguments, name) for name in ("to", "subject", "body"))
    message = EmailMessage(policy=POLICY)
    message_id = _message_id(key, sender)
    message["Message-ID"] = message_id
    message["Date"] = date
    message["From"] = sender
    recipients = _recipients(message, to)
    _head(message, "Subject", subject)
    message["Auto-Submitted"] = "auto-generated"  # so that no autoresponder replies
    message.set_content(body, cte="quoted-printable")
    return Letter(sender, recipients, message_id, message.as_bytes())


def _message_id(key: str, sender: str) -> str:
    """Hashed: a key may have any length, and says more than its recipients should know
    (RFC 5322, section 3.6.4)."""
    return f"<{sha256(key.encode()).hexdigest()[:32]}@{sender.rpartition('@')[2]}>"


def _text(arguments: dict[str, Any], name: str) -> str:
    value = arguments.get(name)
    if not isinstance(value, str):
        raise Unsendable(f"{name} must be a text")
    return value


def _recipients(message: EmailMessage, to: str) -> tuple[str, ...]:
    _head(message, "To", to)
    found: tuple[Address, ...] = message["To"].addresses
    addresses = tuple(each.addr_spec for each in found)
    whole = all(each.username and each.domain for each in found)
    if message["To"].defects or not (addresses and whole and to.isprintable()):
        raise Unsendable("to must be an address, or several with commas between them")
    if not all(map(str.isascii, addresses)):
        raise Unsendable("to must be an address in ASCII")
    return addresses


def _head(message: EmailMessage, name: str, value: str) -> None:
    """A header line. A line break in it would begin another, of somebody else's."""
    if len(value.splitlines()) > 1 or value.endswith(("\r", "\n")):
        raise Unsendable(f"{name.lower()} must be one line")
    try:
        message[name] = value
    except Exception as error:  # the parser has bugs of its own: `ann@` is IndexError
        raise Unsendable(f"{name.lower()} makes no header: {value!r}") from error
