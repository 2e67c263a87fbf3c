"""Compares `auto` with random search and Optuna's TPE on new datasets: same space, same folds.

    python benchmarks/fit_versus_search.py results --seeds 5

The datasets are those of the catalogue whose families the shipped knowledge has never seen, or
those of a folder that `new_tables.py` has written (--tables). Scores are those that `fit` takes,
unless folds are given. Every evaluation is real and is kept in the folder, so the script resumes,
and a configuration is never evaluated twice on one dataset. Random search draws from 150
configurations a dataset. After each number of trials, the ranks of the best scores are averaged
over datasets and seeds.

The best of many noisy scores is partly luck, and more scores mean more luck. With --fresh, the
pipelines that the searches ended with are also scored on three other draws of the folds.
"""

import argparse
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from foretune.automl.equivalent_configs import PipelineEquivalence
from foretune.automl.knowledge.knowledge import FitKnowledge
from foretune.automl.plan import FitOptions, make_plan
from foretune.automl.trial_evaluator import InMemoryEvaluator
from foretune.automl.trial_search import opening_configs
from foretune.experience import Evaluation, Status
from foretune.experience.journal import Journal
from foretune.methods.contracts import Target
from foretune.run.executor import Limits
from foretune.run.pool import ProcessPool
from foretune.search import METHODS, Optimizer, Told
from foretune.space import Space
from foretune.space.parameters import Kind
from foretune.tables.meta_features import meta_features
from foretune.tables.table import Table
from foretune.tables.target import Task
from foretune_lab.collect.table_sources import TableSource, sources

POOL = 150
TRIALS = {"auto": 25, "tpe": 40, "random": 100}
ENDED = {"auto": 10, "tpe": 40, "random": 100}
"""The number of trials after which the best pipeline of a search is scored again."""
FRESH_SEEDS = (1, 2, 3)
LIMITS = Limits(wall_seconds=120.0, cpu_seconds=15.0)


class Judge:
    """Evaluates configurations on one dataset, each once."""

    def __init__(self, table: Table, given: argparse.Namespace, seed: int = 0) -> None:
        self.table = table
        self.plan = make_plan(table, FitOptions(metric=given.metric))
        protocol = replace(
            self.plan.protocol,
            folds=given.folds or self.plan.protocol.folds,
            cross_validated_below=given.cv_below,
            seed=seed,
        )
        self.pool = ProcessPool(InMemoryEvaluator(self.plan.table, protocol), limits=LIMITS)
        name = f"{table.name}.jsonl" if seed == 0 else f"{table.name}.fresh-{seed}.jsonl"
        self.journal = Journal(given.folder / name)
        self.known = {_key(line.config): line for line in self.journal.evaluations}
        self.asked: list[dict[str, Any]] = []
        """The configurations since the search began."""

    def loss(self, config: dict[str, Any]) -> float:
        """Return the loss of a configuration; NaN if it fails."""
        self.asked.append(config)
        if _key(config) not in self.known:
            self.pool.submit(config)
            [outcome] = self.pool.results()
            line = Evaluation(
                self.table.name, config, outcome.result or {}, outcome.status, outcome.seconds
            )
            self.journal.add(line)
            self.known[_key(config)] = line
        line = self.known[_key(config)]
        metric = self.plan.metric
        return metric.sign * line.values[metric.name] if line.status is Status.DONE else np.nan


def _key(config: dict[str, Any]) -> str:
    return json.dumps(config, sort_keys=True)


def by_random(judge: Judge, seed: int, trials: int) -> list[float]:
    configs = judge.plan.space.sample(POOL, seed=12345).dicts()
    drawn = np.random.default_rng(seed).permutation(POOL)[:trials]
    return [judge.loss(configs[place]) for place in drawn]


def by_tpe(judge: Judge, seed: int, trials: int) -> list[float]:
    import optuna

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    losses: list[float] = []

    def objective(trial: optuna.Trial) -> float:
        losses.append(judge.loss(_suggest(trial, judge.plan.space)))
        return losses[-1]

    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=seed))
    study.optimize(objective, n_trials=trials)
    return losses


def _suggest(trial: Any, space: Space) -> dict[str, Any]:
    """Suggest a configuration: the choice of each stage before the values that depend on it."""
    config: dict[str, Any] = {}
    for stage in space.structure.stages:
        if stage.choice is None:
            continue
        choice = space.parameters[stage.choice]
        config[choice.name] = trial.suggest_categorical(choice.name, choice.choices)
        used = next(a for a in stage.algorithms if a.name == config[choice.name])
        for index in used.parameters:
            each = space.parameters[index]
            if each.kind is Kind.FLOAT:
                value = trial.suggest_float(each.name, each.low, each.high, log=each.log)
            elif each.kind is Kind.INT:
                value = trial.suggest_int(each.name, int(each.low), int(each.high), log=each.log)
            else:
                value = trial.suggest_categorical(each.name, each.choices)
            config[each.name] = value
    return space.encode([config]).dicts()[0]


@dataclass(frozen=True)
class ByMethod:
    """A method of the registry with the knowledge that ships."""

    name: str
    knowledge: Callable[[str, str], FitKnowledge]

    def __call__(self, judge: Judge, seed: int, trials: int) -> list[float]:
        plan, table, method = judge.plan, judge.table, METHODS[self.name]
        knowledge = self.knowledge(plan.shipped.name, plan.metric.name)
        prior = knowledge.prior(method)
        described = meta_features(
            table.x, table.categorical, table.y,
            classification=table.task is Task.CLASSIFICATION,
        )  # fmt: skip
        effect = PipelineEquivalence.on(plan.table)
        target = Target(plan.space, (plan.metric.name,), None, described, effect)
        start = opening_configs(FitOptions(method=self.name), knowledge, described)
        optimizer = Optimizer(target, method, prior, seed=seed, start=start)
        losses = []
        for _ in range(trials):
            suggestion = optimizer.ask()[0]
            losses.append(judge.loss(suggestion.config))
            status = Status.DONE if np.isfinite(losses[-1]) else Status.FAILED
            optimizer.tell([Told((losses[-1],), id=suggestion.id, status=status)])
        return losses


def load_shipped_knowledge(space: str, metric: str) -> FitKnowledge:
    return FitKnowledge.for_space(space, metric=metric, own=False)


def ranks(curves: pd.DataFrame) -> pd.DataFrame:
    """Return mean ranks: `auto` after 5, 10 and 25 trials, random after 100 and TPE after 40."""
    looks = [("auto", 5), ("auto", 10), ("auto", 25), ("tpe", 10), ("tpe", 40),
             ("random", 10), ("random", 40), ("random", 100)]  # fmt: skip
    columns = {
        f"{name} after {trial}": curves[(curves.method == name) & (curves.trial == trial)]
        .set_index(["dataset", "seed"])
        .best
        for name, trial in looks
    }
    table = pd.DataFrame(columns).dropna()
    return pd.DataFrame({"mean rank": table.rank(axis=1).mean(), "runs": len(table)})


def regret(curves: pd.DataFrame) -> pd.DataFrame:
    """Return by method and trial the distance to the best of all; 1 is random's first trial."""
    known = curves[curves.method == "random"]
    start = known[known.trial == 1].groupby("dataset").best.median()
    low = curves.groupby("dataset").best.min()
    scale = (start - low).clip(lower=1e-12)
    part = (curves.best - curves.dataset.map(low)) / curves.dataset.map(scale)
    by_dataset = curves.assign(part=part.clip(upper=1.0)).groupby(["method", "trial", "dataset"])
    return by_dataset.part.mean().groupby(["method", "trial"]).mean().unstack("method")


def picture(curves: pd.DataFrame, path: Path) -> None:
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.5, 4.2), layout="constrained")
    names = {"random": "random search", "tpe": "Optuna TPE", "auto": "Foretune"}
    colours = {"random": "#9a9a9a", "tpe": "#3b7ddd", "auto": "#d1495b"}
    for method, curve in regret(curves).items():
        line = curve.dropna()
        axes.plot(line.index, line, color=colours[str(method)], label=names[str(method)], lw=2)
        axes.plot(line.index[-1:], line.iloc[-1:], "o", color=colours[str(method)])
    axes.set(xlabel="trials", ylabel="distance to the best pipeline found", yscale="log")
    ticks = [0.05, 0.1, 0.2, 0.5, 1.0]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    axes.set_title(f"{curves.dataset.nunique()} datasets that Foretune has never seen", loc="left")
    axes.spines[["top", "right"]].set_visible(False)
    axes.legend(frameon=False)
    figure.savefig(path, dpi=150)


def scored_afresh(
    table: Table, given: argparse.Namespace, chosen: dict[tuple[str, int], dict[str, Any]]
) -> list[dict[str, Any]]:
    """Return the mean loss of each chosen pipeline over other draws of the folds."""
    losses: dict[str, list[float]] = {_key(config): [] for config in chosen.values()}
    for seed in FRESH_SEEDS:
        judge = Judge(table, given, seed)
        with judge.pool:
            for config, scores in losses.items():
                scores.append(judge.loss(json.loads(config)))
    return [
        {"dataset": table.name, "method": name, "seed": seed, "loss": np.mean(losses[_key(config)])}
        for (name, seed), config in chosen.items()
    ]


def _say_fresh(frame: pd.DataFrame, folder: Path) -> None:
    frame.to_parquet(folder / "fresh.parquet")
    by_run = frame.pivot_table(index=["dataset", "seed"], columns="method", values="loss")
    print(by_run.rank(axis=1).mean().round(2).to_dict(), flush=True)


def asked_for(given: argparse.Namespace) -> list[TableSource]:
    """Return the tables of the catalogue's groups, or of a folder with one folder for each task."""
    if given.tables is None:
        groups = [
            (f"catalogue:{group}", group.partition("-")[0]) for group in given.groups.split(",")
        ]
    else:
        groups = [(str(given.tables / task), str(task)) for task in Task]
    found = [source for where, task in groups for source in sources(where, Task(task))]
    return [each for each in found if given.only is None or each.name in given.only.split(",")]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--max-rows", type=int, default=1000)
    parser.add_argument("--folds", type=int, help="as many as `fit` takes if not given")
    parser.add_argument("--cv-below", type=int, default=2500, help="rows; `fit` takes 2500")
    parser.add_argument("--metric", help="not what `fit` optimises by itself")
    parser.add_argument("--groups", default="classification-held-out,regression-held-out")
    parser.add_argument("--tables", type=Path, help="of `new_tables.py`, instead of the groups")
    parser.add_argument("--only", help="the names of some of the tables, with commas")
    parser.add_argument(
        "--methods", default="auto,tpe,random", help="so that two can share the work"
    )
    parser.add_argument("--fresh", action="store_true", help="score what was chosen on other folds")
    given = parser.parse_args()
    given.folder.mkdir(parents=True, exist_ok=True)
    known = {"auto": ByMethod("auto", load_shipped_knowledge), "tpe": by_tpe, "random": by_random}
    methods = {name: known[name] for name in given.methods.split(",")}
    curves: list[dict[str, Any]] = []
    fresh: list[dict[str, Any]] = []
    for source in asked_for(given):
        table = source.load().sample(given.max_rows, seed=0)
        judge, chosen = Judge(table, given), {}
        with judge.pool:
            for name, search in methods.items():
                for seed in range(given.seeds):
                    judge.asked.clear()
                    losses = search(judge, seed, TRIALS[name])
                    ended = int(np.nanargmin(losses[: ENDED[name]]))
                    chosen[name, seed] = judge.asked[ended]
                    best = np.fmin.accumulate(np.array(losses))
                    curves += [
                        {"dataset": table.name, "method": name, "seed": seed,
                         "trial": trial + 1, "best": value}
                        for trial, value in enumerate(best)
                    ]  # fmt: skip
        if given.fresh:
            fresh += scored_afresh(table, given, chosen)
            _say_fresh(pd.DataFrame(fresh), given.folder)
        frame = pd.DataFrame(curves)
        frame.to_parquet(given.folder / "curves.parquet")
        print(f"{table.name}: {len(judge.known)} evaluations", flush=True)
        if len(methods) == len(known):
            print(ranks(frame).round(2).to_string(), flush=True)
            picture(frame, given.folder / "curves.png")


if __name__ == "__main__":
    main()
