"""What a trial's files may not hold: the canary, and secrets of the environment.

An agent may print its whole environment. A variable is blotted whose name says that it
holds a secret, and one that is a URL with somebody's name in it; of the manifest's own
variables each. So is a password inside the value of any variable, by itself: that of a
URL, and what is called one (`password=...`). Short values are not, nor what the
scenario itself says, nor the words of which a history consists: without those nobody
could read, or judge, what is written.
"""

import json
import re
from collections.abc import Iterator
from urllib.parse import unquote, unquote_plus

from chaoskit.gate import BLOT, Blots
from chaoskit.model.fault_table import FAULTS
from chaoskit.model.faults import FaultKind
from chaoskit.model.history import EVENTS
from chaoskit.model.manifest import WORLD_PREFIX, WORLD_VARIABLES, Manifest
from chaoskit.model.scenario import Scenario
from chaoskit.trial.command import inherited_environment
from chaoskit.world.llm import CANARY

SECRET_LENGTH_MIN = 12
PASSWORD_LENGTH_MIN = 8
"""Of a password inside a value; one of letters alone may be a word, and counts as the
rest does."""
SECRET_NAMES = (
    *("KEY", "TOKEN", "SECRET", "PASS", "PWD", "CREDENTIAL", "AUTH"),
    *("DSN", "PRIVATE", "COOKIE", "WEBHOOK", "CONNECTION_STRING"),
)
"""A variable with one of these in its name holds a secret."""
SECRET_WORDS = ("PAT", "CONN")
"""The same where it is a whole word of the name: `GH_PAT`, and no `PATH`."""
PASSWORDS = (
    *("password", "passwd", "pwd", "token", "secret"),
    *("apikey", "api_key", "accesskey", "access_key", "accountkey"),
)
"""How a password inside a value is called, or how its name ends: `client_secret=`."""
FOLDERS = ("PWD", "OLDPWD")
"""Variables of every shell, which do not."""
_SECRET = re.compile(
    rf"{'|'.join(SECRET_NAMES)}|(?<![A-Z0-9])({'|'.join(SECRET_WORDS)})(?![A-Z0-9])",
    re.IGNORECASE,
)
# RFC 3986, section 3.2.1: what stands before the `@` of a URL's authority.
_OF_SOMEBODY = re.compile(r"[a-z][a-z0-9+.-]*://(?P<user>[^/?#\s]*)@", re.IGNORECASE)
# A query's `?user=u&password=p`, libpq's `user=u password='p'`, `Pwd=p;` of ODBC.
_CALLED_ONE = re.compile(
    rf"(?:^|[\s;&?,])[\w.-]*(?:{'|'.join(PASSWORDS)})\s*=\s*"
    r"(?P<value>'[^']*'|\"[^\"]*\"|[^\s;&]*)",
    re.IGNORECASE,
)
_NUMBER = re.compile(r"[\d.+-]*")
_WORDS = json.dumps(
    [[event.model_json_schema() for event in EVENTS], [*FAULTS], [*FaultKind]]
)


def blots(manifest: Manifest, scenario: Scenario) -> Blots:
    """The secrets of a campaign, each with what is written in its place."""
    said = (
        scenario.model_dump_json(by_alias=True) + manifest.log.model_dump_json(),
        _WORDS,
    )
    found = {
        value: f"[{name}]"
        for name, value in _found(manifest)
        if not any(value in text for text in said)
    }
    return Blots({**found, CANARY: BLOT})


def _found(manifest: Manifest) -> Iterator[tuple[str, str]]:
    """Every secret that is long enough, with the variable that holds it."""
    variables = {**_of_the_machine(), **manifest.env}
    for name, value in variables.items():
        if _is_long(value) and (name in manifest.env or _is_secret(name, value)):
            yield name, value
        for user in _users(value):
            yield from ((name, text) for text in _read(user) if _is_long(text))
        for password in _passwords(value):
            yield from ((name, text) for text in _read(password) if _is_one(text))


def _of_the_machine() -> dict[str, str]:
    """The variables that an agent inherits."""
    return {
        name: value
        for name, value in sorted(inherited_environment().items())
        if name not in WORLD_VARIABLES and not name.startswith(WORLD_PREFIX)
    }


def _is_secret(name: str, value: str) -> bool:
    by_name = _SECRET.search(name) and name not in FOLDERS
    return bool(by_name or _OF_SOMEBODY.match(value))


def _users(value: str) -> Iterator[str]:
    """Whose each URL in a value is: a name, or a name and its password."""
    yield from (url["user"] for url in _OF_SOMEBODY.finditer(value))


def _passwords(value: str) -> Iterator[str]:
    """Those inside a value, as they stand there."""
    for user in _users(value):
        yield user.partition(":")[2]
    for called in _CALLED_ONE.finditer(value):
        password = called["value"]
        yield password.strip("'\"")
        # Where a list or a URL goes on: who knows what may be in a password?
        yield re.split("[,#]", password)[0]


def _read(text: str) -> set[str]:
    """As it stands in a URL, and as whoever takes the URL apart has it."""
    return {text, unquote(text), unquote_plus(text)}


def _is_long(text: str) -> bool:
    return len(text) >= SECRET_LENGTH_MIN and not _NUMBER.fullmatch(text)


def _is_one(password: str) -> bool:
    """Whether a password can be told from what else is written."""
    if password.isalpha():
        return len(password) >= SECRET_LENGTH_MIN
    return len(password) >= PASSWORD_LENGTH_MIN and not _NUMBER.fullmatch(password)
