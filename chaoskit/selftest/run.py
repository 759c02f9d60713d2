"""Puts specimens to the test: a campaign each, and what its report says."""

import json
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from chaoskit.campaign import given_server, jobs_by_default
from chaoskit.campaign.output import claimed, full_disk_is_told
from chaoskit.model.manifest import Store
from chaoskit.selftest.campaigns import Campaigns, Ended
from chaoskit.selftest.catalogue import Specimen, specimens
from chaoskit.selftest.outcome import Outcome, Tested, as_json, tested, untested
from chaoskit.selftest.scratch import scratch

RESULT = "selftest.json"
EXIT_WRONG_INPUT = 2
Listener = Callable[[Tested], None]


class SelftestError(Exception):
    """A specimen could not be run, say for want of a server; the text says why."""


def selftest(
    picked: Sequence[Specimen],
    jobs: int,
    *,
    quick: bool = False,
    out: Path | None = None,
    listener: Listener = lambda _: None,
) -> Outcome:
    """Test these, ``jobs`` at a time; what their campaigns leave goes to ``out``.

    Raises:
        OutputError: that folder cannot be used.
        SelftestError: a specimen could not be run at all.
        TemporaryFolderError: there is no place for temporary files.
    """
    began = time.monotonic()
    place = scratch()  # campaigns of one that died may write to ``out`` until now
    with _folder(out) as folder, Campaigns(place) as campaigns:

        def test(specimen: Specimen) -> Tested:
            done = _test(specimen, campaigns, folder / specimen.name, quick=quick)
            listener(done)
            return done

        with ThreadPoolExecutor(jobs) as threads:
            longest_first = sorted(picked, key=lambda each: -each.weight)
            pending = {each: threads.submit(test, each) for each in longest_first}
            try:
                results = tuple(pending[each].result() for each in picked)
            except BaseException:
                threads.shutdown(wait=False, cancel_futures=True)
                campaigns.end()
                raise
        outcome = Outcome(results, quick, round(time.monotonic() - began, 1))
        if out is not None:
            (folder / RESULT).write_text(as_json(outcome), encoding="utf-8")
    return outcome


def default_jobs() -> int:
    """Two campaigns a core, for many of them wait; one where a server can serve one."""
    jobs = jobs_by_default(Store.REDIS)
    return jobs if given_server(Store.REDIS) else 2 * jobs


def unexpected(jobs: int | None = None) -> tuple[Tested, ...]:
    """The specimens by which this installation misses something, or cries wolf.

    By the quick test.

    Raises:
        SelftestError: a specimen could not be run at all, or none is installed.
    """
    picked = specimens()
    if not picked:
        raise SelftestError("no specimens are installed; install chaoskit anew")
    outcome = selftest(picked, jobs or default_jobs(), quick=True)
    return tuple(each for each in outcome.tested if not each.is_as_expected)


@contextmanager
def _folder(out: Path | None) -> Iterator[Path]:
    if out is not None:
        with full_disk_is_told(out), claimed(out):
            yield out.resolve()
        return
    with tempfile.TemporaryDirectory(prefix="selftest-", dir=scratch()) as folder:
        yield Path(folder)


def _test(
    specimen: Specimen, campaigns: Campaigns, out: Path, *, quick: bool
) -> Tested:
    began = time.monotonic()
    words = _words(specimen, quick=quick)
    try:
        code, told = campaigns.run([*words, "--jobs", "1", "--out", str(out)])
    except Ended as error:
        raise SelftestError(f"{specimen.name} was not run: {error}") from None
    if code == EXIT_WRONG_INPUT:
        raise SelftestError(f"{specimen.name} could not be run: {told.strip()}")
    seconds = round(time.monotonic() - began, 1)
    report = out / "report.json"
    if not report.is_file():
        return untested(specimen, told, seconds, code)
    fields: dict[str, Any] = json.loads(report.read_text(encoding="utf-8"))
    return tested(specimen, fields, _journal(out), told, seconds, code)


def _words(specimen: Specimen, *, quick: bool) -> list[str]:
    """The verb and its options; a quick test asks for little."""
    scenario, label = str(specimen.scenario), specimen.label
    if not quick:
        return ["run", scenario]
    if not specimen.is_broken:
        few = ["--strategy", "sample", "--trials", str(label.quick)]
        return ["run", scenario, *few]
    return (
        ["run", scenario] if label.shows is None else ["replay", scenario, label.shows]
    )


def _journal(out: Path) -> list[dict[str, Any]]:
    lines = (out / "trials.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]
