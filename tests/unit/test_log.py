"""`log` on hand-written histories: each finding, and silence where all is well."""

import pytest

from chaoskit.checks.case import Case, Golden
from chaoskit.checks.log import check, silent
from chaoskit.model.address import Edge
from chaoskit.model.faults import FaultKind

LONG = "A secret of 25 characters"
SHORT = "A secret of 24 character"
assert (len(LONG), len(SHORT)) == (25, 24)


@pytest.fixture(scope="module")
def judged(make_scenario, make_manifest):
    """What `log` says of a story."""

    def judge(story, *turns, tools=None, names=None, goal="Do it", results=None):
        scenario = make_scenario(
            *(turns or ([("pay", {})],)),
            tools={"pay": "keyed", **(tools or {})},
            task={"goal": goal},
        )
        manifest = make_manifest(log=names or {})
        golden = Golden(results=results or {})
        return list(check(Case(story.trial(), scenario, manifest, golden)))

    return judge


def requirements(findings):
    return [finding.requirement for finding in findings]


def test_a_log_as_it_should_be(told, judged):
    story = told().log("run.start").log("checkpoint", 1)
    story.log("tool.intent", 1, call="c").killed_at().resume()
    story.log("run.resume", 1).log("tool.intent", 1, call="c")
    story.log("tool.result", 1, call="c").log("checkpoint", 2).log("run.end", 2)
    assert not judged(story.done())


# --- who is judged -------------------------------------------------------------------


def test_an_agent_without_logs_is_not_judged(told, judged, make_manifest):
    story = told().done()
    assert not judged(story)
    assert "'event'" in silent(story.trial(), make_manifest())


def test_json_that_is_no_log_of_a_run_does_not_make_a_log(told, judged, make_manifest):
    plain = {"level": "info"}
    for entry in (plain, {**plain, "event": "up"}, {**plain, "step": 1}):
        story = told().line(entry).done()
        assert not judged(story)
        assert silent(story.trial(), make_manifest())


@pytest.mark.parametrize("name", ["step", "checkpoint_id"])
def test_a_log_that_never_says_which_run_it_is_of_is_judged(told, judged, name):
    story = told().line({"event": "work", name: 1}).done()
    assert "log/ids-on-every-line" in requirements(judged(story))


def test_an_agent_with_logs_is_judged(told, make_manifest):
    assert silent(told().log("run.start").done().trial(), make_manifest()) is None


NAMES = {"run_id": "task", "step": "n", "checkpoint_id": "ckpt", "event": "msg"}
OWN = {"msg": "go", "task": "run-0a1b2c3d", "n": 1, "ckpt": 0}


def test_its_own_names(told, judged):
    assert not judged(told().line(OWN).line({**OWN, "ckpt": 1}).done(), names=NAMES)
    fallen = told().line({**OWN, "ckpt": 1}).line(OWN).done()
    found = judged(fallen, names=NAMES)
    assert requirements(found) == ["log/checkpoint-ids-never-fall"]
    assert "The ckpt fell" in found[0].message


def test_its_own_names_for_calls_and_levels(told, judged):
    names = {**NAMES, "call": "about", "level": "severity"}
    lost = told().line({**OWN, "msg": "tool result", "about": "c"})
    assert requirements(judged(lost.done(), names=names)) == [
        "log/intent-before-result"
    ]
    quiet = told().line({**OWN, "severity": "DEBUG", "level": "info", "x": LONG})
    assert not judged(quiet.done(), names=names, goal=LONG)


def test_the_standard_names_mean_nothing_to_an_agent_with_its_own(told, judged):
    assert not judged(told().log("x", 5).log("x", 1).done(), names=NAMES)


# --- ids -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["run_id", "step", "checkpoint_id"])
@pytest.mark.parametrize("how", ["missing", "null"])
def test_ids_on_every_line(told, judged, name, how):
    bare = told().log("run.start").log("work")
    entry = dict(bare.events[-1].entry)
    if how == "missing":
        del entry[name]
    else:
        entry[name] = None
    story = told().log("run.start").log("run.end").line(entry)
    (found,) = judged(story.done())
    assert found.requirement == "log/ids-on-every-line"
    assert f"has no {name}:" in found.message
    assert found.observed == [each for each in found.expected if each != name]
    assert found.subject == "work"
    assert found.events == (3,)


def test_a_line_of_a_library_has_ids_too(told, judged):
    story = told().log("work").line({"level": "info", "msg": "listening"})
    assert requirements(judged(story.done())) == ["log/ids-on-every-line"]


def test_ids_of_another_run(told, judged):
    (found,) = judged(told().log("work", run_id="run-x").done())
    assert found.requirement == "log/ids-on-every-line"
    assert (found.expected, found.observed) == ("run-0a1b2c3d", "run-x")


def test_ids_are_missing_in_many_lines_once(told, judged):
    story = told().log("work").line({"event": "a"}).line({"event": "b"})
    assert len(judged(story.done())) == 1


# --- checkpoints ---------------------------------------------------------------------


def test_checkpoint_ids_may_stay_and_rise_and_skip(told, judged):
    story = told().log("a").log("b").log("c", 1).log("d", 7).log("e", 7)
    assert not judged(story.done())


def test_checkpoint_ids_never_fall_within_a_life(told, judged):
    (found,) = judged(told().log("a", 2).log("b", 1).done())
    assert found.requirement == "log/checkpoint-ids-never-fall"
    assert (found.expected, found.observed) == ("at least 2", 1)
    assert found.events == (1, 2)


def test_checkpoint_ids_never_fall_over_lives(told, judged):
    story = told().log("a", 2).killed_at().resume().log("b", 1).done()
    assert requirements(judged(story)) == ["log/checkpoint-ids-never-fall"]


def test_a_life_that_has_not_read_its_checkpoint_yet_must_not_say_0(told, judged):
    story = told().log("a", 2).killed_at().resume().log("run.resume", 0).done()
    assert requirements(judged(story)) == ["log/checkpoint-ids-never-fall"]


def test_two_streams_of_one_life_have_no_order(told, judged):
    """They are read one after the other, so the second seems to fall back."""
    out = {"event": "a", "run_id": "run-0a1b2c3d", "step": 1, "checkpoint_id": 1}
    story = told().log("a", 1).log("b", 2).line(out, "stdout")
    assert not judged(story.done())
    story = told().log("a", 2).killed_at().resume().line(out, "stdout")
    assert requirements(judged(story.done())) == ["log/checkpoint-ids-never-fall"]


@pytest.mark.parametrize("value", ["7", 1.5, True, [1], -1])
def test_checkpoint_ids_are_numbers(told, judged, value):
    (found,) = judged(told().log("a", value).done())
    assert found.requirement == "log/checkpoint-ids-are-numbers"


# --- intents -------------------------------------------------------------------------


def test_a_result_without_an_intent(told, judged):
    story = told().log("tool.intent", call="a").log("tool.result", call="b")
    (found,) = judged(story.done())
    assert found.requirement == "log/intent-before-result"
    assert "'b'" in found.message
    assert found.events == (2,)


def test_an_intent_after_its_result(told, judged):
    story = told().log("tool.result", call="a").log("tool.intent", call="a")
    assert requirements(judged(story.done())) == ["log/intent-before-result"]


def test_an_intent_of_an_earlier_life(told, judged):
    story = told().log("tool.intent", call="a").killed_at().resume()
    assert not judged(story.log("tool.result", call="a").done())


def test_an_intent_on_the_other_stream_of_the_life(told, judged):
    """Nobody knows which came first."""
    entry = {"event": "tool.intent", "run_id": "run-0a1b2c3d", "step": 1, "call": "a"}
    story = told().log("tool.result", call="a")
    story.line({**entry, "checkpoint_id": 0}, "stdout")
    assert not judged(story.done())


def test_an_intent_of_a_later_life(told, judged):
    entry = {"event": "tool.intent", "run_id": "run-0a1b2c3d", "step": 1, "call": "a"}
    story = told().log("tool.result", call="a").killed_at().resume()
    story.line({**entry, "checkpoint_id": 0}, "stdout")
    assert requirements(judged(story.done())) == ["log/intent-before-result"]


def test_a_result_that_names_no_call_is_not_judged(told, judged):
    assert not judged(told().log("tool.result").log("query.result", call=None).done())


def test_the_cause_does_not_hang_on_the_run(told, judged):
    """Calls are often named after the run; a campaign must see one finding."""
    one, other = (
        judged(told().log("tool.result", call=call).done())
        for call in ("run-1/0", "run-2/0")
    )
    assert one[0].cause == other[0].cause


# --- starts and ends -----------------------------------------------------------------


def test_a_start_that_nothing_closes(told, judged):
    story = told().log("run.start").log("tool.start").log("run.end")
    (found,) = judged(story.done())
    assert found.requirement == "log/starts-are-closed"
    assert found.subject == "tool"
    assert found.events == (2,)


@pytest.mark.parametrize(
    ("start", "end"),
    [
        ("tool.start", "tool.end"),
        ("tool_start", "tool_end"),
        ("toolStart", "toolEnd"),
        ("TOOL START", "TOOL END"),
        ("HTTPStart", "HTTPEnd"),
        ("start", "end"),
        ("tool.start 2", "tool.end 2"),
    ],
)
def test_words_are_read_in_any_writing(told, judged, start, end):
    assert not judged(told().log(start).log(end).done())
    assert requirements(judged(told().log(start).done())) == ["log/starts-are-closed"]


@pytest.mark.parametrize("word", ["tool.restart", "tool.started", "start.tool", "..."])
def test_other_words_start_nothing(told, judged, word):
    assert not judged(told().log(word).done())


def test_an_end_closes_a_start_of_its_own_kind_only(told, judged):
    story = told().log("model.start").log("tool.end")
    assert requirements(judged(story.done())) == ["log/starts-are-closed"]


def test_each_start_has_its_own_end(told, judged):
    story = told().log("tool.start").log("tool.start").log("tool.end")
    assert requirements(judged(story.done())) == ["log/starts-are-closed"]
    assert not judged(
        told().log("x.start").log("x.start").log("x.end", n=1).log("x.end").done()
    )


def test_an_end_before_its_start_closes_nothing(told, judged):
    story = told().log("tool.end").log("tool.start")
    assert requirements(judged(story.done())) == ["log/starts-are-closed"]


END = {"event": "tool.end", "run_id": "run-0a1b2c3d", "step": 1, "checkpoint_id": 0}


def test_an_end_on_the_other_stream_closes_a_start(told, judged):
    """Nobody knows which came first; the streams are read one after the other."""
    bad = {**END, "level": "warning"}
    start = {**END, "event": "tool.start"}
    story = told().line(bad).log("tool.start").log("tool.end").line(start, "stdout")
    assert not judged(story.done())
    assert not judged(told().log("tool.start").line(bad, "stdout").done())


def test_it_closes_one_only(told, judged):
    story = told().log("tool.start").log("tool.start").line(END, "stdout")
    assert requirements(judged(story.done())) == ["log/starts-are-closed"]


def test_another_try_is_another_start(told, judged):
    """What failed has its end as well: the contract says so."""
    story = told().log("model.start").log("model.failed", level="warning")
    story.log("model.start").log("model.end")
    assert requirements(judged(story.done())) == ["log/starts-are-closed"]


def test_the_next_life_closes_what_a_killed_one_left_open(told, judged):
    story = told().log("run.start").log("tool.start").killed_at().resume()
    assert not judged(story.log("run.resume").log("run.end").done())


def test_the_next_life_closes_what_one_that_parked_left_open(told, judged):
    story = told().log("run.start").end("parked").resume().log("run.end")
    assert not judged(story.done())


@pytest.mark.parametrize("ending", ["parks", "over"])
def test_a_run_that_has_not_ended_by_itself_leaves_things_open(told, judged, ending):
    story = told().log("run.start")
    story = story.parks() if ending == "parks" else story.crashed().over("endless")
    assert not judged(story)


def test_a_run_that_failed_closes_its_starts(told, judged):
    found = judged(told().log("run.start").fails())
    assert requirements(found) == ["log/starts-are-closed"]


def test_the_life_after_done_does_not_close_a_start(told, judged):
    story = told().log("run.start").end("done").start("again").log("run.end")
    found = judged(story.end("done").over("done"))
    assert requirements(found) == ["log/starts-are-closed"]


# --- content -------------------------------------------------------------------------


def quoting(story, text, **entry):
    return story.log("work", **{"detail": text, **entry}).done()


def test_25_characters_of_the_goal_are_too_many(told, judged):
    (found,) = judged(quoting(told(), LONG), goal=LONG)
    assert found.requirement == "log/no-content"
    assert found.subject == "work"


def test_24_characters_are_allowed(told, judged):
    assert not judged(quoting(told(), SHORT), goal=SHORT)
    assert not judged(quoting(told(), f"<{LONG[:24]}>"), goal=LONG)
    assert not judged(quoting(told(), f"<{LONG[1:]}>"), goal=LONG)


def test_content_inside_longer_texts_on_both_sides(told, judged):
    found = judged(quoting(told(), f"said: {LONG}!"), goal=f"Say {LONG}, please")
    assert requirements(found) == ["log/no-content"]


def test_content_deep_inside_a_line(told, judged):
    found = judged(quoting(told(), [{"a": ["x", LONG]}]), goal=LONG)
    assert requirements(found) == ["log/no-content"]


def test_a_hash_of_content_is_allowed(told, judged):
    assert not judged(quoting(told(), "9f86d081884c7d659a2feaa0c55ad015"), goal=LONG)


@pytest.mark.parametrize("level", ["info", "INFO", "warning", "error", "x", 20, 30, 50])
def test_levels_that_are_judged(told, judged, level):
    found = judged(quoting(told(), LONG, level=level), goal=LONG)
    assert requirements(found) == ["log/no-content"]


@pytest.mark.parametrize("level", ["debug", "DEBUG", "Trace", "verbose", 10, 5])
def test_levels_below_info(told, judged, level):
    assert not judged(quoting(told(), LONG, level=level), goal=LONG)


def test_a_line_without_a_level_is_judged(told, judged):
    story = told().log("work", detail=LONG)
    entry = {k: v for k, v in story.events[-1].entry.items() if k != "level"}
    found = judged(told().line(entry).done(), goal=LONG)
    assert requirements(found) == ["log/no-content"]


def test_content_of_messages(told, judged):
    story = told().ask(0, contents=(LONG,)).log("work", detail=LONG).done()
    assert requirements(judged(story)) == ["log/no-content"]


FAILED = "HTTP 503: the service is not there now"


def told_and_logged(story, text):
    """The model is told a result, and the log has the same words."""
    story.ask(1, "0.0", results={"0.0": text}, contents=(text,))
    return story.log("tool.failed", level="warning", error=f"tool: {text}").done()


def test_the_error_of_a_tool_is_no_content(told, judged):
    """An operator has to read it; that the model is told it too makes no difference."""
    story = told().ask(0).deliver("pay", "k")
    story.struck(FaultKind.ERROR, Edge.BEFORE, "503")
    assert not judged(told_and_logged(story, FAILED))


def test_nor_is_it_where_the_result_came_after_all(told, judged):
    """Struck, tried again: what the fault-free runs are told is the tool's result."""
    for usual, found in (("paid: " + LONG, 0), (FAILED, 1)):
        story = told().ask(0).deliver("pay", "k")
        story.struck(FaultKind.ERROR, Edge.BEFORE, "503").call("pay", "k")
        findings = judged(told_and_logged(story, FAILED), results={"0.0": usual})
        assert requirements(findings) == ["log/no-content"] * found


CUT = "[interrupted: nobody knows whether it was done]"


def test_what_an_agent_says_of_a_call_in_doubt_is_no_content(told, judged):
    story = told().ask(0).deliver("pay").killed().resume()
    assert not judged(told_and_logged(story, CUT), results={"0.0": "paid"})


@pytest.mark.parametrize("results", [{"0.0": CUT}, {}])
def test_what_may_be_a_result_is_content(told, judged, results):
    story = told().ask(0).deliver("pay").killed().resume()
    found = judged(told_and_logged(story, CUT), results=results)
    assert requirements(found) == ["log/no-content"]


def test_so_is_another_result_of_a_call_that_nothing_befell(told, judged):
    found = judged(told_and_logged(told().ask(0).call("pay", "k"), LONG))
    assert requirements(found) == ["log/no-content"]


def test_content_that_is_sent_only_later(told, judged):
    story = told().log("work", detail=LONG).ask(0, contents=(LONG,)).done()
    assert requirements(judged(story)) == ["log/no-content"]


@pytest.mark.parametrize(
    "turn",
    [{"say": LONG}, {"ask": LONG}, [("pay", {"mail": {"body": [LONG]}})]],
    ids=["say", "ask", "arguments"],
)
def test_content_of_the_model(told, judged, turn):
    assert requirements(judged(quoting(told(), LONG), turn)) == ["log/no-content"]


def test_short_arguments_may_be_logged(told, judged):
    turn = [("pay", {"order": "o-1", "cents": 42000})]
    assert not judged(quoting(told(), {"order": "o-1", "cents": 42000}), turn)


def test_a_long_name_of_a_tool_is_no_content(told, judged):
    tool = "search_for_flights_and_hotels"
    story = told().ask(0, contents=(f"Use {tool}.",)).log("tool.intent", tool=tool)
    assert not judged(story.done(), tools={tool: "read"})
    story = told().ask(0, contents=(f"Use {tool}.",)).log("a", said=f"Use {tool}.")
    found = judged(story.done(), tools={tool: "read"})
    assert requirements(found) == ["log/no-content"]


def test_a_line_of_dashes_is_no_content(told, judged):
    story = told().ask(0, contents=("-" * 40,)).log("work", detail="-" * 40)
    assert not judged(story.done())


def test_content_is_told_once(told, judged):
    story = told().log("a", detail=LONG).log("b", detail=LONG).done()
    assert len(judged(story, goal=LONG)) == 1


def test_what_the_life_after_done_logs_is_judged(told, judged):
    story = told().log("a").end("done").start("again").log("b", detail=LONG)
    found = judged(story.end("done").over("done"), goal=LONG)
    assert requirements(found) == ["log/no-content"]
