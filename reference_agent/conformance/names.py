"""Runs of odd names are as good as any, and none is taken for another."""

from reference_agent.conformance.bench import Bench, Opener, loaded, taken
from reference_agent.stores.base import Due, Store

PLAIN = ["r", "r1", "r10", "r2", "1", "01", "1.0", "0x1", "-1", "1e0", "None", "null"]
SPELLING = [
    "run",
    "Run",
    "RUN",
    "é",
    "e\u0301",
    "É",
    "ß",
    "ss",
    "SS",
    "\u0131",
    "i",
    "I",
]
SPACE = ["a b", "a+b", "a%20b", "a  b", " a b", "a b ", "a\tb", "a\nb", "a\u00a0b"]
PATHS = [
    ".",
    "..",
    "...",
    ".hidden",
    "/",
    "//",
    "a/b",
    "a//b",
    "/a/b",
    "a/b/",
    "a\\b",
    "a/../a/b",
    "../a",
    "../../a",
    "..%2f..%2fa",
    "~",
    "~root",
    "/dev/null",
    "C:\\a",
    "CON",
    "a:b",
]
QUOTING = ["a%2Fb", "a%2fb", "a%252Fb", "%", "%%", "%s", "%00", "a_b", "a-b", "a=2Fb"]
SYNTAX = [
    "'",
    '"',
    "''",
    "'; --",
    "a'b",
    "$1",
    "?",
    "*",
    "[a]",
    "{r}",
    "{}",
    ":r",
    "_",
    "\\",
    "#",
    "&",
    "|",
    "<r>",
    "-rf",
    "--",
    "@",
    "a,b",
    "a;b",
]
PARTS = [
    f"{before}{after}"
    for word in ("lease", "due", "log", "checkpoint", "tmp", "lock", "json", "run")
    for before, after in (
        ("r:", word),
        (f"{word}:", "r"),
        ("r.", word),
        ("r.run.", word),
        (f"r.{word}.", "7"),
        ("", word),
    )
]
LONG_ONES = ["x" * 200, "x" * 199 + "y", "/" * 200, "é" * 200, "\U0001f600" * 200]
OWNERS = ["a", "A", "a b", "a:b", "é", "'; --", "1", "%", "a\nb", "null", "{}"]
FOREIGN = ["运行", "\U0001f600", "\u202er", "r\u200b", "r\ufeff", "\u0130"]
GROUPS = (PLAIN, SPELLING, SPACE, PATHS, QUOTING, SYNTAX, PARTS, LONG_ONES, FOREIGN)
ODD = list(dict.fromkeys(name for group in GROUPS for name in group))


class Names(Bench):
    """Run ids are texts, and nothing but texts."""

    def test_an_odd_name_will_do(self, store: Store) -> None:
        """For each operation, and `due` gives it back."""
        for run_id in ODD:
            assert store.load(run_id) is None, run_id
            assert store.create(run_id, {"n": 0}) is True, run_id
            assert store.create(run_id, {"n": 1}) is False, run_id
            held = taken(store, run_id, "a")
            store.save(run_id, held.token, {"n": 2})
            assert list(store.due()) == [Due(run_id, "a")]
            store.release(run_id, held.token)
            assert list(store.due()) == [Due(run_id, None)]
            held = taken(store, run_id, "b")
            store.save(run_id, held.token, {"n": 3}, wake_at=None)
            assert list(store.due()) == []
            assert loaded(store, run_id).document == {"n": 3}

    def test_no_two_names_are_one(self, store: Store, opened: Opener) -> None:
        """Whatever differs is another run: in case, in quoting, in a space."""
        for number, run_id in enumerate(ODD):
            assert store.create(run_id, {"number": number, "id": run_id}), run_id
        assert sorted(due.run_id for due in store.due()) == sorted(ODD)
        tokens = {run_id: taken(store, run_id, run_id).token for run_id in ODD}
        for run_id, token in tokens.items():
            store.save(run_id, token, {"saved": run_id})
        for run_id in ODD:
            held = loaded(opened() if run_id in PLAIN else store, run_id)
            assert (held.document, held.owner) == ({"saved": run_id}, run_id)

    def test_owners_are_texts_too(self, store: Store) -> None:
        """An odd name of an owner comes back, and is the one that `over` means."""
        store.create("r", {})
        last = "nobody"
        taken(store, "r", last)
        for owner in [*OWNERS, "x" * 200]:
            assert store.take("r", "thief", 60.0, over=f"{last} ") is None
            taken(store, "r", owner, over=last)
            assert loaded(store, "r").owner == owner
            last = owner
