"""What a store forgot is the store's doing; what an agent makes of it is not.

Each excuse is shown where it holds, and on a broken agent where it does not.
"""

import pytest

from chaoskit.checks import judge
from chaoskit.model.faults import FaultKind
from chaoskit.model.verdict import Severity

PAY = {"order": "o-1"}
BUY = ([("pay", PAY)],)
STATE = ("redis", "set", "state")
LOSSES = [(FaultKind.ROLLBACK, "1"), (FaultKind.EXPIRE, None)]
FELL = "log/checkpoint-ids-never-fall"


@pytest.fixture
def judged(make_scenario, make_manifest):
    """The requirements that a story breaks."""

    def judge_it(story, *turns, cls="keyed", **more):
        scenario = make_scenario(*(turns or BUY), tools={"pay": cls}, **more)
        return judge(story.trial(), scenario, make_manifest()).findings

    return judge_it


def broken(findings):
    return [finding.requirement for finding in findings]


def saved(story, number):
    """A checkpoint, and the line of log that says so."""
    return story.cross(*STATE).log("checkpoint", number)


def paid(story):
    """One call, with its checkpoints, and a question that carries its result."""
    saved(saved(story.ask(0), 1).call("pay", "k", **PAY), 2)
    return story.ask(1, "0.0").cross(*STATE)


@pytest.mark.parametrize(("kind", "argument"), LOSSES)
def test_a_life_that_finds_an_older_store_may_name_an_older_checkpoint(
    told, judged, kind, argument
):
    """Forgotten after its last checkpoint: the life after `done` does the rest anew."""
    story = paid(told()).struck(kind, argument=argument).log("checkpoint", 3)
    story.end("done", code=0).start("again").log("resume", 2).ask(1, "0.0")
    assert broken(judged(saved(story, 3).end("done", code=0).over("done"))) == []


@pytest.mark.parametrize("kind", [FaultKind.DELAY, FaultKind.DROP_REPLY])
def test_a_fault_that_takes_nothing_back_excuses_no_step_back(told, judged, kind):
    story = paid(told()).struck(kind).log("checkpoint", 3)
    story.end("done", code=0).start("again").log("resume", 2).ask(1, "0.0")
    found = judged(story.end("done", code=0).over("done"))
    assert broken(found) == ["progress/resume-after-done", FELL]


@pytest.mark.parametrize(("kind", "argument"), LOSSES)
def test_what_was_written_again_is_there(told, judged, kind, argument):
    """The next checkpoint made the loss good; the life after it goes back all the same.

    Its log falls, it makes a call again whose result the model has, it does not know
    that it was done: none of that is the store's doing any more.
    """
    story = saved(told(), 1).struck(kind, argument=argument)
    paid(story).log("checkpoint", 4).killed().resume().log("resume", 1)
    story.call("pay", "k", first=False, **PAY).ask(1, "0.0").end("done", code=0)
    story.start("again").ask(1, "0.0").end("done", code=0).over("done")
    assert broken(judged(story)) == [
        "progress/not-again",
        "progress/resume-after-done",
        FELL,
    ]


def test_a_write_that_a_fence_may_have_refused_makes_nothing_good(told, judged):
    """The life that lost its own record is refused, and the next one starts anew."""
    fenced = ("redis", "eval", "state")
    story = told().cross(*fenced).struck(FaultKind.ROLLBACK).ask(0).cross(*fenced)
    story.log("checkpoint", 1).crashed().resume().log("resume", 0).cross(*fenced)
    story.ask(0)
    assert broken(judged(story.call("pay", "k", **PAY).ask(1, "0.0").done())) == []


def paid_by_two_lives(told):
    """The store of a fenced agent forgets a result; the second life makes it good."""
    fenced = ("redis", "eval", "state")
    story = told().cross(*fenced).ask(0).call("pay", "k", **PAY).cross(*fenced)
    story.struck(FaultKind.ROLLBACK).ask(1, "0.0").killed().resume()
    return story.call("pay", "k", first=False, **PAY).cross(*fenced).ask(1, "0.0")


def test_what_a_later_life_told_the_model_was_not_forgotten(told, judged):
    """The second life may make the call again, and a third one may not."""
    assert broken(judged(paid_by_two_lives(told).done())) == []
    story = paid_by_two_lives(told).killed().resume()
    story.call("pay", "k", first=False, **PAY).ask(1, "0.0").done()
    assert broken(judged(story)) == ["progress/not-again"]


def test_a_call_whose_result_was_forgotten_is_made_again(told, judged):
    """The model had its result, and the store had it no more when the life ended."""
    story = paid(told()).struck(FaultKind.ROLLBACK, argument="2").killed()
    story.resume().log("resume", 1).call("pay", "k", first=False, **PAY)
    assert broken(judged(saved(story, 2).ask(1, "0.0").done())) == []


def test_a_life_that_lived_on_in_memory_excuses_its_successor_too(told, judged):
    """It lost its result, told the model, and died before it wrote again."""
    story = saved(told().ask(0), 1).call("pay", "k", **PAY).cross(*STATE)
    story.struck(FaultKind.ROLLBACK).ask(1, "0.0").killed().resume()
    story.call("pay", "k", first=False, **PAY).ask(1, "0.0").done()
    assert broken(judged(story)) == []


def test_its_successor_s_successor_has_no_excuse(told, judged):
    """The second life wrote all of it again, and the third forgets it by itself."""
    story = paid(told()).struck(FaultKind.ROLLBACK).killed().resume()
    saved(story.call("pay", "k", first=False, **PAY), 2).ask(1, "0.0").killed()
    story.resume().call("pay", "k", first=False, **PAY).ask(1, "0.0").done()
    assert broken(judged(story)) == ["progress/not-again"]


@pytest.mark.parametrize("durability", ["always", "everysec", "none"])
def test_a_restart_forgets_as_the_durability_says(told, judged, durability):
    story = paid(told()).log("checkpoint", 3).struck(FaultKind.RESTART).crashed()
    story.resume().log("resume", 0).ask(0).call("pay", "k", first=False, **PAY)
    story.ask(1, "0.0").done()
    found = broken(judged(story, durability={"redis": durability}))
    keeps = durability == "always"
    gone_back = ["progress/not-again", "cost/not-asked-again", FELL]
    assert found == (gone_back if keeps else [])


def test_a_loss_of_power_excuses_nothing(told, judged):
    """It takes what was not durable, and the log had called it so."""
    story = told().ask(0).cross("files", "write", "a").log("checkpoint", 3)
    story.killed(FaultKind.POWERLOSS).resume().log("resume", 0).ask(0)
    story.call("pay", "k", **PAY).ask(1, "0.0").done()
    assert broken(judged(story)) == [FELL]


def test_what_another_service_did_is_no_loss_of_this_one(told, judged):
    """Expired was a key of its own; the state's key is written again and again."""
    story = told().ask(0).cross("redis", "set", "lock")
    story.struck(FaultKind.EXPIRE).cross("redis", "set", "lock")
    saved(story, 3).killed().resume().log("resume", 1).ask(0)
    assert broken(judged(story.call("pay", "k", **PAY).ask(1, "0.0").done())) == [FELL]


def lost_and_paid_again(told, key):
    story = saved(told().ask(0), 1).struck(FaultKind.ROLLBACK).call("pay", key, **PAY)
    story.killed().resume().ask(0)
    second = key and "k2"
    return story.call("pay", second, **PAY).ask(1, "0.0").done()


@pytest.mark.parametrize("cls", ["keyed", "queryable"])
def test_a_key_or_a_look_is_asked_for_whatever_the_store_forgot(told, judged, cls):
    """The intent was forgotten; a key that lasts, or a look, had prevented the rest."""
    story = lost_and_paid_again(told, "k1" if cls == "keyed" else None)
    (found,) = judged(story, cls=cls)
    assert found.requirement == "effects/once-across-kill"
    assert found.severity is Severity.MUST
    assert (
        "The store had forgotten what it had acknowledged (rollback@" in found.message
    )


def test_a_blind_call_that_the_store_forgot_is_a_warning(told, judged):
    """Nothing is left that could tell; it was done twice, and is told."""
    (found,) = judged(lost_and_paid_again(told, None), cls="blind")
    assert found.requirement == "effects/once-beyond-its-reach"
    assert found.severity is Severity.SHOULD
    assert "no agent can prevent that" in found.message


def test_a_blind_call_that_was_not_forgotten_is_none(told, judged):
    """The loss was made good before: the intent was there, and it was made again."""
    story = saved(told().ask(0), 1).struck(FaultKind.ROLLBACK)
    saved(story, 2).call("pay", **PAY).killed().resume().call("pay", **PAY)
    found = judged(story.ask(1, "0.0").done(), cls="blind")
    assert broken(found) == ["effects/once-across-kill"]


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (FaultKind.EXPIRE, []),
        (FaultKind.ROLLBACK, []),
        (FaultKind.DELAY, ["progress/fails-for-a-reason"]),
    ],
)
def test_a_run_that_cannot_be_recovered_from_a_loss_may_fail_in_words(
    told, judged, kind, expected
):
    """To refuse what the store has left of it is what an agent should do then."""
    story = paid(told()).struck(kind)
    found = judged(story.end("failed", code=65).over("failed"))
    assert [name for name in broken(found) if name.startswith("progress")] == expected


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (FaultKind.EXPIRE, []),
        (FaultKind.ROLLBACK, []),
        (FaultKind.DELAY, ["progress/parks-for-a-reason"]),
    ],
)
def test_a_run_may_park_for_what_it_waited_for_before_the_loss(
    told, judged, kind, expected
):
    """Its store says once more that a gate is open, or that a call is in doubt."""
    found = judged(paid(told()).struck(kind).parks())
    assert [name for name in broken(found) if name.startswith("progress")] == expected
