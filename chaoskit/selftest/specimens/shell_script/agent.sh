# One life of a run, as a shell script: a file of messages, one a line, in JSON.
#
#     sh agent.sh PYTHON RUN GOAL
#
# It promises at-most-once, and notes a call only after it was made. JSON is read and
# written by PYTHON, messages are sent by curl, or by PYTHON where there is none.
set -eu
python=$1 run=$2 goal=$3
messages=$CHAOSKIT_STATE_DIR/$run.jsonl

# post URL: send standard input, print the answer.
post() {
    auth=
    case $1 in "$OPENAI_BASE_URL"*) auth="Authorization: Bearer $OPENAI_API_KEY" ;; esac
    if command -v curl >/dev/null; then
        curl --silent --show-error --fail --noproxy '*' --data-binary @- \
            --header 'Content-Type: application/json' \
            ${auth:+--header} ${auth:+"$auth"} "$1"
    else
        "$python" -c '
import os, sys, urllib.request
headers = {"Content-Type": "application/json"}
if sys.argv[1].startswith(os.environ["OPENAI_BASE_URL"]):
    headers["Authorization"] = "Bearer " + os.environ["OPENAI_API_KEY"]
request = urllib.request.Request(sys.argv[1], sys.stdin.buffer.read(), headers)
print(urllib.request.urlopen(request).read().decode())' "$1"
    fi
}

# next: what is to be done, "call ID TOOL ARGUMENTS", "ask BODY" or "say TEXT".
next() {
    "$python" -c '
import json, os, sys
path, goal = sys.argv[1:]
lines = open(path) if os.path.exists(path) else ()
messages = [{"role": "user", "content": goal}, *map(json.loads, lines)]
turns = [m for m in messages if m["role"] == "assistant"]
told = [m["tool_call_id"] for m in messages if m["role"] == "tool"]
calls = turns[-1].get("tool_calls") or [] if turns else []
waiting = [call for call in calls if call["id"] not in told]
if waiting:
    function = waiting[0]["function"]
    print("call", waiting[0]["id"], function["name"], function["arguments"])
elif turns and not calls:
    print("say", turns[-1]["content"])
else:
    print("ask", json.dumps({"model": "any", "messages": messages}))' "$messages" "$goal"
}

# keep CODE [WORD]: turn an answer into the message that CODE says, and note it.
keep() {
    message=$("$python" -c "import json, sys; answer = json.load(sys.stdin); $1" ${2:-})
    echo "$message" >>"$messages"
}

while true; do
    todo=$(next)
    what=${todo%% *} rest=${todo#* }
    case $what in
    call)
        id=${rest%% *} rest=${rest#* }
        tool=${rest%% *} arguments=${rest#* }
        answer=$(echo "$arguments" | post "$CHAOSKIT_TOOLS_URL/$tool")
        # Here: the call was made, and the file does not say so.
        echo "$answer" | keep 'print(json.dumps({"role": "tool",
            "tool_call_id": sys.argv[1], "content": json.dumps(answer["result"])}))' \
            "$id"
        ;;
    ask)
        answer=$(echo "$rest" | post "$OPENAI_BASE_URL/chat/completions")
        echo "$answer" | keep 'print(json.dumps(answer["choices"][0]["message"]))'
        ;;
    say)
        echo "$rest"
        exit 0
        ;;
    esac
done
