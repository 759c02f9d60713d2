"""A client's commands as their turn comes, each read for what it means.

A transaction that has arrived whole is one step; commands that need no care are taken
together, as far as they have arrived.
"""

from contextlib import suppress

from chaoskit.wire.redis.commands import Kind
from chaoskit.wire.redis.dialogue import Dialogue, Step
from chaoskit.wire.redis.requests import Command, Commands
from chaoskit.wire.redis.resp import WireError


class Turns:
    """Reads ahead in what one client has sent."""

    def __init__(self, commands: Commands, dialogue: Dialogue) -> None:
        self._commands = commands
        self._dialogue = dialogue
        self._held: Step | None = None

    def next(self) -> Step | None:
        """The next step, or None until more arrives.

        Raises:
            WireError: what arrived is no command.
        """
        step, self._held = self._held or self._read(), None
        return step

    def run(self, step: Step) -> list[Step]:
        """The step, and all that has arrived behind it and needs no more care."""
        run = [step]
        with suppress(WireError):  # its turn comes after what is before it
            while (following := self._read()) and following.kind is Kind.PLAIN:
                run.append(following)
            self._held = following
        return run

    def _read(self) -> Step | None:
        command = self._commands.take()
        if command is None:
            return None
        step = self._dialogue.read(command)
        if step.kind is Kind.MULTI:
            return self._read_whole(command) or step
        return step

    def _read_whole(self, multi: Command) -> Step | None:
        """The transaction that begins here, if all of it has arrived."""
        rest: list[Command] = []
        with suppress(WireError):
            while (command := self._commands.take()) is not None:
                rest.append(command)
                if command.words[0].lower() == b"exec":
                    break
        step = self._dialogue.whole(multi, rest)
        if step is None:
            self._commands.put_back(rest)
        return step
