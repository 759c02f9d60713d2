"""Print the command of the README that stands after a marker, for .ci/run."""

import re
import sys
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def command(marker: str) -> str:
    """The shell block that follows ``<!-- marker -->``."""
    pattern = rf"<!-- {re.escape(marker)} -->\s*```sh\n(.*?)```"
    found = re.search(pattern, README.read_text(), re.DOTALL)
    if found is None:
        raise SystemExit(f"README.md has no block marked {marker!r}")
    return found[1]


if __name__ == "__main__":
    sys.stdout.write(command(sys.argv[1]))
