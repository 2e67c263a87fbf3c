"""Measures the time of a report of a running trial: in process, from a worker, from a command.

    python benchmarks/report_overhead.py [--reports 10000]

A trial reports, and asks after each report whether it is to stop. The times are those that the
trial sees, on the clock, for one report with its question. The flood reports a million times and
never asks: it shows what the parent holds then. The command prints its reports at once. Its mean is
the time of the whole command, from its start to its end, for each report.
"""

import argparse
import resource
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any

from foretune.run import InlineExecutor, ProcessPool, Report, RunningTrial
from foretune.run.commands import Command

FLOOD = 1_000_000


def ask_each_time(reports: int, trial: RunningTrial) -> list[float]:
    """Return the seconds of each report with its question, sorted."""
    seconds = []
    for step in range(reports):
        start = time.perf_counter()
        trial.report(step, 0.5)
        trial.should_stop()
        seconds.append(time.perf_counter() - start)
    return sorted(seconds)


def flood(reports: int, trial: RunningTrial) -> list[float]:
    """Return the mean seconds of a report."""
    start = time.perf_counter()
    for step in range(reports):
        trial.report(step, 0.5)
    return [(time.perf_counter() - start) / reports]


PRINT = """
for n in range({n}):
    print('{{"step": %d, "value": 0.5}}' % n, flush=True)
"""
"""A program of a command template: the number of reports is put in for the placeholder."""


class Count:
    """Counts the reports that it gets."""

    def __init__(self) -> None:
        self.number = 0

    def __call__(self, _key: int, reports: Sequence[Report]) -> bool:
        self.number += len(reports)
        return False


def measure(
    make: Callable[[Any], AbstractContextManager[Any]], function: Any, job: Any
) -> tuple[Any, int, float]:
    """Return the result of a job, how many reports were heard, and the CPU seconds used here."""
    heard, start = Count(), time.process_time()
    with make(function) as executor:
        executor.listen(heard)
        executor.submit(job)
        while not (outcomes := executor.results()):
            pass
    assert outcomes[0].result is not None, outcomes[0].reason
    return outcomes[0].result, heard.number, time.process_time() - start


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=10_000)
    reports = parser.parse_args().reports
    print(f"{'':12}{'median ms':>12}{'p99 ms':>10}{'mean ms':>10}{'heard':>9}{'CPU s':>8}")
    for name, make in (("in process", InlineExecutor), ("processes", ProcessPool)):
        times, heard, cpu = measure(make, ask_each_time, reports)
        median, late = times[len(times) // 2], times[int(0.99 * len(times))]
        mean = sum(times) / len(times)
        print(
            f"{name:12}{1e3 * median:12.4f}{1e3 * late:10.4f}{1e3 * mean:10.4f}{heard:9}{cpu:8.2f}"
        )
    for name, make in (("command here", InlineExecutor), ("in a worker", ProcessPool)):
        program = PRINT.replace("{n}", str(reports))
        command = Command(f"{sys.executable} -SE -c {shlex.quote(program)}")
        start = time.perf_counter()
        _, heard, cpu = measure(make, command, {})
        mean = (time.perf_counter() - start) / reports
        print(f"{name:12}{'':12}{'':10}{1e3 * mean:10.4f}{heard:9}{cpu:8.2f}")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    (mean,), heard, cpu = measure(ProcessPool, flood, FLOOD)
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"{'a million':12}{'':12}{'':10}{1e3 * mean:10.4f}{heard:9}{cpu:8.2f}")
    print(f"the parent grew by {grown:.1f} MB in the flood")


if __name__ == "__main__":
    main()
