"""Optuna's pruners on recorded learning curves, charged as `foretune bench run --budget` charges.

    python -m benchmarks.peers.curves lcbench.parquet --budget 10 --seeds 3 --out peers.parquet
    foretune bench report results.parquet peers.parquet

TPE with its defaults searches the whole space; a suggestion gets the curve of the nearest recorded
configuration, and a repeated one is paid for again. After each step the pruner is asked. Optuna
cannot continue a pruned trial. The Hyperband pruner is given the number of steps; all else are
defaults. Steps that are no whole numbers are numbered. One worker, costs in steps.
"""

import argparse
import math
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter

import numpy as np
import optuna
import pandas as pd
from benchmarks.peers.adapters.optuna import OptunaTuner
from benchmarks.peers.objective import Problem
from benchmarks.peers.problems import list_parameters

from foretune.experience import LEAVE_ONE_OUT, Experience, fingerprint_of_evaluations
from foretune_lab.bench.curve_replay import (
    CurveCosts,
    CurveRun,
    CurveTask,
    RecordedCurve,
    curve_task,
)
from foretune_lab.bench.curve_settings import CurveSettings
from foretune_lab.bench.replay import fingerprint_of_notes
from foretune_lab.bench.results import ReplaySettings, Results, save
from foretune_lab.bench.starts import Start, seed_on_task

PRUNERS: dict[str, Callable[[int], optuna.pruners.BasePruner]] = {
    "optuna-tpe": lambda _: optuna.pruners.NopPruner(),
    "optuna-tpe-hyperband": lambda last: optuna.pruners.HyperbandPruner(max_resource=last),
    "optuna-tpe-median": lambda _: optuna.pruners.MedianPruner(),
}


@dataclass(frozen=True)
class Given:
    """What all runs have in common."""

    file: Path
    peers: tuple[str, ...]
    budget: float
    seeds: int
    metric: str | None


def load(given: Given) -> Experience:
    """Open the experience as `foretune bench run` does."""
    experience = Experience.open(given.file)
    return experience.with_metrics([given.metric or experience.metrics[0].name]).compact()


def play_task(given: Given, task: str) -> list[CurveRun]:
    """Play all peers and seeds on one task."""
    experience = load(given)
    recorded = curve_task(experience, task)
    problem = problem_of_curves(experience, recorded)
    return [
        play(problem, recorded, name, seed, given.budget)
        for name in given.peers
        for seed in range(given.seeds)
    ]


def problem_of_curves(experience: Experience, recorded: CurveTask) -> Problem:
    """The space of a task, and all its configurations with a curve."""
    columns = [place for place, p in enumerate(experience.space.parameters) if p.size > 1]
    return Problem(
        task=recorded.name,
        parameters=tuple(list_parameters(experience.space, columns)),
        values=recorded.configs.values[:, columns],
        losses=np.array([curve.losses[-1] for curve in recorded.curves]),
        past={},
        experience="",
        learnt_from=(),
    )


def play(problem: Problem, recorded: CurveTask, name: str, seed: int, budget: float) -> CurveRun:
    """Ask, report step by step, and prune until the budget is spent."""
    longest = max(len(curve.steps) for curve in recorded.curves)
    sampler = optuna.samplers.TPESampler(seed=seed_on_task(seed, recorded.name) % 2**32)
    tuner = OptunaTuner(problem, sampler, conditional=True, pruner=PRUNERS[name](longest))
    run = CurveRun(recorded.name, name, seed)
    spent, best = 0.0, math.inf
    while spent < budget * recorded.complete_cost:
        start = perf_counter()
        curve = recorded.curves[problem.nearest(tuner.ask())]
        thought = perf_counter() - start
        point = train(tuner, curve)
        spent += float(curve.clock[point])
        seen = curve.losses[: point + 1]
        best = min([best, *seen[np.isfinite(seen)].tolist()])
        run.cost.append(spent / recorded.complete_cost)
        run.value.append(float(curve.losses[point]))
        run.best.append(best)
        run.regret.append(recorded.regret(best))
        run.suggest_seconds.append(thought)
    return run


def train(tuner: OptunaTuner, curve: RecordedCurve) -> int:
    """Report a curve until the pruner stops it, and return the last point."""
    whole = bool((curve.steps == np.round(curve.steps)).all())
    for point, loss in enumerate(curve.losses.tolist()):
        step = int(curve.steps[point]) if whole else point + 1
        if tuner.report(step, loss) and point < len(curve.losses) - 1:
            tuner.prune()
            return point
    tuner.end(float(curve.losses[-1]))
    return len(curve.losses) - 1


def settings_of(experience: Experience, given: Given, suite: str) -> ReplaySettings:
    """The settings of `foretune bench run`, so that both files stand in one report."""
    start = Start.parse("none")
    return ReplaySettings(
        suite=suite,
        trials=0,
        split=LEAVE_ONE_OUT,
        objectives=tuple(metric.name for metric in experience.metrics),
        directions=tuple(str(metric.direction) for metric in experience.metrics),
        experience=fingerprint_of_evaluations(experience),
        start=str(start),
        notes=fingerprint_of_notes(experience, LEAVE_ONE_OUT, start),
        curves=CurveSettings(CurveCosts(given.budget)),
    )


def main(words: Sequence[str] | None = None) -> None:
    """Play all peers on all tasks, and write a results file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--peers", default=",".join(PRUNERS))
    parser.add_argument("--budget", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--metric", help="the experience's first if not given")
    parser.add_argument("--suite", help="the file's name if not given")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(words)
    given = Given(
        asked.file, tuple(asked.peers.split(",")), asked.budget, asked.seeds, asked.metric
    )
    experience = load(given)
    runs: list[CurveRun] = []
    with ProcessPoolExecutor(asked.jobs) as processes:
        for played in processes.map(partial(play_task, given), experience.tasks):
            runs += played
            print(f"{played[0].task}: {len(played)} runs", flush=True)
    rows = pd.concat([run.table().to_pandas() for run in runs], ignore_index=True)
    settings = settings_of(experience, given, asked.suite or given.file.stem)
    save(Results(settings, {}, rows, len(experience.tasks)), asked.out)


if __name__ == "__main__":
    main()
