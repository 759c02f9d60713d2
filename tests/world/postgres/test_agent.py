"""A small agent, a real process, is killed at every commit and closed over."""

import asyncio
import sys

import pytest

AGENT = """
import os, psycopg
with psycopg.connect(os.environ["DATABASE_URL"], autocommit=True) as store:
    store.execute("CREATE TABLE IF NOT EXISTS log (step int PRIMARY KEY, v text)")
    store.execute("CREATE TABLE IF NOT EXISTS seats (id serial, v text)")
    for step in range(3):
        with store.transaction():
            done = store.execute("SELECT 1 FROM log WHERE step = %s", [step])
            if done.fetchone() is None:
                store.execute("INSERT INTO seats (v) VALUES (%s)", [f"seat {step}"])
                store.execute("INSERT INTO log VALUES (%s, 'done')", [step])
    store.execute("UPDATE log SET v = 'over'")
"""
CROSSINGS = (
    *("create_table[log]#1", "create_table[seats]#1"),
    *("commit[tx]#1", "commit[tx]#2", "commit[tx]#3", "update[log]#1"),
)


@pytest.fixture
def agent():
    """Live one life; the process is killed where the gate says so."""

    async def live(bench, life):
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-c", AGENT), env={"DATABASE_URL": bench.url}
        )

        async def kill():
            process.kill()
            await process.wait()

        bench.look = kill
        code = await process.wait()
        await bench.over(life)
        return code

    return live


def _effects(view):
    """What the agent is for: sequences have gaps, ids differ."""
    tables = view["tables"]
    return tables.get("log"), [row["v"] for row in tables["seats"]["value"]]


async def test_killed_anywhere_it_does_everything_once(on_postgres, agent):
    """At each crossing and edge, and from each wreck in another trial."""
    async with on_postgres(seconds_max=300) as bench:
        assert await agent(bench, 0) == 0
        assert tuple(bench.crossed(":after")) == CROSSINGS
        whole = _effects(await bench.service.view())
        for at in CROSSINGS:
            for edge in ("before", "after"):
                await bench.trial(f"kill@0:postgres.{at}:{edge}")
                assert await agent(bench, 0) == -9
                assert bench.crossed()[-1] == f"{at}:{edge}"
                wreck = await bench.service.snapshot()
                await bench.open(1)
                assert await agent(bench, 1) == 0
                assert _effects(await bench.service.view()) == whole
                await bench.trial()
                await bench.service.restore(wreck)
                await bench.over()
                await bench.open(1)
                assert await agent(bench, 1) == 0
                assert _effects(await bench.service.view()) == whole
