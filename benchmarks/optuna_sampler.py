"""Tests Foretune's sampler after 1,000 past Optuna studies: its learning time and its results.

    python benchmarks/optuna_sampler.py --folder DIR [--studies 1000] [--trials 30] [--tasks 8]

The past studies train networks of one family: each asks for some of six hyperparameters, in a range
of its own, and has its own optimum near the family's. Loss 0 is the known optimum of every task.
`--experience FILE` compares on a recorded table instead: half of its tasks are the past studies.
The result of each run is kept in DIR/runs.jsonl. The same command goes on with what is missing.
"""

import argparse
import json
import sqlite3
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import optuna
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
    distribution_to_json,
)

from foretune.experience import Experience
from foretune.integrations.optuna import ForetuneSampler

FAMILY: dict[str, tuple[BaseDistribution, float]] = {
    "lr": (FloatDistribution(1e-5, 1.0, log=True), 0.55),
    "weight_decay": (FloatDistribution(1e-6, 1e-1, log=True), 0.3),
    "dropout": (FloatDistribution(0.0, 0.8), 0.25),
    "depth": (IntDistribution(1, 12), 0.6),
    "width": (IntDistribution(16, 1024, log=True), 0.7),
    "optimiser": (CategoricalDistribution(["sgd", "adam", "rmsprop"]), 0.5),
}
"""Each hyperparameter, and the place of the family's optimum on its unit scale."""
ALWAYS = ("lr", "depth")
SPREAD = 0.12


class Task:
    """One dataset: the hyperparameters that its program asks for, their ranges, and its losses."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng(seed)
        self.asked = {
            name: _narrow_space(distribution, rng)
            for name, (distribution, _) in FAMILY.items()
            if name in ALWAYS or rng.random() < 0.6
        }
        optima = {name: centre + SPREAD * rng.normal() for name, (_, centre) in FAMILY.items()}
        # The optimum lies within the ranges that the program asks for.
        self.optima = {
            name: float(np.clip(optima[name], *_unit_range(name, distribution)))
            for name, distribution in self.asked.items()
        }
        self.weights = {name: rng.uniform(0.5, 2.0) for name in self.asked}
        self.penalties = {"adam": 0.0, "sgd": 0.1 * rng.random(), "rmsprop": 0.2 * rng.random()}

    def loss(self, config: dict[str, Any]) -> float:
        total = 0.0
        for name in self.asked:
            if name == "optimiser":
                total += self.penalties[config[name]]
            else:
                gap = _unit(FAMILY[name][0], config[name]) - self.optima[name]
                total += self.weights[name] * gap**2
        return total

    def draw(self, rng: np.random.Generator) -> dict[str, Any]:
        sampler = optuna.samplers.RandomSampler(seed=int(rng.integers(2**31)))
        return {
            name: sampler.sample_independent(None, None, name, distribution)
            for name, distribution in self.asked.items()
        }

    def objective(self, trial: optuna.Trial) -> float:
        return self.loss({name: ask(trial, name, d) for name, d in self.asked.items()})


class RecordedTask:
    """One task of a recorded table: the loss of the nearest recorded configuration."""

    def __init__(self, experience: Experience, name: str) -> None:
        records = experience.task(name)
        done = np.flatnonzero(records.is_success)
        self.space, self.configs = experience.space, records.configs.take(done)
        self.losses = records.losses[done, 0]
        self.asked = {p.name: as_distribution(p) for p in self.space.parameters}

    def objective(self, trial: optuna.Trial) -> float:
        config = {name: ask(trial, name, d) for name, d in self.asked.items()}
        x = self.space.from_columns(
            {name: [value] for name, value in config.items()}, 1, drop_inactive=True
        ).x
        return float(self.losses[np.square(self.configs.x - x).sum(axis=1).argmin()])

    @property
    def best(self) -> float:
        return float(self.losses.min())

    @property
    def scale(self) -> float:
        return float(np.median(self.losses) - self.best) or 1.0


def _narrow_space(distribution: BaseDistribution, rng: np.random.Generator) -> BaseDistribution:
    """Return a smaller range, or with a chance of one half the same one."""
    if isinstance(distribution, CategoricalDistribution) or rng.random() < 0.5:
        return distribution
    low, high = rng.uniform(0.0, 0.15), rng.uniform(0.85, 1.0)
    ends = (_from_unit(distribution, low), _from_unit(distribution, high))
    return type(distribution)(*ends, log=distribution.log)  # type: ignore[call-arg]


def _unit_range(name: str, distribution: BaseDistribution) -> tuple[float, float]:
    if isinstance(distribution, CategoricalDistribution):
        return 0.0, 1.0
    whole = FAMILY[name][0]
    return _unit(whole, distribution.low), _unit(whole, distribution.high)


def _unit(distribution: Any, value: float) -> float:
    low, high = distribution.low, distribution.high
    if distribution.log:
        return float(np.log(value / low) / np.log(high / low))
    return (value - low) / (high - low)


def _from_unit(distribution: Any, unit: float) -> float:
    low, high = distribution.low, distribution.high
    value = low * (high / low) ** unit if distribution.log else low + unit * (high - low)
    return round(value) if isinstance(distribution, IntDistribution) else float(value)


def ask(trial: optuna.Trial, name: str, distribution: Any) -> Any:
    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    suggest = trial.suggest_int if isinstance(distribution, IntDistribution) else None
    suggest = suggest or trial.suggest_float
    return suggest(name, distribution.low, distribution.high, log=distribution.log)


def as_distribution(parameter: Any) -> BaseDistribution:
    if parameter.kind == "float":
        return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
    if parameter.kind == "int":
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.log)
    return CategoricalDistribution(parameter.choices)


def write_studies(path: Path, studies: list[tuple[str, list[tuple[dict[str, Any], Any, float]]]]):
    """Write a SQLite file at once, as Optuna would have left it."""
    path.unlink(missing_ok=True)
    optuna.storages.RDBStorage(f"sqlite:///{path}")
    trial_id = 0
    with sqlite3.connect(path) as database:
        for study_id, (name, trials) in enumerate(studies, start=1):
            database.execute("INSERT INTO studies VALUES (?, ?)", (study_id, name))
            database.execute(
                "INSERT INTO study_directions (direction, study_id, objective) "
                "VALUES ('MINIMIZE', ?, 0)",
                (study_id,),
            )
            for number, (config, asked, loss) in enumerate(trials):
                trial_id += 1
                database.execute(
                    "INSERT INTO trials VALUES (?, ?, ?, 'COMPLETE', ?, ?)",
                    (trial_id, number, study_id, *["2026-01-01 00:00:00.000000"] * 2),
                )
                database.execute(
                    "INSERT INTO trial_values (trial_id, objective, value, value_type) "
                    "VALUES (?, 0, ?, 'FINITE')",
                    (trial_id, loss),
                )
                database.executemany(
                    "INSERT INTO trial_params (trial_id, param_name, param_value, "
                    "distribution_json) VALUES (?, ?, ?, ?)",
                    [
                        (trial_id, key, asked[key].to_internal_repr(value), text[key])
                        for text in [{k: distribution_to_json(asked[k]) for k in config}]
                        for key, value in config.items()
                    ],
                )


def synthetic_studies(studies: int, trials: int) -> list[Any]:
    rng = np.random.default_rng(0)
    found = []
    for number in range(studies):
        task = Task(seed=number)
        drawn = [task.draw(rng) for _ in range(trials)]
        found.append((f"past-{number}", [(c, task.asked, task.loss(c)) for c in drawn]))
    return found


def recorded_studies(experience: Experience, tasks: list[str], trials: int) -> list[Any]:
    rng = np.random.default_rng(0)
    found = []
    for name in tasks:
        task = RecordedTask(experience, name)
        rows = rng.permutation(len(task.losses))[:trials]
        configs = task.configs.take(rows).dicts()
        losses = task.losses[rows].tolist()
        rows_ = [(c, task.asked, loss) for c, loss in zip(configs, losses, strict=True)]
        found.append((f"past-{name}", rows_))
    return found


def run(task: Any, sampler: optuna.samplers.BaseSampler, trials: int) -> tuple[list[float], float]:
    """Return the best loss after each trial, and the median CPU seconds of a trial after ten."""
    study = optuna.create_study(sampler=sampler)
    seconds, best = [], []
    for _ in range(trials):
        trial = study.ask()
        began = time.process_time()
        loss = task.objective(trial)
        seconds.append(time.process_time() - began)
        study.tell(trial, loss)
        best.append(min([loss, *best[-1:]]))
    return best, float(np.median(seconds[10:]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--folder", type=Path, required=True, help="where the SQLite file goes")
    parser.add_argument("--studies", type=int, default=1000)
    parser.add_argument("--trials", type=int, default=30)
    parser.add_argument("--tasks", type=int, default=8)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--experience", type=Path, help="a recorded table instead of the family")
    arguments = parser.parse_args()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    path = arguments.folder / "past.db"
    tasks: list[Any]
    if arguments.experience is None:
        write_studies(path, synthetic_studies(arguments.studies, arguments.trials))
        tasks = [Task(seed=10_000 + number) for number in range(arguments.tasks)]
    else:
        experience = Experience.open(arguments.experience)
        names = np.random.default_rng(0).permutation(experience.tasks).tolist()
        past, new = names[: len(names) // 2], names[len(names) // 2 :]
        write_studies(path, recorded_studies(experience, past, arguments.trials))
        tasks = [RecordedTask(experience, name) for name in new[: arguments.tasks]]
    url = f"sqlite:///{path}"
    for state in ("cold", "cached"):
        began, own = time.perf_counter(), time.process_time()
        study = optuna.create_study(sampler=ForetuneSampler.from_storage(url, seed=0))
        for number in ("first", "second"):
            trial = study.ask()
            study.tell(trial, tasks[0].objective(trial))
            print(
                f"from_storage, {state}: {number} trial after {time.perf_counter() - began:.2f} s "
                f"(CPU {time.process_time() - own:.2f})"
            )
    samplers: dict[str, Callable[[int], optuna.samplers.BaseSampler]] = {
        "foretune, past studies": lambda seed: ForetuneSampler.from_storage(url, seed=seed),
        "foretune, none": lambda seed: ForetuneSampler(seed=seed),
        "TPE": lambda seed: optuna.samplers.TPESampler(seed=seed),
        "random": lambda seed: optuna.samplers.RandomSampler(seed=seed),
    }
    print(f"regret after 1, 5, 10, {arguments.trials} trials, 95% intervals over the tasks")
    kept = KeptRuns(arguments.folder / "runs.jsonl")
    for name, sampler in samplers.items():
        runs = [
            kept.get_or_run(
                f"{name}, {arguments.experience}, {arguments.studies} studies, "
                f"{arguments.trials} trials, task {number}, seed {seed}",
                lambda task=task, seed=seed: run(task, sampler(seed), arguments.trials),  # noqa: B023
            )
            for number, task in enumerate(tasks)
            for seed in range(arguments.seeds)
        ]
        best = np.array([losses for losses, _ in runs]).reshape(len(tasks), arguments.seeds, -1)
        floor = np.array([getattr(task, "best", 0.0) for task in tasks])[:, None, None]
        scale = np.array([getattr(task, "scale", 1.0) for task in tasks])[:, None, None]
        regrets = ((best - floor) / scale).mean(axis=1)[:, [0, 4, 9, -1]]
        low, high = bootstrap_interval(regrets)
        line = {"sampler": name, "regret": regrets.mean(axis=0).round(4).tolist()}
        line |= {"low": low.round(4).tolist(), "high": high.round(4).tolist()}
        seconds = round(float(np.median([took for _, took in runs])), 4)
        print(json.dumps(line | {"seconds": seconds}), flush=True)


class KeptRuns:
    """The results of runs by name, in a file with one line of JSON for each."""

    def __init__(self, path: Path) -> None:
        self._path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self._known = dict(json.loads(line) for line in lines)

    def get_or_run(self, name: str, make: Callable[[], Any]) -> Any:
        if name not in self._known:
            self._known[name] = make()
            with self._path.open("a") as file:
                file.write(json.dumps([name, self._known[name]]) + "\n")
        return self._known[name]


def bootstrap_interval(regrets: np.ndarray) -> np.ndarray:
    """Return (2, columns), a 95% interval of the mean over tasks; regrets: (tasks, columns)."""
    rng = np.random.default_rng(0)
    rows = rng.integers(len(regrets), size=(10_000, len(regrets)))
    return np.quantile(regrets[rows].mean(axis=1), [0.025, 0.975], axis=0)


if __name__ == "__main__":
    main()
