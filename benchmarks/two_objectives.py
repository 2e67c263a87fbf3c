"""Measures how much of the front is found with two objectives and no experience.

    python benchmarks/two_objectives.py --tuners auto,optuna-tpe,optuna-nsga2,random --out two.csv
    DIR/optuna/bin/python benchmarks/two_objectives.py --tuners optuna-gp --out two.csv
    DIR/botorch/bin/python benchmarks/two_objectives.py --tuners botorch --out two.csv \\
        --problems convex,concave,broken,sphere,bowls,waves,steep
    python benchmarks/two_objectives.py --out two.csv      # prints the table

Every run is written as soon as it has ended, and is not played again. The number is the share of
the front's hypervolume that is missing after some trials. Only points that are better in both
objectives than the medians of random configurations count. Tuners of Optuna need Optuna, but they
do not need Foretune.
"""

import argparse
import csv
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import numpy as np

LOOKS = (10, 25, 50)
DRAWN = 200_000
Config = dict[str, Any]


@dataclass(frozen=True)
class Problem:
    """Two functions of the same numbers in [0, 1] and, in some, of a choice."""

    name: str
    values: Callable[[np.ndarray, np.ndarray], tuple[np.ndarray, np.ndarray]]
    """The function from numbers (n, d) and choices (n,) to both losses, each (n,)."""
    front: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]
    """The function from numbers (n,) in [0, 1] to losses, which include the front's."""
    numbers: int = 5
    choices: tuple[str, ...] = ()

    def losses(self, config: Config) -> tuple[float, float]:
        """Return the losses of one configuration."""
        x = np.array([[config[f"x{i}"] for i in range(self.numbers)]])
        choice = np.array([self.choices.index(config["choice"]) if self.choices else 0])
        first, second = self.values(x, choice)
        return float(first[0]), float(second[0])

    @property
    def reference(self) -> tuple[float, float]:
        """The medians of random configurations."""
        return _reference(self)

    @property
    def whole(self) -> float:
        """The hypervolume of the front."""
        return hypervolume(np.column_stack(self.front(np.linspace(0, 1, 20_001))), self.reference)


@cache
def _reference(problem: Problem) -> tuple[float, float]:
    rng = np.random.default_rng(0)
    x = rng.random((DRAWN, problem.numbers))
    both = problem.values(x, rng.integers(max(len(problem.choices), 1), size=DRAWN))
    return float(np.median(both[0])), float(np.median(both[1]))


def hypervolume(points: np.ndarray, reference: tuple[float, float]) -> float:
    """Return the area between points (n, 2) and the reference."""
    inside = points[(points < reference).all(axis=1)]
    area, lowest = 0.0, reference[1]
    for first, second in inside[np.lexsort((inside[:, 1], inside[:, 0]))]:
        if second < lowest:
            area += (reference[0] - first) * (lowest - second)
            lowest = second
    return float(area)


def zdt(x: np.ndarray, choice: np.ndarray, shape: Callable) -> tuple[np.ndarray, np.ndarray]:
    """Return Zitzler, Deb and Thiele's functions; the first number moves along the front."""
    del choice
    g = 1 + 9 * x[:, 1:].mean(axis=1)
    return x[:, 0], g * shape(x[:, 0], g)


def convex(first: np.ndarray, g: Any) -> np.ndarray:
    """Return the shape of the front of ZDT1."""
    return 1 - np.sqrt(first / g)


def concave(first: np.ndarray, g: Any) -> np.ndarray:
    """Return the shape of the front of ZDT2."""
    return 1 - (first / g) ** 2


def broken(first: np.ndarray, g: Any) -> np.ndarray:
    """Return the shape of the front of ZDT3, which is in five pieces."""
    return 1 - np.sqrt(first / g) - first / g * np.sin(10 * np.pi * first)


def sphere(x: np.ndarray, choice: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return DTLZ2 with two objectives."""
    del choice
    radius = 1 + np.square(x[:, 1:] - 0.5).sum(axis=1)
    return radius * np.cos(x[:, 0] * np.pi / 2), radius * np.sin(x[:, 0] * np.pi / 2)


ONE, OTHER = np.array([0.2, 0.7, 0.4, 0.1, 0.6]), np.array([0.7, 0.3, 0.8, 0.4, 0.2])


def bowls(x: np.ndarray, choice: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the distances to two places, which a wrong choice makes longer."""
    far = 0.3 * choice
    first = np.square(x - ONE).sum(axis=1) + far
    return first, np.square(x - OTHER).sum(axis=1) + far


def logarithms(x: np.ndarray, choice: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return a cost and an error that falls with it; many numbers change only the error."""
    cost = np.exp(5 * x[:, 0] + 0.5 * choice)
    wrong = 3 * np.square(x[:, 1:] - ONE[1:]).sum(axis=1)
    return 0.1 + 0.5 * np.exp(-2.5 * x[:, 0]) + wrong * np.exp(-x[:, 1]), cost


def waves(x: np.ndarray, choice: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return Fonseca and Fleming's functions: flat except near two places, with a hollow front."""
    del choice
    wide, end = 8 * x - 4, 1 / np.sqrt(x.shape[1])
    first = 1 - np.exp(-np.square(wide - end).sum(axis=1))
    return first, 1 - np.exp(-np.square(wide + end).sum(axis=1))


def steep(x: np.ndarray, choice: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return two losses that grow by factors, as counts and seconds do."""
    del choice
    wrong = 1 + (np.square(x[:, 1:] - OTHER[1:]) * np.arange(1, x.shape[1])).sum(axis=1)
    return wrong * np.exp(3 * x[:, 0]), wrong * np.exp(3 - 3 * x[:, 0])


def _flat(shape: Callable, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return t, shape(t, 1.0)


def _arc(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.cos(t * np.pi / 2), np.sin(t * np.pi / 2)


def _between(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return bowls(ONE + t[:, None] * (OTHER - ONE), np.zeros(len(t)))


def _cheapest(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    x = np.column_stack([t, np.tile(ONE[1:], (len(t), 1))])
    return logarithms(x, np.zeros(len(t)))


def _diagonal(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    end = 1 / np.sqrt(5)
    return waves(np.tile((0.5 + (2 * t - 1) * end / 8)[:, None], (1, 5)), np.zeros(len(t)))


def _exponential(t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return np.exp(3 * t), np.exp(3 - 3 * t)


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem("convex", partial(zdt, shape=convex), partial(_flat, convex)),
        Problem("concave", partial(zdt, shape=concave), partial(_flat, concave)),
        Problem("broken", partial(zdt, shape=broken), partial(_flat, broken)),
        Problem("sphere", sphere, _arc),
        Problem("bowls", bowls, _between),
        Problem("choice", bowls, _between, choices=("best", "bad", "worse")),
        Problem("cost", logarithms, _cheapest, choices=("a", "b")),
        Problem("waves", waves, _diagonal),
        Problem("steep", steep, _exponential),
    )
}


def play_task(
    tuner: str, problem: Problem, seed: int, trials: int
) -> Iterator[tuple[float, float]]:
    """Yield the losses of one run, trial after trial."""
    if tuner == "botorch":
        return botorch_player(problem, seed, trials)
    player = optuna_player if tuner.startswith("optuna-") else foretune_player
    return player(tuner, problem, seed, trials)


def foretune_player(
    tuner: str, problem: Problem, seed: int, trials: int
) -> Iterator[tuple[float, float]]:
    """Play a method of Foretune."""
    from foretune.search.optimizer import Optimizer
    from foretune.search.suggestions import Told

    space: Config = {f"x{i}": (0.0, 1.0) for i in range(problem.numbers)}
    if problem.choices:
        space["choice"] = list(problem.choices)
    optimizer = Optimizer.of(space, method=tuner, objectives=("first", "second"), seed=seed)
    for _ in range(trials):
        [suggestion] = optimizer.ask()
        losses = problem.losses(suggestion.config)
        optimizer.tell([Told(losses, id=suggestion.id)])
        yield losses


def optuna_player(
    tuner: str, problem: Problem, seed: int, trials: int
) -> Iterator[tuple[float, float]]:
    """Play a sampler of Optuna."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    samplers = {
        "optuna-tpe": partial(optuna.samplers.TPESampler, multivariate=True),
        "optuna-nsga2": partial(optuna.samplers.NSGAIISampler, population_size=10),
        "optuna-gp": optuna.samplers.GPSampler,
    }
    study = optuna.create_study(
        directions=["minimize", "minimize"], sampler=samplers[tuner](seed=seed)
    )
    for _ in range(trials):
        trial = study.ask()
        config: Config = {
            f"x{i}": trial.suggest_float(f"x{i}", 0, 1) for i in range(problem.numbers)
        }
        if problem.choices:
            config["choice"] = trial.suggest_categorical("choice", problem.choices)
        losses = problem.losses(config)
        study.tell(trial, losses)
        yield losses


def botorch_player(problem: Problem, seed: int, trials: int) -> Iterator[tuple[float, float]]:
    """Play BoTorch's expected hypervolume improvement with noise, after ten Sobol points.

    Each loss has its own Gaussian process. The reference point and the optimiser are those of its
    tutorial. The space may have only numbers.
    """
    import torch
    from botorch.acquisition.multi_objective.logei import qLogNoisyExpectedHypervolumeImprovement
    from botorch.fit import fit_gpytorch_mll
    from botorch.models import ModelListGP, SingleTaskGP
    from botorch.optim import optimize_acqf
    from botorch.utils.multi_objective.hypervolume import infer_reference_point
    from botorch.utils.multi_objective.pareto import is_non_dominated
    from gpytorch.mlls import SumMarginalLogLikelihood

    if problem.choices:
        raise SystemExit(
            f"botorch plays problems of numbers alone, but '{problem.name}' has a choice"
        )
    torch.manual_seed(seed)
    torch.set_num_threads(1)
    x = torch.quasirandom.SobolEngine(problem.numbers, scramble=True, seed=seed).draw(10).double()
    y = torch.empty(0, 2, dtype=torch.double)
    bounds = torch.stack([torch.zeros(problem.numbers), torch.ones(problem.numbers)]).double()
    for trial in range(trials):
        if trial >= len(x):
            model = ModelListGP(*(SingleTaskGP(x, y[:, [place]]) for place in range(2)))
            fit_gpytorch_mll(SumMarginalLogLikelihood(model.likelihood, model))
            reference = infer_reference_point(y[is_non_dominated(y)])
            volume = qLogNoisyExpectedHypervolumeImprovement(
                model, reference, X_baseline=x, prune_baseline=True
            )
            found, _ = optimize_acqf(volume, bounds, q=1, num_restarts=4, raw_samples=128)
            x = torch.cat([x, found])
        config = {f"x{i}": float(value) for i, value in enumerate(x[trial])}
        losses = problem.losses(config)
        y = torch.cat([y, -torch.tensor([losses], dtype=torch.double)])
        yield losses


def rows_of(tuner: str, name: str, seed: int) -> list[dict[str, Any]]:
    """Return the rows that are written about one run."""
    problem = PROBLEMS[name]
    began = time.process_time()
    points = np.array([*play_task(tuner, problem, seed, max(LOOKS))])
    seconds = (time.process_time() - began) / max(LOOKS)
    whole = problem.whole
    return [
        {
            "tuner": tuner,
            "problem": problem.name,
            "seed": seed,
            "trials": trials,
            "missing": 1 - hypervolume(points[:trials], problem.reference) / whole,
            "seconds": seconds,
        }
        for trials in LOOKS
    ]


def told(path: Path) -> list[dict[str, str]]:
    """Read the rows of earlier runs."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as stream:
        return [*csv.DictReader(stream)]


def add(path: Path, rows: Sequence[dict[str, Any]]) -> None:
    """Add the rows of one run."""
    is_new = not path.exists()
    with path.open("a", newline="", encoding="utf-8") as stream:
        writer = csv.DictWriter(stream, [*rows[0]])
        if is_new:
            writer.writeheader()
        writer.writerows(rows)


def table(rows: Sequence[dict[str, str]]) -> str:
    """Return the mean missing share after each look: rows are tuners and columns are problems."""
    tuners = [*dict.fromkeys(row["tuner"] for row in rows)]
    problems = [name for name in PROBLEMS if any(row["problem"] == name for row in rows)]
    lines = [f"| | {' | '.join(problems)} | seconds |", "|---" * (len(problems) + 2) + "|"]
    for tuner in tuners:
        own = [row for row in rows if row["tuner"] == tuner]
        cells = [
            " ".join(
                f"{np.mean(found):.3f}" if (found := _missing(own, problem, look)) else "-"
                for look in LOOKS
            )
            for problem in problems
        ]
        seconds = np.mean([float(row["seconds"]) for row in own])
        lines.append(f"| {tuner} | {' | '.join(cells)} | {seconds:.3f} |")
    return "\n".join(lines)


def _missing(rows: Sequence[dict[str, str]], problem: str, look: int) -> list[float]:
    return [
        float(row["missing"])
        for row in rows
        if row["problem"] == problem and int(row["trials"]) == look
    ]


def play_all(
    description: str | None,
    names: Sequence[str],
    rows_of: Callable[[str, str, int], list[dict[str, Any]]],
    table: Callable[[list[dict[str, str]]], str],
) -> None:
    """Run a command that plays missing runs of tuners on problems, and prints a table."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--tuners", default="", metavar="A,B,C")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--problems", default=",".join(names), metavar="A,B,C")
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    known = {(row["tuner"], row["problem"], row["seed"]) for row in told(given.out)}
    for tuner in filter(None, given.tuners.split(",")):
        for name in given.problems.split(","):
            for seed in range(given.seeds):
                if (tuner, name, str(seed)) not in known:
                    add(given.out, rows_of(tuner, name, seed))
    print(table(told(given.out)))


if __name__ == "__main__":
    play_all(__doc__, [*PROBLEMS], rows_of, table)
