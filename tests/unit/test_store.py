"""`store`: what is read back is the newest durable checkpoint, whole."""

import pytest

from chaoskit.checks.case import Case
from chaoskit.checks.store import check, unseen
from chaoskit.model.faults import FaultKind

GOAL = {"role": "user", "content": "Do it"}
REPLY = {"role": "assistant", "content": "Done."}


def calls(name, *ids):
    """A turn of the model that calls a tool once for each id."""
    function = {"name": name, "arguments": "{}"}
    made = [{"id": i, "type": "function", "function": function} for i in ids]
    return {"role": "assistant", "content": None, "tool_calls": made}


def result(identity):
    return {"role": "tool", "tool_call_id": identity, "content": "ok"}


@pytest.fixture
def judged(make_scenario, make_manifest):
    def judge(story):
        scenario = make_scenario([("pay", {})], tools={"pay": "keyed"})
        found = check(Case(story.trial(), scenario, make_manifest()))
        return [each.requirement for each in found]

    return judge


def test_a_run_that_goes_on_is_right(told, judged):
    story = told().log("checkpoint", 1).inspected(checkpoint_id=1, transcript=[GOAL])
    story.resume().log("checkpoint", 2)
    story.inspected(checkpoint_id=2, transcript=[GOAL, REPLY])
    assert judged(story.inspected("end", 2, transcript=[GOAL, REPLY])) == []


def test_before_there_is_a_checkpoint_nothing_can_be_read(told, judged):
    assert judged(told().inspected(problem="no such run").resume()) == []


def test_nothing_is_older_than_a_checkpoint(told, judged):
    """What a death left is taken for no run at all; the next life would begin anew."""
    story = told().ask(0).log("checkpoint", 1).killed().inspected()
    story.resume().log("checkpoint", 1)
    story.inspected("end", checkpoint_id=1, transcript=[GOAL])
    assert judged(story) == ["store/newest"]


def test_who_numbers_nothing_has_no_older_checkpoint(told, judged):
    story = told().ask(0).log("checkpoint", 1).killed().inspected()
    assert judged(story.resume().inspected("end", checkpoint_id=None)) == []


def test_why_nothing_of_the_store_was_seen(told, make_manifest):
    """Said on report and certificate: nobody may take it for found right."""
    story = told().inspected("end", checkpoint_id=None).done().trial()
    plain = make_manifest()
    assert "names no `inspect`" in str(unseen(story, plain))
    looks = plain.model_copy(update={"inspect": ("agent", "inspect")})
    assert "always null" in str(unseen(story, looks))
    seen = told().inspected("end", checkpoint_id=1).done().trial()
    assert unseen(seen, looks) is None


def test_what_was_there_can_be_read(told, judged):
    story = told().log("checkpoint", 1).inspected(problem="no JSON")
    assert judged(story) == ["store/readable"]


def test_what_was_seen_before_can_be_read_too(told, judged):
    """Also of an agent that logs nothing, and numbers nothing."""
    story = told().inspected(transcript=[GOAL]).resume().inspected(problem="no JSON")
    assert judged(story) == ["store/readable"]


def test_a_life_that_is_paused_may_hold_a_lock(told, judged):
    """Not a dead one: what is locked after the last life cannot be read by the next."""
    story = told().log("checkpoint", 1).cross("files", "write", "x")
    story.struck(FaultKind.PAUSE).resume().crashed().inspected(problem="locked")
    assert judged(story.continued(0)) == []
    story.crashed().inspected(problem="locked")
    assert judged(story) == ["store/readable"]


def test_an_older_checkpoint_than_was_durable_is_found(told, judged):
    story = told().log("checkpoint", 10).inspected(checkpoint_id=9)
    assert judged(story) == ["store/newest"]


def test_so_is_one_older_than_was_seen(told, judged):
    story = told().inspected(checkpoint_id=10, transcript=[GOAL, REPLY]).resume()
    story.inspected(checkpoint_id=9, transcript=[GOAL])
    assert judged(story) == ["store/newest"]


def test_lines_of_another_run_say_nothing_of_this_one(told, judged):
    story = told().log("checkpoint", 10, run_id="run-of-another").log("start", True)
    assert judged(story.inspected(checkpoint_id=0)) == []


def test_each_kind_is_told_once(told, judged):
    story = told().log("checkpoint", 10)
    for _ in range(3):
        story.inspected(checkpoint_id=9).resume()
    assert judged(story) == ["store/newest"]


def test_a_newer_one_may_have_been_saved_before_it_was_logged(told, judged):
    assert judged(told().log("checkpoint", 1).inspected(checkpoint_id=2)) == []


def test_one_id_for_two_checkpoints_is_found(told, judged):
    one, other = calls("pay", "c1"), calls("refund", "c1")
    story = told().inspected(checkpoint_id=1, transcript=[GOAL, one]).resume()
    story.inspected(checkpoint_id=1, transcript=[GOAL, other])
    assert judged(story) == ["store/ids-rise"]


def test_what_is_newer_under_a_lower_id_is_found_as_that(told, judged):
    """An agent that counts its checkpoints anew in each life has lost nothing."""
    story = told().inspected(checkpoint_id=3, transcript=[GOAL]).resume()
    story.inspected(checkpoint_id=1, transcript=[GOAL, REPLY])
    assert judged(story) == ["store/ids-rise"]


def test_what_is_saved_beside_a_checkpoint_may_grow(told, judged):
    """As pending writes do; the id is of the checkpoint that they belong to."""
    turn = calls("pay", "c1", "c2")
    story = told().inspected(checkpoint_id=1, transcript=[GOAL, turn]).resume()
    more = [GOAL, turn, result("c1")]
    assert judged(story.inspected(checkpoint_id=1, transcript=more)) == []


def test_ids_and_times_may_be_new_at_each_reading(told, judged):
    story = told()
    for number in ("1", "2"):
        seen = {**calls("pay", f"c{number}"), "read_at": number}
        transcript = [GOAL, seen, result(f"c{number}")]
        story.inspected(checkpoint_id=4, transcript=transcript).resume()
    assert judged(story) == []


def test_a_transcript_that_lost_its_end_is_found(told, judged):
    story = told().inspected(checkpoint_id=1, transcript=[GOAL, REPLY]).resume()
    story.inspected(checkpoint_id=2, transcript=[GOAL])
    assert judged(story) == ["store/whole"]


def test_under_the_same_id_no_end_may_be_missing(told, judged):
    story = told().inspected(checkpoint_id=1, transcript=[GOAL, calls("pay", "c1")])
    story.resume().inspected(checkpoint_id=1, transcript=[GOAL])
    assert judged(story) == ["store/whole"]


def test_instructions_may_be_put_together_at_each_reading(told, judged):
    """With the time in them, say; what was said and done must be the same all the
    same."""

    def at(time, *rest):
        system = {"role": "system", "content": f"It is {time}."}
        return {"checkpoint_id": 1, "transcript": [system, GOAL, *rest]}

    story = told().inspected(**at("12:00", REPLY)).resume()
    assert judged(story.inspected(**at("12:01", REPLY))) == []
    story.resume().inspected(**at("12:02"))
    assert judged(story) == ["store/whole"]
    story = told().inspected(**at("12:00", calls("pay", "c1"))).resume()
    story.inspected(**at("12:01", calls("refund", "c1")))
    assert judged(story) == ["store/ids-rise"]


def test_a_summary_among_the_instructions_is_not_judged(told, judged):
    summary = {"role": "system", "content": "It was paid."}
    story = told().inspected(checkpoint_id=1, transcript=[GOAL, REPLY]).resume()
    story.inspected(checkpoint_id=2, transcript=[summary, GOAL])
    assert judged(story) == []


def test_a_run_that_is_done_may_clear_its_conversation(told, judged):
    """But not part of it, not under the same id, and not before it is done."""
    whole = [GOAL, REPLY]

    def clears(transcript=(), number=2, status="done"):
        story = told().inspected(checkpoint_id=1, transcript=whole).resume()
        more = {"transcript": [*transcript], "status": status}
        return judged(story.inspected("end", number, **more).over("parked"))

    assert clears() == []
    assert clears([GOAL]) == clears(number=1) == clears(status="running")
    assert clears([GOAL]) == ["store/whole"]


def test_a_turn_that_was_not_over_may_begin_anew(told, judged):
    """Some drop a call that nobody answered, and ask again."""
    story = told().inspected(checkpoint_id=1, transcript=[GOAL, calls("pay", "c1")])
    story.resume().inspected(checkpoint_id=2, transcript=[GOAL])
    assert judged(story) == []


def test_so_may_one_whose_calls_have_no_ids(told, judged):
    """Whether it was over nobody can say."""
    turn = {"role": "assistant", "tool_calls": [{"function": {"name": "pay"}}]}
    story = told().inspected(checkpoint_id=1, transcript=[GOAL, turn])
    story.resume().inspected(checkpoint_id=2, transcript=[GOAL])
    assert judged(story) == []


def test_a_result_that_is_gone_is_found(told, judged):
    """As where of two that finish together the last one drops the other's."""
    turn = calls("pay", "c1", "c2")
    story = told().inspected(checkpoint_id=1, transcript=[GOAL, turn, result("c1")])
    story.resume().inspected(checkpoint_id=2, transcript=[GOAL, turn, result("c2")])
    assert judged(story) == ["store/whole"]


@pytest.mark.parametrize("shape", [["all"], "all", {"messages": []}, None])
def test_of_shapes_that_are_not_known_nothing_is_said(told, judged, shape):
    story = told().inspected(checkpoint_id=1, transcript=shape).resume()
    assert judged(story.inspected(checkpoint_id=1, transcript=["less"])) == []


def test_one_that_was_summed_up_is_not_judged(told, judged):
    story = told().inspected(checkpoint_id=1, transcript=[GOAL, REPLY]).resume()
    story.inspected(checkpoint_id=2, transcript=[{"role": "user", "content": "So far"}])
    assert judged(story) == []


def test_what_the_store_forgot_is_its_own_doing(told, judged):
    story = told().log("checkpoint", 3).cross("redis", "set", "x")
    story.struck(FaultKind.ROLLBACK).inspected(checkpoint_id=2)
    assert judged(story) == []


def test_before_it_forgot_it_is_judged(told, judged):
    story = told().log("checkpoint", 3).inspected(checkpoint_id=2)
    story.resume().cross("redis", "set", "x").struck(FaultKind.ROLLBACK)
    assert judged(story) == ["store/newest"]


def test_a_loss_of_power_takes_what_was_only_seen(told, judged):
    """Whoever looks sees what was written and not synced; a log may not call it so."""
    seen = {"checkpoint_id": 5, "transcript": [GOAL, REPLY]}
    story = told().log("checkpoint", 4).inspected(**seen)
    story.resume().cross("files", "write", "x").killed(FaultKind.POWERLOSS)
    assert judged(story.inspected(checkpoint_id=4, transcript=[GOAL])) == []
    story.resume().inspected(checkpoint_id=3, transcript=[GOAL])
    assert judged(story) == ["store/newest"]
