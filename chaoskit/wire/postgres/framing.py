"""PostgreSQL's wire protocol 3.0: where each message ends, and the few we write.

A client opens with packets that have no tag (start-up, a request for encryption, a
request to cancel); from then on each message of both sides is a tag, four bytes of
length, and a body. See "Message Formats" in PostgreSQL's documentation.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from struct import Struct

HEAD_BYTES = 5
MESSAGE_BYTES_MAX = 1024 * 1024 * 1024
"""What the server itself takes at most."""
OPENING_BYTES_MAX = 10_000
"""What the server takes at most before it knows who is there."""

SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102

_ROWS = frozenset(b"Dd")
"""DataRow and CopyData: there may be many, and each is like the other."""
_INT = Struct(">I")
_TWO = Struct(">II")


class WireError(Exception):
    """What was sent is not this protocol."""


@dataclass(frozen=True, slots=True)
class Opening:
    """A packet from before the start: ``code`` is a request's, or the version."""

    code: int
    raw: bytes

    @property
    def parameters(self) -> dict[str, str]:
        """Of a start-up packet: user, database and settings."""
        words = [word.decode("utf-8", "replace") for word in self.raw[8:].split(b"\0")]
        pairs = zip(words[::2], words[1::2], strict=False)
        return {name: value for name, value in pairs if name}


class Requests:
    """What a client sends, cut into packets and messages."""

    def __init__(self) -> None:
        self._fed = bytearray()
        self._at = 0

    def __len__(self) -> int:
        return len(self._fed) - self._at

    def feed(self, data: bytes) -> None:
        """Take in bytes, as they come."""
        if self._at:
            del self._fed[: self._at]
            self._at = 0
        self._fed += data

    def opening(self) -> Opening | None:
        """The next packet without a tag, if it is whole.

        Raises:
            WireError: it can be none.
        """
        if len(self) < 8:
            return None
        size, code = _TWO.unpack_from(self._fed, self._at)
        if not 8 <= size <= OPENING_BYTES_MAX:
            raise WireError(f"a first packet of {size} bytes")
        if len(self) < size:
            return None
        at, self._at = self._at, self._at + size
        return Opening(code, bytes(self._fed[at : self._at]))

    def take(self) -> bytes | None:
        """The next message, if it is whole.

        Raises:
            WireError: it can be none.
        """
        fed, at = self._fed, self._at
        if len(fed) < at + HEAD_BYTES:
            return None
        (size,) = _INT.unpack_from(fed, at + 1)
        if not 4 <= size <= MESSAGE_BYTES_MAX:
            raise WireError(f"a message of {size} bytes")
        end = at + 1 + size
        if len(fed) < end:
            return None
        self._at = end
        return bytes(fed[at:end])


class Replies:
    """What a server sends, cut into messages."""

    def __init__(self) -> None:
        self._rest = b""

    def feed(self, data: bytes) -> list[bytes]:
        """The messages that are whole with these bytes; rows in a row are one piece."""
        data = self._rest + data if self._rest else data
        at = begin = tag = 0
        end, whole = len(data), []
        while at + HEAD_BYTES <= end:
            following = at + 1 + _INT.unpack_from(data, at + 1)[0]
            if following > end:
                break
            if data[at] != tag or tag not in _ROWS:
                if begin < at:
                    whole.append(data[begin:at])
                begin, tag = at, data[at]
            at = following
        if begin < at:
            whole.append(data[begin:at])
        self._rest = data[at:]
        return whole


def words(message: bytes, count: int) -> list[bytes]:
    """The first texts in a message, each of which ends with a zero byte."""
    found = message[HEAD_BYTES:].split(b"\0", count)
    return (found + [b""] * count)[:count]


def message(tag: bytes, body: bytes = b"") -> bytes:
    """A message of either side."""
    return tag + _INT.pack(4 + len(body)) + body


def query(sql: str) -> bytes:
    """A simple query."""
    return message(b"Q", sql.encode() + b"\0")


def error(severity: str, code: str, text: str) -> bytes:
    """An ErrorResponse: severity as in ``ERROR``, code as in ``40001``."""
    fields = (f"S{severity}", f"V{severity}", f"C{code}", f"M{text}")
    return message(b"E", _zero_ended(fields) + b"\0")


def ready(status: bytes) -> bytes:
    """A ReadyForQuery: idle ``I``, in a transaction ``T`` or in a failed one ``E``."""
    return message(b"Z", status)


def _zero_ended(texts: Iterable[str]) -> bytes:
    return b"".join(text.encode() + b"\0" for text in texts)


FLUSH, SYNC = message(b"H"), message(b"S")
BEGIN, COMMIT, ROLLBACK = query("BEGIN"), query("COMMIT"), query("ROLLBACK")
