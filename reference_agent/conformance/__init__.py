"""Puts a store of runs to the test: yours, or one of ours.

Say how to open a handle, and pytest finds the rest::

    class TestMyStore(StoreConformance):
        @pytest.fixture
        def open_store(self, tmp_path):
            return partial(MyStore, tmp_path / "runs")

`open_store` gives what opens one more handle on the same, at first empty, data. Other
processes open it too, so it can be pickled: a class, a function of a module, or a
`partial` of one. What not every store claims is tested by a class beside the first:

| class               | is for a store that                 | and needs a fixture |
|---------------------|-------------------------------------|---------------------|
| `DamageConformance` | can find its own data damaged       | `damage`            |
| `ExpiryConformance` | lets go of runs that nobody touches | `open_expiring`     |
| `ClockConformance`  | reads the clock of its process      | none                |
| `NoticeConformance` | ends a `wait` for what others do     | none                |
| `FolderConformance` | keeps files in a folder             | `folder`            |

``--full``, where your conftest has that option, makes everything ten times as long.
Needs pytest and hypothesis, and a system that can fork.
"""

import pytest

PARTS = ["bench", "clock", "contention", "crashes", "damage", "expiry", "folder"]
PARTS += ["leases", "machine", "names", "saving", "values", "waking"]

# Before they are imported: a failure shall show the values, in an editable install too.
pytest.register_assert_rewrite(*(f"{__name__}.{part}" for part in PARTS))

from reference_agent.conformance.clock import ClockConformance  # noqa: E402
from reference_agent.conformance.contention import Contention  # noqa: E402
from reference_agent.conformance.crashes import Crashes  # noqa: E402
from reference_agent.conformance.damage import DamageConformance  # noqa: E402
from reference_agent.conformance.expiry import ExpiryConformance  # noqa: E402
from reference_agent.conformance.folder import FolderConformance  # noqa: E402
from reference_agent.conformance.leases import Leases  # noqa: E402
from reference_agent.conformance.machine import AgainstAModel  # noqa: E402
from reference_agent.conformance.names import Names  # noqa: E402
from reference_agent.conformance.saving import Saving  # noqa: E402
from reference_agent.conformance.values import Values  # noqa: E402
from reference_agent.conformance.waking import NoticeConformance, Waking  # noqa: E402

__all__ = [
    "ClockConformance",
    "DamageConformance",
    "ExpiryConformance",
    "FolderConformance",
    "NoticeConformance",
    "StoreConformance",
]


class StoreConformance(
    Saving, Values, Names, Leases, Waking, Contention, Crashes, AgainstAModel
):
    """All that `reference_agent.stores.base` promises of every store."""
