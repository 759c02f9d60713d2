"""Server-sent events: written one by one, and read from bytes as they come.

Protocol: the WHATWG HTML standard, section "Server-sent events". The reader takes the
bytes in any portions and gives the same events.
"""

import codecs
from collections.abc import Iterator
from dataclasses import dataclass, field

from chaoskit.wire.json_text import compact


@dataclass(frozen=True)
class Event:
    """One event as it was sent; ``name`` is empty where it had none."""

    data: str
    name: str = ""
    id: str = ""


def event(data: object, name: str = "") -> bytes:
    """One event whole, its end included; data that is no text is written as JSON."""
    text = data if isinstance(data, str) else compact(data)
    lines = [f"event: {name}"] if name else []
    lines += [f"data: {line}" for line in text.split("\n")]
    return ("\n".join(lines) + "\n\n").encode()


@dataclass
class Reader:
    """Gives the events of a stream as soon as they are whole.

    An event that is cut before its empty line is none, as the standard has it.
    """

    _text: str = ""
    _data: list[str] = field(default_factory=list)
    _name: str = ""
    _id: str = ""
    _decoder: codecs.IncrementalDecoder = field(
        default_factory=codecs.getincrementaldecoder("utf-8-sig")
    )

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Take the next bytes; gives the events that they complete."""
        self._text += self._decoder.decode(chunk)
        for line in self._lines():
            if found := self._take(line):
                yield found

    def _lines(self) -> Iterator[str]:
        """The whole lines so far; a return at the very end may be half of an end."""
        while True:
            ends = [at for end in "\r\n" if (at := self._text.find(end)) >= 0]
            if not ends or (
                (at := min(ends)) == len(self._text) - 1 and (self._text[at] == "\r")
            ):
                return
            line, rest = self._text[:at], self._text[at:]
            self._text = rest[2 if rest.startswith("\r\n") else 1 :]
            yield line

    def _take(self, line: str) -> Event | None:
        if not line:
            return self._dispatch()
        name, _, value = line.partition(":")
        value = value.removeprefix(" ")
        if name == "data":
            self._data.append(value)
        elif name == "event":
            self._name = value
        elif name == "id" and "\0" not in value:
            self._id = value
        return None

    def _dispatch(self) -> Event | None:
        data, name = self._data, self._name
        self._data, self._name = [], ""
        return Event("\n".join(data), name, self._id) if data else None
