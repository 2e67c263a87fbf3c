"""Compare one tuner with all others by the results that `run.py` has written.

    python -m benchmarks.peers.summary xgboost-peers.parquet fcnet-peers.parquet --ours auto

The table has a row for every other tuner. It shows the share of tasks on which ours has the lower
loss after some trials; a tie counts half. In brackets is the same share for the better of the two
runs, which would cost twice the trials. Then come the trials that ours needs to reach the other's
last result (the median over tasks), the number of different losses that the other met in a run,
and the seconds of its suggestions. Losses are means over the seeds that both have.
"""

import argparse
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foretune._base.arrays import Floats
from foretune.errors import UsageError
from foretune_lab.bench.metrics import mean_over_seeds
from foretune_lab.bench.results import Results, curves_of, read
from foretune_lab.bench.shared_grid import RUN


@dataclass(frozen=True)
class Duel:
    """The mean losses (tasks, trials) of our tuner and of another one on the tasks of one suite."""

    ours: Floats
    theirs: Floats
    better: Floats
    """The mean losses (tasks, trials) of the better of the two runs of each seed."""
    seeds: int
    seconds: float
    """The seconds of a suggestion of the other tuner."""
    different: float
    """The number of different losses in a run of the other tuner; few if it repeats itself."""

    def ahead(self, trials: int) -> Floats:
        """Return (tasks,): 1 where ours is ahead, 0 where the other is, 0.5 if they are level."""
        return _ahead(self.ours[:, trials - 1], self.theirs[:, trials - 1])

    def together(self, trials: int) -> Floats:
        """Return the same as `ahead`, as if both tuners ran and the better one counted as ours."""
        return _ahead(self.better[:, trials - 1], self.theirs[:, trials - 1])

    @property
    def trials(self) -> int:
        """The number of trials of both."""
        return self.ours.shape[1]

    def needed(self) -> Floats:
        """Return (tasks,): trials until ours equals the other's last result; infinite if never."""
        reached = self.ours <= self.theirs[:, -1:]
        return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1.0, np.inf)


def _ahead(ours: Floats, theirs: Floats) -> Floats:
    return np.where(ours == theirs, 0.5, (ours < theirs).astype(np.float64))


def duel(results: Results, ours: str, other: str) -> Duel:
    """Compare the two tuners on the tasks and seeds that both have played."""
    curves = curves_of(results, [ours, other])
    runs = np.where(np.isnan(curves.best), np.inf, curves.best)
    both = runs.min(axis=0, keepdims=True)
    own, others, better = mean_over_seeds(np.concatenate([runs, both]))
    return Duel(
        ours=own,
        theirs=others,
        better=better,
        seeds=len(curves.seeds),
        seconds=float(curves.suggest_seconds[1]),
        different=different_losses(results, other),
    )


def different_losses(results: Results, name: str) -> float:
    """Return the average number of different losses in a run of a tuner."""
    rows = results.rows[results.rows["method"] == name]
    return float(rows.groupby(RUN)["value"].nunique().mean())


def table(results: Sequence[Results], ours: str, at: Sequence[int]) -> str:
    """Make a table with one row for each tuner, over the tasks of all suites that it has played.

    If there are several suites, it also has the percentages of each.
    """
    names = {str(name) for part in results for name in part.rows["method"].unique()}
    suites = [part.settings.suite for part in results] if len(results) > 1 else []
    heads = [
        "against",
        "tasks x seeds",
        *(f"ahead at {n} (both)" for n in at),
        "trials to reach its last",
        "different losses",
        "s a suggestion",
        *suites,
    ]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for other in sorted(names - {ours}):
        duels = [_duel(part, ours, other) for part in results]
        if found := [one for one in duels if one is not None]:
            own = [_in_per_cent(one, at) for one in duels] if suites else []
            lines.append(f"| {' | '.join([other, *_cells(found, at), *own])} |")
    return "\n".join(lines)


def _duel(part: Results, ours: str, other: str) -> Duel | None:
    """Compare two tuners; return None if they share no run."""
    try:
        return duel(part, ours, other)
    except UsageError:
        return None


def _cells(duels: Sequence[Duel], at: Sequence[int]) -> list[str]:
    tasks = sum(len(one.ours) for one in duels)
    seeds = sorted({one.seeds for one in duels})
    shares = [_share([one for one in duels if one.trials >= n], n) for n in at]
    needed = float(np.median(np.concatenate([one.needed() for one in duels])))
    weights = [len(one.ours) for one in duels]
    different = np.average([one.different for one in duels], weights=weights)
    seconds = np.average([one.seconds for one in duels], weights=weights)
    return [
        f"{tasks} x {'-'.join(map(str, seeds))}",
        *shares,
        f"{needed:g}" if np.isfinite(needed) else "not reached",
        f"{different:.0f}",
        f"{seconds:.3f}",
    ]


def _in_per_cent(duel: Duel | None, at: Sequence[int]) -> str:
    """Return the percentages of one suite; empty if nothing was played."""
    if duel is None:
        return ""
    return " ".join(f"{100 * duel.ahead(n).mean():.0f}" for n in at if n <= duel.trials)


def _share(duels: Sequence[Duel], trials: int) -> str:
    """Of the tasks of those that searched so long."""
    if not duels:
        return ""
    ahead = np.concatenate([one.ahead(trials) for one in duels]).mean()
    together = np.concatenate([one.together(trials) for one in duels]).mean()
    return f"{ahead:.0%} ({together:.0%})"


def main() -> None:
    """Print one table a suite, and one of all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("results", nargs="+", type=Path)
    parser.add_argument("--ours", default="auto")
    parser.add_argument("--at", default="10,25,50")
    given = parser.parse_args()
    at = [int(n) for n in given.at.split(",")]
    parts = [read(path) for path in given.results]
    for part in parts:
        own = part.rows[part.rows["method"] == given.ours]["suggest_seconds"].mean()
        met = different_losses(part, given.ours)
        print(f"\n{part.settings.suite}: {given.ours}, {met:.0f} different losses, {own:.3f} s\n")
        print(table([part], given.ours, at))
    if len(parts) > 1:
        print("\nAll suites together\n")
        print(table(parts, given.ours, at))


if __name__ == "__main__":
    main()
