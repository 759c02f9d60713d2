"""Addresses: their text form is enough to find the place again, whatever the key."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from chaoskit.model.address import Address, Edge, Operation

OPERATIONS = st.builds(
    Operation,
    st.text("abcdefghijklmnopqrstuvwxyz", min_size=1),
    st.text(min_size=1),
    st.none() | st.text(),
)
ADDRESSES = st.builds(
    Address,
    st.none() | st.integers(0, 999_999_999),
    OPERATIONS,
    st.integers(1, 999_999_999),
    st.just(Edge.BEFORE) | st.just(Edge.AFTER) | st.integers(1, 99).map(Edge.of_part),
)


def at(op, key=None, life=0):
    return Address(life, Operation("tools", op, key), 1, Edge.AFTER)


@example(at("charge_card", ""))
@example(at("charge_card", "a]#1:after + kill@0:llm.chat#1:before"))
@example(at("charge_card", "%5B [] # : @ + % \n\t\N{NULL}\N{LINE SEPARATOR}"))
@example(at("charge_card", "\N{LATIN SMALL LETTER E WITH ACUTE}\N{PARTY POPPER}"))
@example(at("json.set", "agent:checkpoint:{run}"))
@example(at("xgroup|create", "{1}"))
@example(at("a:b"))
@example(at("hold_seat?", "o-1", life=None))
@given(ADDRESSES)
def test_text_and_back(address):
    text = str(address)
    assert Address.parse(text) == address
    assert str(Address.parse(text)) == text
    assert text.isascii()
    assert not any(c.isspace() for c in text)


@given(ADDRESSES, ADDRESSES)
def test_two_places_never_have_the_same_text(one, other):
    assert (str(one) == str(other)) == (one == other)


def test_the_form_that_the_contract_shows():
    address = Address.parse("0:tools.charge_card[o-1]#1:after")
    assert address == at("charge_card", "o-1")
    assert str(address) == "0:tools.charge_card[o-1]#1:after"
    assert str(at("chat", life=None)) == "*:tools.chat#1:after"


def test_usual_keys_stay_readable():
    key = "agent:checkpoint:{run}/mail@example.com,1=2"
    assert str(at("set", key)) == f"0:tools.set[{key}]#1:after"


def test_no_key_is_not_the_empty_key():
    assert str(at("chat")) != str(at("chat", ""))


def test_the_same_place_in_any_life():
    address = Address.parse("3:redis.set[x]#2:before")
    assert address.point == "redis.set[x]#2:before"
    assert str(address.in_every_life()) == "*:redis.set[x]#2:before"


WRONG = [
    "",
    "nonsense",
    "tools.charge_card#1:after",
    "0:tools.charge_card",
    "0:tools.charge_card#0:after",
    "0:tools.charge_card#01:after",
    "0:tools.charge_card#1",
    "0:tools.charge_card#1:between",
    "0:tools.charge_card#1:part:0",
    "0:tools.charge_card#1:part",
    "0:tools.charge_card#1:after:2",
    "-1:tools.charge_card#1:after",
    "\N{ARABIC-INDIC DIGIT THREE}:tools.charge_card#1:after",
    "0:tools.charge card#1:after",
    "0:tools.charge_card[a b]#1:after",
    "0:tools.charge_card[a]]#1:after",
    "0:tools.#1:after",
    "0:Tools.x#1:after",
    " 0:tools.x#1:after",
    "0:tools.x#1:after\n",
    "0:tools.x#" + "9" * 5000 + ":after",
    "0:tools.pay[%ff]#1:after",
    "0:tools.pay[%C3]#1:after",
    "0:tools.p%ED%A0%80y#1:after",
]


@pytest.mark.parametrize("text", WRONG, ids=lambda text: ascii(text)[:40])
def test_what_is_no_address_is_said_in_a_sentence(text):
    with pytest.raises(ValueError, match="; expected ") as caught:
        Address.parse(text)
    assert str(caught.value).startswith(repr(text))


def refusal(text):
    try:
        Address.parse(text)
    except ValueError as error:
        return str(error)


@given(st.text() | st.from_regex(r"[0-9]+:[a-z]+\.[^ ]+#[0-9]+:[a-z]+"))
def test_any_text_is_an_address_or_a_sentence(text):
    if (said := refusal(text)) is not None:
        assert "; expected " in said
