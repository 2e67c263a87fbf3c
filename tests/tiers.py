"""The fast tier: `pytest -m fast` runs every test that `slow_tests.txt` does not list.

A line of that file is a test file, or `file::test`. A new test is fast until it is listed; the fast
tier names the tests that are too slow for it. `tools/list_slow_tests.py` writes the file anew.
"""

from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SLOW = frozenset((ROOT / "tests" / "slow_tests.txt").read_text(encoding="utf-8").split())
TOO_SLOW_SECONDS = 2.0
"""The tier names a fast test that took longer. A busy machine is no reason to fail it."""


def is_slow(file: str, test: str = "") -> bool:
    """Return whether a test file, or one function in it, is listed as slow."""
    return file in SLOW or f"{file}::{test}" in SLOW


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave files unread that hold no fast test."""
    if config.option.markexpr != "fast" or not collection_path.is_relative_to(ROOT):
        return None
    return is_slow(collection_path.relative_to(ROOT).as_posix()) or None


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the fast tests, before pytest selects by marks."""
    for item in items:
        file = item.nodeid.partition("::")[0]
        if not is_slow(file, getattr(item, "originalname", item.name)):
            item.add_marker(pytest.mark.fast)


def pytest_terminal_summary(
    terminalreporter: pytest.TerminalReporter, config: pytest.Config
) -> None:
    """Name the tests that are too slow for the fast tier."""
    if config.option.markexpr != "fast":
        return
    reports = terminalreporter.getreports("passed")
    for report in sorted(reports, key=lambda one: -one.duration):
        if report.duration > TOO_SLOW_SECONDS:
            text = f"slow for `-m fast`: {report.duration:.1f} s {report.nodeid}"
            terminalreporter.write_line(f"{text} (tests/slow_tests.txt)")
