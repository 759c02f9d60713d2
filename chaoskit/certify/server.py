"""Which server a certificate was earned on: its name and version, as it says itself."""

import re
import subprocess

from chaoskit.campaign import given_server
from chaoskit.model.manifest import Store
from chaoskit.world.postgres.programs import find_programs
from chaoskit.world.redis.own import find_program

GIVEN = "a server that was given"
_NUMBER = re.compile(r"\d+(\.\d+)+")


def server_of(store: Store) -> str:
    """The server that a store needs; empty where it needs none.

    Raises:
        MissingServer: there is none on this machine.
    """
    if given_server(store):
        return GIVEN
    match store:
        case Store.REDIS:
            return _version(str(find_program()))
        case Store.POSTGRES:
            return _version(str(find_programs() / "postgres"))
        case _:
            return ""


def _version(program: str) -> str:
    """Name and version out of what `--version` prints.

    ``Valkey server v=8.1.8 sha=...`` and ``postgres (PostgreSQL) 15.18 (Debian ...)``.
    """
    asked = [program, "--version"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    name, number = said.split(" ", 1)[0], _NUMBER.search(said)
    return f"{name.lower()} {number[0]}" if number else said.strip()
