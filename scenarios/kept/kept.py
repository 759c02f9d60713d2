"""One small agent, and seven ways to keep its state; two of them are wrong.

    kept.py STORE RUN GOAL

The agent asks the model, does what it is told, and saves after each step. The stores
differ in nothing but `load` and `save`. Which are right, and against what:

    sqlite_wal, sqlite_delete   a transaction for each save, in both journal modes
    postgres                    the same, in a server
    file                        a new file, synced, then renamed over the old one
    log                         an appended line, synced; a torn last line is cut off
    unsynced                    WRONG: as `file`, but nothing is ever synced
    trusting_log                WRONG: as `log`, but every line is taken to be whole

A life that was killed between a write and its sync leaves a state that the next one can
read, and that a loss of power can still take back. So whoever loads a state makes it
durable before it acts on it.
"""

import json
import os
import sqlite3
import sys
import urllib.request
from pathlib import Path
from typing import Any, Protocol

State = dict[str, Any]


class Store(Protocol):
    """Where the state of one run is kept."""

    def load(self) -> State | None:
        """The newest state, now durable for sure, or None if there is none."""

    def save(self, state: State) -> None:
        """Return once the state is durable."""


class Sqlite:
    """A row in a database, in the journal mode that is asked for."""

    def __init__(self, journal: str, run: str) -> None:
        self.run = run
        self.folder = Path(os.environ["CHAOSKIT_STATE_DIR"])
        path = self.folder / "agent.db"
        self.db = sqlite3.connect(path, isolation_level=None)
        self.db.execute(f"PRAGMA journal_mode = {journal}")
        # In mode DELETE a commit removes the journal; only EXTRA makes that durable.
        self.db.execute("PRAGMA synchronous = EXTRA")
        self.db.execute("CREATE TABLE IF NOT EXISTS runs (run PRIMARY KEY, state)")

    def load(self) -> State | None:
        """See `Store`. The checkpoint syncs the log of mode WAL."""
        self.db.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        sync(self.folder)
        found = self.db.execute("SELECT state FROM runs WHERE run = ?", (self.run,))
        row = found.fetchone()
        return json.loads(row[0]) if row else None

    def save(self, state: State) -> None:
        """See `Store`."""
        row = (self.run, json.dumps(state))
        self.db.execute("INSERT OR REPLACE INTO runs VALUES (?, ?)", row)


class Postgres:
    """The same row in a server."""

    def __init__(self, run: str) -> None:
        import psycopg  # the other stores do without it

        self.run = run
        self.db = psycopg.connect(os.environ["DATABASE_URL"], autocommit=True)
        table = "CREATE TABLE IF NOT EXISTS runs (run text PRIMARY KEY, state jsonb)"
        self.db.execute(table)

    def load(self) -> State | None:
        """See `Store`."""
        asked = "SELECT state FROM runs WHERE run = %s"
        row = self.db.execute(asked, (self.run,)).fetchone()
        return row[0] if row else None

    def save(self, state: State) -> None:
        """See `Store`."""
        self.db.execute(
            "INSERT INTO runs VALUES (%s, %s)"
            " ON CONFLICT (run) DO UPDATE SET state = EXCLUDED.state",
            (self.run, json.dumps(state)),
        )


class File:
    """A file that is replaced as a whole."""

    def __init__(self, run: str, *, synced: bool) -> None:
        self.folder = Path(os.environ["CHAOSKIT_STATE_DIR"])
        self.path = self.folder / f"{run}.json"
        self.synced = synced

    def load(self) -> State | None:
        """See `Store`."""
        if not self.path.exists():
            return None
        if self.synced:
            sync(self.path)
            sync(self.folder)
        return json.loads(self.path.read_text())

    def save(self, state: State) -> None:
        """See `Store`."""
        new = self.path.with_suffix(".new")
        with new.open("w") as file:
            file.write(json.dumps(state))
            file.flush()
            if self.synced:
                os.fsync(file.fileno())
        new.rename(self.path)
        if self.synced:
            sync(self.folder)


class Log:
    """A line for each state; the last one counts."""

    def __init__(self, run: str, *, repairs: bool) -> None:
        self.path = Path(os.environ["CHAOSKIT_STATE_DIR"], f"{run}.log")
        self.repairs = repairs
        self.file = self.path.open("ab", buffering=0)

    def load(self) -> State | None:
        """See `Store`."""
        lines = self.path.read_bytes().splitlines(keepends=True)
        if self.repairs and lines and not lines[-1].endswith(b"\n"):
            torn = lines.pop()
            self.file.truncate(self.path.stat().st_size - len(torn))
        sync(self.path)
        sync(self.path.parent)
        return json.loads(lines[-1]) if lines else None

    def save(self, state: State) -> None:
        """See `Store`."""
        self.file.write(json.dumps(state).encode() + b"\n")
        os.fsync(self.file.fileno())


def sync(path: Path) -> None:
    """Make a file's content durable, or the names in a folder."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def store_of(name: str, run: str) -> Store:
    """The store of that name."""
    match name:
        case "sqlite_wal":
            return Sqlite("WAL", run)
        case "sqlite_delete":
            return Sqlite("DELETE", run)
        case "postgres":
            return Postgres(run)
        case "file":
            return File(run, synced=True)
        case "unsynced":
            return File(run, synced=False)
        case "log":
            return Log(run, repairs=True)
        case "trusting_log":
            return Log(run, repairs=False)
    raise SystemExit(f"{name}: no such store")


def main() -> int:
    """Go on with the run from where its store says, to the end."""
    name, run, goal = sys.argv[1:]
    store = store_of(name, run)
    state = store.load() or {"n": 0, "messages": [{"role": "user", "content": goal}]}
    messages = state["messages"]
    while True:
        for call in unanswered(messages):
            answer = act(run, call)
            messages.append(
                {"role": "tool", "tool_call_id": call["id"], "content": answer}
            )
            save(store, state)
        last = messages[-1]
        if last["role"] == "assistant" and not last.get("tool_calls"):
            print(last["content"])
            return 0
        messages.append(ask(messages))
        save(store, state)


def save(store: Store, state: State) -> None:
    """The next checkpoint, and a line of log once it is durable."""
    state["n"] += 1
    store.save(state)
    step = len(state["messages"])
    line = {"event": "run.checkpoint", "level": "info", "checkpoint_id": state["n"]}
    line |= {"run_id": os.environ["CHAOSKIT_RUN_ID"], "step": step}
    print(json.dumps(line), file=sys.stderr, flush=True)


def unanswered(messages: list[Any]) -> list[Any]:
    """The calls of the newest turn that have no result yet."""
    turns = [n for n, m in enumerate(messages) if m["role"] == "assistant"]
    if not turns:
        return []
    calls: list[Any] = messages[turns[-1]].get("tool_calls", [])
    return calls[len(messages) - turns[-1] - 1 :]


def ask(messages: list[Any]) -> Any:
    """The model's next turn."""
    url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
    headers = {"Authorization": f"Bearer {os.environ['OPENAI_API_KEY']}"}
    reply = post(url, {"model": "any", "messages": messages}, headers)["choices"][0]
    if reply["finish_reason"] == "length":
        raise SystemExit("the reply was cut off; the next life asks again")
    message = reply["message"]
    return {name: value for name, value in message.items() if value is not None}


def act(run: str, call: Any) -> str:
    """Do one call, with a key that is the same in every life."""
    function = call["function"]
    url = f"{os.environ['CHAOSKIT_TOOLS_URL']}/{function['name']}"
    key = f"{run}/{function['name']}/{function['arguments']}"
    answer = post(url, json.loads(function["arguments"]), {"Idempotency-Key": key})
    return json.dumps(answer["result"])


def post(url: str, body: Any, headers: dict[str, str]) -> Any:
    """Send JSON, get JSON; any error ends the life, and the next one goes on."""
    headers = {"Content-Type": "application/json", **headers}
    request = urllib.request.Request(url, json.dumps(body).encode(), headers)
    with urllib.request.urlopen(request, timeout=30) as response:
        return json.load(response)


if __name__ == "__main__":
    sys.exit(main())
