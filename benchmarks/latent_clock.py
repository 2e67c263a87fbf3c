"""Reports the average rank of methods over the time of trials and suggestions.

As in the CASH paper (section 5.4), every evaluation takes the same time, so that no method looks
fast because it happens to try cheap algorithms. Methods differ only in the time of suggestions.

    foretune bench run ... --out results.parquet
    python benchmarks/latent_clock.py results.parquet --methods rf,latent-cash --evaluation 0.5
"""

import argparse
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import rankdata

from foretune_lab.bench.results import read

MOMENTS = 200


def best_at(run: pd.DataFrame, evaluation: float, moments: np.ndarray) -> np.ndarray:
    """Return the best loss of one run at each moment; infinite before its first trial has ended."""
    ordered = run.sort_values("trial")
    ended = np.cumsum(ordered["suggest_seconds"].to_numpy() + evaluation)
    best = np.concatenate([[np.inf], np.minimum.accumulate(ordered["value"].fillna(np.inf))])
    found: np.ndarray = best[np.searchsorted(ended, moments, side="right")]
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", type=Path)
    parser.add_argument("--evaluation", type=float, required=True, help="seconds of a trial")
    parser.add_argument("--methods", required=True, help="separated by commas")
    parser.add_argument("-o", "--out", type=Path, default=Path("clock.png"))
    arguments = parser.parse_args()
    rows, methods = read(arguments.results).rows, arguments.methods.split(",")
    trials = int(rows["trial"].max())
    moments = np.linspace(0.0, trials * arguments.evaluation, MOMENTS + 1)[1:]
    tasks = sorted(rows["task"].unique())
    losses = np.empty((len(methods), len(tasks), MOMENTS))
    for place, name in enumerate(methods):
        for row, task in enumerate(tasks):
            runs = rows[(rows["method"] == name) & (rows["task"] == task)].groupby("seed")
            each = [best_at(run, arguments.evaluation, moments) for _, run in runs]
            losses[place, row] = np.mean(each, axis=0)
    ranks = rankdata(losses, axis=0)
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 5))
    for name, of_tasks in zip(methods, ranks, strict=True):
        mean, error = of_tasks.mean(axis=0), of_tasks.std(axis=0) / np.sqrt(len(tasks))
        axes.plot(moments, mean, label=name)
        axes.fill_between(moments, mean - error, mean + error, alpha=0.15)
        shown = ", ".join(f"{mean[at]:.2f}" for at in (MOMENTS // 4, MOMENTS // 2, MOMENTS - 1))
        print(f"{name}: rank after a quarter, half, all of the time {shown}")
    axes.set(
        xlabel=f"seconds (an evaluation takes {arguments.evaluation:g})",
        ylabel="average rank (1 is best), standard error over tasks",
        title=f"Rank among {len(methods)} methods over time, {len(tasks)} tasks",
    )
    axes.legend(fontsize=8)
    figure.savefig(arguments.out, dpi=120, bbox_inches="tight")


if __name__ == "__main__":
    main()
