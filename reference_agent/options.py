"""The command line's words: read, and refused before anything is begun."""

from argparse import ArgumentParser, Namespace, RawDescriptionHelpFormatter
from typing import NoReturn

from reference_agent.stores import DAY_SECONDS, STORES

USAGE = 64
LEASE_SECONDS = 180.0
"""A move is at most a pause and a call, of a minute each."""

POLL_SECONDS = 0.25
RUN_ID_BYTES_MAX = 1000
NEEDED_BY: dict[str, tuple[str, ...]] = {
    "run": ("task",),
    "submit": ("task",),
    "worker": (),
    "answer": ("task", "answer"),
    "status": ("task",),
    "inspect": ("task",),
}
"""The modes, and the options about a run that each cannot do without."""

TAKEN_BY = {"run": ("goal", "resume", "answer", "gate"), "submit": ("goal",)}
TAKEN_BY |= {"answer": ("gate",)}
"""What else of them a mode takes."""


class _Parser(ArgumentParser):
    """Ends with the code of wrong usage."""

    def error(self, message: str) -> NoReturn:
        """Say what is wrong, and end."""
        self.exit(USAGE, f"{self.prog}: {message} (--help lists all there is)\n")


def read(description: str | None, words: list[str]) -> Namespace:
    """The options, and ``who`` to speak of; ends the process with words and code 64
    where they are wrong."""
    parser = _parser(description)
    options = parser.parse_args(words)
    needed = NEEDED_BY[options.mode]
    for name in ("task", "goal", "resume", "answer", "gate"):
        value = getattr(options, name)
        if name in needed and value is None:
            parser.error(f"{options.mode} needs --{name}")
        if value and name not in (*needed, *TAKEN_BY.get(options.mode, ())):
            parser.error(f"{options.mode} takes no --{name}")
        if isinstance(value, str) and not value.strip():
            parser.error(f"--{name} is empty")
    options.who = f"run {options.task}" if options.task else options.mode
    return options


def _parser(description: str | None) -> ArgumentParser:
    parser = _Parser(
        prog="reference_agent",
        description=description,
        formatter_class=RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("mode", nargs="?", default="run", choices=tuple(NEEDED_BY), help="see above")
    add("--task", type=_run_id, help="the run's id")
    add("--goal", type=_text, help="what it is for; needed to start")
    add("--resume", action="store_true", help="its last process is gone: go on")
    add("--answer", type=_text, help="a person's, to the open question")
    add("--gate", help="the key of the question that is meant, as it was told")
    add("--store", default="redis", choices=tuple(STORES), help="where runs are kept")
    add("--tools", default="http", choices=("http", "mcp"), help="the way to the tools")
    add("--mail", default="http", choices=("http", "smtp"), help="the way of a mail")
    add("--stream", action="store_true", help="have the model's replies streamed")
    ttl = "how long Redis keeps a run that nobody touches (a day)"
    add("--ttl-seconds", type=_seconds, default=DAY_SECONDS, help=ttl)
    lease = "how long a run is ours without a sign of life (180)"
    add("--lease-seconds", type=_seconds, default=LEASE_SECONDS, help=lease)
    poll = "how long a worker looks away at most (0.25)"
    add("--poll-seconds", type=_seconds, default=POLL_SECONDS, help=poll)
    return parser


def _text(word: str) -> str:
    """A word that is text: what else there may be could be stored nowhere."""
    word.encode()  # raises a ValueError, which argparse tells
    return word


def _run_id(word: str) -> str:
    """A text that is short enough for every store's key."""
    if len(word.encode()) > RUN_ID_BYTES_MAX:
        raise ValueError(word)
    return word


def _seconds(word: str) -> float:
    """More than nothing, and less than a hundred years."""
    seconds = float(word)
    if not 0 < seconds < 100 * 366 * DAY_SECONDS:
        raise ValueError(word)
    return seconds


_text.__name__, _seconds.__name__ = "text", "number of seconds"
_run_id.__name__ = "run id (text, of 1000 bytes at most)"
