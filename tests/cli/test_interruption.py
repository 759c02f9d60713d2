"""Ctrl-C and SIGTERM: exit code 130, and the tidying up is not cut short."""

import os
import signal

import pytest
import typer

from chaoskit import cli


@pytest.mark.parametrize("signum", cli.SIGNALS)
def test_the_first_signal_interrupts_and_a_second_one_is_too_late(signum, capsys):
    """What is being tidied up then would else be left behind."""
    before = [signal.getsignal(each) for each in cli.SIGNALS]
    tidied = []

    def work() -> int:
        try:
            os.kill(os.getpid(), signum)
        finally:
            for each in cli.SIGNALS:
                os.kill(os.getpid(), each)
            tidied.append(True)
        raise AssertionError

    with pytest.raises(typer.Exit) as ended:
        cli._carefully(work)
    assert ended.value.exit_code == cli.EXIT_INTERRUPTED
    assert tidied == [True]
    assert "Traceback" not in capsys.readouterr().err
    assert [signal.getsignal(each) for each in cli.SIGNALS] == before


def test_who_was_started_to_ignore_ctrl_c_does():
    """As a job in the background is, in a shell without job control."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(typer.Exit) as ended:
            cli._carefully(lambda: os.kill(os.getpid(), signal.SIGINT) or 0)
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.value.exit_code == 0
