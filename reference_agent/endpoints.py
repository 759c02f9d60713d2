"""The endpoints that can be asked for a reply, as the environment lists them.

The first is named by OPENAI_BASE_URL, OPENAI_API_KEY and OPENAI_MODEL. Those to fall
back to stand in OPENAI_FALLBACKS, in their order, as JSON:

    [{"base_url": "https://llm.example/v1", "model": "m", "api_key_env": "OTHER_KEY"}]

A key is named by its variable, so that the list itself may be shown to anybody.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlsplit

BASE_URL = "https://api.openai.com/v1"
MODEL = "gpt-4.1"
FIELDS = ("base_url", "model", "api_key_env")
LOOPBACK = ("127.0.0.1", "::1", "localhost")


class WrongEndpoints(Exception):
    """The list cannot be used: says which variable is wrong, and what was expected."""


@dataclass(frozen=True)
class Endpoint:
    """One OpenAI-compatible API, and the model that is to be asked there."""

    base_url: str
    model: str
    key: str = field(repr=False)

    @property
    def is_local(self) -> bool:
        """Whether what is said stays on this machine, in the clear."""
        url = urlsplit(self.base_url)
        return url.scheme == "http" and url.hostname in LOOPBACK


def listed(environment: Mapping[str, str]) -> tuple[Endpoint, ...]:
    """All endpoints, the first one first. Raises WrongEndpoints."""
    first = Endpoint(
        _url(environment.get("OPENAI_BASE_URL") or BASE_URL, "OPENAI_BASE_URL"),
        environment.get("OPENAI_MODEL") or MODEL,
        _key(environment, "OPENAI_API_KEY", "the key of the model's API"),
    )
    fallbacks = _fallbacks(environment.get("OPENAI_FALLBACKS") or "[]")
    return (first, *(_endpoint(*each, environment) for each in fallbacks))


def _fallbacks(text: str) -> list[tuple[str, Any]]:
    """The items of the list, each with its place in words."""
    try:
        items = json.loads(text)
    except (ValueError, RecursionError) as wrong:
        raise WrongEndpoints(f"OPENAI_FALLBACKS is not JSON: {wrong}") from None
    if not isinstance(items, list):
        expected = f"expected a JSON list of objects with {', '.join(FIELDS)}"
        raise WrongEndpoints(f"OPENAI_FALLBACKS: {expected}")
    return [(f"OPENAI_FALLBACKS[{at}]", item) for at, item in enumerate(items)]


def _endpoint(place: str, item: Any, environment: Mapping[str, str]) -> Endpoint:
    if not isinstance(item, dict) or sorted(item) != sorted(FIELDS):
        found = ", ".join(item) if isinstance(item, dict) else type(item).__name__
        expected = f"expected an object with {', '.join(FIELDS)}"
        raise WrongEndpoints(f"{place}: {expected}; found {found or 'an empty one'}")
    for name in FIELDS:
        if not isinstance(item[name], str) or not item[name]:
            raise WrongEndpoints(f"{place}.{name}: expected a text that is not empty")
    where = f"{place}.api_key_env"
    if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", item["api_key_env"]):
        # Not quoted: it may well be the key itself.
        raise WrongEndpoints(f"{where}: expected the name of a variable, not a key")
    return Endpoint(
        _url(item["base_url"], f"{place}.base_url"),
        item["model"],
        _key(environment, item["api_key_env"], where),
    )


def _key(environment: Mapping[str, str], name: str, wanted_by: str) -> str:
    """A key as a header can carry it."""
    if not (key := environment.get(name, "").strip()):
        raise WrongEndpoints(f"{name} is not set ({wanted_by})")
    if not (key.isascii() and key.isprintable()):
        raise WrongEndpoints(f"{name}: expected a key of printable ASCII ({wanted_by})")
    return key


def _url(text: str, place: str) -> str:
    """An address that can be asked. Not quoted where it is none: it may hold a key."""
    try:
        url = urlsplit(text)
        usable = url.scheme in ("http", "https") and url.hostname and url.port != 0
    except ValueError:  # no such port, or a bracket too many
        usable = None
    if not usable or not (text.isascii() and text.isprintable()) or " " in text:
        example = "such as https://llm.example/v1"
        raise WrongEndpoints(f"{place}: expected an http or https address, {example}")
    return text
