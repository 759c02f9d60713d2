"""A model that answers otherwise when it is asked again, and who can live with it."""

import pytest

TURN = {
    "call": {
        "pay": {"order": "o-1", "cents": 100},
        "or": [{"order": "o-1", "cents": 1}],
    },
    "or": [{"note": {"id": "pay-later"}}],
}
TOOLS = {"pay": "keyed", "note": "keyed"}


def _llm(wobble):
    return {"script": [TURN, {"say": "Paid."}], "wobble": wobble}


@pytest.mark.parametrize(
    ("wobble", "strategy"),
    [("wording", "sweep"), ("arguments", "sweep"), ("choice", "closure")],
)
def test_an_agent_that_saves_what_it_was_told_passes(
    write_scenario, chaoskit, wobble, strategy
):
    """Replies lost in flight come back otherwise; what was saved is what is done."""
    path = write_scenario(llm=_llm(wobble), tools=TOOLS)
    result = chaoskit("run", path, "--strategy", strategy)
    assert result.code == 0, result.stdout + result.stderr


def test_an_agent_that_acts_before_it_saves_is_found_by_choice_alone(
    write_scenario, chaoskit
):
    """Its keys save it as long as the model repeats itself; only the bill is wrong."""
    codes, judged = {}, ["effects", "progress", "transcript"]
    for wobble in ("none", "choice"):
        path = write_scenario(
            "acts-unsaved", llm=_llm(wobble), tools=TOOLS, promises=judged
        )
        result = chaoskit("run", path)
        codes[wobble] = result.code
    assert codes == {"none": 0, "choice": 1}, result.stdout
    assert "effects/once-across-kill" in result.requirements
    assert "said it otherwise" in result.stdout
