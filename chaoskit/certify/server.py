"""What a certificate was earned with, beside the agent's files.

A server is told by name and version, as it says itself, an image by its digest.
"""

import asyncio
import re
import subprocess

from chaoskit.campaign import given_server
from chaoskit.model.manifest import Launch, Manifest, Store
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


def image_of(manifest: Manifest) -> str:
    """The digest of the image that an agent's lives run in; empty where they do not.

    Raises:
        LaunchError: the engine cannot be reached, or has no such image.
    """
    if manifest.launch is not Launch.DOCKER or manifest.docker is None:
        return ""
    return asyncio.run(_digest(manifest.docker.image))


async def _digest(image: str) -> str:
    from chaoskit.agents.docker.engine import Engine

    engine = Engine("certificate")
    await engine.connect()
    try:
        return await engine.image(image)
    finally:
        engine.close()


def _version(program: str) -> str:
    """Name and version out of what `--version` prints.

    ``Valkey server v=8.1.8 sha=...`` and ``postgres (PostgreSQL) 15.18 (Debian ...)``.
    """
    asked = [program, "--version"]
    said = subprocess.run(asked, capture_output=True, text=True, check=False).stdout
    name, number = said.split(" ", 1)[0], _NUMBER.search(said)
    return f"{name.lower()} {number[0]}" if number else said.strip()
