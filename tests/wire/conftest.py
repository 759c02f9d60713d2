"""What tests of codecs share: requests that are broken in any way."""

import copy
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import pytest
from hypothesis import strategies as st


class Breaker:
    """Breaks requests, with words and keys that mean something to their API."""

    def __init__(self, words: Sequence[str], keys: Sequence[str]) -> None:
        plain = st.none() | st.booleans() | st.integers()
        plain |= st.floats(allow_nan=False, allow_infinity=False)
        names = st.sampled_from(keys) | st.text(max_size=3)
        self.json = st.recursive(
            plain | st.sampled_from(words) | st.text(max_size=5),
            lambda inner: (
                st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4)
            ),
            max_leaves=20,
        )

    def any_object(self, fields: Iterable[str], data: Any) -> Any:
        """An object of a request's own fields, mostly, that hold anything."""
        names = st.sampled_from([*fields]) | st.text(max_size=3)
        return data.draw(st.dictionaries(names, self.json))

    def replaced(self, valid: Any, data: Any) -> Any:
        """A valid request with one part replaced by anything."""
        body, inner, last = _somewhere(valid, data)
        inner[last] = data.draw(self.json)
        return body

    def left_out(self, valid: Any, data: Any) -> Any:
        """A valid request without one of its parts."""
        body, inner, last = _somewhere(valid, data)
        del inner[last]
        return body


def _somewhere(valid: Any, data: Any) -> tuple[Any, Any, Any]:
    """A copy, and a place in it: what it is in, and its key there."""
    body = copy.deepcopy(valid)
    *way, last = data.draw(st.sampled_from(_ways(valid)))
    inner = body
    for key in way:
        inner = inner[key]
    return body, inner, last


def _ways(value: Any, way: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    items: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        items = list(value.items())
    elif isinstance(value, list):
        items = list(enumerate(value))
    inner = [found for key, item in items for found in _ways(item, (*way, key))]
    return [*((*way, key) for key, _ in items), *inner]


@pytest.fixture(scope="session")
def breaking() -> Callable[[Sequence[str], Sequence[str]], Breaker]:
    """Make a `Breaker` of words and keys."""
    return Breaker
