"""Where the first key of a Redis command stands, as the server's table tells it."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

Words = Sequence[bytes]


@dataclass(frozen=True, slots=True)
class KeyFinder:
    """Where a command's first key stands: the server's "key specifications".

    Args:
        index: the place to begin at, or None to look for `keyword` from `start` on.
        counted: whether a number of keys stands at `index` + `count_at`.

    https://redis.io/docs/latest/develop/reference/key-specs/
    """

    index: int | None = None
    keyword: bytes = b""
    start: int = 1
    counted: bool = False
    count_at: int = 0
    first: int = 0

    def find(self, words: Words) -> bytes | None:
        """The first key, or None where the command has none."""
        begin = self._begin(words)
        if begin is None or (self.counted and not self._count(words, begin)):
            return None
        at = begin + self.first
        return words[at] if at < len(words) else None

    def _begin(self, words: Words) -> int | None:
        if self.index is not None:
            return self.index
        places = range(self.start, len(words))
        found = (at + 1 for at in places if words[at].lower() == self.keyword)
        return next(found, None)

    def _count(self, words: Words, begin: int) -> int:
        number = b"".join(words[begin + self.count_at :][:1])
        return int(number) if number.isdigit() else 0


# For servers before version 7, which do not tell this either.
_UNTOLD_KEYS: Mapping[bytes, KeyFinder] = {
    b"eval": KeyFinder(index=2, counted=True, first=1),
    b"evalsha": KeyFinder(index=2, counted=True, first=1),
    b"xreadgroup": KeyFinder(keyword=b"streams", start=4),
}


def finders(name: bytes, told: Sequence[Any]) -> Iterable[KeyFinder]:
    """How to find the keys of a command, from its entry in the reply to COMMAND."""
    if told[3] > 0:
        yield KeyFinder(index=told[3])
    elif len(told) > 8 and told[8]:
        yield from map(_finder, told[8])
    elif name in _UNTOLD_KEYS:
        yield _UNTOLD_KEYS[name]


def _finder(specification: Sequence[Any]) -> KeyFinder:
    told = _pairs(specification)
    begin = _pairs(_pairs(told[b"begin_search"])[b"spec"])
    keys = _pairs(told[b"find_keys"])
    finder = KeyFinder(
        index=begin.get(b"index"),
        keyword=begin.get(b"keyword", b"").lower(),
        start=begin.get(b"startfrom", 1),
    )
    if keys[b"type"] != b"keynum":
        return finder
    spec = _pairs(keys[b"spec"])
    return replace(
        finder, counted=True, count_at=spec[b"keynumidx"], first=spec[b"firstkey"]
    )


def _pairs(flat: Sequence[Any]) -> dict[bytes, Any]:
    return dict(zip(flat[::2], flat[1::2], strict=True))
