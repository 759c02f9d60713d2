"""Where a package that brings a server's programs is installed."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path


def folders_of(package: str) -> Iterator[Path]:
    """The package's folders, none where it is not installed.

    Found, not imported: importing it does more than telling where it is.
    """
    found = find_spec(package)
    yield from map(Path, (found.submodule_search_locations or ()) if found else ())
