"""The reference agent's own store behind the relay, as every campaign has it.

Its claims, its saves and its polls can be told apart in a schedule, and what PostgreSQL
says unasked comes through at once.
"""

import asyncio
from contextlib import closing

import pytest

from reference_agent.stores.base import Due, Fenced, StoreUnavailable
from reference_agent.stores.postgres import PostgresStore

LONG = 3600.0
CREATE, CLAIM, SAVE = "insert[agent_runs]", "update[agent_leases]", "update[agent_runs]"
TABLES = "create_table[agent_runs]"
IS_WAITED_FOR = """SELECT count(*) > 0 FROM pg_stat_activity
    WHERE datname = current_database() AND state = 'idle' AND query ~ 'min.wake_at'"""
"""Somebody has asked for the next time to wake, and now only listens."""


def _life(url):
    """Some of everything; what it was told."""
    with closing(PostgresStore(url)) as store:
        store.create("r1", {"n": 0})
        held = store.take("r1", "a", LONG, over="a")
        store.due()
        store.save("r1", held.token, held.document | {"n": held.document["n"] + 1})
        store.wait(0)
        store.save("r1", held.token, {"n": 9}, wake_at=None, keep=False)
        store.release("r1", held.token)
        return store.load("r1")


async def test_claims_saves_and_polls_can_be_told_apart(on_postgres):
    """And a second life makes no tables, nor does a claim that is not to be had."""
    async with on_postgres() as bench:
        held = await asyncio.to_thread(_life, bench.url)
        assert (held.document, held.owner, held.takes) == ({"n": 9}, None, 0)
        each = (TABLES, CREATE, CLAIM, SAVE, SAVE, CLAIM)
        assert [name.partition("#")[0] for name in bench.crossed(":after")] == [*each]
        await bench.over()
        await bench.open(1)
        with closing(PostgresStore(bench.url)) as store:
            assert await asyncio.to_thread(store.load, "r1") == held
            await asyncio.to_thread(store.take, "r1", "a", LONG)
            assert await asyncio.to_thread(store.take, "r1", "b", LONG) is None
            assert await asyncio.to_thread(store.take, "r2", "b", LONG) is None
        assert bench.crossed(":after")[len(each) :] == [f"{CLAIM}#1"]


@pytest.mark.parametrize("is_own", [False, True])
async def test_who_waits_is_told_at_once(on_postgres, is_own):
    """By another life's commit, over the other's connection, or beside the relay."""
    async with on_postgres() as bench:
        with closing(PostgresStore(bench.url)) as waits:
            assert await asyncio.to_thread(waits.due) == []
            waiting = asyncio.create_task(asyncio.to_thread(waits.wait, LONG))
            while await bench.rows(IS_WAITED_FOR) != [True]:
                pass
            url = bench.url
            if is_own:
                await bench.open(1)
                url = bench.url
            with closing(PostgresStore(url)) as creates:
                await asyncio.to_thread(creates.create, "r1", {})
                await waiting
            assert await asyncio.to_thread(waits.due) == [Due("r1", None)]


@pytest.mark.parametrize(
    ("fault", "is_saved"),
    [
        *((f"drop_reply@0:postgres.{SAVE}#1:after", True),),
        *((f"refuse@0:postgres.{SAVE}#1:before", False),),
        *((f"error(40001)@0:postgres.{SAVE}#1:before", False),),
        *((f"error(57P01)@0:postgres.{SAVE}#1:before", False),),
    ],
)
async def test_after_a_fault_nobody_knows_and_all_goes_on(on_postgres, fault, is_saved):
    """It is told as unavailable, tried by nobody, and the next operation is served."""
    async with on_postgres(fault) as bench:
        with closing(PostgresStore(bench.url)) as store:
            await asyncio.to_thread(store.create, "r1", {"n": 0})
            held = await asyncio.to_thread(store.take, "r1", "a", LONG)
            with pytest.raises(StoreUnavailable, match="PostgreSQL"):
                await asyncio.to_thread(store.save, "r1", held.token, {"n": 1})
            found = await asyncio.to_thread(store.load, "r1")
            assert found.document == {"n": int(is_saved)}
            await asyncio.to_thread(store.save, "r1", held.token, {"n": 2})
        assert len(bench.fired()) == 1


@pytest.mark.parametrize("count", [1, 2])
async def test_what_a_failover_forgets_fences_who_had_it(on_postgres, count):
    """The newest token is forgotten with its claim; the next one is greater still."""
    schedule = f"rollback({count})@0:postgres.{SAVE}#1:after"
    async with on_postgres(schedule) as bench:
        with closing(PostgresStore(bench.url)) as store:
            await asyncio.to_thread(store.create, "r1", {"n": 0})
            held = await asyncio.to_thread(store.take, "r1", "a", LONG)
            await asyncio.to_thread(store.save, "r1", held.token, {"n": 1})
            found = await asyncio.to_thread(store.load, "r1")
            assert found.document == {"n": 0}
            assert found.token == (held.token if count == 1 else 0)
            again = await asyncio.to_thread(store.take, "r1", "b", LONG, over="a")
            assert again.token > held.token
            with pytest.raises(Fenced):
                await asyncio.to_thread(store.save, "r1", held.token, {"n": 1})
