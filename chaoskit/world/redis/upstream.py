"""The connection to the real Redis server that stands in for one client's."""

from chaoskit.wire.redis.dialogue import Dialogue, Step
from chaoskit.wire.redis.replies import Replies
from chaoskit.world.redis.store import Client
from chaoskit.world.relay import upstream as relay
from chaoskit.world.relay.prompt import Prompt


class Upstream(relay.Upstream["_Waiting"]):
    """The connection to the server that stands in for a client's.

    By what it is ``known`` the server can be told to end the connection.
    """

    def __init__(self, client: relay.Receiver, dialogue: Dialogue) -> None:
        super().__init__(client)
        self.known: Client | None = None
        self._dialogue = dialogue
        self._replies = Replies()
        self._behind: list[bytes] | None = None

    def data_received(self, data: bytes) -> None:
        """asyncio's part of the deal."""
        waiting = self._waiting
        passing = [
            message for message in self._replies.feed(data) if self._pass(message)
        ]
        if passing:
            self._client.send(b"".join(passing))
        if waiting is not None and self._waiting is None:
            # The last thing to do here: whoever waits goes on at once.
            waiting.over.set(None)

    async def ask(
        self, step: Step, raw: bytes, replies: int, *, passing: bool
    ) -> list[bytes]:
        """Send bytes and wait for what answers them; returns the replies.

        ``passing``: each goes to the client as it comes, and the last one is returned.
        Where they are withheld, so is what comes behind them, until `release`: a cache
        must not hear that a value has changed before it hears the value.

        Raises:
            ConnectionError: the connection is lost.
        """
        transport = self._reading()
        self._waiting = waiting = _Waiting(step, replies, passing=passing)
        transport.write(raw)
        await waiting.over
        return waiting.replies

    def release(self) -> None:
        """What was withheld is on its way: send what the server pushed behind it."""
        behind, self._behind = self._behind, None
        if behind:
            self._client.send(b"".join(behind))

    def tell(self, raw: bytes) -> None:
        """Send bytes that nothing answers."""
        if self._transport is not None:
            self._transport.write(raw)

    def _pass(self, message: bytes) -> bool:
        """Take in one message; True if it goes to the client."""
        waiting = self._waiting
        if self._behind is not None:
            self._behind.append(message)
            return False
        if waiting is None or not self._dialogue.answers(waiting.step, message):
            return True
        if waiting.took(message):
            self._waiting = None
            if not waiting.passing:
                self._behind = []
        return waiting.passing


class _Waiting:
    """Replies that are waited for."""

    def __init__(self, step: Step, replies: int, *, passing: bool) -> None:
        self.step = step
        self.passing = passing
        self.replies: list[bytes] = []
        self.over: Prompt[None] = Prompt()
        self._left = replies

    def took(self, reply: bytes) -> bool:
        """Count a reply; True if it was the last one."""
        self._left -= 1
        # An error to a subscription stands for all of its confirmations.
        if self.passing:
            self.replies.clear()
        self.replies.append(reply)
        return not self._left or bool(self.step.confirmation and reply[:1] == b"-")
