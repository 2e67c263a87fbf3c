"""Peers that stop trials early on recorded learning curves, charged as `bench run --budget` does.

    python -m benchmarks.peers.curves lcbench.parquet --environments DIR --budget 10 --seeds 3 \\
        --peers optuna-tpe-hyperband,syne-tune-asha,smac-hyperband --out peers.parquet
    foretune bench report results.parquet peers.parquet

Peers search the whole space. A suggestion gets the curve of the nearest recorded configuration, and
is paid for again if another trial had the same curve. A paused trial continues where it stopped.
There is one worker, costs are steps, and levels begin where those of `foretune bench run` begin.
Each peer runs in its own environment (`environments.toml`); Optuna runs beside Foretune. The same
command goes on where it was stopped; more peers, tasks and seeds extend the file.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from benchmarks.peers.curve_problem import ETA, CurveProblem
from benchmarks.peers.install import python_of
from benchmarks.peers.objective import Problem
from benchmarks.peers.play import ONE_THREAD, ROOT
from benchmarks.peers.problems import list_parameters
from benchmarks.peers.run import OURS, START, Contestant, Played, keep_settings, seed_of

from foretune.experience import LEAVE_ONE_OUT, Experience, fingerprint_of_evaluations
from foretune_lab.bench.curve_replay import CurveCosts, CurveRun, CurveTask, curve_task
from foretune_lab.bench.curve_settings import CurveSettings
from foretune_lab.bench.plan import plan_held_out
from foretune_lab.bench.replay import fingerprint_of_notes
from foretune_lab.bench.results import ReplaySettings, Results, save

HERE = "curves-optuna"
"""The environment of Optuna, which is installed beside Foretune."""


@dataclass(frozen=True)
class Given:
    """What all runs have in common."""

    file: Path
    peers: tuple[str, ...]
    budget: float
    seeds: int
    metric: str | None = None
    tasks_limit: int | None = None
    tasks: tuple[str, ...] | None = None


def load(given: Given) -> Experience:
    """Open the experience as `foretune bench run` does."""
    experience = Experience.open(given.file)
    return experience.with_metrics([given.metric or experience.metrics[0].name]).compact()


def write_problem(experience: Experience, task: str, out: Path) -> None:
    """Write the curves of a task, and the problem that its last values are."""
    recorded = curve_task(experience, task)
    columns = [place for place, p in enumerate(experience.space.parameters) if p.size > 1]
    problem = Problem(
        task=task,
        parameters=tuple(list_parameters(experience.space, columns)),
        values=recorded.configs.values[:, columns],
        losses=np.array([curve.losses[-1] for curve in recorded.curves]),
        past={},
        experience="",
        learnt_from=(),
    )
    curve_problem_of(problem, recorded).save(out)


def curve_problem_of(problem: Problem, recorded: CurveTask) -> CurveProblem:
    """Join the curves of a task with its problem."""
    curves = recorded.curves
    return CurveProblem(
        problem,
        np.cumsum([0, *(len(curve.steps) for curve in curves)]).astype(float),
        np.concatenate([curve.steps for curve in curves]),
        np.concatenate([curve.losses for curve in curves]),
        np.concatenate([curve.clock for curve in curves]),
        recorded.complete_cost,
        CurveSettings(CurveCosts(1), eta=ETA).step_range(recorded).first,
    )


def settings_of(experience: Experience, given: Given, suite: str) -> ReplaySettings:
    """The settings of `foretune bench run`, so that both files stand in one report."""
    return ReplaySettings(
        suite=suite,
        trials=0,
        split=LEAVE_ONE_OUT,
        objectives=tuple(metric.name for metric in experience.metrics),
        directions=tuple(str(metric.direction) for metric in experience.metrics),
        experience=fingerprint_of_evaluations(experience),
        start=str(START),
        notes=fingerprint_of_notes(experience, LEAVE_ONE_OUT, START),
        curves=CurveSettings(CurveCosts(given.budget)),
    )


def prepare_folder(experience: Experience, given: Given, folder: Path) -> tuple[str, ...]:
    """Write the tasks and the plan of all runs, and return the names of the tasks."""
    held = plan_held_out(experience, LEAVE_ONE_OUT, START, given.tasks, given.tasks_limit)
    tasks = tuple(task for split in held.splits for task in split.test)
    (folder / "problems").mkdir(parents=True, exist_ok=True)
    for task in tasks:
        path = folder / "problems" / f"{task}.npz"
        if not path.with_suffix(".curves.npz").exists():
            write_problem(experience, task, path)
    runs = [(task, seed, seed_of(task, seed)) for seed in range(given.seeds) for task in tasks]
    plan = {"budget": given.budget, "runs": runs}
    (folder / "plan.json").write_text(json.dumps(plan), "utf-8")
    return tasks


def play_peer(contestant: Contestant, folder: Path, environments: Path | None) -> None:
    """Play all runs of a peer in one process of its environment."""
    here = contestant.environment == HERE or environments is None
    python = sys.executable if here else python_of(environments, contestant.environment)
    command = [str(python), "-m", "benchmarks.peers.curve_play", str(folder.resolve())]
    subprocess.run(
        [*command, contestant.module, contestant.peer],
        cwd=ROOT,
        env={**os.environ, **ONE_THREAD},
        check=True,
    )


def collect_runs(folder: Path, tasks: dict[str, CurveTask]) -> Iterator[CurveRun]:
    """Read all runs of these tasks."""
    for file in sorted((folder / "runs").glob("*/*.npz")):
        task, _, seed = file.stem.rpartition("-")
        if task not in tasks:
            continue
        run = CurveRun(task, file.parent.name, int(seed))
        with np.load(file) as arrays:
            run.cost, run.value = arrays["cost"].tolist(), arrays["value"].tolist()
            run.best = arrays["best"].tolist()
            run.suggest_seconds = arrays["suggest_seconds"].tolist()
        run.regret = [tasks[task].regret(best) for best in run.best]
        run.clock = list(run.cost)
        run.steps = [cost * tasks[task].complete_cost for cost in run.cost]
        run.seconds = [math.nan] * len(run.cost)
        yield run


def write_results(experience: Experience, given: Given, suite: str, out: Path) -> None:
    """Collect all runs so far in one results file."""
    folder = out.with_suffix(".played")
    names = [path.name.removesuffix(".curves.npz") for path in folder.glob("problems/*.curves.npz")]
    tasks = {task: curve_task(experience, task) for task in names}
    rows = [run.table().to_pandas() for run in collect_runs(folder, tasks)]
    settings = settings_of(experience, given, suite)
    save(Results(settings, {}, pd.concat(rows, ignore_index=True), len(experience.tasks)), out)


def main(words: Sequence[str] | None = None) -> None:
    """Play what is missing, and write a results file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("file", type=Path)
    parser.add_argument("--peers", default="optuna-tpe-hyperband,optuna-tpe-median")
    parser.add_argument("--environments", type=Path, help="where install.py put them")
    parser.add_argument("--budget", type=float, default=10.0)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tasks-limit", type=int, help="as `foretune bench run` draws them")
    parser.add_argument("--tasks", help="only these, with commas between")
    parser.add_argument("--metric", help="the experience's first if not given")
    parser.add_argument("--suite", help="the file's name if not given")
    parser.add_argument("--out", type=Path, required=True)
    asked = parser.parse_args(words)
    peers = tuple(asked.peers.split(","))
    tasks = None if asked.tasks is None else tuple(asked.tasks.split(","))
    given = Given(
        asked.file, peers, asked.budget, asked.seeds, asked.metric, asked.tasks_limit, tasks
    )
    contestants = [Contestant.called(name) for name in peers]
    unknown = [one.name for one in contestants if one.environment == OURS]
    if unknown:
        sys.exit(f"peers on curves stand in environments.toml, but got {', '.join(unknown)}")
    experience, suite = load(given), asked.suite or given.file.stem
    folder = asked.out.with_suffix(".played")
    keep_settings(settings_of(experience, given, suite), Played(folder))
    prepare_folder(experience, given, folder)
    for contestant in contestants:
        play_peer(contestant, folder, asked.environments)
        write_results(experience, given, suite, asked.out)


if __name__ == "__main__":
    main()
