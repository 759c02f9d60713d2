"""A call in doubt is settled as its service's promise allows, and never twice."""

from dataclasses import dataclass, field, replace
from typing import Any

import pytest

from reference_agent.effects import InDoubt, NoLookUp, settle
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

    found: list[Outcome] | None = None
    done_keys: list[str | None] = field(default_factory=list)
    looked: int = 0

    def do(self, tool: str, arguments: dict[str, Any], key: str | None) -> Outcome:
        self.done_keys.append(key)
        return SENT

    def done(self, tool: str, arguments: dict[str, Any]) -> list[Outcome]:
        self.looked += 1
        if self.found is None:
            raise NoLookUp
        return self.found


def completed(*, applied: bool = True, tool: str = "send_mail") -> Completed:
    return Completed("other", tool, ARGUMENTS, "sent", applied)


def earlier(count: int) -> list[Outcome]:
    return [Outcome(f"sent {i}", applied=True) for i in range(count)]


@pytest.mark.parametrize("promise", Promise)
def test_without_doubt_it_is_just_done(promise: Promise) -> None:
    service = Service()
    assert settle(STATE, CALL, promise, service) == SENT
    assert service.done_keys == [CALL.key if promise is Promise.KEYED else None]
    assert service.looked == 0


def test_keyed_in_doubt_is_sent_under_the_same_key() -> None:
    service = Service()
    settle(DOUBT, CALL, Promise.KEYED, service)
    assert service.done_keys == [CALL.key]


def test_blind_in_doubt_stops() -> None:
    service = Service()
    with pytest.raises(InDoubt, match="send_mail may have been done"):
        settle(DOUBT, CALL, Promise.BLIND, service)
    assert service.done_keys == []


def test_queryable_in_doubt_and_found_is_not_sent() -> None:
    service = Service(found=earlier(1))
    assert settle(DOUBT, CALL, Promise.QUERYABLE, service).text == "sent 0"
    assert service.done_keys == []


def test_queryable_in_doubt_and_not_found_is_sent() -> None:
    service = Service(found=[])
    assert settle(DOUBT, CALL, Promise.QUERYABLE, service) == SENT


def test_an_equal_call_that_is_recorded_accounts_for_one_effect() -> None:
    """The second of two equal mails is not taken for the first."""
    second = replace(DOUBT, completed=(completed(),))
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


def test_queryable_whose_service_cannot_be_asked_stops() -> None:
    service = Service(found=None)
    with pytest.raises(InDoubt, match="no look-up"):
        settle(DOUBT, CALL, Promise.QUERYABLE, service)
    assert service.done_keys == []
