"""The conformance suite can fail: each broken store is caught by the test for its bug.

The stores are in `simple_stores`; the suite runs in a pytest of its own on each.
"""

from pathlib import Path

import pytest

# Before the inner runs, each of which forgets what it imported itself.
import reference_agent.conformance  # noqa: F401

CAUGHT_BY = {
    "WritesInPlace": "test_killed_at_any_call_it_is_whole_or_not_at_all[save]",
    "SavesInTwoSteps": "test_killed_at_any_call_it_is_whole_or_not_at_all[finish]",
    "TheLastOneWins": "test_a_stale_token_changes_nothing",
    "ChecksBeforeItLocks": "test_each_run_is_taken_by_one[processes]",
    "FencesItsHolder": "test_no_line_is_lost_in_turn[processes]",
    "CreatesTwice": "test_a_run_is_created_once",
    "TokensRestart": "test_tokens_rise",
    "TokensAreSeconds": "test_tokens_rise",
    "OrdersByTheClock": "test_the_newest_checkpoint_comes_back",
    "OrdersByText": "test_the_newest_checkpoint_comes_back",
    "GluesToATornTail": "test_killed_at_any_call_it_is_whole_or_not_at_all[save]",
    "MakesTextsOfValues": "test_others_are_refused_or_come_back[decimal]",
    "ComparesByEquality": "test_each_change_comes_back",
    "DamagedIsNothing": ("test_damaged_data_is_unreadable_and_kept[torn-new handle]"),
    "ClearsDamageAway": (
        "test_damaged_data_is_unreadable_and_kept[foreign-new handle]"
    ),
    "FoldsCase": "test_no_two_names_are_one",
    "TrustsNames": "test_nothing_is_written_beside_the_folder",
    "LeasesNeverEnd": "test_an_expired_lease_has_no_owner",
    "ReleasesForAnybody": "test_a_stale_token_changes_nothing",
    "SavesDoNotRenew": "test_a_save_renews_the_lease_by_its_length",
    "HidesLeasedRuns": "test_leased_ones_are_listed_with_their_owner",
    "WakesEarly": "test_a_run_is_due_at_its_time_and_not_before",
    "SleepsThrough": "test_a_new_run_ends_the_waiting",
    "Spins": "test_waiting_ends",
    "LosesLetters": "test_json_comes_back[NUL]",
    "ClosesOnce": "test_close_can_be_called_twice",
    "ExpiresInPart": "test_it_goes_whole[True]",
    "ExpiresAtWork": "test_work_keeps_it[saves]",
    "CountsBackwards": "test_tokens_rise_and_the_newest_comes_back[-86400.0]",
    "ForgetsTheTakes": "test_any_sequence_of_operations",
}

SUITE = """
from functools import partial
import pytest
from reference_agent import conformance
import simple_stores

def damaged(path, how):
    data = path.read_bytes()
    spoilt = data[:60] + bytes(9) + data[69:]
    path.write_bytes({{"torn": data[:-9], "spoilt": spoilt, "foreign": b"[1]"}}[how])
    return path.read_bytes

class TestIt(
    conformance.StoreConformance, conformance.DamageConformance,
    conformance.ExpiryConformance, conformance.ClockConformance,
    conformance.FolderConformance, conformance.NoticeConformance,
):
    patience = {patience}

    @pytest.fixture
    def folder(self, tmp_path):
        return tmp_path / "runs"

    @pytest.fixture
    def open_store(self, folder):
        return partial(simple_stores.{store}, folder)

    @pytest.fixture
    def open_expiring(self, folder):
        return partial(simple_stores.{expiring}, folder, 1.0)

    @pytest.fixture
    def damage(self, open_store):
        return lambda run_id, how: damaged(open_store()._path(run_id), how)
"""


@pytest.fixture
def examine(pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch):
    """Runs the suite, or one test of it, on one of the simple stores."""
    monkeypatch.syspath_prepend(Path(__file__).parent)

    def examine(store: str, test: str = "", patience: float = 60.0):
        is_expiring = store.startswith("Expires")
        names = {
            "store": "SimpleStore" if is_expiring else store,
            "expiring": store if is_expiring else "ExpiringStore",
        }
        path = pytester.makepyfile(SUITE.format(**names, patience=patience))
        where = f"{path.name}::TestIt::{test}" if test else path.name
        return pytester.runpytest_inprocess(
            "-p", "no:xdist", "-p", "no:randomly", "-W", "error", where
        )

    return examine


def test_a_store_that_keeps_its_promises_passes(examine):
    """All of the suite, or what it finds in others would mean nothing."""
    outcome = examine("SimpleStore")
    assert set(outcome.parseoutcomes()) == {"passed"}


@pytest.mark.parametrize("store", CAUGHT_BY)
def test_a_broken_store_is_caught(examine, store):
    """By the one test that is for its bug, and by a failure, not by an error."""
    outcome = examine(store, CAUGHT_BY[store], patience=3.0)
    outcome.assert_outcomes(failed=1)


def test_a_worker_that_fails_is_told_before_those_that_wait_for_it(examine):
    """Silence says nothing of why, and takes a minute to be noticed."""
    outcome = examine("FencesItsHolder", CAUGHT_BY["FencesItsHolder"])
    outcome.stdout.fnmatch_lines(["*Fenced: * was taken over by nobody"])


@pytest.mark.parametrize("test", ["test_it_goes_whole[True]", "test_work_keeps_it"])
def test_a_pause_of_the_machine_is_no_fault_of_the_store(examine, test):
    """What expired in it was to expire; the test is done again."""
    outcome = examine("ExpiresInAPause", test)
    assert set(outcome.parseoutcomes()) == {"passed"}
