"""Draw the average rank of several tuners over trials, on the tasks that all of them have played.

    python -m benchmarks.peers.picture xgboost-peers.parquet zap-peers.parquet \\
        --tuners auto,optuna-tpe,random -o ranks.png

Ranks are of losses averaged over the seeds that all tuners have; ties share their mean rank. Shaded
is the standard error over tasks.
"""

import argparse
from collections.abc import Sequence
from itertools import cycle, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from scipy.stats import rankdata, sem

from foretune._base.arrays import Floats
from foretune.errors import UsageError
from foretune_lab.bench.metrics import mean_over_seeds
from foretune_lab.bench.results import Results, curves_of, read

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS = ("#d1495b", "#3b7ddd", "#e8a33d", "#2f9e77", "#8f63c7", "#5a5a5a", "#b0b0b0", "#17a2b8")


def ranks(results: Sequence[Results], tuners: Sequence[str]) -> Floats:
    """Return the losses (tuners, tasks, trials) on the suites that all tuners have played."""
    found = []
    for part in results:
        try:
            curves = curves_of(part, tuners)
        except UsageError:  # one of them has no run there
            continue
        rows = [curves.methods.index(name) for name in tuners]
        losses = np.where(np.isnan(curves.best), np.inf, curves.best)[rows]
        found.append(rankdata(mean_over_seeds(losses), axis=0))
    if not found:
        raise SystemExit(f"no suite has runs of all of {tuners}: play them, or name fewer")
    trials = min(part.shape[2] for part in found)
    return np.concatenate([part[:, :, :trials] for part in found], axis=1)


def draw(ranked: Floats, tuners: Sequence[str], path: Path) -> None:
    """Draw the ranks with the best at the top."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8.0, 4.5), layout="constrained")
    middle, error = ranked.mean(axis=1), sem(ranked, axis=1)
    heights = apart(middle[:, -1], 0.035 * len(tuners))
    draw_lines(axes, tuners, (middle - error, middle, middle + error), heights)
    axes.set_ylabel("average rank (1 is best)")
    axes.invert_yaxis()
    axes.set_title(f"{len(tuners)} tuners on {ranked.shape[1]} tasks", loc="left")
    figure.savefig(path, dpi=150)


def draw_lines(
    axes: "Axes", tuners: Sequence[str], bands: tuple[Floats, Floats, Floats], heights: Floats
) -> None:
    """Draw one line for each tuner over the trials, with its name at the end. The first is ours.

    bands: the lower edge, the middle and the upper edge, each (tuners, trials).
    """
    trials = np.arange(1, bands[0].shape[1] + 1)
    for name, low, middle, high, height, colour in zip(
        tuners, *bands, heights, cycle(COLOURS), strict=False
    ):
        ours = name == tuners[0]
        axes.plot(trials, middle, color=colour, lw=3 if ours else 1.6)
        axes.fill_between(trials, low, high, color=colour, alpha=0.12, lw=0)
        axes.annotate(
            name,
            (trials[-1], middle[-1]),
            (trials[-1] * 1.03, height),
            color=colour,
            va="center",
            weight="bold" if ours else "normal",
        )
    axes.set(xscale="log", xlabel="trials", xlim=(1, trials[-1]))
    looks = [n for n in (1, 2, 5, 10, 25, 50, 100) if n <= trials[-1]]
    axes.set_xticks(looks, [str(n) for n in looks])
    axes.minorticks_off()
    axes.grid(axis="y", color="#e6e6e6", lw=0.8)
    axes.spines[["top", "right"]].set_visible(False)


def apart(heights: Floats, least: float) -> Floats:
    """Return the heights of labels, moved apart if they would overlap."""
    moved = heights.copy()
    order = np.argsort(heights)
    for above, below in pairwise(order):
        moved[below] = max(moved[below], moved[above] + least)
    return moved


def main() -> None:
    """Draw the figure, and print the number of tasks."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--tuners", required=True, metavar="A,B,C", help="ours first")
    parser.add_argument("-o", "--out", type=Path, required=True)
    given = parser.parse_args()
    tuners = given.tuners.split(",")
    ranked = ranks([read(path) for path in given.results], tuners)
    draw(ranked, tuners, given.out)
    print(f"{ranked.shape[1]} tasks; after 10, 25, 50 trials:")
    for name, mean in zip(tuners, ranked.mean(axis=1), strict=True):
        print(name, *(f"{mean[n - 1]:.2f}" for n in (10, 25, 50) if n <= len(mean)))


if __name__ == "__main__":
    main()
