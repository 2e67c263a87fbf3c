"""Measures how much of the front is found with three or more objectives and no experience.

    python -m benchmarks.many_objectives --tuners auto,optuna-tpe,random --seeds 4 --out many.csv
    DIR/optuna/bin/python -m benchmarks.many_objectives --tuners optuna-gp --out many.csv
    python -m benchmarks.many_objectives --out many.csv      # prints the table

Every run is written as soon as it has ended, and is not played again. The number is the share of a
box that is dominated after some trials. The box of DTLZ2 is [0, 1.5]^L. Other boxes reach from the
least of each loss among random configurations to its median. Tuners of Optuna need Optuna, but they
do not need Foretune.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np
from benchmarks.two_objectives import play_all

LOOKS = (25, 50)
DRAWN = 50_000
Config = dict[str, float]


@dataclass(frozen=True)
class Problem:
    """Functions of the same numbers in [0, 1]."""

    name: str
    values: Callable[[np.ndarray], np.ndarray]
    """The function from numbers (n, d) to losses (n, L)."""
    objectives: int
    numbers: int
    box: tuple[float, float] | None = None
    """The ends of the box for every loss; None for a box by random configurations."""

    @property
    def names(self) -> list[str]:
        """The names of the numbers."""
        return [f"x{place}" for place in range(self.numbers)]

    def losses(self, config: Config) -> tuple[float, ...]:
        """Return the losses of one configuration."""
        [found] = self.values(np.array([[config[name] for name in self.names]]))
        return tuple(map(float, found))

    def dominated(self, losses: np.ndarray) -> float:
        """Return the share of the box that losses (n, L) dominate."""
        inside = np.zeros(DRAWN, dtype=bool)
        points = _points(self)
        for point in losses:
            inside |= (points >= point).all(axis=1)
        return float(inside.mean())


@cache
def _points(problem: Problem) -> np.ndarray:
    """Draw points evenly in the box of a problem."""
    rng = np.random.default_rng(0)
    drawn = rng.random((DRAWN, problem.objectives))
    if problem.box is not None:
        low, high = problem.box
        return low + (high - low) * drawn
    losses = problem.values(rng.random((DRAWN, problem.numbers)))
    least = losses.min(axis=0)
    return least + (np.median(losses, axis=0) - least) * drawn


def sphere(objectives: int) -> Callable[[np.ndarray], np.ndarray]:
    """Return DTLZ2, a part of a sphere; its last numbers make the radius longer."""

    def values(x: np.ndarray) -> np.ndarray:
        angles = x[:, : objectives - 1] * np.pi / 2
        radius = 1 + np.square(x[:, objectives - 1 :] - 0.5).sum(axis=1)
        ones = np.ones((len(x), 1))
        cosines = np.cumprod(np.hstack([ones, np.cos(angles)]), axis=1)
        sines = np.hstack([np.sin(angles), ones])
        return radius[:, None] * (cosines * sines)

    return values


PLACES = np.array([[0.2, 0.7, 0.4, 0.1, 0.6], [0.7, 0.3, 0.8, 0.4, 0.2], [0.5, 0.9, 0.1, 0.8, 0.9]])


def bowls(x: np.ndarray) -> np.ndarray:
    """Return the distances to three places."""
    return np.square(x[:, None] - PLACES).sum(axis=2)


def sizes(x: np.ndarray) -> np.ndarray:
    """Return an error, a size and a time; large models are better and small ones quicker."""
    width, depth = np.exp(4 * x[:, 0]), np.exp(2 * x[:, 1])
    wrong = 2 * np.square(x[:, 2:] - PLACES[0, 2:]).sum(axis=1)
    error = 0.1 + 0.6 * np.exp(-2 * x[:, 0] - x[:, 1]) + wrong
    return np.column_stack([error, width * depth, depth * (1 + 0.3 * x[:, 2]) + 0.02 * width])


def islands(x: np.ndarray) -> np.ndarray:
    """Return DTLZ7, which has a front in four pieces."""
    g = 1 + 9 * x[:, 2:].mean(axis=1)
    waves = (x[:, :2] / (1 + g)[:, None] * (1 + np.sin(3 * np.pi * x[:, :2]))).sum(axis=1)
    return np.column_stack([x[:, 0], x[:, 1], (1 + g) * (3 - waves)])


PROBLEMS = {
    problem.name: problem
    for problem in (
        Problem("sphere of 3", sphere(3), 3, 6, (0.0, 1.5)),
        Problem("sphere of 4", sphere(4), 4, 6, (0.0, 1.5)),
        Problem("sphere of 5", sphere(5), 5, 6, (0.0, 1.5)),
        Problem("bowls", bowls, 3, 5),
        Problem("sizes", sizes, 3, 5),
        Problem("islands", islands, 3, 5),
    )
}


def play_task(tuner: str, problem: Problem, seed: int) -> Iterator[tuple[float, ...]]:
    """Yield the losses of one run, trial after trial."""
    player = optuna_player if tuner.startswith("optuna-") else foretune_player
    return player(tuner, problem, seed)


def foretune_player(tuner: str, problem: Problem, seed: int) -> Iterator[tuple[float, ...]]:
    """Play a method of Foretune."""
    from foretune.search.optimizer import Optimizer
    from foretune.search.suggestions import Told

    space = dict.fromkeys(problem.names, (0.0, 1.0))
    objectives = tuple(f"loss{place}" for place in range(problem.objectives))
    optimizer = Optimizer.of(space, method=tuner, objectives=objectives, seed=seed)
    for _ in range(max(LOOKS)):
        [suggestion] = optimizer.ask()
        losses = problem.losses(suggestion.config)
        optimizer.tell([Told(losses, id=suggestion.id)])
        yield losses


def optuna_player(tuner: str, problem: Problem, seed: int) -> Iterator[tuple[float, ...]]:
    """Play a sampler of Optuna."""
    import optuna

    optuna.logging.set_verbosity(optuna.logging.ERROR)
    samplers: dict[str, Any] = {
        "optuna-tpe": optuna.samplers.TPESampler,
        "optuna-gp": optuna.samplers.GPSampler,
    }
    study = optuna.create_study(
        directions=["minimize"] * problem.objectives, sampler=samplers[tuner](seed=seed)
    )
    for _ in range(max(LOOKS)):
        trial = study.ask()
        losses = problem.losses({name: trial.suggest_float(name, 0, 1) for name in problem.names})
        study.tell(trial, losses)
        yield losses


def rows_of(tuner: str, name: str, seed: int) -> list[dict[str, Any]]:
    """Return the rows that are written about one run."""
    problem = PROBLEMS[name]
    losses = np.array([*play_task(tuner, problem, seed)])
    run = {"tuner": tuner, "problem": problem.name, "seed": seed}
    return [
        {**run, "trials": trials, "dominated": problem.dominated(losses[:trials])}
        for trials in LOOKS
    ]


def table(rows: Sequence[dict[str, str]]) -> str:
    """Return the mean share after each look: a row for each problem, a column for each tuner."""
    tuners = [*dict.fromkeys(row["tuner"] for row in rows)]
    lines = [f"| | {' | '.join(tuners)} |", "|---" * (len(tuners) + 1) + "|"]
    for name in PROBLEMS:
        own = [row for row in rows if row["problem"] == name]
        cells = [_cell([row for row in own if row["tuner"] == tuner]) for tuner in tuners]
        lines.append(f"| {name} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _cell(rows: Sequence[dict[str, str]]) -> str:
    found = [[float(r["dominated"]) for r in rows if int(r["trials"]) == look] for look in LOOKS]
    return ", ".join(f"{np.mean(each):.3f}" if each else "-" for each in found)


if __name__ == "__main__":
    play_all(__doc__, [*PROBLEMS], rows_of, table)
