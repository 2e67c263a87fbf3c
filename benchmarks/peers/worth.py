"""What the trials of a tuner are worth: so many random draws are expected to be as good.

    python -m benchmarks.peers.worth xgboost-peers.parquet zap-peers.parquet \\
        --tuners auto,optuna-tpe,random -o worth.png

For every run, the best loss after some trials is looked up in the exact expectation of random
search without replacement among the task's recorded configurations. Printed, and drawn if asked
for, is the geometric mean over the runs of a task and then over tasks, of those that all tuners
played. What no 5,000 draws, or no draw at all, would be better than counts as that many.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from benchmarks.peers.objective import Problem
from benchmarks.peers.picture import apart, draw_lines
from benchmarks.peers.run import Played
from scipy.stats import sem

from foretune._base.arrays import Floats
from foretune_lab.bench.metrics import random_search_minimum
from foretune_lab.bench.results import curves_of, read

MOST_DRAWS = 5_000


def log_draws(best: Floats, recorded: Floats) -> Floats:
    """The logarithm of how many draws among the recorded losses have such an expected best.

    Any shape of `best` is kept; between two whole numbers of draws it is interpolated.
    """
    expected = random_search_minimum(recorded, min(len(recorded), MOST_DRAWS))
    draws = np.interp(-best, -expected, np.log(np.arange(1, len(expected) + 1)))
    return np.asarray(draws, dtype=np.float64)


def worth(path: Path, tuners: Sequence[str]) -> Floats:
    """(tuners, tasks, trials), the mean logarithm over the runs that all tuners share."""
    curves = curves_of(read(path), tuners)
    best = np.where(np.isnan(curves.best), np.inf, curves.best)
    played = Played(path.with_suffix(".played"))
    each = [
        log_draws(best[:, place], Problem.load(played.problem(task)).losses).mean(axis=1)
        for place, task in enumerate(curves.tasks)
    ]
    return np.stack(each, axis=1)


def draw(logs: Floats, tuners: Sequence[str], path: Path) -> None:
    """The means over tasks with their standard errors, both axes by factors."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8.0, 4.5), layout="constrained")
    middle, error = logs.mean(axis=1), sem(logs, axis=1)
    bands = (np.exp(middle - error), np.exp(middle), np.exp(middle + error))
    axes.set_yscale("log")
    draw_lines(axes, tuners, bands, np.exp(apart(middle[:, -1], 0.035 * np.ptp(middle))))
    looks = [1, 2, 5, 10, 20, 50, 100, 200, 500]
    axes.set_yticks(looks, [str(n) for n in looks])
    axes.minorticks_off()
    axes.set_ylabel("as good as so many random draws")
    axes.set_title(f"{len(tuners)} tuners on {logs.shape[1]} tasks", loc="left")
    figure.savefig(path, dpi=150)


def table(suites: dict[str, Floats], tuners: Sequence[str], at: Sequence[int]) -> str:
    """One row a tuner: over all suites, and on each of them; `suites` has logarithms."""
    looks = np.array(at) - 1
    parts = {"all": np.concatenate(list(suites.values()), axis=1), **suites}
    means = [np.exp(logs[..., looks].mean(axis=1)) for logs in parts.values()]
    lines = [f"| | {' | '.join(parts)} |", "|---|" + "---|" * len(parts)]
    for place, tuner in enumerate(tuners):
        cells = [", ".join(f"{draws:,.0f}" for draws in mean[place]) for mean in means]
        lines.append(f"| {tuner} | {' | '.join(cells)} |")
    return "\n".join(lines)


def main() -> None:
    """Print the table, and draw."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="+", type=Path, help="with their folders .played")
    parser.add_argument("--tuners", required=True, metavar="A,B,C", help="ours first")
    parser.add_argument("--at", default="10,25,50")
    parser.add_argument("-o", "--out", type=Path)
    given = parser.parse_args()
    tuners = given.tuners.split(",")
    suites = {path.stem: worth(path, tuners) for path in given.results}
    print(table(suites, tuners, [int(n) for n in given.at.split(",")]))
    if given.out:
        draw(np.concatenate(list(suites.values()), axis=1), tuners, given.out)


if __name__ == "__main__":
    main()
