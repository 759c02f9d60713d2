"""A disk that goes from life to life: one container at a time, each over the last.

The disk that a container leaves is committed: an image with one layer more, which holds
what that life changed. The next container is made of it, and the last one removed.
"""

from collections.abc import Iterable

from chaoskit.agents.docker.engine import Engine
from chaoskit.agents.docker.life import ContainerLife
from chaoskit.agents.life import LaunchError

LAYERS_MAX = 100
"""Lives on one disk: each is a layer, and the engine stacks about 125."""


class KeptDisk:
    """The disk of one run: who had it `last`, and the variables, by `names`, of all.

    What is committed holds a life's variables too; they must be taken away again.
    """

    def __init__(self, engine: Engine, run: str) -> None:
        self.run = run
        self.last: ContainerLife | None = None
        self.names: frozenset[str] = frozenset()
        self._engine = engine
        self._images: list[str] = []

    async def image(self) -> str:
        """The disk as the last life left it. Raises `LaunchError`."""
        assert self.last is not None
        if not self.last.ending.done():
            raise LaunchError(_ONE_AT_A_TIME)
        if len(self._images) == LAYERS_MAX:
            raise LaunchError(_TOO_MANY)
        self._images.append(await self._engine.commit(self.last.container))
        return self._images[-1]

    async def hand_on(self, life: ContainerLife, names: Iterable[str]) -> None:
        """Another life has the disk from now on, and the volumes that go with it."""
        last, self.last = self.last, life
        self.names |= frozenset(names)
        if last is not None:
            await self._engine.remove(last.container, volumes=False)

    async def discard(self) -> None:
        """Nothing of it is wanted any more."""
        if self.last is not None:
            await self._engine.remove(self.last.container, volumes=True)
        for image in reversed(self._images):  # each is made from the one before
            await self._engine.remove_image(image)


_ONE_AT_A_TIME = (
    "a second life was to start while one runs or is paused, and with `disk: keep` a"
    " run has one disk, which one container has at a time; expected `disk: fresh`, with"
    " the state in a store that both can reach"
)
_TOO_MANY = (
    f"a run with `disk: keep` has come to {LAYERS_MAX} lives, each a layer of its disk,"
    " and the engine stacks no more; expected fewer lives in one run, or `disk: fresh`"
)
