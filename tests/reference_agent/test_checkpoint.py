"""A state goes through JSON unharmed, and nothing else passes for a state."""

from dataclasses import fields, replace
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reference_agent.checkpoint import dump, load
from reference_agent.state import (
    SCHEMA,
    STATUS_IN,
    Call,
    Completed,
    ModelCall,
    Phase,
    State,
    Status,
)
from reference_agent.stores.base import UnreadableCheckpoint, decode, encode

numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
json_values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=5,
)
objects = st.dictionaries(st.text(), json_values, max_size=3)
calls = st.builds(Call, arguments=objects)


def tuples(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(items, max_size=3).map(tuple)


RUNNING = [phase for phase in Phase if phase not in STATUS_IN]
states = st.builds(
    State,
    run_id=st.text(),
    goal=st.text(),
    phase=st.sampled_from(RUNNING),
    status=st.just(Status.RUNNING),
    step=st.integers(),
    checkpoint_id=st.integers(),
    updated_at=st.text(),
    messages=st.lists(objects, min_size=1, max_size=3).map(tuple),
    prompt_hash=st.text(),
    pending=calls,
    doubt=st.booleans(),
    queue=tuples(calls),
    completed=tuples(st.builds(Completed, arguments=objects)),
    model_calls=tuples(st.builds(ModelCall)),
    replied_at=st.floats(allow_nan=False, allow_infinity=False),
    attempts=st.integers(),
    retry_at=st.floats(allow_nan=False, allow_infinity=False),
    endpoint=st.integers(),
    resume_at=st.floats(allow_nan=False, allow_infinity=False),
    answer=st.none() | st.text(),
    reason=st.none() | st.text(),
)
state = State(
    "r1",
    "goal",
    Phase.TOOL,
    step=2,
    checkpoint_id=7,
    messages=({"role": "user", "content": "goal"},),
    pending=Call("c1", "hold_seat", {"order": "o-1"}, "r1/2/0/hold_seat"),
)


@settings(max_examples=40)
@given(states)
def test_round_trip_keeps_values_and_types(state: State) -> None:
    document = encode(dump(state))
    assert load(decode(document)) == state
    assert encode(dump(load(decode(document)))) == document  # 1, 1.0, True are equal


def test_every_field_is_in_the_round_trip() -> None:
    """A field that a later version adds cannot be forgotten."""
    assert set(dump(state)) == {field.name for field in fields(State)}


@pytest.mark.parametrize(
    "value", [float("nan"), (1,), b"x", Decimal(1), {1: 2}, datetime.now(UTC), 1j]
)
def test_what_json_cannot_hold_is_refused_at_the_write(value: object) -> None:
    """Not written as something that comes back as something else."""
    with pytest.raises(ValueError, match=r"JSON|not a text"):
        encode(dump(replace(state, messages=({"content": value},))))


@pytest.mark.parametrize("cut", [0, 1, 40, -1])
def test_cut_off_documents_are_refused(cut: int) -> None:
    with pytest.raises(UnreadableCheckpoint, match="not JSON"):
        decode(encode(dump(state))[:cut])


@pytest.mark.parametrize("document", [b"\xff\xfe\x80", b"[" * 100_000, b"null", b"[]"])
def test_other_bytes_are_refused(document: bytes) -> None:
    with pytest.raises(UnreadableCheckpoint):
        decode(document)


def damaged(path: list[Any], value: object) -> dict[str, Any]:
    document = decode(encode(dump(state)))
    inner: Any = document
    for name in path[:-1]:
        inner = inner[name]
    inner[path[-1]] = value
    return document


@pytest.mark.parametrize(
    ("path", "value", "said"),
    [
        (["step"], "2", r"\$\.step: expected int, found str"),
        (["checkpoint_id"], True, r"\$\.checkpoint_id: expected int"),
        (["phase"], "sleeping", "not a valid Phase"),
        (["messages"], [3], r"\$\.messages\[0\]: expected dict, found int"),
        (["pending", "arguments"], None, r"\$\.pending\.arguments: expected dict"),
        (["pending"], None, "without a pending call"),
        (["status"], "done", "done in phase tool"),
        (["phase"], "review", "running in phase review"),
        (["surplus"], 1, r"\$: missing or unknown: surplus"),
        (["queue"], [{}], r"\$\.queue\[0\]: missing or unknown: arguments, id"),
    ],
)
def test_damage_inside_is_refused_with_its_place(
    path: list[Any], value: object, said: str
) -> None:
    with pytest.raises(UnreadableCheckpoint, match=said):
        load(damaged(path, value))


@pytest.mark.parametrize("schema", [SCHEMA + 1, SCHEMA - 1, str(SCHEMA), None])
def test_another_schema_is_refused_and_says_where_the_run_is(schema: object) -> None:
    """A newer one, an older one, and none."""
    with pytest.raises(UnreadableCheckpoint, match=f"reads {SCHEMA}") as refused:
        load(damaged(["schema"], schema))
    assert (refused.value.step, refused.value.checkpoint_id) == (2, 7)


def test_a_document_of_another_run_is_refused() -> None:
    """To act on it would be to act for that one."""
    with pytest.raises(UnreadableCheckpoint, match="another run"):
        load(dump(state), "r2")
    assert load(dump(state), "r1") == state
