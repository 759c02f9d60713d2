"""Where one command of a Redis client ends and the next begins; see `resp`."""

from collections import deque
from collections.abc import Iterable
from typing import NamedTuple

from chaoskit.wire.redis.inline import split
from chaoskit.wire.redis.resp import COUNT, END, WireError

BULK_BYTES_MAX = 512 * 1024 * 1024
"""The largest single value; a server's own limit (proto-max-bulk-len)."""
ARGUMENTS_MAX = 1024 * 1024
"""The most words in one command, as in a server."""
SHORT_BYTES_MAX = 4 * 1024
"""Above this what is there is not looked through again for each command."""
LINE_BYTES_MAX = 64 * 1024
"""The longest line of a client, as in a server."""


class Command(NamedTuple):
    """A whole command: its words, and the bytes in which it came."""

    words: tuple[bytes, ...]
    raw: bytes


class Commands:
    """Cuts what a client sends into whole commands, taken one by one."""

    def __init__(self) -> None:
        self._ahead: deque[Command] = deque()
        self._buffer = bytearray()
        self._at = 0
        self._missing = 0
        self._words: list[bytes] = []
        self._wrong: WireError | None = None

    def __len__(self) -> int:
        """How many bytes wait to be taken."""
        return len(self._buffer)

    def feed(self, data: bytes) -> None:
        """Take in what was read from the client."""
        self._buffer += data

    def take(self) -> Command | None:
        """The next whole command, or None until more is fed.

        Commands without a word are skipped, as a server does: nothing answers them.

        Raises:
            WireError: the bytes are no command, and nor is anything behind them; a
                server would close the connection.
        """
        if self._ahead:
            return self._ahead.popleft()
        try:
            if self._wrong is None:
                return self._take_short() or self._take()
        except WireError as wrong:
            self._wrong = wrong
        raise self._wrong

    def put_back(self, commands: Iterable[Command]) -> None:
        """Let them be taken again, before all others."""
        self._ahead.extendleft(reversed(list(commands)))

    def _take_short(self) -> Command | None:
        """A short command without a line's end in its words, as most of them are."""
        buffer = self._buffer
        if self._missing or len(buffer) > SHORT_BYTES_MAX or buffer[:1] != b"*":
            return None
        count, end, rest = buffer[1:].partition(END)
        if not end or not count.isdigit() or len(count) > 3 or count[:1] == b"0":
            return None
        *parts, behind = bytes(rest).split(END, 2 * int(count))
        words = tuple(parts[1::2])
        if len(words) < int(count) or parts[::2] != [b"$%d" % len(w) for w in words]:
            return None
        whole = len(buffer) - len(behind)
        command = Command(words, bytes(buffer[:whole]))
        del buffer[:whole]
        return command

    def _take(self) -> Command | None:
        while self._missing or self._begin():
            if not self._fill():
                return None
            command = Command(tuple(self._words), bytes(self._buffer[: self._at]))
            self._restart()
            if command.words:
                return command
        return None

    def _restart(self) -> None:
        del self._buffer[: self._at]
        self._at = 0
        self._words = []

    def _begin(self) -> bool:
        """Read the first line: how many words follow, or an inline command."""
        if not self._buffer:
            return False
        if self._buffer[0] != ord("*"):
            return self._inline()
        line = self._line()
        if line is not None:
            self._missing = max(0, _count(line, ARGUMENTS_MAX, "multibulk"))
        return line is not None

    def _inline(self) -> bool:
        end = self._buffer.find(b"\n")
        if end < 0:
            _no_longer_than_a_line(len(self._buffer), "inline request")
            return False
        self._words = list(split(bytes(self._buffer[:end])))
        self._at = end + 1
        return True

    def _fill(self) -> bool:
        """Read words until none is missing; False: more bytes are needed."""
        buffer = self._buffer
        while self._missing:
            end = buffer.find(END, self._at)
            if end < 0:
                _no_longer_than_a_line(len(buffer) - self._at, "count string")
                return False
            begin = end + len(END)
            behind = begin + _size(bytes(buffer[self._at : end]))
            if len(buffer) < behind + len(END):
                return False
            self._words.append(bytes(buffer[begin:behind]))
            self._at = behind + len(END)
            self._missing -= 1
        return True

    def _line(self) -> bytes | None:
        """The line at the current place, which moves behind it."""
        end = self._buffer.find(END, self._at)
        if end < 0:
            _no_longer_than_a_line(len(self._buffer) - self._at, "count string")
            return None
        line = bytes(self._buffer[self._at : end])
        self._at = end + len(END)
        return line


def _size(line: bytes) -> int:
    """How long the word is that this line announces."""
    if line[:1] != b"$":
        raise WireError(f"expected '$', got '{chr(line[0]) if line else ''}'")
    size = _count(line, BULK_BYTES_MAX, "bulk")
    if size < 0:
        raise WireError("invalid bulk length")
    return size


def _count(line: bytes, at_most: int, what: str) -> int:
    digits = line[1:]
    if not (digits.isdigit() and len(digits) <= 10) and not COUNT.fullmatch(digits):
        raise WireError(f"invalid {what} length")
    if (number := int(digits)) > at_most:
        raise WireError(f"invalid {what} length")
    return number


def _no_longer_than_a_line(size: int, what: str) -> None:
    if size > LINE_BYTES_MAX:
        raise WireError(f"too big {what}")
