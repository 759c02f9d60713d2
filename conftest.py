"""Options of the whole test run."""

import os

import pytest

# Runs pytest inside pytest, for the tests of the plugin; it must be named here.
pytest_plugins = ["pytester"]


def pytest_addoption(parser: pytest.Parser) -> None:
    """``--full``: repetitions at the size that the project promises."""
    parser.addoption(
        "--full", action="store_true", help="run repetitions at full size (minutes)"
    )


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session, exitstatus: int) -> None:
    """In CI a skipped test fails the run: nothing is skipped that could have run."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if "CI" in os.environ and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
