"""When a trial goes wrong no life of it goes on, and the next trial is clean."""

import asyncio

import pytest

from chaoskit.agents import LaunchError
from chaoskit.trial import Watching

LOST = ConnectionError("the Redis server closed the connection")


async def hangs(body):
    """A life that would go on for ever."""
    await body.act()
    return await body.hang()


async def pays(body):
    """A life that pays and is done."""
    await body.act()
    return 0


async def play_soundly(stage):
    """The next trial in the same world is as if nothing had been."""
    stage.service.breaks.clear()
    visited = await stage.play(pays)
    assert visited.trial.ended.outcome == "done"
    assert stage.service.applied == ["tools.pay[o-1]"] * 2


def sockets(stage):
    """What was opened and closed."""
    return [note for note in stage.service.noted if note[0] in ("open", "close")]


def test_a_command_that_cannot_be_started(stage):
    """The error is passed on; the sockets that were opened for it are closed."""

    async def scene():
        with pytest.raises(LaunchError, match="no such program"):
            await stage.play()
        assert sockets(stage) == [("open", 0), ("close", 0)]
        await play_soundly(stage)

    asyncio.run(scene())


def test_sockets_that_cannot_be_opened(stage):
    """Those that were opened before are closed again, and nothing is started."""

    async def scene():
        stage.service.breaks["open"] = OSError("no more sockets")
        with pytest.raises(OSError, match="no more sockets"):
            await stage.play(pays)
        assert sockets(stage) == [("close", 0)]
        assert stage.launcher.lives == []
        await play_soundly(stage)

    asyncio.run(scene())


def test_a_trial_that_is_cancelled_kills_its_life(stage):
    """Its sockets are closed too, and its journal is there to the last line."""

    async def scene():
        trial = asyncio.ensure_future(stage.play(hangs))
        await stage.service.busy.wait()
        trial.cancel()
        with pytest.raises(asyncio.CancelledError):
            await trial
        (life,) = stage.launcher.lives
        assert life.kills
        assert (await life.wait()).signal == 9
        assert sockets(stage) == [("open", 0), ("close", 0)]
        assert "#1:before" in (stage.folder / "history.jsonl").read_text()
        await play_soundly(stage)

    asyncio.run(scene())


@pytest.mark.parametrize("code", [1, 65, 75])
def test_a_server_that_has_gone_is_no_fault_of_the_agent(stage, code):
    """The trial is no evidence: it raises rather than tell of an agent that failed."""

    async def ends(body):
        stage.service.breaks["view"] = LOST
        return code

    async def scene():
        with pytest.raises(ConnectionError, match="closed the connection"):
            await stage.play(ends)
        await play_soundly(stage)

    asyncio.run(scene())


def test_a_trial_never_writes_over_another(stage):
    """A name that is taken is a mistake of ours, and is not covered up."""

    async def scene():
        await stage.play(pays)
        stage.names -= 1
        with pytest.raises(FileExistsError):
            await stage.play(pays)

    asyncio.run(scene())


def test_a_life_that_was_faster_than_its_end(stage, monkeypatch):
    """It ends by itself while its world is looked at, and then has nothing to end."""

    async def scene():
        looked, closed, close = asyncio.Event(), asyncio.Event(), stage.service.close
        sent = []

        async def closing(life):
            await close(life)
            closed.set()

        async def looks(self, address, watching):
            looked.set()
            await closed.wait()
            return True  # cut it here

        async def hurries(body):
            sent.append(asyncio.ensure_future(body.act()))
            await looked.wait()
            return 0

        monkeypatch.setattr(stage.service, "close", closing)
        monkeypatch.setattr("chaoskit.trial.looks.Looks.at", looks)
        visited = await stage.play(hurries, pays, watching=Watching())
        assert visited.trial.ended.outcome == "done"
        with pytest.raises(ConnectionError):
            await sent[0]

    asyncio.run(scene())
