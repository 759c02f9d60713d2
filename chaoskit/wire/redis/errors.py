"""The errors that a Redis server answers instead of doing a command, in its words.

A transaction is refused as a whole: what stands in an ``EXEC`` is discarded, and the
reason is wrapped, except where the cluster is the reason. The texts are those of
Redis 7 and Valkey 8 (``createSharedObjects`` in ``server.c``), in which each server
calls itself by its name.
"""

from collections.abc import Mapping

DEFAULT = "LOADING"
FULL = "OOM"
"""What a server that has no space left answers."""

ERRORS: Mapping[str, str] = {
    "LOADING": "LOADING {server} is loading the dataset in memory",
    "OOM": "OOM command not allowed when used memory > 'maxmemory'.",
    "READONLY": "READONLY You can't write against a read only replica.",
    "BUSY": "BUSY {server} is busy running a script. "
    "You can only call SCRIPT KILL or SHUTDOWN NOSAVE.",
    "MASTERDOWN": "MASTERDOWN Link with MASTER is down and replica-serve-stale-data "
    "is set to 'no'.",
    "CLUSTERDOWN": "CLUSTERDOWN The cluster is down",
}
"""The word that an error begins with -> all of it."""

_NEVER_WRAPPED = frozenset({"CLUSTERDOWN"})


def error(name: str, server: str, *, transaction: bool) -> bytes:
    """The reply of a server that calls itself ``Redis`` or ``Valkey``."""
    text = ERRORS[name].format(server=server)
    if transaction and name not in _NEVER_WRAPPED:
        text = f"EXECABORT Transaction discarded because of: {text}"
    return f"-{text}\r\n".encode()
