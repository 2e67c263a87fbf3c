"""Progress where standard error is no terminal."""

import time

from foretune._base.terminal import TerminalProgress


def test_a_log_gets_one_line_of_work_that_takes_long(capsys):
    progress = TerminalProgress(slow_seconds=0.01)
    progress.start("learning from past tasks", 1)
    said, patience = "", time.monotonic() + 5.0
    while not said and time.monotonic() < patience:
        time.sleep(0.02)
        said = capsys.readouterr().err
    assert said == "learning from past tasks: this takes a while\n"
    progress.step()
    progress.stop()
    assert capsys.readouterr().err == ""


def test_a_log_gets_nothing_of_work_that_is_quick(capsys):
    progress = TerminalProgress(slow_seconds=0.2)
    for what in ("reading", "learning"):
        progress.start(what, None)
        progress.step()
    progress.stop()
    time.sleep(0.3)
    assert capsys.readouterr().err == ""
