"""The agent's command `inspect` in real campaigns: what it shows is judged, and it
leaves no trace.
"""

import json
import sys

import pytest

# An agent over a file. `--touch`: its look leaves a mark, and a life that finds the
# mark gives the run up. `--peek`: it takes the mark away again. `--in-place`: it
# empties the file before it fills it.
AGENT = """
import json, os, sys, urllib.request

state = os.path.join(os.environ["CHAOSKIT_STATE_DIR"], "state.json")
mark = os.path.join(os.environ["CHAOSKIT_STATE_DIR"], "mark")
run, flags = sys.argv[1], sys.argv[2:]

def load():
    if not os.path.exists(state):
        return {"checkpoint_id": 0, "status": "running", "transcript": []}
    with open(state) as file:
        return json.load(file)

def save(kept):
    kept["checkpoint_id"] += 1
    path = state if "--in-place" in flags else state + ".new"
    with open(path, "w") as file:
        json.dump(kept, file)
        file.flush()
        os.fsync(file.fileno())
    if path != state:
        os.rename(path, state)
    said = {"event": "checkpoint", "run_id": run, "step": 1, "level": "info"}
    said["checkpoint_id"] = kept["checkpoint_id"]
    print(json.dumps(said), file=sys.stderr, flush=True)

def post(url, body, **headers):
    data = json.dumps(body).encode()
    headers["Content-Type"] = "application/json"
    request = urllib.request.Request(url, data, headers)
    return json.load(urllib.request.urlopen(request))

if "inspect" in flags:
    if "--touch" in flags:
        open(mark, "w").write("somebody was here")
    if "--peek" in flags:
        open(mark, "w").close()
        os.remove(mark)
    print(json.dumps(load()))
    raise SystemExit
if os.path.exists(mark):
    raise SystemExit(65)
try:
    kept = load()
except ValueError:
    raise SystemExit(65)
said = kept["transcript"] or [{"role": "user", "content": "Pay"}]
while said[-1]["role"] != "assistant" or said[-1].get("tool_calls"):
    for call in said[-1].get("tool_calls") or ():
        url = os.environ["CHAOSKIT_TOOLS_URL"] + "/" + call["function"]["name"]
        args = json.loads(call["function"]["arguments"])
        told = post(url, args, **{"Idempotency-Key": run})
        text = json.dumps(told["result"])
        result = {"role": "tool", "tool_call_id": call["id"], "content": text}
        said.append(result)
        break
    else:
        body = {"model": "any", "messages": said}
        url = os.environ["OPENAI_BASE_URL"] + "/chat/completions"
        key = {"Authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
        said.append(post(url, body, **key)["choices"][0]["message"])
    save({**kept, "transcript": said})
    kept = load()
save({**kept, "status": "done"}) if kept["status"] != "done" else None
print(said[-1]["content"])
"""


@pytest.fixture
def write(tmp_path):
    """The scenario of such an agent with these flags."""

    def written(*flags):
        agent = tmp_path / "keeps.py"
        agent.write_text(AGENT)
        command = [sys.executable, str(agent), "{run}"]
        manifest = {
            "name": "keeps",
            "launch": "process",
            "start": [*command, *flags],
            "inspect": [*command, "inspect", *flags],
            "store": "files",
            "contract": {"effects": "exactly-once"},
        }
        scenario = {
            "name": "keeps",
            "agent": "agent.yaml",
            "task": {"goal": "Pay"},
            "llm": {"script": [{"call": {"pay": {"order": "o-1"}}}, {"say": "Paid."}]},
            "tools": {"pay": "keyed"},
        }
        (tmp_path / "agent.yaml").write_text(json.dumps(manifest))
        (tmp_path / "scenario.yaml").write_text(json.dumps(scenario))
        return tmp_path / "scenario.yaml"

    return written


def looks(result, trial):
    """When a trial was looked at, and what was there."""
    lines = (result.out / "trials" / trial / "history.jsonl").read_text().splitlines()
    events = map(json.loads, lines)
    return [
        (e["when"], e["after"], e["checkpoint_id"], len(e["transcript"]))
        for e in events
        if e["kind"] == "inspected"
    ]


def test_a_look_sees_the_wreck_and_leaves_no_trace(write, chaoskit):
    """What it wrote is not there for the next life, and crossed no edge."""
    result = chaoskit("replay", write("--touch"), "kill@0:tools.pay[o-1]#1:after")
    assert result.code == 0, result.stdout + result.stderr
    assert looks(result, "0003") == [("death", 0, 1, 2), ("end", 2, 4, 4)]
    history = (result.out / "trials" / "0003" / "history.jsonl").read_text()
    assert "mark" not in history


def test_a_checkpoint_that_a_kill_halved_is_seen_before_it_is_healed(write, chaoskit):
    """The kill falls between emptying the file and filling it."""
    schedule = "kill@0:files.write[state.json]#2:before"
    result = chaoskit("replay", write("--in-place"), schedule)
    assert "store/readable" in result.requirements, result.stdout


def test_a_look_is_not_kept_waiting_by_the_fault_it_comes_after(write, chaoskit):
    """`kill_one` holds the door until the death is on record, and no longer."""
    schedule = "kill_one@0:tools.pay[o-1]#1:after"
    result = chaoskit("replay", write("--peek"), schedule)
    assert result.code == 0, result.stdout + result.stderr
    assert looks(result, "0003") == [("death", 0, 1, 2), ("end", 2, 4, 4)]
