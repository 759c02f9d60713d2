"""A call in doubt is settled as its service's promise allows, and never twice."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from reference_agent.effects import (
    Effect,
    InDoubt,
    NoLookUp,
    ToolFailed,
    Trouble,
    settle,
)
from reference_agent.state import Call, Completed, Phase, State
from reference_agent.tools import Promise
from reference_agent.transitions import Outcome

ARGUMENTS = {"to": "ann", "subject": "hi"}
CALL = Call("c1", "send_mail", ARGUMENTS, "r1/2/0/send_mail")
STATE = State("r1", "goal", Phase.TOOL, step=2, pending=CALL)
DOUBT = replace(STATE, doubt=True)
SENT = Outcome("sent now", applied=True)


@dataclass
class Service:
    """Notes what it was asked."""

    found: list[Effect] | None = field(default_factory=list)
    fails: bool = False
    done_keys: list[str] = field(default_factory=list)
    looked: int = 0

    def do(self, tool: str, arguments: dict[str, Any], key: str) -> Outcome:
        self.done_keys.append(key)
        if self.fails:
            raise ToolFailed("no seat")
        return SENT

    def done(self, tool: str, arguments: dict[str, Any]) -> list[Effect]:
        self.looked += 1
        if self.found is None:
            raise NoLookUp
        return self.found


def completed(*, applied: bool = True, tool: str = "send_mail") -> Completed:
    return Completed("other", tool, ARGUMENTS, "sent", applied)


def earlier(count: int, key: str | None = None) -> list[Effect]:
    return [Effect(f"sent {i}", applied=True, key=key) for i in range(count)]


@pytest.mark.parametrize("promise", Promise)
def test_without_doubt_it_is_done_under_its_key(promise: Promise) -> None:
    service = Service()
    assert settle(STATE, CALL, promise, service) == SENT
    assert service.done_keys == [CALL.key]
    assert service.looked == (promise is Promise.QUERYABLE)


def test_keyed_in_doubt_is_sent_under_the_same_key() -> None:
    service = Service()
    settle(DOUBT, CALL, Promise.KEYED, service)
    assert service.done_keys == [CALL.key]


def test_blind_in_doubt_stops() -> None:
    service = Service()
    with pytest.raises(InDoubt, match="send_mail may have been done"):
        settle(DOUBT, CALL, Promise.BLIND, service)
    assert service.done_keys == []


@pytest.mark.parametrize("state", [STATE, DOUBT])
def test_queryable_and_found_is_not_sent(state: State) -> None:
    """Without doubt, too: the store may have forgotten that there is reason to."""
    service = Service(found=earlier(1))
    assert settle(state, CALL, Promise.QUERYABLE, service).text == "sent 0"
    assert service.done_keys == []


def test_queryable_in_doubt_and_not_found_is_sent() -> None:
    assert settle(DOUBT, CALL, Promise.QUERYABLE, Service()) == SENT


def test_an_equal_call_that_is_recorded_accounts_for_one_effect() -> None:
    """The second of two equal mails is not taken for the first."""
    second = replace(STATE, completed=(completed(),))
    service = Service(found=earlier(1))
    assert settle(second, CALL, Promise.QUERYABLE, service) == SENT
    service = Service(found=earlier(2))
    assert settle(second, CALL, Promise.QUERYABLE, service).text == "sent 1"


@pytest.mark.parametrize(
    "other", [completed(applied=False), completed(tool="add_to_calendar")]
)
def test_refused_and_other_calls_account_for_none(other: Completed) -> None:
    service = Service(found=earlier(1))
    state = replace(DOUBT, completed=(other,))
    assert settle(state, CALL, Promise.QUERYABLE, service).text == "sent 0"


def test_where_the_service_keeps_keys_the_call_knows_its_own_effect() -> None:
    """Equal arguments of another run, or of another call of this one, are not ours."""
    foreign = earlier(2, key="r0/2/0/send_mail")
    assert settle(DOUBT, CALL, Promise.QUERYABLE, Service(found=foreign)) == SENT
    own = Effect("sent by us", applied=True, key=CALL.key)
    state = replace(DOUBT, completed=(completed(),))
    found = Service(found=[*foreign, own])
    assert settle(state, CALL, Promise.QUERYABLE, found) == own


def test_queryable_whose_service_cannot_be_asked_is_blind() -> None:
    service = Service(found=None)
    assert settle(STATE, CALL, Promise.QUERYABLE, service) == SENT
    with pytest.raises(InDoubt, match="send_mail may have been done"):
        settle(DOUBT, CALL, Promise.QUERYABLE, service)
    assert service.done_keys == [CALL.key]


@pytest.mark.parametrize("promise", [Promise.READ, Promise.KEYED, Promise.QUERYABLE])
def test_a_tool_that_says_it_failed_is_asked_again_where_that_is_safe(
    promise: Promise,
) -> None:
    """It may have done it after all; if it keeps saying so, the model is told."""
    for attempts in (0, 1):
        state = replace(STATE, attempts=attempts)
        with pytest.raises(Trouble) as trouble:
            settle(state, CALL, promise, Service(fails=True))
        assert trouble.value.sent
    told = settle(replace(DOUBT, attempts=2), CALL, promise, Service(fails=True))
    assert told == Outcome("Error: no seat", applied=False)


@pytest.mark.parametrize("attempts", [0, 2])
def test_a_blind_tool_that_says_it_failed_is_in_doubt(attempts: int) -> None:
    state = replace(STATE, attempts=attempts)
    with pytest.raises(Trouble) as trouble:
        settle(state, CALL, Promise.BLIND, Service(fails=True))
    assert trouble.value.sent
