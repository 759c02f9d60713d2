"""The small clean process that every life of a launcher is forked from.

The worker runs this file by its path, with the agent's interpreter, which need not have
chaoskit: so it imports the standard library only, and speaks in lines of JSON, to
`parent.py` and, one socket for each life, to `nursery.py`. Why a process in between:
Python code between fork and exec is safe only where nothing else runs, and here nothing
does: one thread, no event loop, no services.

    python zygote.py CONTROL_FD WORKER_PID MARK [MODULE:FUNCTION [PRELOAD ...]]

Without a function a life execs its command, with one it calls it. For each life the
worker passes one end of a socket, the line, over CONTROL_FD:

    worker -> life   {"argv", "env", "cwd", "stdout", "stderr", "mark", "memory",
                      "inherit"}
    life -> worker   {"pid"}, or {"pid", "step", "errno", "reason"} and it exits
    worker -> life   one byte, and with it the files that are to be inherited: go on;
                     or it hangs up, and the life exits
    life -> worker   end of file once it runs, or {"step", "errno", "reason"}

The life is forked twice, so that it becomes a child of the worker, a subreaper; thus
the worker can wait for it, and the parent-death signal follows the worker's life.
"""

from __future__ import annotations

import atexit
import ctypes
import functools
import gc
import importlib
import json
import os
import resource
import signal
import socket
import sys
import threading
import time
import traceback
import types
from collections.abc import Callable
from typing import Any, NoReturn

PR_SET_PDEATHSIG = 1
LEAVING_SECONDS_MAX = 1.0
INTERRUPTED = -signal.SIGINT
APPEND = os.O_WRONLY | os.O_CREAT | os.O_APPEND

Live = Callable[[socket.socket, dict[str, Any]], None]


class PreloadError(Exception):
    """Preloading left the process unfit to be forked."""


def main() -> None:
    """Settles, imports what lives need, says so, and then forks until hung up on."""
    control_fd, worker, mark, *call = sys.argv[1:]
    control = socket.socket(fileno=int(control_fd))
    control.set_inheritable(False)
    die_with(int(worker))
    carry(int(mark))
    take_signals()
    try:
        live = preload(*call) if call else execute
    except BaseException as error:
        plain = isinstance(error, PreloadError)
        say(control, error=str(error) if plain else traceback.format_exc())
        return
    for stream in (sys.stdout, sys.stderr):
        stream.flush()  # or each life would write what was printed while importing
    gc.collect()
    gc.freeze()  # or each life copies the pages that its collector touches
    say(control, ready=True)
    serve(control, int(worker), live)


def die_with(worker: int) -> None:
    """Asks for SIGKILL at the worker's end, and exits if that has been already.

    See prctl(2): what counts is the parent at that time, and a fork does not inherit.
    """
    libc = ctypes.CDLL(None)
    libc.prctl.argtypes = [ctypes.c_int, *[ctypes.c_ulong] * 4]
    libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    if os.getppid() != worker:
        os._exit(1)


def carry(mark: int) -> None:
    """Takes on a mark (see `mark.py`), unless a real limit leaves it no room."""
    _, hard = resource.getrlimit(resource.RLIMIT_RSS)
    if hard == resource.RLIM_INFINITY or hard >= mark:
        resource.setrlimit(resource.RLIMIT_RSS, (mark, hard))


def take_signals() -> None:
    """Undoes what was ignored or blocked around chaoskit, Ctrl-C in a worker say."""
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    for number in signal.valid_signals() - {signal.SIGPIPE, signal.SIGXFSZ}:
        if signal.getsignal(number) is signal.SIG_IGN:
            signal.signal(number, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)


def preload(call: str, *modules: str) -> Live:
    """Imports as the agent's own interpreter would with `-m`; what a life then does."""
    # Not this folder, which holds our modules under names that an agent might use.
    if sys.path and sys.path[0] == os.path.dirname(os.path.abspath(__file__)):
        del sys.path[0]
    sys.path.insert(0, os.getcwd())
    module, _, path = call.partition(":")
    sys.argv[:] = [module]
    for name in modules:
        importlib.import_module(name)
    function: Any = importlib.import_module(module)
    for name in path.split("."):
        function = getattr(function, name)
    if not callable(function):
        raise PreloadError(f"{call!r} is {function!r}, expected a function")
    demand_one_thread()
    return functools.partial(perform, function)


def demand_one_thread() -> None:
    """A fork takes one thread along; what others held stays held for ever."""
    end = time.monotonic() + LEAVING_SECONDS_MAX
    # A joined thread may still be on its way out of the kernel.
    while (count := len(os.listdir("/proc/self/task"))) > 1:
        if threading.active_count() > 1 or time.monotonic() > end:
            names = [thread.name for thread in threading.enumerate()[1:]]
            raise PreloadError(
                f"importing left {count - 1} thread(s) running"
                f" ({', '.join(names) or 'not made by Python'}), and a process with"
                " threads cannot be forked safely: start them in the function, or"
                " turn them off in the manifest's env (OPENBLAS_NUM_THREADS=1 say)"
            )
        os.sched_yield()


def serve(control: socket.socket, worker: int, live: Live) -> None:
    """Forks a life for every line that the worker passes."""
    while True:
        _, fds, _, _ = socket.recv_fds(control, 1, 1)
        if not fds:
            return
        with socket.socket(fileno=fds[0]) as line:
            line.set_inheritable(False)  # recv_fds ignores the flag for it
            try:
                middle = os.fork()
            except OSError as error:
                refuse(line, "fork", error)
                continue
            if not middle:
                control.close()
                fork_again(line, worker, live)
        os.waitpid(middle, 0)


def fork_again(line: socket.socket, worker: int, live: Live) -> NoReturn:
    """The one in the middle: only ends, so that its child goes to the worker."""
    middle = os.getpid()
    try:
        if not os.fork():
            while os.getppid() == middle:
                os.sched_yield()
            be_born(line, worker, live)
    except OSError as error:
        refuse(line, "fork", error)
    finally:
        os._exit(0)


def be_born(line: socket.socket, worker: int, live: Live) -> NoReturn:
    """Readies the process, and does nothing of the agent's before it is told to."""
    try:
        die_with(worker)
        os.setsid()
        with line.makefile("rb") as lines:
            wish = json.loads(lines.readline())
        carry(wish["mark"])
        settle(line, wish)
        say(line, pid=os.getpid())
        if is_released(line, wish):
            live(line, wish)
    finally:
        os._exit(127)


def is_released(line: socket.socket, wish: dict[str, Any]) -> bool:
    """Waits for the word to go on; takes what comes with it, and its limits."""
    names = wish["inherit"]
    word, files, _, _ = socket.recv_fds(line, 1, max(1, len(names)))
    for name, file in zip(names, files, strict=False):
        os.set_inheritable(file, True)
        wish["env"][name] = str(file)
    # RLIMIT_DATA counts the private memory that can be written, its stacks included,
    # not the libraries and the reserves that RLIMIT_AS would count: see getrlimit(2).
    confine(resource.RLIMIT_DATA, wish["memory"])
    confine(resource.RLIMIT_FSIZE, wish["file"])
    return bool(word)


def confine(kind: int, most: int | None) -> None:
    """Limits each process of the life, in bytes, if it is to be limited."""
    if most is None:
        return
    _, hard = resource.getrlimit(kind)
    if hard != resource.RLIM_INFINITY:
        most = min(most, hard)
    resource.setrlimit(kind, (most, most))


def settle(line: socket.socket, wish: dict[str, Any]) -> None:
    """Enters the folder and points the output at its files."""
    step = "cwd"
    try:
        os.chdir(wish["cwd"])
        for fd, step in ((1, "stdout"), (2, "stderr")):
            file = os.open(wish[step], APPEND, 0o600)
            os.dup2(file, fd)
            os.close(file)
    except (OSError, ValueError) as error:
        refuse(line, step, error, pid=os.getpid())
        os._exit(127)


def execute(line: socket.socket, wish: dict[str, Any]) -> None:
    """Becomes the command; the line closes by itself as it does."""
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them
        signal.signal(number, signal.SIG_DFL)
    try:
        os.execvpe(wish["argv"][0], wish["argv"], wish["env"])
    except Exception as error:  # whatever it is, the worker must not take it for a life
        refuse(line, "argv", error)


def perform(
    function: Callable[[], object], line: socket.socket, wish: dict[str, Any]
) -> None:
    """Calls the agent's function as if this interpreter had started for it."""
    os.environ.clear()
    try:
        os.environ.update(wish["env"])
    except (OSError, ValueError) as error:
        return refuse(line, "env", error)
    line.close()
    sys.argv[:] = wish["argv"]
    sys.modules["__main__"] = types.ModuleType("__main__")
    for stream in (sys.stdout, sys.stderr):
        # Changed, not replaced: an imported module may hold it, a log handler does.
        stream.reconfigure(line_buffering=True)  # type: ignore[union-attr]
    status = outcome(function)
    try:
        threading._shutdown()  # type: ignore[attr-defined]
        atexit._run_exitfuncs()
        sys.stdout.flush()
        sys.stderr.flush()
    finally:
        leave(status)


def leave(status: int) -> NoReturn:
    """Exits at once, with a status or by an interrupt."""
    if status == INTERRUPTED:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        os.kill(os.getpid(), signal.SIGINT)
    os._exit(status)


def outcome(function: Callable[[], object]) -> int:
    """The exit status: of the value returned, of SystemExit, or 1 with a traceback.

    An interpreter that nobody kept from being interrupted ends by that signal.
    """
    try:
        sys.exit(function())  # type: ignore[arg-type]
    except SystemExit as end:
        if end.code is None:
            return 0
        if isinstance(end.code, int):
            return end.code & 0xFF
        print(end.code, file=sys.stderr)  # noqa: T201  what sys.exit does with a text
    except BaseException as error:
        # From the function on, for whoever reads it. The hook goes by the attribute.
        error.__traceback__ = error.__traceback__ and error.__traceback__.tb_next
        sys.excepthook(type(error), error, error.__traceback__)
        if isinstance(error, KeyboardInterrupt):
            return INTERRUPTED
    return 1


def refuse(line: socket.socket, step: str, error: Exception, **more: Any) -> None:
    """Tells the worker at which step it cannot go on, and why."""
    reason = getattr(error, "strerror", None) or str(error)
    say(line, step=step, errno=getattr(error, "errno", None), reason=reason, **more)


def say(line: socket.socket, **words: Any) -> None:
    """Sends one line of JSON."""
    line.sendall(json.dumps(words).encode() + b"\n")


if __name__ == "__main__":
    main()
