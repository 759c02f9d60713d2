"""How a client's connection to the relay begins: refused encryption, and start-up.

The server itself asks for the password, and the client's answer passes.
"""

from typing import Protocol

from chaoskit.gate import Dropped
from chaoskit.wire.postgres.errors import NOT_RELAYED, NOT_YOURS, Refusal
from chaoskit.wire.postgres.framing import (
    CANCEL_REQUEST,
    GSS_REQUEST,
    SSL_REQUEST,
    Opening,
    Requests,
)
from chaoskit.wire.postgres.steps import Part, Until
from chaoskit.world.postgres.upstream import Upstream
from chaoskit.world.relay import session as relay

_NO = ("false", "off", "no", "0")
_LOGIN = Until(readies=1, authentication=True)


class Reception(Protocol):
    """What a connection that begins needs of the service."""

    @property
    def reserved_role(self) -> str:
        """A role of the server that is not the agent's to use, if any."""

    async def connect(self, upstream: Upstream) -> None:
        """Connect to the server, once it is up."""

    async def cancel(self, request: bytes) -> None:
        """Hand a request to cancel on, and wait until the server has taken it."""


class Beginning(relay.Session):
    """A client's connection that has to be set up."""

    upstream: Upstream

    def __init__(
        self, opened: relay.Opened, register: relay.Register, reception: Reception
    ) -> None:
        self._requests = Requests()
        super().__init__(opened, register, self._requests)
        self.upstream = Upstream(self)
        self._reception = reception

    def told(self, reply: bytes) -> None:
        """See `Client`."""

    async def begin(self) -> bool:
        """Set the connection up; False if that is all there was to it.

        Raises:
            Dropped: the life is over.
            WireError: the client does not speak the protocol.
            OSError: the server cannot be reached, or has closed the connection.
        """
        while (packet := await self._packet()) is not None:
            if packet.code in (SSL_REQUEST, GSS_REQUEST):
                self.send(b"N")
            elif packet.code == CANCEL_REQUEST:
                await self._reception.cancel(packet.raw)
                return False
            else:
                return await self._start(packet)
        return False

    async def _packet(self) -> Opening | None:
        while True:
            if self.opened.is_over:
                raise Dropped
            packet = self._requests.opening()
            if packet is not None or self.has_left:
                return packet
            await self.more()

    async def _start(self, packet: Opening) -> bool:
        wanted = packet.parameters
        if wanted.get("replication", "false") not in _NO:
            return self._refuse(NOT_RELAYED)
        if wanted.get("user", "") == self._reception.reserved_role:
            return self._refuse(NOT_YOURS)
        await self._reception.connect(self.upstream)
        raw = packet.raw
        while raw:
            given = await self.upstream.ask(Part(raw, _LOGIN), passing=True)
            if given.status:
                return True
            raw = await self._password()
        return False

    async def _password(self) -> bytes:
        """What the client answers to the server's question; nothing once it is over."""
        while not (self.has_left or self.upstream.is_lost or self.opened.is_over):
            if message := self._requests.take():
                return message
            await self.more()
        return b""

    def _refuse(self, refusal: Refusal) -> bool:
        self.send(refusal.raw)
        return False
