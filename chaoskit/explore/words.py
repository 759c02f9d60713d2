"""Words that look random, and where they stand in a world."""

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

# UUIDs, long hexadecimal words, ULIDs, and long mixed words such as nanoids.
RANDOM = re.compile(
    r"[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"
    r"|(?<![0-9A-Za-z])(?=[0-9A-Za-z]*\d)[0-9A-Za-z]{12,}(?![0-9A-Za-z])"
)
ANY = "<?>"
"""What stands for a random word, whichever it is."""


def texts(value: Any, path: str = "") -> Iterator[tuple[str, str]]:
    """Every text of a world, keys too, with its path; text that holds JSON is read."""
    value = read_json(value) if isinstance(value, str) else value
    if isinstance(value, str):
        yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield path, key
            yield from texts(item, f"{path}.{RANDOM.sub(ANY, key)}")
    elif isinstance(value, list):
        for item in value:
            yield from texts(item, path)


def random_words(value: Any) -> set[str]:
    """The random words of a world."""
    return {word for _, text in texts(value) for word in RANDOM.findall(text)}


def is_set(value: Mapping[str, Any]) -> bool:
    """Whether this is a Redis set in a view: it has no order."""
    return value.get("type") == "set" and isinstance(value.get("value"), list)


def read_json(text: str) -> Any:
    """What a text holds, if it holds a JSON object or array, else the text."""
    if text[:1] not in ("{", "["):
        return text
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text
