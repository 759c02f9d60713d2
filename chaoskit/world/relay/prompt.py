"""A future whose waiter goes on at once, where asyncio's waits for the loop to turn.

A relay does little for each message, so that two more turns of the loop, each with a
system call, would be a good part of what it costs. A task that waits for a `Prompt`
is run on the spot by whoever sets it; from inside another task, which cannot be
interrupted like that, it is run in the loop's next turn.
"""

import asyncio
import contextvars
from collections.abc import Callable, Generator
from typing import Any, Generic, TypeVar

Value = TypeVar("Value")
Waiter = Callable[[Any], object]


class Prompt(Generic[Value]):
    """What asyncio asks of a future that a task waits for (see `asyncio.isfuture`)."""

    __slots__ = ("_asyncio_future_blocking", "_error", "_is_done", "_value", "_waiters")

    def __init__(self) -> None:
        self._asyncio_future_blocking = False
        self._is_done = False
        self._value: Any = None
        self._error: BaseException | None = None
        self._waiters: list[tuple[Waiter, contextvars.Context | None]] = []

    def __await__(self) -> Generator[Any, None, Value]:
        if not self._is_done:
            self._asyncio_future_blocking = True
            yield self
        return self.result()

    def done(self) -> bool:
        """Whether it is set."""
        return self._is_done

    def result(self) -> Value:
        """What it was set to; raises what it failed with."""
        if self._error is not None:
            raise self._error
        value: Value = self._value
        return value

    def set(self, value: Value) -> None:
        """Let the waiter go on with a value. Once set, it stays as it is."""
        if not self._is_done:
            self._value = value
            self._over()

    def fail(self, error: BaseException) -> None:
        """Let the waiter go on with an error."""
        if not self._is_done:
            self._error = error
            self._over()

    def cancel(self, msg: object = None) -> bool:
        """asyncio's part of the deal: the task that waits is cancelled.

        Whoever cancels is not done yet when it calls this: the task goes on later.
        """
        if self._is_done:
            return False
        self._error = asyncio.CancelledError(*([] if msg is None else [msg]))
        self._over(at_once=False)
        return True

    def get_loop(self) -> asyncio.AbstractEventLoop:
        """asyncio's part of the deal."""
        return asyncio.get_running_loop()

    def add_done_callback(
        self, waiter: Waiter, *, context: contextvars.Context | None = None
    ) -> None:
        """asyncio's part of the deal."""
        self._waiters.append((waiter, context))

    def _over(self, *, at_once: bool = True) -> None:
        self._is_done = True
        waiters, self._waiters = self._waiters, []
        if not waiters:
            return
        loop = asyncio.get_running_loop()
        for waiter, context in waiters:
            if not at_once or asyncio.current_task(loop) is not None:
                loop.call_soon(waiter, self, context=context)
            elif context is not None:
                context.run(waiter, self)
            else:
                waiter(self)
