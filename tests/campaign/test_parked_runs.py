"""Runs that park: at a human gate, at a durable wait, and for no reason at all."""

GATE = [
    {"ask": "Pay?"},
    {"call": {"pay": {"order": "o-1", "cents": 100}}},
    {"say": "Paid."},
]
WAIT = [
    {"wait": 0.5},
    {"call": {"pay": {"order": "o-1", "cents": 100}}},
    {"say": "Paid."},
]
TOOLS = {"pay": "keyed"}


def test_a_gate_is_answered_and_the_run_goes_on(write_scenario, chaoskit):
    """The answer is brought by the `answer` command, killed anywhere or not."""
    path = write_scenario(llm={"script": GATE}, tools=TOOLS, human=["yes"])
    result = chaoskit("run", path)
    assert result.code == 0, result.stdout
    assert result.report["crossings"]["missed"] == 0
    history = (result.out / "trials" / "baseline-1" / "history.jsonl").read_text()
    assert '"purpose":"answer","answer":"yes"' in history


def test_a_wait_is_resumed_at_its_end(write_scenario, chaoskit):
    """Parked, then resumed once the time has come."""
    path = write_scenario(llm={"script": WAIT}, tools=TOOLS)
    schedule = "kill@0:redis.set[toy:{run}]#2:after"
    result = chaoskit("replay", path, schedule)
    assert result.code == 0, result.stdout


def test_a_wait_that_is_cut_short_is_found(write_scenario, chaoskit):
    """Not early: the model must not be told before the time is over."""
    path = write_scenario("impatient", llm={"script": WAIT}, tools=TOOLS)
    result = chaoskit("replay", path, "")
    assert result.code == 1
    assert "progress/waits-its-time" in result.requirements


def test_parking_for_no_reason_is_found(write_scenario, chaoskit):
    """No gate, no wait, no call in doubt: the run is simply stuck."""
    result = chaoskit("replay", write_scenario("parks"), "")
    assert result.code == 1
    assert result.requirements == ["progress/parks-for-a-reason"]
