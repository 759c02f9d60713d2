"""Mail over SMTP (RFC 5321): one connection a mail, and no retries of its own.

The server has the message when it has read the dot at its end. What breaks before that
was not sent; what breaks after it, and before the reply, is in doubt. There is no
look-up. Submit to a relay of your own: there is no log-in here and no TLS.
"""

import re
import smtplib
from contextlib import closing, suppress
from datetime import UTC, datetime
from typing import Any, NoReturn

from reference_agent.effects import NoLookUp, Trouble
from reference_agent.tool_clients.mail import Letter, Unsendable, compose
from reference_agent.transitions import Outcome

TIMEOUT_SECONDS = 30
SENDER = "reference-agent@localhost"
Answer = tuple[int, bytes]


class _Refused(Exception):
    """For good, in the server's words (5yz)."""


class SmtpMail:
    """A `ToolService` for one tool, `send_mail`."""

    def __init__(self, host: str, port: int, sender: str = SENDER) -> None:
        self._host, self._port, self._sender = host, port, sender

    def do(self, tool: str, arguments: dict[str, Any], key: str) -> Outcome:
        """See `ToolService.do`. A refusal is an outcome: the model may know better."""
        try:
            letter = compose(arguments, key, self._sender, datetime.now(UTC))
            with closing(self._connection()) as client:
                _hand_in(client, letter)
                with suppress(OSError):
                    client.quit()
        except (Unsendable, _Refused) as error:
            return Outcome(f"Error: {error}", applied=False)
        return Outcome(f"Sent as {letter.message_id}.", applied=True)

    def done(self, tool: str, arguments: dict[str, Any]) -> NoReturn:
        """See `ToolService.done`."""
        raise NoLookUp

    def _connection(self) -> smtplib.SMTP:
        try:
            # Its own name would be asked of DNS, which may take its time.
            return smtplib.SMTP(
                self._host, self._port, "localhost", timeout=TIMEOUT_SECONDS
            )
        except OSError as error:
            reason = f"no connection: {type(error).__name__}"
            raise Trouble(reason, sent=False) from error


def _hand_in(client: smtplib.SMTP, letter: Letter) -> None:
    """One message to all its recipients, or to none. Raises Trouble and _Refused."""
    try:
        client.ehlo_or_helo_if_needed()
        _expect(250, client.mail(letter.sender))
        for recipient in letter.recipients:
            _expect(250, client.rcpt(recipient))
        _expect(354, client.docmd("DATA"))
        client.send(_stuffed(letter.raw))
    except OSError as error:
        reason = f"cut off before the end: {type(error).__name__}"
        raise Trouble(reason, sent=False) from error
    try:
        answer = client.getreply()
    except OSError as error:
        raise Trouble(f"no answer: {type(error).__name__}", sent=True) from error
    _expect(250, answer, sent=True)


def _expect(wanted: int, answer: Answer, *, sent: bool = False) -> None:
    """`sent`: what an answer leaves open that is none. 4yz and 5yz leave nothing open:
    the server has not taken the message, and will not deliver it (section 4.2.5)."""
    code, text = answer
    if code == wanted or (wanted == 250 and code == 251):
        return
    if 400 <= code < 500:
        raise Trouble(f"it answered {code}", sent=False)
    if 500 <= code < 600:
        raise _Refused(f"{code} {text.decode('utf-8', 'replace')}")
    raise Trouble("its answer makes no sense", sent=sent)


def _stuffed(raw: bytes) -> bytes:
    """A message as DATA has it: with its end, which no line of its own can be taken for
    (section 4.5.2)."""
    return re.sub(rb"(?m)^\.", b"..", raw) + b".\r\n"
