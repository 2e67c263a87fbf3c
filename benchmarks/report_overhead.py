"""Measures the time of a report of a running trial: in process, from a worker, from a command, and
with an SQLite store, in which each report is before it is answered.

    python benchmarks/report_overhead.py [--reports 10000]

A trial reports, and asks after each report whether it is to stop. The times are those that the
trial sees, on the clock, for one report with its question. CPU s is the time of this process in
all. The flood reports a million times and never asks: it shows what the parent holds then. The
command prints its reports at once. Its mean is the time of the whole command, from its start to its
end, for each report.
"""

import argparse
import resource
import shlex
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from tempfile import TemporaryDirectory
from typing import Any

from foretune.experience import Metric
from foretune.run import Budget, InlineExecutor, ProcessPool, Report, RunningTrial, tune
from foretune.run.commands import Command
from foretune.search import Optimizer
from foretune.space import Space
from foretune.stores.studies import open_study

FLOOD = 1_000_000
A_TRIAL = 500
"""Reports of one trial with a store."""


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


def measure_store(reports: int) -> tuple[list[float], int, float]:
    """Return the same for `tune` in process with an SQLite store.

    A trial has so few reports here that all are kept.
    """
    space, seconds = Space.of({"x": (0.0, 1.0)}), list[float]()

    def train(_config: dict[str, Any], trial: RunningTrial) -> float:
        seconds.extend(ask_each_time(A_TRIAL, trial))
        return 0.5

    with TemporaryDirectory() as folder:
        metrics = [Metric("loss")]
        study = open_study(f"{folder}/s.db", "reports", space=space, metrics=metrics, settings={})
        optimizer = Optimizer.of(space, method="random")
        with study, InlineExecutor(train) as executor:
            start = time.process_time()
            tune(study, optimizer, executor, Budget(-(-reports // A_TRIAL)), stop="median")
            spent = time.process_time() - start
            kept = sum(0 if t.curve is None else len(t.curve.steps) for t in study.trials())
    return sorted(seconds), kept, spent


def measure_optuna(reports: int) -> tuple[list[float], int, float]:
    """Return the same for Optuna's own `trial.report` and `should_prune` with an SQLite store."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    seconds: list[float] = []

    def train(trial: Any) -> float:
        for step in range(A_TRIAL):
            start = time.perf_counter()
            trial.report(0.5, step)
            trial.should_prune()
            seconds.append(time.perf_counter() - start)
        return 0.5

    with TemporaryDirectory() as folder:
        study = optuna.create_study(
            storage=f"sqlite:///{folder}/s.db", pruner=optuna.pruners.MedianPruner()
        )
        start = time.process_time()
        study.optimize(train, n_trials=-(-reports // A_TRIAL))
        spent = time.process_time() - start
        kept = sum(len(trial.intermediate_values) for trial in study.trials)
    return sorted(seconds), kept, spent


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--reports", type=int, default=10_000)
    reports = parser.parse_args().reports
    print(
        f"{'':12}{'median ms':>12}{'p99 ms':>10}{'mean ms':>10}{'heard':>9}{'CPU s':>8}{'each':>8}"
    )
    ways = {
        "in process": lambda: measure(InlineExecutor, ask_each_time, reports),
        "with SQLite": lambda: measure_store(reports),
        "Optuna's": lambda: measure_optuna(reports // 10),
        "processes": lambda: measure(ProcessPool, ask_each_time, reports),
    }
    for name, run in ways.items():
        times, heard, cpu = run()
        median, late = times[len(times) // 2], times[int(0.99 * len(times))]
        mean = sum(times) / len(times)
        print(
            f"{name:12}{1e3 * median:12.4f}{1e3 * late:10.4f}{1e3 * mean:10.4f}{heard:9}{cpu:8.2f}"
            f"{1e3 * cpu / len(times):8.3f}"
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
