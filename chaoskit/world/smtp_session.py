"""One connection of the mail server: aiosmtpd's dialogue, held by our gate.

Three things are changed. A message that has come whole is handled to its end, though
its client hangs up meanwhile (aiosmtpd would cancel it). What a client sent before it
closed its side is still read. After 421 the connection is closed, as RFC 5321 has it.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import AnyStr

from aiosmtpd.smtp import SMTP, Envelope
from aiosmtpd.smtp import Session as Peer

from chaoskit.wire.mail import Mail
from chaoskit.world.listener import reset

DATA_BYTES_MAX = 10 * 2**20
IDLE_SECONDS_MAX = 86_400.0
"""A message may be held as long as the longest trial."""

Take = Callable[[Mail, "Session"], Awaitable[str | None]]
"""Handles a message; None means that the connection was cut."""

# That an agent, or what was left of it, did not speak SMTP is no news of ours.
logging.getLogger("mail.log").setLevel(logging.CRITICAL)


class Session(SMTP):
    """See the module's docstring."""

    def __init__(self, take: Take, is_over: Callable[[], bool]) -> None:
        self._is_over = is_over
        super().__init__(
            _Handler(take),
            data_size_limit=DATA_BYTES_MAX,
            enable_SMTPUTF8=True,
            hostname="localhost",
            ident="chaoskit",
            timeout=IDLE_SECONDS_MAX,
            loop=asyncio.get_running_loop(),
        )

    async def send(self, data: bytes) -> None:
        """Send bytes as they are; nobody may listen any more."""
        try:
            self._writer.write(data)
            await self._writer.drain()
        except ConnectionError:
            pass

    async def push(self, status: AnyStr) -> None:
        """Send a reply."""
        await super().push(status)
        code = status[:3] if isinstance(status, bytes) else status[:3].encode()
        if code == b"421" and self.transport is not None:
            self.transport.close()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin; how the dialogue ends is nobody's to ask."""
        super().connection_made(transport)
        assert self._handler_coroutine is not None
        self._handler_coroutine.add_done_callback(_forget)
        if self._is_over():  # accepted in the last moment before its life's end
            asyncio.get_running_loop().call_soon(reset, transport)

    def eof_received(self) -> bool | None:
        """Read on until there is nothing more; the reader ends the dialogue then."""
        return asyncio.StreamReaderProtocol.eof_received(self)


def _forget(dialogue: "asyncio.Task[None]") -> None:
    if not dialogue.cancelled():
        dialogue.exception()


class _Handler:
    def __init__(self, take: Take) -> None:
        self._take = take
        self._under_way: set[asyncio.Task[str | None]] = set()

    async def handle_RCPT(
        self,
        server: Session,
        peer: Peer,
        envelope: Envelope,
        address: str,
        options: list[str],
    ) -> str:
        """A recipient; without a domain only the postmaster is one (RFC 5321)."""
        if "@" not in address and address.lower() != "postmaster":
            return f"553 5.1.3 {address!r} is no address: a mailbox with its domain"
        envelope.rcpt_tos.append(address)
        envelope.rcpt_options.extend(options)
        return "250 2.1.5 Ok"

    async def handle_DATA(self, server: Session, peer: Peer, envelope: Envelope) -> str:
        """A message has come whole."""
        raw = envelope.original_content or b""
        mail = Mail(envelope.mail_from or "", tuple(envelope.rcpt_tos), raw)
        task = asyncio.ensure_future(self._take(mail, server))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)
        reply = await asyncio.shield(task)
        if reply is None:
            raise asyncio.CancelledError
        return reply

    async def handle_exception(self, error: Exception) -> str:
        """The dialogue ended in the middle, or did not make sense."""
        if isinstance(error, asyncio.IncompleteReadError):
            return "421 4.4.2 The connection ended before the command did"
        return "451 4.3.0 The command made no sense"
