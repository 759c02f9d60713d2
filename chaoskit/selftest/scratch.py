"""The temporary folder of a self-test, which the next start removes if this one died.

It is a campaign's folder (see `chaoskit.agents.leftovers`) and lasts as long as the
process, since the server from which campaigns are forked keeps its socket in it.
"""

import tempfile
from functools import cache
from multiprocessing import util
from pathlib import Path

from chaoskit.agents import CampaignFolder

AFTER_MULTIPROCESSING = -200
"""It removes its own folder, which lies in ours, at -100: that must still be there."""
SOCKET_PATH_MAX = 107
SOCKET_NAME_LENGTH = len("/pymp-12345678/listener-12345678")


@cache
def scratch() -> Path:
    """The folder, made when it is first asked for.

    Raises:
        TemporaryFolderError: there is no place for temporary files.
    """
    folder = CampaignFolder.fresh()
    util.Finalize(None, folder.close, exitpriority=AFTER_MULTIPROCESSING)
    _hold_sockets(folder.path)
    return folder.path


def _hold_sockets(folder: Path) -> None:
    """Have multiprocessing make its folder here, if the path does not get too long."""
    if len(bytes(folder)) + SOCKET_NAME_LENGTH > SOCKET_PATH_MAX:
        return
    before, tempfile.tempdir = tempfile.tempdir, str(folder)
    try:
        util.get_temp_dir()
    finally:
        tempfile.tempdir = before
