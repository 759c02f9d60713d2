"""What a trial's files may not hold: the canary, and secrets of the environment.

An agent may print its whole environment. A variable is blotted whose name says that it
holds a secret, and one that is a URL with somebody's name in it; of the manifest's own
variables each. Short values are not, nor what the scenario itself says, nor the words
of which a history consists: without those nobody could read, or judge, what is written.
"""

import json
import re
from collections.abc import Iterator

from chaoskit.gate import BLOT, Blots
from chaoskit.model.history import EVENTS
from chaoskit.model.manifest import WORLD_PREFIX, WORLD_VARIABLES, Manifest
from chaoskit.model.scenario import Scenario
from chaoskit.trial.command import inherited_environment
from chaoskit.world.llm import CANARY

SECRET_LENGTH_MIN = 12
SECRET_NAMES = (
    *("KEY", "TOKEN", "SECRET", "PASS", "PWD", "CREDENTIAL", "AUTH"),
    *("DSN", "PRIVATE", "COOKIE"),
)
"""A variable with one of these in its name holds a secret."""
FOLDERS = ("PWD", "OLDPWD")
"""Variables of every shell, which do not."""
_SECRET = re.compile("|".join(SECRET_NAMES), re.IGNORECASE)
# RFC 3986, section 3.2.1: what stands before the `@` of a URL's authority.
_OF_SOMEBODY = re.compile(r"[a-z][a-z0-9+.-]*://(?P<user>[^/?#\s@]*)@", re.IGNORECASE)
_NUMBER = re.compile(r"[\d.+-]*")
_HISTORY = json.dumps([event.model_json_schema() for event in EVENTS])


def blots(manifest: Manifest, scenario: Scenario) -> Blots:
    """The secrets of a campaign, each with what is written in its place."""
    said = (
        scenario.model_dump_json(by_alias=True) + manifest.log.model_dump_json(),
        _HISTORY,
    )
    found = {
        value: f"[{name}]"
        for name, value in (*_of_the_machine(), *manifest.env.items())
        if len(value) >= SECRET_LENGTH_MIN and not _NUMBER.fullmatch(value)
        if not any(value in text for text in said)
    }
    return Blots({**found, CANARY: BLOT})


def _of_the_machine() -> Iterator[tuple[str, str]]:
    """The variables that an agent inherits and that hold a secret, or a part of one."""
    for name, value in sorted(inherited_environment().items()):
        if name in WORLD_VARIABLES or name.startswith(WORLD_PREFIX):
            continue
        if _SECRET.search(name) and name not in FOLDERS:
            yield name, value
        elif url := _OF_SOMEBODY.match(value):
            yield name, value
            yield name, url["user"]
