"""Endpoints come from the environment, and a wrong list is told without a key."""

import json
from typing import Any

import pytest

from reference_agent.endpoints import BASE_URL, Endpoint, WrongEndpoints, listed

FIRST = {"OPENAI_API_KEY": "sk-first"}
GOOD = {"base_url": "https://b.example/v1", "model": "b", "api_key_env": "B_KEY"}


def environment(fallbacks: Any, **rest: str) -> dict[str, str]:
    text = fallbacks if isinstance(fallbacks, str) else json.dumps(fallbacks)
    return FIRST | {"OPENAI_FALLBACKS": text, "B_KEY": "sk-b"} | rest


def test_one_endpoint_is_openai_itself() -> None:
    (only,) = listed(FIRST)
    assert (only.base_url, only.key) == (BASE_URL, "sk-first")


def test_the_first_comes_first_and_the_others_in_their_order() -> None:
    other = GOOD | {"base_url": "http://127.0.0.1:8000/v1", "model": "c"}
    here = environment([GOOD, other], OPENAI_BASE_URL="http://a.example:1/v1")
    assert listed(here | {"OPENAI_MODEL": "a"}) == (
        Endpoint("http://a.example:1/v1", "a", "sk-first"),
        Endpoint("https://b.example/v1", "b", "sk-b"),
        Endpoint("http://127.0.0.1:8000/v1", "c", "sk-b"),
    )


@pytest.mark.parametrize("text", ["", "[]"])
def test_there_may_be_no_fallbacks(text: str) -> None:
    assert len(listed(environment(text))) == 1


@pytest.mark.parametrize(
    ("fallbacks", "told"),
    [
        ("{", "OPENAI_FALLBACKS is not JSON"),
        ("[" * 100_000, "OPENAI_FALLBACKS is not JSON"),
        ({"base_url": 1}, "OPENAI_FALLBACKS: expected a JSON list"),
        (["b"], r"OPENAI_FALLBACKS\[0\]: expected an object with .*; found str"),
        ([GOOD, {}], r"OPENAI_FALLBACKS\[1\]: .*; found an empty one"),
        ([GOOD | {"key": "x"}], "found base_url, model, api_key_env, key"),
        ([GOOD | {"model": ""}], r"OPENAI_FALLBACKS\[0\]\.model: expected a text"),
        ([GOOD | {"model": 4}], r"OPENAI_FALLBACKS\[0\]\.model: expected a text"),
        ([GOOD | {"api_key_env": "C_KEY"}], r"C_KEY is not set \(OPENAI_FALLBACKS"),
    ],
)
def test_a_wrong_list_is_told_with_its_place(fallbacks: Any, told: str) -> None:
    with pytest.raises(WrongEndpoints, match=told):
        listed(environment(fallbacks))


ADDRESSES = [
    *("b.example/v1", "ftp://b.example", "https://", "http://b.example:x/v1"),
    *("http://b.example:0", "http://[::1", "http://b .example", "http://b.example\n"),
]


@pytest.mark.parametrize("url", ADDRESSES)
def test_an_address_that_is_none_is_told(url: str) -> None:
    with pytest.raises(WrongEndpoints, match="OPENAI_BASE_URL: expected an http"):
        listed(FIRST | {"OPENAI_BASE_URL": url})
    with pytest.raises(WrongEndpoints, match=r"\[0\]\.base_url: expected an http"):
        listed(environment([GOOD | {"base_url": url}]))


@pytest.mark.parametrize("key", ["", "  ", "sk-ü", "sk\n1"])
def test_a_key_that_cannot_be_sent_is_told_and_not_quoted(key: str) -> None:
    with pytest.raises(WrongEndpoints, match="OPENAI_API_KEY") as wrong:
        listed({"OPENAI_API_KEY": key})
    assert "ü" not in str(wrong.value)


def test_a_key_in_the_place_of_its_name_is_not_quoted() -> None:
    with pytest.raises(WrongEndpoints, match="name of a variable, not a key") as wrong:
        listed(environment([GOOD | {"api_key_env": "sk-secret"}]))
    assert "sk-secret" not in str(wrong.value)


def test_an_endpoint_shows_no_key() -> None:
    assert "sk-first" not in repr(listed(FIRST))


@pytest.mark.parametrize(
    ("url", "local"),
    [
        *(("http://127.0.0.1:9/v1", True), ("http://[::1]:9/v1", True)),
        *(("http://localhost/v1", True), ("https://localhost/v1", False)),
        *(("http://localhost.example/v1", False), (BASE_URL, False)),
        ("http://127.0.0.1@b.example/v1", False),
    ],
)
def test_certificates_are_checked_wherever_they_could_be(
    url: str, *, local: bool
) -> None:
    """Only plain HTTP to this very machine does without them."""
    assert listed(FIRST | {"OPENAI_BASE_URL": url})[0].is_local is local
