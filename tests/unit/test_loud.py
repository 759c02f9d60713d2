"""`loud`: nothing is lost in silence, and nothing tried for ever."""

import pytest

from chaoskit.checks.case import Case, Golden
from chaoskit.checks.loud import check
from chaoskit.model.address import Edge
from chaoskit.model.faults import FaultKind

PAY = {"order": "o-1"}


@pytest.fixture
def judged(judged_with):
    def judge(story, last_turn=1, **contract):
        return judged_with(story, [("pay", PAY)], last_turn, **contract)

    return judge


@pytest.fixture
def judged_with(make_scenario, make_manifest):
    def judge(story, calls, last_turn=1, **contract):
        scenario = make_scenario(calls, tools={"pay": "keyed"})
        golden = Golden(last_turn=last_turn)
        case = Case(story.trial(), scenario, make_manifest(**contract), golden)
        return [each.requirement for each in check(case)]

    return judge


def test_a_run_that_is_done_too_early_is_found(told, judged):
    assert judged(told().ask(0).done()) == ["loud/no-silent-success"]


def test_the_last_turn_is_the_one_that_the_fault_free_runs_asked(told, judged):
    assert judged(told().ask(0).ask(1).done()) == []
    assert judged(told().ask(0).done(), last_turn=0) == []
    assert judged(told().ask(0).done(), last_turn=None) == []


def test_a_last_word_that_was_lost_was_not_heard(told, judged):
    story = told().ask(0).ask(1).struck(FaultKind.DROP_REPLY)
    assert judged(story.done()) == ["loud/no-silent-success"]


@pytest.mark.parametrize(("part", "found"), [(3, 1), (4, 0), (5, 0)])
def test_a_last_word_of_which_only_the_price_was_lost_was_heard(
    told, judged, part, found
):
    """The reply says that it is over before it says what it costs."""
    story = told().ask(0).ask(1, whole=4).struck(FaultKind.TEAR, Edge.of_part(part))
    assert judged(story.done()) == ["loud/no-silent-success"] * found


def test_who_never_heard_the_model_has_done_nothing(told, judged):
    assert judged(told().done()) == ["loud/no-silent-success"]


def test_nobody_has_to_ask_past_the_end(told, judged):
    assert judged(told().ask(0).ask(1).done(), last_turn=2) == []


def test_what_the_life_after_done_asks_makes_up_for_nothing(told, judged):
    story = told().ask(0).end("done").start("again").ask(1).end("done").over("done")
    assert judged(story) == ["loud/no-silent-success"]


def test_a_failure_without_a_word_is_found(told, judged):
    story = told().ask(0).end("failed", code=65).over("failed")
    assert judged(story) == ["loud/says-why"]


def test_any_word_is_one(told, judged):
    assert judged(told().ask(0).fails()) == []
    logged = told().ask(0).log("run.end").end("failed", code=65).over("failed")
    assert judged(logged) == []


def test_of_a_life_that_a_fault_ended_no_words_are_kept(told, judged):
    story = told().ask(0).end("failed", "fault", code=65).over("failed")
    assert judged(story) == []


def torn(told, carried=("0.0",)):
    story = told().ask(0).call("pay", "k", **PAY).ask(1, *carried)
    return story.cross("files", "write", "state").struck(
        FaultKind.TEAR, Edge.of_part(3)
    )


def test_a_checkpoint_that_cannot_be_read_is_no_first_run(told, judged):
    story = torn(told).crashed().resume().ask(0).ask(1).done()
    assert judged(story) == ["loud/unreadable-kept"]


def test_who_goes_on_from_the_one_before_is_right(told, judged):
    assert judged(torn(told).crashed().resume().ask(1, "0.0").done()) == []
    assert judged(torn(told).crashed().resume().fails()) == []


def test_the_first_checkpoint_may_be_the_torn_one(told, judged):
    story = (
        told()
        .ask(0)
        .cross("files", "write", "state")
        .struck(FaultKind.TEAR, Edge.of_part(3))
    )
    assert judged(story.crashed().resume().ask(0).ask(1).done()) == []


def begins_anew(told, kind, *more):
    story = told().log("run.start", 1).ask(0).call("pay", "k", **PAY).ask(1, "0.0")
    story.killed().resume().cross("redis", "get", "x").struck(kind, *more)
    return story.ask(0)


@pytest.mark.parametrize(
    "spoilt",
    [
        (FaultKind.ERROR, Edge.BEFORE, "LOADING"),
        (FaultKind.REFUSE, Edge.BEFORE),
        (FaultKind.DROP_REPLY,),
        (FaultKind.TEAR, Edge.of_part(1)),
    ],
)
def test_a_store_that_gives_no_answer_is_not_an_empty_one(told, judged, spoilt):
    assert judged(begins_anew(told, *spoilt)) == ["loud/unreadable-kept"]


def test_nobody_knows_that_it_was_not_empty_unless_it_was_seen(told, judged):
    story = told().ask(0).call("pay", "k", **PAY).ask(1, "0.0").killed().resume()
    story.cross("redis", "get", "x").struck(FaultKind.DROP_REPLY)
    assert judged(story.ask(0)) == []


def test_a_look_at_the_store_shows_it_too(told, judged):
    story = told().ask(0).call("pay", "k", **PAY).ask(1, "0.0").killed()
    story.inspected("death", 2).resume()
    story.cross("redis", "get", "x").struck(FaultKind.DROP_REPLY)
    assert judged(story.ask(0)) == ["loud/unreadable-kept"]


def test_what_the_store_has_lost_may_be_begun_anew(told, judged):
    story = begins_anew(told, FaultKind.ROLLBACK, Edge.AFTER, "1")
    assert judged(story.killed().resume().ask(0)) == []


@pytest.mark.parametrize(("deaths", "found"), [(2, []), (3, ["loud/gives-up"])])
def test_a_call_that_kills_its_agent_is_given_up(told, judged, deaths, found):
    story = told().ask(0)
    for _ in range(deaths):
        story.deliver("pay", "k", **PAY).killed().resume()
    assert judged(story.fails(), max_attempts=2) == found
    assert judged(story.fails()) == []


def test_deaths_at_questions_of_different_turns_are_not_at_one_call(told, judged):
    """Each life that goes on asks `llm.chat#1`; the turn says which question it is."""
    story = told()
    for turn in range(3):
        place = f"{story.life}:llm.chat#1"
        story.ask(turn, reply=False, place=place).killed().resume()
    assert judged(story.fails(), max_attempts=2) == []
    for _ in range(2):
        place = f"{story.life}:llm.chat#1"
        story.ask(2, reply=False, place=place).killed().resume()
    assert judged(story.fails(), max_attempts=2) == ["loud/gives-up"]


def test_nor_are_those_at_a_tool_that_two_turns_call(told, judged):
    story = told()
    for turn in range(2):
        story.ask(turn)
        for _ in range(2):
            story.deliver("pay", "k", **PAY).killed().resume()
    assert judged(story.fails(), max_attempts=2) == []


def test_a_life_that_got_over_an_error_did_not_die_of_it(told, judged):
    story = told().ask(0)
    for _ in range(3):
        story.deliver("pay", "k", **PAY).struck(FaultKind.ERROR, Edge.BEFORE, "500")
        story.killed_at().resume()
    assert judged(story.fails(), max_attempts=2) == []


def test_one_that_dies_of_every_error_does(told, judged):
    story = told().ask(0)
    for _ in range(3):
        story.deliver("pay", "k", **PAY).struck(FaultKind.ERROR, Edge.BEFORE, "500")
        story.crashed().resume()
    assert judged(story.fails(), max_attempts=2) == ["loud/gives-up"]


def test_an_agent_whose_store_forgets_may_not_have_counted(told, judged):
    story = told().ask(0).cross("redis", "set", "x").struck(FaultKind.ROLLBACK)
    for _ in range(3):
        story.deliver("pay", "k", **PAY).killed().resume()
    assert judged(story.fails(), max_attempts=2) == []


def test_two_calls_that_have_their_key_in_common_are_two(told, judged_with):
    """One that strikes at each of both has killed neither too often."""
    calls = [("pay", {**PAY, "cents": cents}) for cents in (1, 2)]
    story = told().ask(0)
    for _, args in [*calls, *calls]:
        story.deliver("pay", "k", **args).killed().resume()
    assert judged_with(story.fails(), calls, max_attempts=2) == []
    story.deliver("pay", "k", **calls[0][1]).killed().resume()
    assert judged_with(story.fails(), calls, max_attempts=2) == ["loud/gives-up"]


def test_nor_do_equal_calls_of_one_turn_and_look_ups_share_their_deaths(
    told, judged_with
):
    equal = [("pay", PAY), ("pay", PAY)]
    alike = [("pay", {**PAY, "cents": cents}) for cents in (1, 2)]
    for calls, look in ((equal, False), (alike, True)):
        story = told().ask(0)
        for deaths in range(1, 6):
            if look:
                story.cross("tools", "pay?", "o-1")
            else:
                story.deliver("pay", "k", **PAY)
            story.killed().resume()
            found = ["loud/gives-up"] if deaths > 4 else []
            assert judged_with(story.fails(), calls, max_attempts=2) == found


def test_a_call_is_the_same_one_in_other_words(told, make_scenario, make_manifest):
    """The model was asked again; the call that kills its agent is that call still."""
    forms = [{**PAY, "note": note} for note in ("one", "two")]
    call = {"tool": "pay", "args": forms[0], "or": [forms[1]]}
    llm = {"script": [{"call": [call]}, {"say": "Paid."}], "wobble": "arguments"}
    scenario = make_scenario(tools={"pay": "keyed"}, llm=llm)
    story = told()
    for args in (*forms, forms[0]):
        story.ask(0).deliver("pay", "k", **args).killed().resume()
    found = check(Case(story.fails().trial(), scenario, make_manifest(max_attempts=2)))
    assert [each.requirement for each in found] == ["loud/gives-up"]


EVERY_STEP = ("start", "earlier-checkpoint")


@pytest.mark.parametrize("resumes", EVERY_STEP)
def test_a_first_run_is_right_where_a_crash_may_take_all_back(told, judged, resumes):
    """Whatever was torn: nothing that was done had to be kept."""
    story = torn(told).end("died", "fault", signal=9).resume().ask(0)
    assert judged(story.ask(1, "0.0").done(), resumes=resumes) == []
    spoilt = begins_anew(told, FaultKind.DROP_REPLY)
    assert judged(spoilt, resumes=resumes) == []


@pytest.mark.parametrize("resumes", EVERY_STEP)
def test_what_a_run_had_when_it_parked_is_no_step_of_a_crash(told, judged, resumes):
    story = told().ask(0).call("pay", "k", **PAY).ask(1, "0.0").end("parked").resume()
    story.cross("files", "write", "state").struck(FaultKind.TEAR, Edge.of_part(3))
    found = [] if resumes == "start" else ["loud/unreadable-kept"]
    story.crashed().resume().ask(0).ask(1).done()
    assert judged(story, resumes=resumes) == found
