"""A correct resumable agent on the standard library alone; each flag spoils one thing.

Usage: toy_agent.py RUN GOAL [FLAG ...]
"""

import base64
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.parse
import uuid

PARKED = 75
# Saves what is newer than what is there.
SAVE = """
local saved = redis.call('GET', KEYS[1])
if saved and cjson.decode(saved).n >= tonumber(ARGV[2]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1])
return 1
"""


class Redis:
    """As much of the protocol as a checkpoint needs."""

    def __init__(self):
        at = urllib.parse.urlsplit(os.environ["REDIS_URL"])
        self.file = socket.create_connection((at.hostname, at.port)).makefile("rwb")

    def call(self, *words):
        parts = [str(word).encode() for word in words]
        self.file.write(b"*%d\r\n" % len(parts))
        for part in parts:
            self.file.write(b"$%d\r\n%b\r\n" % (len(part), part))
        self.file.flush()
        head = self.file.readline()
        if head[:1] == b"$":
            size = int(head[1:])
            return None if size < 0 else self.file.read(size + 2)[:-2]
        if head[:1] in (b"-", b""):
            raise ConnectionError(head.decode() or "closed")
        return head[1:].strip()


def post(url, body, **headers):
    """POST JSON; returns the answer, parsed."""
    at = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname, at.port)
    connection.request("POST", at.path, json.dumps(body), headers)
    answer = connection.getresponse()
    data = json.loads(answer.read())
    connection.close()
    if answer.status != 200:
        raise SystemExit(f"{answer.status} from {url}: {data}")
    return data


def look_up(url, args):
    """The effects that are there already."""
    at = urllib.parse.urlsplit(url)
    connection = http.client.HTTPConnection(at.hostname, at.port)
    connection.request("GET", f"{at.path}?{urllib.parse.urlencode(args)}")
    answer = connection.getresponse()
    if answer.status != 200:
        raise SystemExit(f"the look-up was answered with {answer.status}")
    return json.loads(answer.read())["effects"]


def call_tool(url, args, headers):
    """Do it; what is made of an error, the flags say."""
    try:
        return json.dumps(post(url, args, **headers)["result"])
    except SystemExit as error:
        if "parks-on-errors" in FLAGS:
            raise SystemExit(PARKED) from error
        if "tells-errors" in FLAGS:
            return str(error)
        if "retries-errors" in FLAGS:
            return json.dumps(post(url, args, **headers)["result"])
        raise


class Agent:
    """Load, ask, act, save; over and over until the model has said its last word."""

    def __init__(self):
        self.redis = Redis()
        saved = self.redis.call("GET", STATE_KEY)
        fresh = {"n": 0, "messages": [{"role": "user", "content": GOAL}], "lives": 0}
        self.state = json.loads(saved) if saved else fresh
        if "stores-key" in FLAGS:
            self.state["debug"] = {"key": os.environ["OPENAI_API_KEY"]}
        if "stores-env" in FLAGS:
            self.state["env"] = dict(os.environ)
        self.log("run.resume" if saved else "run.start")
        if "beats" in FLAGS:
            self.beat("SET", f"beat:{RUN}")
        if "beats-among-saves" in FLAGS:
            self.beat("HSET", f"{STATE_KEY}:h", "alive")
        if {"beats", "beats-among-saves"} & set(FLAGS):
            time.sleep(0.1)  # so that each run has a few beats
        if "counts-lives" in FLAGS:
            self.state["lives"] += 1
            self.save()

    def log(self, event, **more):
        step = len(self.state["messages"])
        line = {"event": event, "level": "info", "run_id": RUN, "step": step}
        line |= {"checkpoint_id": self.state["n"], **more}
        print(json.dumps(line), file=sys.stderr, flush=True)

    def beat(self, *words):
        """A sign of life every 10 ms, on a connection of its own, for ever."""

        def run():
            redis, stop = Redis(), threading.Event()
            while not stop.wait(0.01):
                redis.call(*words, time.time())

        threading.Thread(target=run, daemon=True).start()

    def save(self):
        self.state["n"] += 1
        if "beats-among-saves" in FLAGS:
            self.redis.call("HSET", f"{STATE_KEY}:h", "cursor", self.state["n"])
        if "noisy" in FLAGS:
            self.state |= {"at": time.time(), "nonce": uuid.uuid4().hex}
        if "bulky" in FLAGS:
            self.state["bulk"] = f"{RUN} " + "0123456789abcdef-" * 600_000
        words = (STATE_KEY, json.dumps(self.state))
        if "fenced" not in FLAGS:
            self.redis.call("SET", *words)
        elif self.redis.call("EVAL", SAVE, 1, *words, self.state["n"]) == b"0":
            raise SystemExit("another life goes on with the run")

    def ask(self):
        url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        body = {"model": "toy", "messages": self.state["messages"]}
        key = os.environ["OPENAI_API_KEY"]
        headers = {"Content-Type": "application/json"}
        answer = post(url, body, Authorization=f"Bearer {key}", **headers)
        choice = answer["choices"][0]
        if choice["finish_reason"] == "length" and "takes-halves" not in FLAGS:
            raise SystemExit("the reply was cut off")
        message = choice["message"]
        return {name: value for name, value in message.items() if value is not None}

    def act(self, turn, position, call):
        name = call["function"]["name"]
        args = json.loads(call["function"]["arguments"])
        if name == "ask_human":
            return self.ask_human()
        if name == "wait":
            return self.wait(args["seconds"])
        if "no-effects" in FLAGS:
            return "skipped"
        if "parks" in FLAGS and turn == 1:
            raise SystemExit(PARKED)
        headers = {"Content-Type": "application/json"}
        if "no-key" not in FLAGS:
            fresh = uuid.uuid4().hex if "fresh-key" in FLAGS else ""
            headers["Idempotency-Key"] = f"{RUN}-{turn}-{position}{fresh}"
        if "sends-key" in FLAGS:
            headers["Idempotency-Key"] += os.environ["OPENAI_API_KEY"]
        url = f"{os.environ['CHAOSKIT_TOOLS_URL']}/{name}"
        if "looks" in FLAGS and (done := look_up(url, args)):
            return json.dumps(done[0]["result"])
        return call_tool(url, args, headers)

    def ask_human(self):
        if not ANSWERS:
            raise SystemExit(PARKED)
        return ANSWERS[0]

    def wait(self, seconds):
        if "due" not in self.state:
            self.state["due"] = time.time() + seconds
            self.save()
        if time.time() < self.state["due"] and "impatient" not in FLAGS:
            raise SystemExit(PARKED)
        del self.state["due"]
        return "waited"

    def pending(self):
        """Calls of the last assistant turn that have no result yet."""
        messages = self.state["messages"]
        turns = [n for n, m in enumerate(messages) if m["role"] == "assistant"]
        if not turns:
            return 0, []
        calls = list(enumerate(messages[turns[-1]].get("tool_calls", [])))
        return len(turns) - 1, calls[len(messages) - turns[-1] - 1 :]

    def run(self):
        messages = self.state["messages"]
        while True:
            turn, calls = self.pending()
            for position, call in calls:
                result = self.act(turn, position, call)
                answer = {"role": "tool", "tool_call_id": call["id"], "content": result}
                messages.append(answer)
                self.save()
            last = messages[-1]
            if last["role"] == "assistant" and not last.get("tool_calls"):
                self.log("run.end")
                print(last["content"])
                return
            if "unsteady" in FLAGS and is_first_ever():
                self.ask()
            messages.append(self.ask())
            if "acts-unsaved" not in FLAGS or not messages[-1].get("tool_calls"):
                self.save()


def is_first_ever():
    """True once, over all runs in this folder: no two runs are alike then."""
    try:
        os.close(os.open("first-ever", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def misbehave():
    """What a flag asks for before the agent proper begins."""
    if "leaks-key" in FLAGS:
        print("key", os.environ["OPENAI_API_KEY"], file=sys.stderr, flush=True)
    if "prints-env" in FLAGS:
        print(dict(os.environ), flush=True)
        print("\n".join(f"{k}={v}" for k, v in os.environ.items()), file=sys.stderr)
    if "prints-header" in FLAGS:
        header = f"Bearer {os.environ['OPENAI_API_KEY']}".encode()
        print(base64.b64encode(header).decode(), flush=True)
    if "crash" in FLAGS:
        print("starting up", file=sys.stderr)
        raise RuntimeError("the settings file is missing")
    if "hang" in FLAGS:
        print("about to wait for ever", file=sys.stderr, flush=True)
        signal.pause()
    if "children" in FLAGS:
        for session in (False, True):
            nap = [sys.executable, "-c", "import time; time.sleep(600)"]
            subprocess.Popen([*nap, *FLAGS], start_new_session=session)
    if "idle" in FLAGS:
        raise SystemExit(0)


def main():
    """One life; its words are not there yet when a warm parent imports this."""
    global RUN, GOAL, FLAGS, ANSWERS, STATE_KEY
    RUN, GOAL, *FLAGS = sys.argv[1:]
    ANSWERS = [f.removeprefix("answer=") for f in FLAGS if f.startswith("answer=")]
    STATE_KEY = f"toy:{RUN}"
    misbehave()
    Agent().run()


if __name__ == "__main__":
    main()
