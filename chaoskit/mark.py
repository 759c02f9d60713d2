"""`chaoskit.mark`: a crossing that only the agent can see, from inside the agent.

Call it where the agent is about to do something that no service of the world shows, a
write to a file of its own say. Under chaoskit the call returns once the mark has been
let through, or never, where a fault ends the agent there; elsewhere it does nothing. It
needs the standard library only.

Any other language does the same in three lines: where ``CHAOSKIT_MARK_FD`` is set it is
the number of a file descriptor; write the name and a line's end to it, then read one
byte from it. In a shell::

    echo save >&$CHAOSKIT_MARK_FD
    head -c 1 <&$CHAOSKIT_MARK_FD >/dev/null

In Node::

    const fs = require("fs"), fd = Number(process.env.CHAOSKIT_MARK_FD);
    fs.writeSync(fd, "save\\n");
    fs.readSync(fd, Buffer.alloc(1));

In Go::

    fd, _ := strconv.Atoi(os.Getenv("CHAOSKIT_MARK_FD"))
    syscall.Write(fd, []byte("save\\n"))
    syscall.Read(fd, make([]byte, 1))

A child that the agent starts can make marks too where it inherits the descriptor
(Python's `subprocess`: ``pass_fds``). Who makes marks at the same time must take turns,
as `mark` sees to for the threads of a process: an answer does not say whose it is.
"""

import os
import threading

VARIABLE = "CHAOSKIT_MARK_FD"

_turn = threading.Lock()


def mark(name: str) -> None:
    """Cross a mark; returns when it was let through.

    Args:
        name: what the agent is about to do, in one line.

    Raises:
        ValueError: the name is empty or has more than one line.
        ConnectionError: chaoskit is gone, or holds this life to be over.
    """
    if not name or "\n" in name:
        raise ValueError(f"{name!r} is not a mark's name; expected one line of text")
    number = os.environ.get(VARIABLE)
    if number is None:
        return
    with _turn:
        os.write(int(number), name.encode() + b"\n")
        if not os.read(int(number), 1):
            raise ConnectionError(f"the mark {name!r} got no answer: the line is cut")
