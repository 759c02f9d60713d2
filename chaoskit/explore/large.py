"""Large texts in a view, made small as the look is taken.

A view is kept, sent between processes and read again and again. What an agent stores
may have many megabytes; of such a text it matters only whether it is the same.
"""

import hashlib
import json
from typing import Any

from chaoskit.explore.words import read_json

LARGE = 64 * 1024
"""Characters from which on a text is not kept as it is."""
LARGE_JSON = 4 * LARGE
"""The same for JSON once its own large texts are small: it is compared by fields."""
_LETTERS = str.maketrans("0123456789", "ghijklmnop")


def small(value: Any, run_id: str) -> Any:
    """A view, or a part of it, in which each large text is its length and its hash.

    The run's id counts as ``{run}``. All else in such a text, times and random words
    too, tells it from others: where two differ, they differ as a whole.
    """
    if isinstance(value, str):
        return value if len(value) <= LARGE else _small_text(value, run_id)
    if isinstance(value, dict):
        return {small(key, run_id): small(item, run_id) for key, item in value.items()}
    if isinstance(value, list):
        return [small(item, run_id) for item in value]
    return value


def _small_text(text: str, run_id: str) -> str:
    held = read_json(text)
    if not isinstance(held, str):
        try:
            shorter = json.dumps(small(held, run_id))
        except RecursionError:
            return _digest(text, run_id)
        if len(shorter) <= LARGE_JSON:
            return shorter
    return _digest(text, run_id)


def _digest(text: str, run_id: str) -> str:
    text = text.replace(run_id, "{run}")
    data = text.encode(errors="surrogatepass")
    found = hashlib.blake2b(data, digest_size=16).hexdigest()
    # Letters only: a word with digits would be taken for a random one, and renamed.
    return f"<text:{len(text)}:{found.translate(_LETTERS)}>"
