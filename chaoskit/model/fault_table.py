"""Which service knows which fault: where it strikes, with what arguments, and why not.

`chaoskit doc faults` prints this table; the explorers and the loader read it. Each
filled cell has a self-test with a plain probe client, marked ``proves("llm.error")``.
"""

import re
from collections.abc import Iterator, Mapping
from dataclasses import replace

from chaoskit.model.address import Address, Edge, Operation
from chaoskit.model.errors import did_you_mean
from chaoskit.model.faults import Cell, Empty, FaultKind

BEFORE, AFTER, PART = ("before",), ("after",), ("part",)
BOTH = ("before", "after")

_COUNTED = frozenset({"writes", "commits"})
"""Of these there is no half."""
_WHOLE = re.compile(r"[0-9]+")
_NUMBER = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?")

AGENT: Mapping[FaultKind, Cell] = {
    FaultKind.KILL: Cell("SIGKILL to the group while the message is held", BOTH + PART),
    FaultKind.KILL_ONE: Cell("SIGKILL to the first process alone", BOTH),
    FaultKind.TERM: Cell("SIGTERM to the group, and the message goes on", BOTH),
    FaultKind.INT: Cell("SIGINT to the group, and the message goes on", BOTH),
    FaultKind.PAUSE: Cell("stopped; a second life runs to its end; continued", BOTH),
    FaultKind.SKEW: Cell("the clock jumps", BOTH, ("3600",), number="seconds"),
    FaultKind.POWERLOSS: Cell(
        "the agent's machine stops: killed, and its files lose what was not synced: "
        "all of it, data only (a file renamed before it was synced is empty), names "
        "only, or some (the younger half of the changes)",
        BOTH,
        ("all", "data"),
        also=("names", "some"),
    ),
}
"""What strikes the agent itself: the same at the crossings of every service."""

_NO_STORE = Empty("holds no state of the agent's")
_NO_KEYS = Empty("has no keys with a time to live")
_ONE_STREAM = Empty("a connection repeats nothing; a client's retry is `drop_reply`")
_DELAYED = Cell("the message is held, and others pass", BOTH, ("1",), number="seconds")
_REFUSED = Cell("the connection is reset, and nothing is applied", BEFORE)
_DROPPED = Cell("it is applied, and the connection is reset", AFTER)
_TORN = Cell("the reply ends after its first pieces, with a reset", PART)

Row = Mapping[FaultKind, Cell | Empty]

_NOT_STORED: Row = {
    FaultKind.RESTART: _NO_STORE,
    FaultKind.ROLLBACK: _NO_STORE,
    FaultKind.EXPIRE: _NO_KEYS,
}

LLM: Row = {
    FaultKind.REFUSE: _REFUSED,
    FaultKind.DROP_REPLY: _DROPPED,
    FaultKind.ERROR: Cell(
        "the API's own error, inside a 200 where the stream has begun; `length` is a "
        "reply cut by its limit on tokens",
        BOTH + PART,
        ("429", "500", "503", "529", "length"),
    ),
    FaultKind.DELAY: _DELAYED,
    FaultKind.TEAR: _TORN,
    FaultKind.DUPLICATE: Cell("asked twice; the second reply is sent", BEFORE),
    FaultKind.FULL: Empty("a model is never out of space; overload is `error(529)`"),
    **_NOT_STORED,
}

TOOLS: Row = {
    FaultKind.REFUSE: _REFUSED,
    FaultKind.DROP_REPLY: _DROPPED,
    FaultKind.ERROR: Cell(
        "an HTTP error; 429 says that nothing was done, so no search tries it after",
        BOTH,
        ("429", "500", "503", "504"),
        denials=frozenset({"429"}),
    ),
    FaultKind.DELAY: _DELAYED,
    FaultKind.TEAR: _TORN,
    FaultKind.DUPLICATE: Cell("delivered twice, as a proxy that retries does", BEFORE),
    FaultKind.FULL: Empty("an effect takes no space; `error(503)` stands for it"),
    **_NOT_STORED,
}

MCP: Row = {
    **TOOLS,
    FaultKind.ERROR: Cell(
        "a JSON-RPC error, a result that failed, or a gateway's answer; 429 says that "
        "nothing was done, so no search tries it after",
        BOTH,
        ("-32603", "isError", "429", "503"),
        denials=frozenset({"429"}),
    ),
}

_REPLIES = ("451", "421", "452", "550")

SMTP: Row = {
    FaultKind.REFUSE: _REFUSED,
    FaultKind.DROP_REPLY: _DROPPED,
    # RFC 5321, section 4.2.5: after such a reply the server may not deliver the mail.
    FaultKind.ERROR: Cell(
        "an SMTP reply, which says that nothing was done: no search tries it after",
        BOTH,
        _REPLIES,
        denials=frozenset(_REPLIES),
        final=frozenset({"550"}),
    ),
    FaultKind.DELAY: _DELAYED,
    FaultKind.TEAR: _TORN,
    FaultKind.DUPLICATE: Cell("the message is taken in twice", BEFORE),
    FaultKind.FULL: Cell("452, and nothing is kept", BEFORE),
    **_NOT_STORED,
}

_WORDS = ("LOADING", "OOM", "READONLY", "BUSY", "MASTERDOWN", "CLUSTERDOWN")

REDIS: Row = {
    FaultKind.REFUSE: _REFUSED,
    FaultKind.DROP_REPLY: _DROPPED,
    FaultKind.ERROR: Cell(
        "the server's own error, in its words; a transaction is discarded with it. It "
        "says that nothing was done, so no search tries it after",
        BOTH,
        _WORDS,
        denials=frozenset(_WORDS),
    ),
    FaultKind.DELAY: _DELAYED,
    FaultKind.TEAR: _TORN,
    FaultKind.DUPLICATE: _ONE_STREAM,
    FaultKind.RESTART: Cell(
        "the server is killed and started again on what `durability` had it keep", BOTH
    ),
    FaultKind.ROLLBACK: Cell(
        "its last acknowledged writes are forgotten, and connections stay; with a kill "
        "after it (`--depth 2`, or `+ kill@...`) the agent has to look",
        AFTER,
        ("1",),
        "writes",
    ),
    FaultKind.EXPIRE: Cell(
        "the server expires the operation's key, or another", BOTH, text="a key"
    ),
    FaultKind.FULL: Cell("OOM, and nothing is written", BEFORE),
}

POSTGRES: Row = {
    FaultKind.REFUSE: _REFUSED,
    FaultKind.DROP_REPLY: _DROPPED,
    FaultKind.ERROR: Cell(
        "the server's error; but for 57P01 it says that nothing was done, so no search "
        "tries it after",
        BOTH,
        ("40001", "40P01", "55P03", "57P01", "53300"),
        denials=frozenset({"40001", "40P01", "55P03", "53300"}),
    ),
    FaultKind.DELAY: _DELAYED,
    FaultKind.TEAR: _TORN,
    FaultKind.DUPLICATE: _ONE_STREAM,
    FaultKind.RESTART: Cell("the server is killed, and recovers", BOTH),
    FaultKind.ROLLBACK: Cell(
        "its last acknowledged commits are forgotten, and connections stay; with a "
        "kill after it (`--depth 2`, or `+ kill@...`) the agent has to look",
        AFTER,
        ("1",),
        "commits",
    ),
    FaultKind.EXPIRE: _NO_KEYS,
    FaultKind.FULL: Cell("53100, and nothing is written", BEFORE),
}

_NO_WIRE = Empty("a file system has no connection; `error` stands for it")

FILES: Row = {
    # Inside a reply there is no place for it: see `tear`.
    FaultKind.KILL: Cell("SIGKILL to the group while the operation is held", BOTH),
    # Before it is done the kernel keeps others from the same file or folder: one that
    # is stopped inside an operation would keep its successor from them.
    FaultKind.PAUSE: Cell(
        "stopped as the operation returns; a second life runs to its end; continued",
        AFTER,
    ),
    FaultKind.REFUSE: _NO_WIRE,
    FaultKind.DROP_REPLY: _NO_WIRE,
    FaultKind.ERROR: Cell(
        "the operation fails",
        BOTH,
        ("EIO",),
        also=("ENOSPC", "EDQUOT", "EROFS", "EACCES", "EPERM", "EINTR"),
        final=frozenset({"EROFS", "EACCES", "EPERM"}),
    ),
    FaultKind.DELAY: _DELAYED,
    FaultKind.TEAR: Cell(
        "some bytes of the write land, and the agent is killed",
        PART,
        only=frozenset({"write"}),
    ),
    FaultKind.DUPLICATE: Empty("a system call happens once"),
    FaultKind.RESTART: Empty("nothing there can be started again; see `powerloss`"),
    FaultKind.ROLLBACK: Empty("a disk takes back nothing that was synced"),
    FaultKind.EXPIRE: _NO_KEYS,
    FaultKind.FULL: Cell("ENOSPC, once", BEFORE),
}

_MARK = Empty("a mark is a place, not a service: only the agent can be struck there")

MARKS: Row = {
    **{kind: replace(cell, edges=BEFORE) for kind, cell in AGENT.items()},
    **{kind: _MARK for kind in FaultKind if kind not in AGENT},
}

FAULTS: Mapping[str, Row] = {
    "llm": {**AGENT, **LLM},
    "tools": {**AGENT, **TOOLS},
    "mcp": {**AGENT, **MCP},
    "smtp": {**AGENT, **SMTP},
    "redis": {**AGENT, **REDIS},
    "postgres": {**AGENT, **POSTGRES},
    "files": {**AGENT, **FILES},
    "marks": MARKS,
}
"""Every service with every fault: a cell, or the reason why there is none."""


def cell(kind: FaultKind, operation: Operation) -> Cell | Empty:
    """What a fault is on an operation."""
    row = FAULTS.get(operation.service)
    if row is None:
        return Empty(f"there is no service {operation.service}")
    found = row[kind]
    if isinstance(found, Cell) and found.only and operation.op not in found.only:
        return Empty(f"it is for {', '.join(sorted(found.only))} only")
    return found


def flaw_of(kind: FaultKind, argument: str | None, at: Address) -> str | None:
    """Why a fault cannot be at an address, in words; None if it can."""
    service = at.operation.service
    if service not in FAULTS:
        hint = did_you_mean(service, FAULTS) or f"expected one of {', '.join(FAULTS)}"
        return f"{at}: there is no service {service!r}; {hint}"
    found = cell(kind, at.operation)
    if isinstance(found, Empty):
        return f"{kind} has no meaning at {at}: {service} {found.because}"
    if at.edge.name not in found.edges:
        expected = " or ".join(found.edges)
        return f"{kind} cannot strike {service} at {at.edge}; expected {expected}"
    return None if argument is None else _wrong_argument(kind, found, argument)


def wrong_argument(kind: FaultKind, argument: str) -> str | None:
    """Why no service knows this fault with this argument; None if one does."""
    cells = [row[kind] for row in FAULTS.values()]
    whys = [_wrong_argument(kind, c, argument) for c in cells if isinstance(c, Cell)]
    return None if None in whys else whys[0]


def _wrong_argument(kind: FaultKind, found: Cell, argument: str) -> str | None:
    if found.number:
        whole = found.number in _COUNTED
        if _is_number(argument, below_zero=kind is FaultKind.SKEW, whole=whole):
            return None
        number = "whole number" if whole else "number"
        return f"{kind}({argument}): expected a {number} of {found.number}"
    if found.text:
        return None if argument else f"{kind}(): expected {found.text}"
    known = (*found.arguments, *found.also)
    if argument in known:
        return None
    return f"{kind}({argument}): expected {', '.join(known) or 'no argument there'}"


def _is_number(text: str, *, below_zero: bool, whole: bool) -> bool:
    if not (_WHOLE if whole else _NUMBER).fullmatch(text):
        return False
    value = float(text)
    return 0 < abs(value) < 1e9 and (below_zero or value > 0)


def tried(
    kind: FaultKind, argument: str | None, address: Address, pieces: int | None
) -> Iterator[tuple[Edge, str | None]]:
    """Where and how a search tries a fault on a message that it saw at an edge.

    ``pieces`` is how many the message has, as the history says. A reply that is not
    streamed has two, its halves. A write is torn after its first byte, in its middle
    and before its last one.
    """
    found = cell(kind, address.operation)
    if isinstance(found, Empty):
        return
    arguments = (argument,) if argument else found.arguments or (None,)
    for edge in _edges(kind, found, address, pieces):
        for each in arguments:
            lies = edge == Edge.AFTER and each in found.denials
            if not lies and flaw_of(kind, each, address.at_edge(edge)) is None:
                yield edge, each


def _edges(
    kind: FaultKind, found: Cell, address: Address, pieces: int | None
) -> Iterator[Edge]:
    if address.edge.name in found.edges:
        yield address.edge
    # The agent's own faults strike inside a reply where that is asked for only.
    if "part" not in found.edges or kind in AGENT:
        return
    if address.operation.service == "files":
        if address.edge == Edge.BEFORE and pieces:
            cuts = {1, pieces // 2, pieces - 1} & set(range(1, pieces))
            yield from map(Edge.of_part, sorted(cuts))
    elif address.edge == Edge.AFTER and (pieces or kind is FaultKind.TEAR):
        yield from map(Edge.of_part, range(1, pieces or 2))
