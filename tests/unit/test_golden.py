"""What two fault-free runs agree on is what other runs are held against."""

from dataclasses import replace

from chaoskit.checks.case import Golden
from chaoskit.model.history import RunEnded

OTHER = "run-ffffffff"


def run(told, answer, result="paid", last=1):
    story = told().ask(0).ask(last, "0.0", results={"0.0": result})
    return story.add(RunEnded(life=0, outcome="done", answer=answer)).trial()


def test_what_both_show_is_golden(told):
    assert Golden.of(run(told, "Done."), run(told, "Done.")) == Golden(
        "Done.", 1, {"0.0": "paid"}, tells_task=True, tells_calls=True
    )


def test_what_they_differ_in_is_left_out(told):
    first, second = run(told, "Done."), run(told, "Ready.", "refused", 2)
    assert Golden.of(first, second) == Golden(tells_task=True, tells_calls=True)


def test_the_run_s_own_id_is_no_difference(told):
    first = run(told, "Done: run-0a1b2c3d", "for run-0a1b2c3d")
    second = replace(run(told, f"Done: {OTHER}", f"for {OTHER}"), run_id=OTHER)
    assert Golden.of(first, second) == Golden(
        "Done: {run}", 1, {"0.0": "for {run}"}, tells_task=True, tells_calls=True
    )


def test_the_task_is_golden_where_every_request_of_both_holds_it(told):
    first = run(told, "Done.")
    for second in (told().ask(0).ask(1, task=False), told().ask(0, problem="no")):
        assert not Golden.of(first, second.done().trial()).tells_task
    refused = told().ask(0, problem="no", task=False).ask(0).done().trial()
    assert Golden.of(first, refused).tells_task


def test_calls_are_golden_where_no_request_of_either_tells_them_otherwise(told):
    first, other = run(told, "Done."), told().ask(0).ask(1, rewritten={"0.0": "pay()"})
    assert Golden.of(first, first).tells_calls
    assert not Golden.of(first, other.done().trial()).tells_calls
