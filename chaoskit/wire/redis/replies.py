"""Where one reply of a Redis server ends and the next begins; see `resp`."""

from chaoskit.wire.redis.resp import COUNT, END, WireError

# How many elements of its own follow an element that has a count of n. An attribute
# precedes the element that it describes, so that one is missing still.
_ONE_LINE = b"+-:_,#("
_SIZED = b"$=!"
_FOLLOWED_BY = {
    ord("*"): lambda n: n,
    ord("~"): lambda n: n,
    ord(">"): lambda n: n,
    ord("%"): lambda n: 2 * n,
    ord("|"): lambda n: 2 * n + 1,
}


class Replies:
    """Cuts what a server sends, in RESP2 or RESP3, into whole replies.

    A push message and a reply with attributes are each one whole reply. A reply is
    whole when no element is missing; how the elements nest does not matter for that.
    """

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._at = 0
        self._missing = 1

    def feed(self, data: bytes) -> list[bytes]:
        """Take in what was read from the server; returns the replies now whole.

        Raises:
            WireError: no server answers like that.
        """
        self._buffer += data
        replies: list[bytes] = []
        begin = 0
        while self._element():
            if not self._missing:
                replies.append(bytes(self._buffer[begin : self._at]))
                begin = self._at
                self._missing = 1
        del self._buffer[:begin]
        self._at -= begin
        return replies

    def _element(self) -> bool:
        """Step over one element's head, or over a whole scalar."""
        line_end = self._buffer.find(END, self._at)
        if line_end < 0:
            return False
        kind, behind = self._buffer[self._at], line_end + len(END)
        if kind in _ONE_LINE:
            self._missing -= 1
        elif kind in _SIZED:
            size = self._number(line_end)
            behind += size + len(END) if size >= 0 else 0
            if behind > len(self._buffer):
                return False
            self._missing -= 1
        elif kind in _FOLLOWED_BY:
            count = max(0, self._number(line_end))
            self._missing += _FOLLOWED_BY[kind](count) - 1
        else:
            raise WireError(f"a server's reply cannot begin with {chr(kind)!r}")
        self._at = behind
        return True

    def _number(self, line_end: int) -> int:
        text = bytes(self._buffer[self._at + 1 : line_end])
        if not COUNT.fullmatch(text):
            raise WireError(f"a server's reply cannot have the length {text!r}")
        return int(text)
