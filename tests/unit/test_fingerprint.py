"""Fingerprints: equal for worlds that an agent cannot tell apart, and for no others."""

import json
from datetime import UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chaoskit.explore.fingerprint import Canon, learn, moving_fields

SINCE = 1_764_443_000.0
CANON = Canon(frozenset({"run-1", "run-2"}), SINCE)
UUID = "3f2b8c1e-9a4d-4e5f-8b6a-7c8d9e0f1a2b"
UUID_2 = "00112233-9a4d-4e5f-8b6a-7c8d9e0f1a2b"
UUID_3 = "ffeeddcc-9a4d-4e5f-8b6a-7c8d9e0f1a2b"


def view(value):
    return {"redis": {"0": {"agent:state": {"type": "string", "value": value}}}}


def same(one, other, canon=CANON):
    return canon.fingerprint(view(one)) == canon.fingerprint(view(other))


def canonical(value, canon=CANON):
    return canon.canonical(view(value))["redis"]["0"]["agent:state"]["value"]


# --- the run's id --------------------------------------------------------------------


def test_the_run_has_one_name():
    assert canonical("agent:run-1/3") == "agent:{run}/3"
    assert same({"run-1": ["run-1"]}, {"run-2": ["run-2"]})
    assert not same("run-1", "run-3")


def test_a_run_that_the_baselines_did_not_have():
    assert same("run-1", "run-3", CANON.of_run("run-3"))


# --- random words --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (UUID, UUID_2),
        (UUID.upper(), UUID_2),
        ("9f86d081884c7d659a2feaa0c55ad015", "a3c65c2974270fd093ee8a9bf8ae7d0b"),
        ("01HQ3V5K8Z9X7Y6W5V4T3S2R1Q", "01HQ3V5K8ZAX7Y6W5V4T3S2R1Z"),
        ("call_t1p0_0123456789abcdef", "call_t1p0_fedcba9876543210"),
        ("V1StGXR8Z5jdHi6B", "4f90d13a42Zq81Xw"),
    ],
)
def test_words_that_look_random_mean_nothing(one, other):
    assert same(one, other)
    assert same({"id": f"x-{one}"}, {"id": f"x-{other}"})
    assert same({one: 1}, {other: 1})


@pytest.mark.parametrize(
    ("one", "other"),
    [("o-1", "o-2"), ("call_t1p0_0123456789abcdef", "call_t1p1_0123456789abcdef")],
)
def test_words_that_do_not_look_random_mean_something(one, other):
    assert not same(one, other)
    assert not same({one: 1}, {other: 1})


def test_whether_two_random_words_are_equal_is_kept():
    assert same([UUID, UUID_2], [UUID_2, UUID_3])
    assert same([UUID, UUID], [UUID_2, UUID_2])
    assert not same([UUID, UUID_2], [UUID, UUID])
    assert not same({"a": UUID, "b": UUID}, {"a": UUID, "b": UUID_2})


def test_which_of_two_random_words_it_is_is_kept():
    one = {"ids": [UUID, UUID_2], "next": UUID}
    assert same(one, {"ids": [UUID_2, UUID], "next": UUID_2})
    assert not same(one, {"ids": [UUID, UUID_2], "next": UUID_2})


def test_a_relation_between_a_key_and_a_value_is_kept():
    assert same({UUID: {"id": UUID}}, {UUID_2: {"id": UUID_2}})
    assert not same({UUID: {"id": UUID}}, {UUID: {"id": UUID_2}})


def test_entries_with_random_keys_have_no_order():
    jobs = {UUID: {"job": "A"}, UUID_2: {"job": "B"}, "next": UUID}
    other = {UUID_2: {"job": "A"}, UUID: {"job": "B"}, "next": UUID_2}
    assert same(jobs, other)
    assert not same(jobs, {**jobs, "next": UUID_2})


def test_entries_with_random_keys_are_told_apart_deep_inside():
    def jobs(a, b):
        return {a: {"x": {"y": [1, {"job": "A"}]}}, b: {"x": {"y": [1, {"job": "B"}]}}}

    assert same(jobs(UUID, UUID_2), jobs(UUID_2, UUID))


def test_entries_with_random_keys_are_told_apart_though_they_hold_a_moving_field():
    def jobs(a, b, one, other):
        return {a: {"ms": one, "job": "A"}, b: {"ms": other, "job": "B"}}

    canon = Canon(CANON.run_ids, SINCE, ignored=("*.ms",))
    assert same(jobs(UUID, UUID_2, 1, 2), jobs(UUID_2, UUID, 2, 1), canon)


def test_entries_that_hold_the_same_are_told_apart_by_who_names_them():
    """Two jobs alike, one of which is the next: it does not matter which."""
    jobs = {"jobs": {UUID: {"n": 1}, UUID_2: {"n": 1}}, "next": UUID}
    assert same(jobs, {**jobs, "next": UUID_2})
    assert not same(jobs, {**jobs, "next": UUID_3})
    named_first = {"a": UUID_2, "jobs": {UUID: {"n": 1}, UUID_2: {"n": 1}}}
    assert same(named_first, {**named_first, "a": UUID})


def test_members_of_a_set_have_no_order():
    """Redis has none, so the view sorts them by their bytes."""

    def members(*values):
        return {"x": {"type": "set", "value": sorted(values)}, "next": UUID}

    one = members(json.dumps({"id": UUID, "n": 1}), json.dumps({"id": UUID_2, "n": 2}))
    two = members(json.dumps({"id": UUID_2, "n": 2}), json.dumps({"id": UUID, "n": 1}))
    swapped = members(
        json.dumps({"id": UUID, "n": 2}), json.dumps({"id": UUID_2, "n": 1})
    )
    assert same(one, two)
    assert not same(one, swapped)
    assert same({**swapped, "next": UUID_2}, one)


def test_a_list_has_an_order():
    assert not same(["a", "b"], ["b", "a"])
    assert not same([UUID, "a"], ["a", UUID])


# --- what was the same in both baselines ---------------------------------------------


def learned(*pairs, ignored=()):
    views = [(view(one), view(other)) for one, other in pairs]
    return learn(views, ("run-1", "run-2"), SINCE, ignored)


def test_random_words_that_are_stable_stay():
    canon = learned(([UUID, UUID_2], [UUID, UUID_3]))
    assert canonical([UUID, UUID_2], canon) == [UUID, "<1>"]
    assert not same(UUID, UUID_2, canon)


@pytest.mark.parametrize("before", ["\n", "\t", "\u00e9 ", '"', "\\"])
def test_stable_words_are_known_after_any_character(before):
    text = f"{before}abcdef123456"
    canon = learned((text, text), (json.dumps([text]), json.dumps([text])))
    assert canonical(text, canon) == text
    assert canonical(json.dumps([text]), canon) == [text]


def test_a_word_that_was_stable_in_one_baseline_only_is_renamed():
    canon = learned(([UUID, UUID], [UUID_2, UUID_2]))
    assert canon.stable == frozenset()


def test_fields_that_differ_between_the_baselines_are_volatile():
    canon = learned(({"ms": 17, "n": 1}, {"ms": 23, "n": 1}))
    assert canon.volatile == {"redis:0.agent:state.value.ms"}
    assert same({"ms": 1, "n": 1}, {"ms": 99, "n": 1}, canon)
    assert not same({"ms": 1, "n": 1}, {"ms": 1, "n": 2}, canon)


def test_only_that_field_is_volatile():
    canon = learned(
        ({"a": {"ms": 17}, "b": {"ms": 5}}, {"a": {"ms": 23}, "b": {"ms": 5}})
    )
    assert not same(
        {"a": {"ms": 1}, "b": {"ms": 1}}, {"a": {"ms": 1}, "b": {"ms": 2}}, canon
    )


def test_a_volatile_field_under_a_random_key_is_volatile_under_any():
    canon = learned(({UUID: {"ms": 17}}, {UUID_2: {"ms": 23}}))
    assert canon.volatile == {"redis:0.agent:state.value.<?>.ms"}
    one = {"a": UUID, UUID_3: {"ms": 1}}
    assert same(one, {"a": UUID, UUID_3: {"ms": 2}}, canon)


def test_random_words_and_times_and_the_run_are_not_volatile():
    canon = learned(
        (
            {"id": UUID, "run": "run-1", "at": SINCE},
            {"id": UUID_2, "run": "run-2", "at": SINCE + 5},
        )
    )
    assert canon.volatile == frozenset()


def test_a_field_that_one_baseline_lacks_is_not_volatile():
    """Else the presence of a record, which means much, would be masked."""
    canon = learned(({"a": 1}, {"a": 1, "b": 2}))
    assert canon.volatile == frozenset()
    assert not same({"a": 1}, {"a": 1, "b": 2}, canon)


def test_learning_looks_at_every_address():
    canon = learned(({"a": 1}, {"a": 1}), ({"a": 1, "ms": 3}, {"a": 1, "ms": 4}))
    assert canon.volatile == {"redis:0.agent:state.value.ms"}


# --- what the scenario lists ---------------------------------------------------------


@pytest.mark.parametrize(
    "pattern",
    [
        "redis:0.agent:state.value.n",
        "redis:*.n",
        "*.n",
        "redis:*:state.*",
        "redis*",
    ],
)
def test_patterns_that_fit(pattern):
    canon = Canon(CANON.run_ids, SINCE, ignored=(pattern,))
    assert same({"n": 1}, {"n": 2}, canon)


@pytest.mark.parametrize(
    "pattern", ["redis:0.agent:state.value", "n", "redis:0.agent.state.value.n", "?.n"]
)
def test_patterns_that_do_not_fit(pattern):
    canon = Canon(CANON.run_ids, SINCE, ignored=(pattern,))
    fits_whole_value = pattern.endswith("value")
    assert same({"n": 1}, {"n": 2}, canon) is fits_whole_value


def test_only_a_star_is_special():
    """Keys may hold brackets, as a receipt of a tool does."""
    canon = Canon(CANON.run_ids, SINCE, ignored=("*.pay[o-1]",))
    assert same({"pay[o-1]": 1}, {"pay[o-1]": 2}, canon)
    assert not same({"payo": 1}, {"payo": 2}, canon)


# --- times ---------------------------------------------------------------------------

NOW = datetime.fromtimestamp(SINCE, UTC)


@pytest.mark.parametrize("unit", [1, 10**3, 10**6, 10**9])
@pytest.mark.parametrize("kind", [int, float, str])
def test_clock_readings_mean_nothing(unit, kind):
    one, other = (kind(int((SINCE + later) * unit)) for later in (1, 7000))
    assert same(one, other)
    assert same(f"at {int((SINCE + 1) * unit)}-0", f"at {int((SINCE + 7000) * unit)}-0")


@pytest.mark.parametrize(
    "write",
    [
        lambda t: t.isoformat(),
        lambda t: t.isoformat(timespec="seconds"),
        lambda t: t.isoformat().replace("+00:00", "Z"),
        lambda t: t.isoformat().replace("+00:00", "+0000"),
        lambda t: t.isoformat(" "),
        lambda t: t.replace(tzinfo=None).isoformat(),
        lambda t: t.astimezone(timezone(timedelta(hours=9))).isoformat(),
        lambda t: f"{t.timestamp():.3f}",
        lambda t: json.dumps({"at": t.timestamp(), "ms": int(t.timestamp() * 1000)}),
    ],
)
def test_written_times_mean_nothing(write):
    one, other = (write(NOW + timedelta(seconds=s, milliseconds=7)) for s in (1, 99))
    assert same(one, other)
    assert same(f"done at {one}", f"done at {other}")


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (42_000, 42_001),
        (1_000_000_001, 1_000_000_002),
        ("1000000001", "1000000002"),
        ("2001-01-01T00:00:00Z", "2001-01-01T00:00:01Z"),
        ("9999-12-31T23:59:59", "9999-12-31T23:59:58"),
        ("0001-01-01T00:00:00", "0001-01-01T00:00:01"),
        ("2025-99-99T00:00:00", "2025-99-99T00:00:01"),
        (True, False),
        (1, 2),
        (10**400, 10**400 + 1),
        (None, 0),
        (1, "1"),
    ],
)
def test_other_numbers_and_dates_mean_something(one, other):
    assert not same(one, other)


def test_a_time_to_come_is_a_time():
    """When a wait is to end, or a lease to expire."""
    assert same({"resume_at": SINCE + 3}, {"resume_at": SINCE + 86_400})


def test_keys_that_are_times_do_not_swallow_each_other():
    one = {f"{int(SINCE)}": "a", f"{int(SINCE) + 1}": "b"}
    assert len(canonical(one)) == 2
    assert not same(one, {f"{int(SINCE)}": "a"})


# --- JSON in text --------------------------------------------------------------------


def test_text_that_holds_json_is_read_as_json():
    one = json.dumps({"a": UUID, "b": 1})
    other = json.dumps({"b": 1, "a": UUID_2}, indent=2)
    assert same(one, other)
    assert canonical(one) == {"a": "<1>", "b": 1}


def test_json_in_json_in_text():
    def nested(word):
        return json.dumps({"messages": [{"args": json.dumps({"id": word})}]})

    assert same(nested(UUID), nested(UUID_2))
    assert canonical(nested(UUID))["messages"][0]["args"] == {"id": "<1>"}


@pytest.mark.parametrize("text", ["{not json", "[1, 2", "{}x", "[" * 100_000, "{1: 2}"])
def test_text_that_only_looks_like_json(text):
    assert canonical(text) == text
    assert not same(text, text + "!")


def test_fields_inside_json_text_have_paths():
    canon = learned((json.dumps({"ms": [1]}), json.dumps({"ms": [2]})))
    assert canon.volatile == {"redis:0.agent:state.value.ms.0"}


# --- which field keeps moving --------------------------------------------------------


def test_moving_fields_most_often_first():
    views = [view({"n": n, "half": n // 2, "same": 1, "id": UUID}) for n in range(4)]
    prefix = "redis:0.agent:state.value"
    assert moving_fields(CANON, views) == [f"{prefix}.n", f"{prefix}.half"]


# --- any world -----------------------------------------------------------------------

WORDS = st.sampled_from([f"{n:08x}-9a4d-4e5f-8b6a-7c8d9e0f1a2b" for n in range(6)])
STABLE = st.sampled_from(["a", "b", "agent:state", "o-1", "x y", ""])
NUMBERS = st.integers(-5, 5)
TIMES = st.integers(0, 3000).map(lambda later: ("time", later))


def texts(leaf):
    return st.tuples(STABLE, leaf).map(lambda parts: ("text", *parts))


LEAVES = WORDS.map(lambda w: ("word", w)) | NUMBERS | STABLE | TIMES | st.booleans()
WORLDS = st.recursive(
    LEAVES | texts(WORDS),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(STABLE, inner, max_size=3)
        | inner.map(lambda value: ("json", value))
    ),
    max_leaves=12,
)


def build(world, words, shift):
    """The world as one run would leave it: its own words, its own clock."""
    match world:
        case ("word", word):
            return words.get(word, word)
        case ("text", stable, word):
            return f"{stable} {words.get(word, word)}"
        case ("time", later):
            return SINCE + later + shift
        case ("json", inner):
            return json.dumps([build(inner, words, shift)])
        case list():
            return [build(item, words, shift) for item in world]
        case dict():
            return {key: build(item, words, shift) for key, item in world.items()}
    return world


NAMES = [f"{n:08x}-1111-2222-3333-{n * 7919:012x}" for n in range(6)]


@given(WORLDS, st.permutations(NAMES), st.integers(0, 9000))
def test_renaming_all_random_words_and_moving_all_clocks_changes_nothing(
    world, names, shift
):
    words = {f"{n:08x}-9a4d-4e5f-8b6a-7c8d9e0f1a2b": names[n] for n in range(6)}
    assert same(build(world, {}, 0), build(world, words, shift))


AROUND = st.lists(
    st.one_of(
        st.tuples(st.just("list"), WORLDS, WORLDS),
        st.tuples(st.just("dict"), STABLE, st.dictionaries(STABLE, WORLDS, max_size=2)),
        st.tuples(st.just("json")),
    ),
    max_size=4,
)


def put(value, around):
    """The value, somewhere deep inside."""
    for where in around:
        match where:
            case ("list", before, after):
                value = [before, value, after]
            case ("dict", key, others):
                value = {**others, key: value}
            case ("json",):
                value = ("json", value)
    return value


def differ(one, other, around):
    return not same(*(build(put(value, around), {}, 0) for value in (one, other)))


@given(st.permutations(NAMES), AROUND, WORLDS)
def test_taking_one_word_for_another_changes_it(names, around, between):
    one, other, third = (("word", name) for name in names[:3])
    assert differ([one, between, one], [one, between, other], around)
    assert differ([one, other, between, one], [one, other, between, other], around)
    assert differ([one, other, between, one], [one, other, between, third], around)


@given(AROUND, st.sampled_from([(1, 2), ("a", "b"), (None, 0), ([], {}), ({}, "")]))
def test_changing_a_stable_value_changes_it(around, values):
    assert differ(*values, around)


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from("ab"), max_size=4),
    st.permutations(NAMES),
)
def test_random_keys_may_be_any(jobs, names):
    """Also where several hold the same: what they are called is no trace."""
    renamed = dict(zip(NAMES, names, strict=True))
    assert same(jobs, {renamed[key]: value for key, value in jobs.items()})


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3)
    ),
    max_leaves=10,
)


@given(JSON)
def test_no_world_is_too_odd(value):
    assert same(value, value)
    assert isinstance(CANON.fields(view(value)), dict)
    assert learned((value, value)).volatile == frozenset()
