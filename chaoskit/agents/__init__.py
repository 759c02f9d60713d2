"""The lives of an agent: starts one, ends it, and reaps all that came out of it.

A *life* is a real process in a session and group of its own. A *launcher* starts it,
as a program (`process`) or as a fork of a warm parent (`fork`); both have a small clean
process, the *zygote*, make it, for the reason in `zygote.py`. Its *family* is all that
descends from it, daemons too, found as `family.py` and `mark.py` say.
A *campaign folder* holds all files of a campaign, and tells at the next start which
processes and folders an earlier one left when it could not tidy up.

Three ends are covered: a life's own (its family is killed and reaped with it), a kill
(the same, at once), and the worker's, however it comes: lives get SIGKILL by the kernel
(the parent-death signal), and what they had forked falls to the next campaign.

Linux only. One asyncio loop owns the lives of a worker.
"""

from chaoskit.agents.fork import ForkLauncher
from chaoskit.agents.leftovers import CampaignFolder, TemporaryFolderError
from chaoskit.agents.life import Clock, Command, Exit, Launcher, LaunchError, Life
from chaoskit.agents.mark import CAMPAIGN_VARIABLE
from chaoskit.agents.process import ProcessLauncher

__all__ = [
    "CAMPAIGN_VARIABLE",
    "CampaignFolder",
    "Clock",
    "Command",
    "Exit",
    "ForkLauncher",
    "LaunchError",
    "Launcher",
    "Life",
    "ProcessLauncher",
    "TemporaryFolderError",
]
