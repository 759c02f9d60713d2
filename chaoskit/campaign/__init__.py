"""A campaign: baseline, explorer, trials, checks, and the report of it all.

`search` decides what to run next and judges what came of it, `tally` keeps what is
known, `output` is the folder that is left. The coordinator decides and judges; workers
run trials. Results are taken in the order in which their trials were submitted,
whatever order they finish in, so that a campaign visits the same schedules however many
workers it has.
"""

from chaoskit.agents import CampaignFolder, LaunchError, TemporaryFolderError
from chaoskit.campaign.options import (
    Listener,
    Options,
    Progress,
    given_server,
    jobs_by_default,
)
from chaoskit.campaign.output import (
    OutputError,
    blotted_if_cut_short,
    claimed,
    full_disk_is_told,
    inputs_of,
    introduce,
    leave,
)
from chaoskit.campaign.search import Search
from chaoskit.loading import Loaded
from chaoskit.model.errors import InputError
from chaoskit.model.report import Report
from chaoskit.pool import Pool, Setup
from chaoskit.trial import blots
from chaoskit.world.servers import MissingServer

__all__ = [
    "WRONG_INPUT",
    "Listener",
    "Options",
    "Progress",
    "given_server",
    "jobs_by_default",
    "run_campaign",
]

WRONG_INPUT = (
    InputError,
    LaunchError,
    MissingServer,
    OutputError,
    TemporaryFolderError,
)
"""What keeps a campaign from being run, each with a text that says what to do."""


def run_campaign(
    loaded: Loaded, options: Options, listener: Listener = lambda _: None
) -> Report:
    """Run every trial of a scenario; the report is also left in the output folder.

    Raises:
        LaunchError: the agent's command cannot be started.
        MissingServer: a server that the scenario needs cannot be had.
        OutputError: the output folder cannot be used.
        TemporaryFolderError: there is no place for temporary files.
    """
    secrets = blots(loaded.manifest, loaded.scenario)
    with (
        full_disk_is_told(options.out),
        claimed(options.out, inputs_of(loaded)) as trials,
        blotted_if_cut_short(trials, secrets),
        CampaignFolder.fresh() as folder,
    ):
        introduce(options.out, loaded)
        setup = Setup(
            loaded.manifest,
            loaded.manifest_path.parent.resolve(),
            folder.path,
            trials,
            options.server_url,
        )
        with Pool(setup, options.jobs, folder.tag) as pool:
            report = Search(loaded, options, pool, listener).run()
        leave(report, options.out, secrets)
    return report
