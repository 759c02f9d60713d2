"""A look of the harness's own leaves no trace in the server, where nobody else is."""


async def test_what_a_guest_writes_is_undone(on_redis):
    """Written over, added, counted in a transaction, removed: all of it."""
    async with on_redis() as bench:
        agent = bench.connect()
        await agent.set("kept", "v", ex=1000)
        await agent.rpush("log", "a", "b")
        await bench.over()
        before = await bench.service.view()
        async with bench.service.sheltered():
            await bench.open(-1)
            guest = bench.connect()
            await guest.set("kept", "healed")
            await guest.set("new", "v")
            async with guest.pipeline() as transaction:
                await transaction.rpush("log", "c").delete("kept").execute()
            assert await guest.lrange("log", 0, -1) == ["a", "b", "c"]
            await bench.over(-1)
        assert await bench.service.view() == before
        assert 900 < await bench.real.ttl("kept") <= 1000


async def test_what_is_there_after_a_guest_is_still_written_to(on_redis):
    """The shelter ends with the look: the next life's writes stay."""
    async with on_redis() as bench:
        await bench.over()
        async with bench.service.sheltered():
            await bench.open(-1)
            await bench.over(-1)
        await bench.open(1)
        await bench.connect().set("k", "v")
        await bench.over(1)
        assert await bench.real.get("k") == "v"


async def test_nothing_is_undone_where_somebody_else_is_there(on_redis):
    """It would take back what they write."""
    async with on_redis() as bench:
        agent = bench.connect()
        await agent.set("mine", "v")
        async with bench.service.sheltered():
            await bench.open(-1)
            await bench.connect().set("guest", "v")
            await agent.set("mine", "w")
            await bench.over(-1)
        assert await bench.real.get("mine") == "w"
        assert sorted(await bench.real.keys()) == ["guest", "mine"]


async def test_a_rollback_does_not_count_what_a_guest_wrote(on_redis):
    """The last write is the agent's, not the look's."""
    async with on_redis("rollback@1:redis.set[k]#1:after") as bench:
        await bench.connect().set("old", "v")
        await bench.over()
        async with bench.service.sheltered():
            await bench.open(-1)
            await bench.connect().set("guest", "v")
            await bench.over(-1)
        await bench.open(1)
        await bench.connect().set("k", "v")
        assert await bench.real.keys() == ["old"]
