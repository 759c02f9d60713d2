"""What each request to the agent's folder means: an answer at once, or a step."""

import errno
from collections.abc import Callable

from chaoskit.wire.fuse.requests import Request
from chaoskit.world.files.changes import Answer, Changes
from chaoskit.world.files.disk import Disk
from chaoskit.world.files.looks import Looks


class Desk:
    """Answers requests from a disk. What cannot be done raises OSError."""

    def __init__(self, disk: Disk) -> None:
        self.disk = disk
        self._answers: dict[int, Callable[[Request], Answer]] = {
            **Looks(disk).answers,
            **Changes(disk).answers,
        }

    def take(self, request: Request) -> Answer:
        """The answer to a request, or the step that it asks for.

        What is not known is ENOSYS: the kernel does it in its own way then, and does
        not ask again.
        """
        known = self._answers.get(request.opcode)
        if known is None:
            raise OSError(errno.ENOSYS, request.opcode)
        return known(request)
