"""How one tuner stands against all others: tables of results that `run.py` has written.

    python -m benchmarks.peers.summary xgboost-peers.parquet fcnet-peers.parquet --ours auto

For every other tuner: the share of tasks on which ours has the lower loss after some trials (a tie
counts half); in brackets the share on which the better of the two runs would have, which is what
could be had for twice the trials, in hindsight; how many trials ours needs to reach what the other
has in the end (the median over tasks), how many different losses the other met in a run, and the
seconds of its suggestions. Losses are means over the seeds that both have.
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
    """Ours and another on the tasks of one suite, as mean losses (tasks, trials)."""

    ours: Floats
    theirs: Floats
    better: Floats
    """Of the better one of each two runs."""
    seeds: int
    seconds: float
    """Of a suggestion of the other."""
    different: float
    """Losses that the other met in a run: a tuner that comes back to where it was meets few."""

    def ahead(self, trials: int) -> Floats:
        """(tasks,): 1 where ours is ahead, 0 where the other is, a half where they are level."""
        return _ahead(self.ours[:, trials - 1], self.theirs[:, trials - 1])

    def together(self, trials: int) -> Floats:
        """(tasks,): as `ahead`, if ours were the better one of each two runs."""
        return _ahead(self.better[:, trials - 1], self.theirs[:, trials - 1])

    @property
    def trials(self) -> int:
        """How long both searched."""
        return self.ours.shape[1]

    def needed(self) -> Floats:
        """(tasks,): trials until ours is as good as the other at its end; infinite if never."""
        reached = self.ours <= self.theirs[:, -1:]
        return np.where(reached.any(axis=1), reached.argmax(axis=1) + 1.0, np.inf)


def _ahead(ours: Floats, theirs: Floats) -> Floats:
    return np.where(ours == theirs, 0.5, (ours < theirs).astype(np.float64))


def duel(results: Results, ours: str, other: str) -> Duel:
    """The two on the tasks and seeds that both have."""
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
    """How many different losses a tuner meets in a run, on average."""
    rows = results.rows[results.rows["method"] == name]
    return float(rows.groupby(RUN)["value"].nunique().mean())


def table(results: Sequence[Results], ours: str, at: Sequence[int]) -> str:
    """One row a tuner, over the tasks of all suites that it has runs on; where there are several
    suites, also the per cent of the tasks of each.
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
    """None where the two share no run."""
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
    """The shares of one suite, without a sign; empty where nothing was played."""
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
