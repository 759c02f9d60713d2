"""Reads what a life writes: its log lines, its last words, its final answer."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from pydantic import JsonValue

from chaoskit.gate import Blots
from chaoskit.model.errors import printable
from chaoskit.model.manifest import LogNames

Stream = Literal["stdout", "stderr"]
TAIL_LINES_MAX = 32
LINE_LENGTH_MAX = 400
_TAIL_BYTES = 64 * 1024


@dataclass(frozen=True)
class LogLine:
    """One log line: a JSON object that has an event or a level."""

    stream: Stream
    line: int
    entry: dict[str, JsonValue]


def log_entry(text: str, names: LogNames) -> dict[str, JsonValue] | None:
    """The log line that a line of output is, or None if it is none."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError):
        return None
    is_log = isinstance(entry, dict) and (names.event in entry or names.level in entry)
    return entry if is_log else None


@dataclass
class _Reader:
    """Whole lines of one growing file, each once."""

    path: Path
    stream: Stream
    lines: int = 0
    _offset: int = 0

    def new_lines(self, *, ended: bool) -> Iterator[tuple[int, str]]:
        """Lines that were completed since the last call; ``ended``: the rest too."""
        with self.path.open("rb") as file:
            file.seek(self._offset)
            data = file.read()
        if not ended:
            data = data[: data.rfind(b"\n") + 1]
        self._offset += len(data)
        for line in data.removesuffix(b"\n").split(b"\n") if data else ():
            self.lines += 1
            yield self.lines, line.decode(errors="backslashreplace")


@dataclass
class Output:
    """The two output files of one life."""

    stdout: Path
    stderr: Path
    names: LogNames
    _readers: tuple[_Reader, ...] = field(init=False)

    def __post_init__(self) -> None:
        self._readers = (
            _Reader(self.stderr, "stderr"),
            _Reader(self.stdout, "stdout"),
        )
        for reader in self._readers:
            reader.path.touch()

    def new_log_lines(self, *, ended: bool = False) -> Iterator[LogLine]:
        """Log lines written since the last call."""
        for reader in self._readers:
            for number, text in reader.new_lines(ended=ended):
                entry = log_entry(text, self.names)
                if entry is not None:
                    yield LogLine(reader.stream, number, entry)

    def holding(self, words: Sequence[bytes]) -> tuple[Stream, ...]:
        """The streams that hold one of these words."""
        return tuple(
            reader.stream for reader in self._readers if _has(reader.path, words)
        )

    def blot(self, blots: Blots) -> None:
        """Take secrets out of the files, once nobody writes to them any more."""
        for reader in self._readers:
            blot(reader.path, blots)

    def answer(self) -> str | None:
        """The last line of standard output that is neither empty nor a log line."""
        answer = None
        # A newline alone ends a line: an answer may hold any other separator.
        with self.stdout.open(
            encoding="utf-8", errors="backslashreplace", newline="\n"
        ) as lines:
            for line in lines:
                if line.strip() and log_entry(line, self.names) is None:
                    answer = line.strip()
        return answer

    def tail(self) -> tuple[str, ...]:
        """The last lines of standard error, or of standard output if it is empty."""
        lines = _last_lines(self.stderr) or _last_lines(self.stdout)
        shown = (line[:LINE_LENGTH_MAX] for line in lines[-TAIL_LINES_MAX:])
        return tuple(map(printable, shown))


def blot(path: Path, blots: Blots) -> None:
    """Take secrets out of one file."""
    data = path.read_bytes()
    written = blots.data(data)
    if written is not data:
        path.write_bytes(written)


def _has(path: Path, words: Sequence[bytes]) -> bool:
    data = path.read_bytes()
    return any(word in data for word in words)


def _last_lines(path: Path) -> list[str]:
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _TAIL_BYTES))
        text = file.read().decode(errors="backslashreplace")
    return text.removesuffix("\n").split("\n") if text else []
