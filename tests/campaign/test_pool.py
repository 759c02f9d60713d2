"""Workers: what they raise comes back whole, and Ctrl-C is none of their business."""

import os
import pickle
import signal
from concurrent.futures import Future

import pytest

from chaoskit.agents import LaunchError, TemporaryFolderError
from chaoskit.campaign import WRONG_INPUT, jobs_by_default
from chaoskit.campaign.output import OutputError
from chaoskit.model.errors import InputError, Problem
from chaoskit.model.manifest import Store
from chaoskit.pool import Pool, Setup
from chaoskit.world.servers import MissingServer

PROBLEM = Problem("a.yaml", 1, 2, "$.x", "1", "a word")
ERRORS = (
    InputError((PROBLEM,)),
    LaunchError("no such program"),
    MissingServer("no such server"),
    OutputError("no such folder"),
    TemporaryFolderError("no such place"),
)


@pytest.mark.parametrize("error", ERRORS, ids=lambda error: type(error).__name__)
def test_errors_cross_from_a_worker_with_their_words(error):
    """And each of them is one that the command line puts into words."""
    back = pickle.loads(pickle.dumps(error))
    assert (type(back), str(back)) == (type(error), str(error))
    assert isinstance(back, WRONG_INPUT)


def test_a_redis_server_that_was_given_serves_one_worker(monkeypatch):
    """It is emptied before each trial; in a PostgreSQL server each has a database."""
    assert 1 <= jobs_by_default(Store.REDIS) <= 8
    by_store = jobs_by_default(Store.POSTGRES)
    monkeypatch.setenv("CHAOSKIT_REDIS_URL", "redis://localhost")
    monkeypatch.setenv("CHAOSKIT_DATABASE_URL", "postgresql://localhost/db")
    assert jobs_by_default(Store.REDIS) == 1
    assert jobs_by_default(Store.POSTGRES) == by_store


class Executor:
    """Notes the signals that were blocked as a trial was submitted."""

    def __init__(self, *args, **more):
        self.blocked = set()

    def submit(self, *args):
        self.blocked = signal.pthread_sigmask(signal.SIG_BLOCK, ())
        return Future()

    def shutdown(self, **more):
        raise OSError("no more processes")


@pytest.fixture
def executor(monkeypatch):
    """A pool's executor that starts nothing."""
    made = Executor()
    monkeypatch.setattr("chaoskit.pool.ProcessPoolExecutor", lambda *_, **__: made)
    return made


def test_workers_are_born_deaf_to_ctrl_c_and_the_coordinator_is_not(executor, tmp_path):
    """Otherwise one that is still importing would answer with a traceback."""
    pool = Pool(Setup(None, tmp_path, tmp_path, tmp_path), 1, {})
    pool.submit(None)
    assert signal.SIGINT in executor.blocked
    assert signal.SIGINT not in signal.pthread_sigmask(signal.SIG_BLOCK, ())


def test_the_tag_is_on_what_is_started_and_gone_afterwards(executor, tmp_path):
    """However the workers ended."""
    setup = Setup(None, tmp_path, tmp_path, tmp_path)
    with (
        pytest.raises(OSError, match="no more processes"),
        Pool(setup, 1, {"CHAOSKIT_TEST_TAG": "c1"}),
    ):
        assert os.environ["CHAOSKIT_TEST_TAG"] == "c1"
    assert "CHAOSKIT_TEST_TAG" not in os.environ
