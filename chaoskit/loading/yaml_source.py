"""Text -> nodes: YAML read event by event, so that every value keeps its place.

Reading events, not a finished document, puts each limit where it counts: a deep or
self-copying document is refused while it grows. A problem that leaves the rest of the
document readable is noted and reading goes on; any other is raised at once.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from ruamel.yaml import YAML
from ruamel.yaml.error import MarkedYAMLError
from ruamel.yaml.events import (
    AliasEvent,
    CollectionStartEvent,
    DocumentStartEvent,
    Event,
    MappingEndEvent,
    MappingStartEvent,
    NodeEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
)

from chaoskit.loading.nodes import Node, Place, below
from chaoskit.loading.scalars import UnclearError, resolve
from chaoskit.loading.syntax import stray_problem, syntax_problem
from chaoskit.model.errors import InputError, Problem, quoted

NODES_MAX = 20_000
DEPTH_MAX = 64

_STANDARD_TAGS = "tag:yaml.org,2002:"


@dataclass(frozen=True)
class Document:
    """What a file says, and what is wrong with how it says it."""

    root: Node
    problems: tuple[Problem, ...]


def parse(file: str, text: str) -> Document:
    """Read one YAML document. Raises InputError for what cannot be read at all."""
    reader = _Reader(file, text)
    return Document(reader.document(), tuple(reader.problems))


def _events(file: str, text: str) -> Iterator[Event]:
    place = Place(file, 1, 1)
    try:
        for event in YAML(typ="safe", pure=True).parse(text):
            place = Place(file, event.start_mark.line + 1, event.start_mark.column + 1)
            yield event
    except MarkedYAMLError as error:
        raise InputError((syntax_problem(file, text, error),)) from None
    except Exception as error:  # the parser lets stray ones through: chr() of too much
        raise InputError((stray_problem(text, place, error),)) from None


class _Reader:
    """Builds the tree; holds what one document needs: anchors, size, problems."""

    def __init__(self, file: str, text: str) -> None:
        self.file = file
        self.events = _events(file, text)
        self.anchors: dict[str, Node] = {}
        self.size = 0
        self.problems: list[Problem] = []

    def document(self) -> Node:
        root: Node | None = None
        for event in self.events:
            if isinstance(event, DocumentStartEvent) and root:
                one = "one document in a file"
                self.note(self.place(event), "$", '"---"', one, "make it two files")
                break
            if isinstance(event, NodeEvent):
                root = self.node(event, "$")
        if root and root.value is not None:
            return root
        empty = Place(self.file, 1, 1).problem("$", "an empty file", "keys and values")
        raise InputError((empty,))

    def node(
        self, event: NodeEvent, path: str, key: Place | None = None, depth: int = 0
    ) -> Node:
        place = self.place(event)
        node = Node(None, path, place, key or place)
        self.grow(place, depth)
        if isinstance(event, AliasEvent):
            return replace(self.aliased(event, node, depth), key_place=node.key_place)
        self.refuse_tag(event, node)
        if isinstance(event, ScalarEvent):
            node = self.scalar(event, node)
        elif isinstance(event, SequenceStartEvent):
            node = replace(node, value=self.sequence(path, depth))
        elif isinstance(event, MappingStartEvent):
            node = replace(node, value=self.mapping(path, depth))
        if event.anchor:
            self.anchors[event.anchor] = node
        return node

    def sequence(self, path: str, depth: int) -> tuple[Node, ...]:
        return tuple(
            self.node(event, below(path, index), depth=depth + 1)
            for index, event in enumerate(self.until(SequenceEndEvent))
        )

    def mapping(self, path: str, depth: int) -> dict[str, Node]:
        entries: dict[str, Node] = {}
        events = self.until(MappingEndEvent)
        for event in events:
            key = self.node(event, path, depth=depth + 1)
            name = key.value if isinstance(key.value, str) else key.shown()
            entry_path = below(path, name)
            entry = self.node(next(events), entry_path, key.place, depth + 1)
            if self.usable(event, key, entry_path, entries):
                entries[name] = entry
        return entries

    def usable(
        self, event: Event, key: Node, path: str, entries: dict[str, Node]
    ) -> bool:
        complaint: tuple[str, str | None] | None = None
        if not isinstance(key.value, str):
            remedy = f"quote it: {quoted(key.text)}" if key.text else None
            complaint = ("keys that are text", remedy)
        elif key.value in entries:
            first = entries[key.value].key_place.line
            complaint = ("each key once", f"the first one is in line {first}")
        elif key.value == "<<" and isinstance(event, ScalarEvent) and event.implicit[0]:
            complaint = ("no merge keys", "they are not in YAML 1.2: repeat the keys")
        if complaint:
            self.note(key.place, path, key.shown(), *complaint)
        return complaint is None

    def scalar(self, event: ScalarEvent, node: Node) -> Node:
        if not event.implicit[0]:
            return replace(node, value=self.unicode(event.value, node))
        try:
            value = resolve(event.value)
        except UnclearError as error:
            found = quoted(event.value).strip('"')
            self.note(node.place, node.path, found, error.expected, error.hint)
            value = event.value
        text = None if isinstance(value, str) else event.value
        return replace(node, value=value, text=text)

    def unicode(self, text: str, node: Node) -> str:
        """The text. YAML's escapes can write half characters, that no file can hold."""
        whole = text.encode("utf-8", "replace").decode()
        if whole != text:
            remedy = "write the character itself, or \\U and 8 digits"
            self.note(node.place, node.path, quoted(text), "whole characters", remedy)
        return whole

    def aliased(self, event: AliasEvent, node: Node, depth: int) -> Node:
        anchored = self.anchors.get(event.anchor)
        if anchored is None:
            found = quoted(f"*{event.anchor}")
            defined = f"an anchor &{event.anchor} that ends before this line"
            raise InputError((node.place.problem(node.path, found, defined),))
        return self.copied(anchored, node.path, depth, node.place)

    def copied(self, node: Node, path: str, depth: int, alias: Place) -> Node:
        self.grow(alias, depth)

        def copy(part: str | int, child: Node) -> Node:
            return self.copied(child, below(path, part), depth + 1, alias)

        if isinstance(node.value, tuple):
            items = tuple(copy(index, item) for index, item in enumerate(node.value))
            return replace(node, path=path, value=items)
        entries = {key: copy(key, entry) for key, entry in node.entries.items()}
        return replace(node, path=path, value=entries or node.value)

    def grow(self, place: Place, depth: int) -> None:
        self.size += 1
        if self.size > NODES_MAX:
            limit = f"at most {NODES_MAX} values, aliases counted as copies"
            raise InputError((place.problem("$", "a larger document", limit),))
        if depth > DEPTH_MAX:
            limit = f"at most {DEPTH_MAX} levels of nesting"
            raise InputError((place.problem("$", "a deeper document", limit),))

    def refuse_tag(self, event: NodeEvent, node: Node) -> None:
        if isinstance(event, ScalarEvent | CollectionStartEvent) and event.tag:
            found = quoted(str(event.tag).replace(_STANDARD_TAGS, "!!"))
            plain = "a value without a tag"
            remedy = "quotes make it text; nothing else needs a tag"
            self.note(node.place, node.path, found, plain, remedy)

    def until(self, end: type[Event]) -> Iterator[NodeEvent]:
        for event in self.events:
            if isinstance(event, end):
                return
            if isinstance(event, NodeEvent):
                yield event

    def place(self, event: Event) -> Place:
        mark = event.start_mark
        return Place(self.file, mark.line + 1, mark.column + 1)

    def note(
        self, place: Place, path: str, found: str, expected: str, hint: str | None
    ) -> None:
        self.problems.append(place.problem(path, found, expected, hint))
