"""A YAML document as a tree in which every value knows where it was written."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple, TypeAlias

from chaoskit.model.errors import Problem, quoted

Scalar: TypeAlias = str | int | float | bool | None
Location: TypeAlias = tuple[str | int, ...]


class Place(NamedTuple):
    """A place in a file, counted from 1."""

    file: str
    line: int
    column: int

    def problem(
        self, path: str, value: str, expected: str, hint: str | None = None
    ) -> Problem:
        """A problem at this place; `value` as it is to be shown."""
        return Problem(*self, path, value, expected, hint)


@dataclass(frozen=True)
class Node:
    """One value of the document."""

    value: Scalar | tuple[Node, ...] | Mapping[str, Node]
    path: str
    """As users write it, ``$.llm.script[0].say``; rewriting sugar keeps it."""
    place: Place
    key_place: Place
    """Where the key of this value stands; where there is none, the value itself."""
    text: str | None = None
    """As it was written, where the value does not tell: `1.10` is not '1.1'."""

    @property
    def items(self) -> tuple[Node, ...]:
        """The entries of a list; none for anything else."""
        return self.value if isinstance(self.value, tuple) else ()

    @property
    def entries(self) -> Mapping[str, Node]:
        """The entries of a mapping; none for anything else."""
        return self.value if isinstance(self.value, Mapping) else {}

    def shown(self) -> str:
        """The value for a message."""
        if self.text is None:
            return quoted(plain(self))
        return quoted(self.text).strip('"') or "nothing"

    def problem(self, expected: str, hint: str | None = None) -> Problem:
        """A problem with this value."""
        return self.place.problem(self.path, self.shown(), expected, hint)

    def key_problem(self, key: str, expected: str, hint: str | None = None) -> Problem:
        """A problem with the key of this value."""
        return self.key_place.problem(self.path, quoted(key), expected, hint)


def plain(node: Node) -> Any:
    """The value as JSON-like Python data, for pydantic."""
    if isinstance(node.value, tuple):
        return [plain(item) for item in node.value]
    if isinstance(node.value, Mapping):
        return {key: plain(entry) for key, entry in node.value.items()}
    return node.value


def deepest(root: Node, location: Location) -> tuple[Node, Location]:
    """The last node there is on the way to a location, and the rest of the way."""
    for index, part in enumerate(location):
        within = root.items if isinstance(part, int) else root.entries
        try:
            root = within[part]  # type: ignore[index]
        except (IndexError, KeyError):
            return root, location[index:]
    return root, ()


def below(path: str, part: str | int) -> str:
    """The path of an entry: `.key` or `[0]`, and `["odd key"]` in quotes."""
    if isinstance(part, str) and re.fullmatch(r"[\w-]{1,60}", part):
        return f"{path}.{part}"
    return f"{path}[{part if isinstance(part, int) else quoted(part)}]"
