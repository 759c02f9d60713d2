"""Settings from the environment, looked at before anything is begun.

A run must not pay for a wrong setting: found out in the middle of a call it would look
like a failure of the service, or like a lost life.
"""

import os
from pathlib import Path
from urllib.parse import urlsplit

MEANINGS = {
    "REDIS_URL": "the address of Redis, as redis://127.0.0.1:6379",
    "DATABASE_URL": "the address of PostgreSQL, as postgresql://user@127.0.0.1/name",
    "CHAOSKIT_STATE_DIR": "the folder in which runs are kept",
    "CHAOSKIT_TOOLS_URL": "the address of the tools, as http://127.0.0.1:8000/tools",
    "CHAOSKIT_MCP_URL": "the address of an MCP server, as http://127.0.0.1:8000/mcp",
    "CHAOSKIT_SMTP_HOST": "the name of a mail server",
    "CHAOSKIT_SMTP_PORT": "the port of a mail server, from 1 to 65535",
}


class WrongSetting(Exception):
    """A variable of the environment is missing, or is no use."""


def setting(name: str) -> str:
    """A variable. Raises WrongSetting."""
    if value := os.environ.get(name):
        return value
    raise WrongSetting(f"{name} is not set; it is {MEANINGS[name]}")


def address(name: str, *schemes: str) -> str:
    """A variable that is a URL with one of these schemes. Raises WrongSetting."""
    value = setting(name)
    try:
        parts = urlsplit(value)
        fits = parts.scheme in schemes and bool(
            parts.port or parts.netloc or parts.path
        )
    except ValueError:
        fits = False
    if not fits:
        # Not quoted: an address may hold a password.
        raise WrongSetting(f"{name} is no address of that kind; it is {MEANINGS[name]}")
    return value


def port(name: str) -> int:
    """A variable that is a port. Raises WrongSetting."""
    text = setting(name)
    if text.isascii() and text.isdigit() and 0 < int(text) < 2**16:
        return int(text)
    raise WrongSetting(f"{name} is {text!r}; it is {MEANINGS[name]}")


def folder(name: str) -> Path:
    """A variable that is a folder, made if it is not there. Raises WrongSetting."""
    path = Path(setting(name))
    try:
        path.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        reason = f"{name} is {str(path)!r}, which can be no folder: {error.strerror}"
        raise WrongSetting(reason) from None
    return path
