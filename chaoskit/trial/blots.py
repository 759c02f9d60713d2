"""What a trial's files may not hold: the canary, and secrets of the environment.

An agent may print its whole environment. A variable whose name says that it holds a
secret is blotted; short values are not, nor what the scenario itself says: they are
words, and without them nobody could read, or judge, what is written down.
"""

import re
from collections.abc import Iterator

from chaoskit.gate import BLOT, Blots
from chaoskit.model.manifest import WORLD_PREFIX, WORLD_VARIABLES, Manifest
from chaoskit.model.scenario import Scenario
from chaoskit.trial.command import inherited_environment
from chaoskit.world.llm import CANARY

SECRET_LENGTH_MIN = 12
_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSW|CREDENTIAL|AUTH", re.IGNORECASE)


def blots(manifest: Manifest, scenario: Scenario) -> Blots:
    """The secrets of a campaign, each with what is written in its place."""
    said = scenario.model_dump_json(by_alias=True)
    found = {
        value: f"[{name}]"
        for name, value in _given(manifest)
        if _SECRET.search(name) and len(value) >= SECRET_LENGTH_MIN
        if value not in said
    }
    return Blots({**found, CANARY: BLOT})


def _given(manifest: Manifest) -> Iterator[tuple[str, str]]:
    for name, value in sorted(inherited_environment().items()):
        if name not in WORLD_VARIABLES and not name.startswith(WORLD_PREFIX):
            yield name, value
    yield from manifest.env.items()
