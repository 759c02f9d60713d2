"""A correct long-lived agent of the standard library alone: workers that poll.

Usage: toy_fleet.py worker | submit RUN GOAL | status RUN | answer RUN ANSWER, and then
flags, each of which spoils one thing. Its state is a document for each run, and who
works on it: a lease that ends by itself, with a token that is another one with each
claim and without which nothing is saved. It is kept in Redis or, where there is no
REDIS_URL, in SQLite.
"""

import http.client
import json
import os
import signal
import socket
import sqlite3
import sys
import time
import urllib.parse
import uuid

LEASE_SECONDS = 1.5 if "REDIS_URL" in os.environ else 5.0
POLL_SECONDS = 0.03

SAVE = """
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[2], ARGV[2])
redis.call('SET', KEYS[1], ARGV[3], 'PX', ARGV[4])
return 1
"""
ANSWER = """
local saved = redis.call('GET', KEYS[1])
local found = cjson.decode(saved)
if found.status ~= 'parked' or not found.gate then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1
"""


class Lost(Exception):
    """Another worker goes on with the run."""


class Redis:
    """Runs in Redis: a document, a lease and a token for each."""

    def __init__(self, flags):
        self.flags = flags
        at = urllib.parse.urlsplit(os.environ["REDIS_URL"])
        self.file = socket.create_connection((at.hostname, at.port)).makefile("rwb")

    def call(self, *words):
        parts = [str(word).encode() for word in words]
        self.file.write(b"*%d\r\n" % len(parts))
        for part in parts:
            self.file.write(b"$%d\r\n%b\r\n" % (len(part), part))
        self.file.flush()
        return self.reply()

    def reply(self):
        head = self.file.readline()
        if head[:1] == b"*":
            return [self.reply() for _ in range(int(head[1:]))]
        if head[:1] == b"$":
            size = int(head[1:])
            return None if size < 0 else self.file.read(size + 2)[:-2].decode()
        if head[:1] in (b"-", b""):
            raise ConnectionError(head.decode() or "closed")
        return head[1:].strip().decode()

    def submit(self, run, document):
        self.call("SET", f"doc:{run}", json.dumps(document), "NX")
        self.call("SADD", "runs", run)

    def runs(self):
        return self.call("SMEMBERS", "runs")

    def load(self, run):
        found = self.call("GET", f"doc:{run}")
        return None if found is None else json.loads(found)

    def claim(self, run):
        """A token, where nobody holds the run; None where somebody does."""
        if "drops" in self.flags and self.call("SREM", "runs", run) == "0":
            return None
        lease, milliseconds = f"lease:{run}", int(LEASE_SECONDS * 1000)
        if self.call("EXISTS", lease) == "1":
            return None
        me = uuid.uuid4().hex
        if self.call("SET", lease, me, "NX", "PX", milliseconds) is None:
            return None
        return me

    def save(self, run, token, document):
        text, lease = json.dumps(document), f"lease:{run}"
        if "unfenced" in self.flags:
            self.call("SET", f"doc:{run}", text)
            return
        milliseconds = int(LEASE_SECONDS * 1000)
        words = (token, text, token, milliseconds)
        if self.call("EVAL", SAVE, 2, lease, f"doc:{run}", *words) == "0":
            raise Lost

    def release(self, run, token):
        if self.call("GET", f"lease:{run}") == token:
            self.call("DEL", f"lease:{run}")

    def answer(self, run, document):
        key = f"doc:{run}"
        return self.call("EVAL", ANSWER, 1, key, json.dumps(document)) == "1"


class Sqlite:
    """The same in a table."""

    def __init__(self, flags):
        self.flags = flags
        path = os.path.join(os.environ["CHAOSKIT_STATE_DIR"], "agent.db")
        self.db = sqlite3.connect(path, timeout=10, isolation_level=None)
        there = "SELECT 1 FROM sqlite_master WHERE name = 'runs'"
        if self.db.execute(there).fetchone() is None:
            self.db.execute(
                "CREATE TABLE IF NOT EXISTS runs"
                " (run TEXT PRIMARY KEY, document TEXT, token TEXT, until REAL)"
            )

    def submit(self, run, document):
        words = (run, json.dumps(document))
        self.db.execute("INSERT OR IGNORE INTO runs VALUES (?, ?, '', 0)", words)

    def runs(self):
        return [run for (run,) in self.db.execute("SELECT run FROM runs").fetchall()]

    def load(self, run):
        found = self.db.execute("SELECT document FROM runs WHERE run = ?", (run,))
        row = found.fetchone()
        return None if row is None else json.loads(row[0])

    def claim(self, run):
        free = "SELECT 1 FROM runs WHERE run = ? AND until < ?"
        if self.db.execute(free, (run, time.time())).fetchone() is None:
            return None
        me, now = uuid.uuid4().hex, time.time()
        claimed = self.db.execute(
            "UPDATE runs SET token = ?, until = ? WHERE run = ? AND until < ?",
            (me, now + LEASE_SECONDS, run, now),
        )
        return me if claimed.rowcount else None

    def save(self, run, token, document):
        mine = "" if "unfenced" in self.flags else " AND token = :token"
        saved = self.db.execute(
            f"UPDATE runs SET document = :text, until = :until WHERE run = :run{mine}",
            {
                "text": json.dumps(document),
                "until": time.time() + LEASE_SECONDS,
                "run": run,
                "token": token,
            },
        )
        if not saved.rowcount:
            raise Lost

    def release(self, run, token):
        self.db.execute(
            "UPDATE runs SET until = 0 WHERE run = ? AND token = ?", (run, token)
        )

    def answer(self, run, document):
        found = self.load(run)
        if found["status"] != "parked" or not found["gate"]:
            return False
        answered = self.db.execute(
            "UPDATE runs SET document = ? WHERE run = ? AND document = ?",
            (json.dumps(document), run, json.dumps(found)),
        )
        return bool(answered.rowcount)


def post(url, body, **headers):
    """POST JSON; returns the answer, parsed."""
    at = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname, at.port)
    headers |= {"Content-Type": "application/json"}
    connection.request("POST", at.path, json.dumps(body), headers)
    answer = connection.getresponse()
    data = json.loads(answer.read())
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"{answer.status} from {url}: {data}")
    return data


class Work:
    """One claim of one run: load, ask, act, save, until it ends or has to wait."""

    def __init__(self, store, run, token, document=None):
        self.store = store
        self.run = run
        self.token = token
        self.document = store.load(run) if document is None else document

    def log(self, event):
        line = {"event": event, "level": "info", "run_id": self.run}
        line |= {"step": len(self.document["messages"])}
        line |= {"checkpoint_id": self.document["n"]}
        print(json.dumps(line), file=sys.stderr, flush=True)

    def save(self, **changes):
        new = self.document | changes | {"n": self.document["n"] + 1}
        self.store.save(self.run, self.token, new)
        self.document = new

    def go(self):
        self.log("run.resume")
        while (status := self.step()) == "running":
            pass
        self.log(f"run.{'end' if status == 'done' else 'rest'}")
        self.store.release(self.run, self.token)

    def step(self):
        messages = self.document["messages"]
        turn, calls = pending(messages)
        if calls:
            return self.act(turn, *calls[0])
        last = messages[-1]
        if last["role"] == "assistant":
            self.save(status="done")
            return "done"
        self.save(messages=[*messages, self.ask()])
        return "running"

    def ask(self):
        url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        body = {"model": "toy", "messages": self.document["messages"]}
        key = os.environ["OPENAI_API_KEY"]
        answer = post(url, body, Authorization=f"Bearer {key}")
        message = answer["choices"][0]["message"]
        return {name: value for name, value in message.items() if value is not None}

    def act(self, turn, position, call):
        name = call["function"]["name"]
        args = json.loads(call["function"]["arguments"])
        if name == "ask_human":
            if self.document["answer"] is None:
                self.save(status="parked", gate=True)
                return "parked"
            return self.took(call, self.document["answer"], answer=None, gate=False)
        if name == "wait":
            due = self.document["due"] or time.time() + args["seconds"]
            if time.time() < due:
                self.save(status="parked", due=due)
                return "parked"
            return self.took(call, "waited", due=None)
        key = f"{self.run}-{turn}-{position}"
        if "fresh-key" in self.store.flags:
            key += uuid.uuid4().hex
        url = f"{os.environ['CHAOSKIT_TOOLS_URL']}/{name}"
        answer = post(url, args, **{"Idempotency-Key": key})
        return self.took(call, json.dumps(answer["result"]))

    def took(self, call, result, **changes):
        told = {"role": "tool", "tool_call_id": call["id"], "content": result}
        messages = [*self.document["messages"], told]
        self.save(messages=messages, status="running", **changes)
        return "running"


def pending(messages):
    """Calls of the last assistant turn that have no result yet."""
    turns = [n for n, m in enumerate(messages) if m["role"] == "assistant"]
    if not turns:
        return 0, []
    calls = list(enumerate(messages[turns[-1]].get("tool_calls", [])))
    return len(turns) - 1, calls[len(messages) - turns[-1] - 1 :]


def is_ready(document):
    """Whether there is something to do now."""
    if document is None or document["status"] in ("done", "failed"):
        return False
    if document["status"] == "parked":
        waits = document["gate"] or time.time() < (document["due"] or 0)
        return not waits or document["answer"] is not None
    return True


def work(store):
    """Poll until asked to end."""
    if "repeats" in store.flags:
        for run in store.runs():
            if store.load(run)["status"] == "done":
                Work(store, run, "").ask()
    asked = []
    signal.signal(signal.SIGTERM, lambda *_: asked.append(True))
    while not asked:
        for run in store.runs():
            document = store.load(run)
            if not is_ready(document):
                continue
            token = store.claim(run)
            if token is None:
                continue
            known = document if "stale" in store.flags else None
            try:
                Work(store, run, token, known).go()
            except Lost:
                print("somebody else goes on with", run, file=sys.stderr)
        time.sleep(POLL_SECONDS)


def main():
    """Do what the command line says."""
    verb, *words = sys.argv[1:]
    flags = [word for word in words if word.startswith("--")]
    words = [word for word in words if not word.startswith("--")]
    flags = [flag.removeprefix("--") for flag in flags]
    store = Redis(flags) if "REDIS_URL" in os.environ else Sqlite(flags)
    if verb == "worker":
        work(store)
    elif verb == "submit":
        run, goal = words
        document = {"n": 0, "status": "running", "answer": None, "due": None}
        document |= {"gate": False, "messages": [{"role": "user", "content": goal}]}
        store.submit(run, document)
    elif verb == "status":
        document = store.load(words[0])
        if document is None:
            raise SystemExit("no such run")
        print(document["status"])
        if document["status"] == "done":
            print(document["messages"][-1]["content"])
    elif verb == "answer":
        run, answer = words
        document = store.load(run)
        n = document["n"] + 1
        if not store.answer(run, document | {"n": n, "answer": answer}):
            raise SystemExit("nobody asks")


if __name__ == "__main__":
    main()
