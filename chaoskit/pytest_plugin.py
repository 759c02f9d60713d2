"""The pytest plugin: scenario files given to pytest are tests.

``pytest scenarios/book_flight.yaml`` runs the scenario as `chaoskit run` would; the
test fails with the report's story. Only files that are named on the command line (or in
``testpaths``) are taken: a YAML file that lies somewhere is none of our business.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from chaoskit.campaign import (
    WRONG_INPUT,
    Options,
    given_server,
    jobs_by_default,
    run_campaign,
)
from chaoskit.loading import load_scenario
from chaoskit.model.verdict import Verdict
from chaoskit.report import as_text

SUFFIXES = (".yaml", ".yml")


class NotPassed(Exception):
    """A scenario's verdict was not pass; the text is the report."""


def pytest_addoption(parser: pytest.Parser) -> None:
    """Options of the plugin, under their own heading."""
    group = parser.getgroup("chaoskit")
    group.addoption(
        "--chaoskit-jobs",
        type=_jobs,
        metavar="N",
        help="trials at the same time, within one scenario (default: one a core)",
    )


def _jobs(text: str) -> int:
    """Argparse says what was wrong with it."""
    number = int(text)
    if number < 1:
        raise ValueError(text)
    return number


def pytest_collect_file(
    file_path: Path, parent: pytest.Collector
) -> pytest.Collector | None:
    """Take the YAML files that were asked for by name."""
    named = parent.session.isinitpath(file_path)
    if file_path.suffix not in SUFFIXES or not named:
        return None
    return ScenarioFile.from_parent(parent, path=file_path)


class ScenarioFile(pytest.File):
    """One file, one scenario, one test."""

    def collect(self) -> Iterator[pytest.Item]:
        """The scenario, unread as yet: a damaged file fails as its test does."""
        yield ScenarioItem.from_parent(self, name=self.path.stem)


class ScenarioItem(pytest.Item):
    """A scenario as a test."""

    def runtest(self) -> None:
        """Run the campaign; anything but a pass fails the test."""
        factory: Any = self.config._tmp_path_factory  # type: ignore[attr-defined]
        out = factory.mktemp(self.name)
        loaded = load_scenario(self.path)
        store = loaded.manifest.store
        jobs = self.config.getoption("--chaoskit-jobs") or jobs_by_default(store)
        report = run_campaign(
            loaded, Options(out, jobs, server_url=given_server(store))
        )
        if report.verdict is not Verdict.PASS:
            raise NotPassed(as_text(report))

    def repr_failure(
        self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None
    ) -> Any:
        """What a person reads: the story, not our stack."""
        if isinstance(excinfo.value, (NotPassed, *WRONG_INPUT)):
            return str(excinfo.value)
        return super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        """Where the test stands, for reports."""
        return self.path, 0, f"scenario: {self.name}"
