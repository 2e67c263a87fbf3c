"""Progress where standard error is no terminal."""

import time

from foretune._base.progress import LogLines, TerminalProgress


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


def test_a_log_is_not_silent_while_one_short_piece_of_work_follows_another(capsys):
    progress = TerminalProgress(slow_seconds=0.6)
    began = time.monotonic()
    for what in ("reading", "looking", "preparing", "fitting"):
        progress.start(what, None)
        time.sleep(0.4)
    progress.stop()
    lines = capsys.readouterr().err.splitlines()
    most = (time.monotonic() - began) / 0.6 + 1
    assert 1 <= len(lines) <= most
    assert all(line.endswith(": this takes a while") for line in lines)


def test_long_work_gets_a_line_after_each_silence(capsys):
    progress = TerminalProgress(slow_seconds=0.25)
    progress.start("learning", None)
    time.sleep(1.6)
    progress.stop()
    lines = capsys.readouterr().err.splitlines()
    assert lines[0] == "learning: this takes a while"
    assert 3 <= len(lines) <= 7  # every 0.25 s, if nothing is late
    assert lines[-1].endswith(" s so far")


def test_the_silences_of_very_long_work_grow(capsys, monkeypatch):
    monkeypatch.setattr("foretune._base.progress.LONG_SHARE", 0.5)
    lines = LogLines(lambda seconds: f"after {seconds:.2f}", slow_seconds=0.05)
    time.sleep(1.0)
    lines.cancel()
    # Each line comes after twice the time of the one before, at the earliest.
    assert 2 <= len(capsys.readouterr().err.splitlines()) <= 8


def test_a_log_gets_nothing_of_work_that_is_quick(capsys):
    progress = TerminalProgress(slow_seconds=0.2)
    for what in ("reading", "learning"):
        progress.start(what, None)
        progress.step()
    progress.stop()
    time.sleep(0.3)
    assert capsys.readouterr().err == ""
