"""The canonical form of a world: see `chaoskit.explore.fingerprint`, which says why."""

import hashlib
import json
import re
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from chaoskit.explore.clock import TIME, Clock
from chaoskit.explore.words import ANY, RANDOM, is_set, read_json, texts
from chaoskit.model.state import View

_RENAMED = re.compile(r"<\d+>")
_ALIKE = "'"
_DIGIT = re.compile(r"\d")


@dataclass(frozen=True)
class Canon:
    """What was learned about which parts of a view mean nothing.

    ``since`` is the campaign's start in seconds of the epoch, see `Clock`.
    """

    run_ids: frozenset[str]
    since: float
    stable: frozenset[str] = frozenset()
    volatile: frozenset[str] = frozenset()
    ignored: tuple[str, ...] = ()

    def fingerprint(self, view: View) -> str:
        """A short hash of the canonical form."""
        text = json.dumps(self.canonical(view), sort_keys=True, ensure_ascii=True)
        return hashlib.blake2b(text.encode(), digest_size=12).hexdigest()

    def canonical(self, view: View) -> Any:
        """The view with everything replaced that means nothing."""
        return Walk(self, view).walk(dict(view), "")

    def fields(self, view: View) -> dict[str, str]:
        """Every scalar of the canonical form as text, by its path.

        Fields whose paths differ in random words only are one, with all their values.
        """
        found: dict[str, list[Any]] = {}
        for path, value in _flat(self.canonical(view), ""):
            found.setdefault(path, []).append(value)
        return {path: json.dumps(values) for path, values in found.items()}

    def is_volatile(self, path: str) -> bool:
        """Whether a field is masked."""
        return path in self.volatile or any(_fits(p, path) for p in self.ignored)

    @cached_property
    def clock(self) -> Clock:
        """Tells times of the campaign from other numbers."""
        return Clock(self.since)

    def of_run(self, run_id: str) -> "Canon":
        """The same for the worlds of one more run."""
        return replace(self, run_ids=self.run_ids | {run_id})


def _fits(pattern: str, path: str) -> bool:
    """Whether a path fits a pattern in which only ``*`` is special."""
    stretches = map(re.escape, pattern.split("*"))
    return re.fullmatch(".*".join(stretches), path, re.DOTALL) is not None


@dataclass
class Walk:
    """One pass over a view; it holds the names given to random words so far.

    ``traces`` says, once it was needed, where each random word stands in the view:
    what else tells two of them apart that stand in records which hold the same.
    """

    canon: Canon
    view: View
    names: dict[str, str] = field(default_factory=dict)
    traces: dict[str, list[str]] | None = None

    def walk(self, value: Any, path: str) -> Any:
        """The canonical form of a value at a path."""
        if path and self.canon.is_volatile(path):
            return "<volatile>"
        if isinstance(value, str):
            value = read_json(value)
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, bool) or value is None:
            return value
        if isinstance(value, int | float):
            return TIME if self.canon.clock.is_time(value) else value
        if isinstance(value, list):
            return [self.walk(v, f"{path}.{n}") for n, v in enumerate(value)]
        if is_set(value):
            value = {**value, "value": self.ordered_set(value["value"])}
        return self.mapping(value, path)

    def mapping(self, value: Mapping[str, Any], path: str) -> dict[str, Any]:
        """Entries in an order that does not hang on random words in their keys."""
        entries: dict[str, Any] = {}
        for key, item in self.ordered(value, path):
            name = self.text(key)
            walked = self.walk(item, _join(path, name))
            while name in entries:  # two times, say, that look the same now
                name += _ALIKE
            entries[name] = walked
        return entries

    def ordered(self, value: Mapping[str, Any], path: str) -> Iterator[tuple[str, Any]]:
        """Entries by how they look; those that look the same, by what they hold."""
        alike: dict[str, list[tuple[str, Any]]] = {}
        for entry in value.items():
            alike.setdefault(self.blank(entry[0]), []).append(entry)
        for look in sorted(alike):
            entries = alike[look]
            if len(entries) > 1:
                entries.sort(key=lambda entry: self.rank(dict([entry]), path))
            yield from entries

    def ordered_set(self, members: list[Any]) -> list[Any]:
        """Members of a Redis set, which comes sorted by what may be random words."""
        return sorted(members, key=lambda member: self.rank({"": member}, ""))

    def rank(self, value: Mapping[str, Any], path: str) -> tuple[str, list[list[str]]]:
        """Its canonical text, as if it came next; then the traces of its words."""
        traces = self.traces = self.traces or self.find_traces()
        walk = replace(self, names=dict(self.names))
        text = json.dumps(walk.mapping(value, path), sort_keys=True)
        new = walk.names.keys() - self.names.keys()
        return text, sorted(traces[word] for word in new)

    def find_traces(self) -> dict[str, list[str]]:
        """The places of each random word, written without random words."""
        blank = replace(self, names={}).blank
        traces: dict[str, list[str]] = defaultdict(list)
        for path, text in texts(self.view):
            trace = f"{blank(path)}={blank(text)}"
            for word in RANDOM.findall(text):
                traces[word].append(trace)
        for places in traces.values():
            places.sort()
        return traces

    def text(self, text: str) -> str:
        """Text without run id, times and random words."""
        return self.cleared(text, self.rename)

    def blank(self, text: str) -> str:
        """Text in which every random word that has no name yet looks the same."""
        return self.cleared(text, self.known)

    def cleared(self, text: str, name: Callable[[re.Match[str]], str]) -> str:
        """Text without run id and times, its random words as they are named."""
        text = self.no_run(text)
        if not _DIGIT.search(text):  # most texts: neither times nor random words
            return text
        return RANDOM.sub(name, self.canon.clock.masked(text))

    def known(self, found: re.Match[str]) -> str:
        """The name of a random word, if it has one."""
        word = found[0]
        return word if word in self.canon.stable else self.names.get(word, ANY)

    def no_run(self, text: str) -> str:
        """Text in which the run is called ``{run}``."""
        for run_id in self.canon.run_ids:
            text = text.replace(run_id, "{run}")
        return text

    def rename(self, found: re.Match[str]) -> str:
        """The name of a random word, given at first sight."""
        word = found[0]
        if word in self.canon.stable:
            return word
        return self.names.setdefault(word, f"<{len(self.names) + 1}>")


def _join(path: str, name: str) -> str:
    name = _RENAMED.sub("<?>", name.rstrip(_ALIKE))
    return name if not path else f"{path}.{name}" if ":" in path else f"{path}:{name}"


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name, item in value.items():
            yield from _flat(item, _join(path, name))
    elif isinstance(value, list):
        for number, item in enumerate(value):
            yield from _flat(item, f"{path}.{number}")
    else:
        yield path, value
