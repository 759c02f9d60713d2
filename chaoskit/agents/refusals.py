"""What to tell people when a life does not start: what, why, and what to do."""

import errno
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from chaoskit.agents.life import Command

_LINES_MAX = 32
_HINTS = {
    ("argv", errno.EACCES): "make it executable (chmod +x), or name its interpreter",
    ("argv", errno.ENOEXEC): "it needs a first line such as #!/bin/sh, or name its"
    " interpreter",
    ("cwd", errno.ENOENT): "commands run in the manifest's folder; is it still there?",
    ("fork", errno.EAGAIN): "the limit of processes is reached (ulimit -u)",
}


def not_started(command: Command, refusal: Mapping[str, Any]) -> str:
    """For a life that said why: its `step`, `errno` and `reason` (see `zygote.py`)."""
    step, number = refusal["step"], refusal["errno"]
    hint = _HINTS.get((step, number), "")
    if (step, number) == ("argv", errno.ENOENT):
        hint = _where_it_was_sought(command)
    what = {
        "env": "cannot set the environment",
        "argv": f"cannot run {_program(command)!r}",
        "cwd": f"cannot enter the folder {str(command.cwd)!r}",
        "stdout": f"cannot write standard output to {str(command.stdout)!r}",
        "stderr": f"cannot write standard error to {str(command.stderr)!r}",
        "fork": "cannot make a process",
    }[step]
    return _sentence(f"{what}: {refusal['reason']}", hint, command)


def in_image(command: Command, reason: str) -> str:
    """For a life that the docker engine did not start, with the engine's reason."""
    program = repr(_program(command))
    if "executable file not found" in reason or "no such file" in reason:
        hint = "expected a program that is in the image; chaoskit adds none to it"
        return _sentence(f"cannot run {program} in the container", hint, command)
    if "permission denied" in reason:
        hint = "make it executable in the image, or name its interpreter"
        return _sentence(f"may not run {program} in the container", hint, command)
    return _sentence(f"the container did not start: {reason}", "", command)


def died(command: Command, lines: str) -> str:
    """For a life that vanished, or whose warm parent had."""
    return _sentence(
        "the process that lives are forked from has ended, or the new life was killed"
        " before it could run" + (f"; the last lines:\n{lines}" if lines else ""),
        "",
        command,
    )


def unprepared(
    python: tuple[str, ...], call: tuple[str, ...], cwd: Path, lines: str
) -> str:
    """For a warm parent that could not be made."""
    what = f"the warm parent of {call[0]!r}" if call else "the parent of all lives"
    told = f"{what} could not be made with {python[0]!r} in {str(cwd)!r}:\n{lines}"
    return told + _how_to_get_it(python[0], cwd, lines)


def _how_to_get_it(program: str, folder: Path, lines: str) -> str:
    """For a program or a package of the agent's own that is not there yet.

    By custom `setup.sh` beside the manifest makes what an agent needs.
    """
    is_missing = "/" in program and not (folder / program).exists()
    no_package = "ModuleNotFoundError" in lines
    script = folder / "setup.sh"
    if (is_missing or no_package) and script.is_file():
        return f"\n  run {script} first"
    if no_package:
        return (
            "\n  install the package that has it for that Python: "
            f"{program} -m pip install PACKAGE"
        )
    return ""


def last_lines(text: str) -> str:
    """The end of a text, where the cause usually is."""
    return "\n".join(text.rstrip().splitlines()[-_LINES_MAX:])


def _program(command: Command) -> str:
    return command.argv[0] if command.argv else ""


def _where_it_was_sought(command: Command) -> str:
    if "/" in _program(command):
        return (
            f"expected a program, seen from {str(command.cwd)!r}; if it is a script"
            " that is there, the interpreter in its first line is not"
            + _how_to_get_it(_program(command), command.cwd, "")
        )
    return (
        f"expected a program on PATH, {command.env.get('PATH', '(not set)')!r};"
        " for the interpreter that chaoskit runs on write {python}"
    )


def _sentence(what: str, hint: str, command: Command) -> str:
    tail = f"; {hint}" if hint else ""
    return f"{what}{tail}\n  the command was: {shlex.join(command.argv)}"
