"""What a look at the agent's folder shows.

A file is its text, base64 where it is no text, and its hash where it is long. A SQLite
database is the rows that its next reader will find, after the recovery that this reader
does: its bytes hold counters and random numbers, and no two runs leave the same ones.
Its log and its journal are part of it. Where something is not synced, it is shown what
a loss of power would leave of it::

    {"now": {"agent.db": {"sqlite": {...}}, "runs": {"folder": true},
             "runs/1.json": {"text": "..."}},
     "unsynced": {"agent.db": {"sqlite": {...}}, "runs": null, ...}}

Only what would differ is listed under ``unsynced``; null is what would be gone.
"""

import base64
import hashlib
import sqlite3
import stat
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

from pydantic import JsonValue

from chaoskit.world.files.disk import Disk
from chaoskit.world.files.inode import Inode
from chaoskit.world.files.powerloss import copy, is_all_safe, lose_power

SHOWN_BYTES_MAX = 1 << 16
_MAGIC = b"SQLite format 3\0"
_PARTS = ("-wal", "-journal")
_MEMORY = "-shm"
"""The index of a SQLite log: mapped memory that is thrown away at every start."""
_TOLD = ("user_version", "application_id", "journal_mode")

Files = Mapping[str, Inode]


def is_memory(path: str) -> bool:
    """Whether a file is only a way to share memory, and nothing that is kept."""
    return path.endswith(_MEMORY)


def whose(path: str) -> str:
    """The file that a path is a part of: a log, a journal of a database say."""
    for part in (*_PARTS, _MEMORY):
        path = path.removesuffix(part)
    return path


def view(disk: Disk, scratch: Path) -> dict[str, JsonValue]:
    """See the module's docstring; ``scratch`` is a folder to read databases in."""
    now = _shown(disk, scratch)
    if is_all_safe(disk):
        return {"now": now}
    rest = copy(disk)
    lose_power(rest)
    left = _shown(rest, scratch)
    paths = sorted(now.keys() | left.keys())
    lost = {path: left.get(path) for path in paths if left.get(path) != now.get(path)}
    return {"now": now, "unsynced": lost} if lost else {"now": now}


def _shown(disk: Disk, scratch: Path) -> dict[str, JsonValue]:
    files = {path: inode for path, inode in disk.files() if not is_memory(path)}
    databases = {path for path in files if _is_database(path, files)}
    parts = {path + part for path in databases for part in _PARTS}
    shown: dict[str, JsonValue] = {}
    for path in files.keys() - parts:
        reading = path in databases
        shown[path] = _database(path, files, scratch) if reading else _one(files[path])
    return dict(sorted(shown.items()))


def _one(inode: Inode) -> JsonValue:
    if inode.is_folder:
        return {"folder": True}
    content = bytes(inode.content)
    if stat.S_ISLNK(inode.mode):
        return {"link": content.decode(errors="backslashreplace")}
    return _content(content)


def _content(content: bytes) -> dict[str, JsonValue]:
    if len(content) > SHOWN_BYTES_MAX:
        digest = hashlib.sha256(content).hexdigest()
        return {"sha256": digest, "bytes": len(content)}
    try:
        return {"text": content.decode()}
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(content).decode()}


def _is_database(path: str, files: Files) -> bool:
    if not stat.S_ISREG(files[path].mode):
        return False
    if files[path].content.startswith(_MAGIC):
        return True
    return not files[path].content and any(path + part in files for part in _PARTS)


def _database(path: str, files: Files, scratch: Path) -> JsonValue:
    place = scratch / "look.db"
    for part in ("", *_PARTS):
        if path + part in files:
            (scratch / f"look.db{part}").write_bytes(files[path + part].content)
    try:
        return {"sqlite": _rows(place)}
    except sqlite3.Error as error:
        return {"damaged": str(error), **_content(bytes(files[path].content))}
    finally:
        for part in ("", *_PARTS, _MEMORY):
            (scratch / f"look.db{part}").unlink(missing_ok=True)


def _rows(place: Path) -> dict[str, JsonValue]:
    with closing(sqlite3.connect(place, isolation_level=None)) as reader:
        reader.execute("PRAGMA synchronous = OFF")
        reader.text_factory = lambda text: text.decode(errors="backslashreplace")
        tables = reader.execute(
            "SELECT name, sql FROM sqlite_schema WHERE type = 'table' ORDER BY name"
        ).fetchall()
        shown: dict[str, JsonValue] = {
            name: {"schema": sql, "rows": _table(reader, name)} for name, sql in tables
        }
        for told in _TOLD:
            shown[f"PRAGMA {told}"] = reader.execute(f"PRAGMA {told}").fetchone()[0]
        return shown


def _table(reader: sqlite3.Connection, name: str) -> list[JsonValue]:
    quoted = name.replace('"', '""')
    rows = reader.execute(f'SELECT * FROM "{quoted}"')
    return [[_value(value) for value in row] for row in rows]


def _value(value: object) -> JsonValue:
    if isinstance(value, bytes):
        return dict(_content(value))
    assert value is None or isinstance(value, str | int | float)
    return value
