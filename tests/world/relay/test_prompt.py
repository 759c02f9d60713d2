"""A `Prompt` is a future to a task, and lets it go on without a turn of the loop."""

import asyncio
import contextvars

import pytest

from chaoskit.world.relay.prompt import Prompt


async def test_who_waits_goes_on_inside_the_call_that_sets_it() -> None:
    prompt: Prompt[int] = Prompt()
    got: list[int] = []

    async def wait() -> None:
        got.append(await prompt)
        got.append(await prompt)

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    seen: list[list[int]] = []

    def set_it() -> None:
        prompt.set(7)
        prompt.set(8)
        seen.append(list(got))

    asyncio.get_running_loop().call_soon(set_it)
    await task
    assert seen == [[7, 7]]
    assert prompt.done()


async def test_inside_a_task_it_waits_for_its_turn() -> None:
    """Two tasks of one loop cannot be in the middle of a step at once."""
    prompt: Prompt[int] = Prompt()

    async def wait() -> int:
        return await prompt

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    prompt.set(7)
    assert not task.done()
    assert await task == 7


async def test_an_error_is_raised_where_one_waits() -> None:
    prompt: Prompt[int] = Prompt()

    async def wait() -> int:
        return await prompt

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    prompt.fail(ConnectionError("gone"))
    prompt.set(7)
    with pytest.raises(ConnectionError, match="gone"):
        await task


async def test_a_task_that_waits_can_be_cancelled_and_timed_out() -> None:
    never: Prompt[int] = Prompt()
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.01):
            await never

    async def wait() -> int:
        return await Prompt[int]()

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_the_waiter_keeps_its_context() -> None:
    name = contextvars.ContextVar("name", default="nobody")
    prompt: Prompt[None] = Prompt()
    seen: list[str] = []

    async def wait() -> None:
        name.set("the waiter")
        await prompt
        seen.append(name.get())

    task = asyncio.create_task(wait())
    await asyncio.sleep(0)
    asyncio.get_running_loop().call_soon(prompt.set, None)
    await task
    assert (seen, name.get()) == (["the waiter"], "nobody")
