"""Methods that know nothing of past tasks on functions that a good search refines to many digits.

    python benchmarks/smooth_functions.py --targets 8 --trials 100

Five families on the unit cube, each minimum 0: bowls of six dimensions; bowls with ripples of five;
Rosenbrock's valley of four; Hartmann's function of six; and a bowl of five that explodes at one
side, as a training does whose learning rate is too high. Reported is the mean over targets of the
logarithm (base 10) of the best value so far.
"""

import argparse
from collections.abc import Callable

import numpy as np
import pandas as pd

from foretune.arrays import Floats
from foretune.contracts import Prior, Target
from foretune.search import METHODS, Method, Optimizer, Told
from foretune.space import Space

LOOKS = (15, 25, 50, 100)
LEAST = 1e-12

Function = Callable[[Floats], float]


def bowl(seed: int) -> Function:
    rng = np.random.default_rng(seed)
    centre, steepness = rng.random(6), np.exp(rng.normal(size=6))
    return lambda x: float(steepness @ np.square(x - centre))


def ripples(seed: int) -> Function:
    rng = np.random.default_rng(seed)
    centre, steepness = rng.random(5), np.exp(0.7 * rng.normal(size=5))

    def value(x: Floats) -> float:
        away = x - centre
        return float(steepness @ np.square(away) + 0.05 * (1 - np.cos(6 * np.pi * away)).sum())

    return value


def valley(seed: int) -> Function:
    shift = 0.5 * np.random.default_rng(seed).random(4) - 0.25

    def value(x: Floats) -> float:
        z = 3.0 * (x + shift) - 1.0
        return float((100.0 * np.square(z[1:] - z[:-1] ** 2) + np.square(1.0 - z[:-1])).sum())

    return value


STEEPNESS = np.array(
    [
        [10.0, 3.0, 17.0, 3.5, 1.7, 8.0],
        [0.05, 10.0, 17.0, 0.1, 8.0, 14.0],
        [3.0, 3.5, 1.7, 10.0, 17.0, 8.0],
        [17.0, 8.0, 0.05, 10.0, 0.1, 14.0],
    ]
)
CENTRES = 1e-4 * np.array(
    [
        [1312, 1696, 5569, 124, 8283, 5886],
        [2329, 4135, 8307, 3736, 1004, 9991],
        [2348, 1451, 3522, 2883, 3047, 6650],
        [4047, 8828, 8732, 5743, 1091, 381],
    ]
)
DEPTHS = np.array([1.0, 1.2, 3.0, 3.2])
HARTMANN_MINIMUM = -3.322368


def hartmann(seed: int) -> Function:
    del seed
    return lambda x: float(
        -DEPTHS @ np.exp(-(STEEPNESS * np.square(x - CENTRES)).sum(axis=1)) - HARTMANN_MINIMUM
    )


def explosion(seed: int) -> Function:
    centre = 0.2 + 0.6 * np.random.default_rng(seed).random(5)

    def value(x: Floats) -> float:
        beyond = np.exp(20.0 * (x[0] - 0.7)) if x[0] > 0.7 else 0.0
        return float(np.square(x - centre).sum() + beyond)

    return value


FAMILIES = {
    "bowl": (bowl, 6),
    "ripples": (ripples, 5),
    "valley": (valley, 4),
    "Hartmann": (hartmann, 6),
    "explosion": (explosion, 5),
}


def play(
    method: Method, prior: Prior, function: Function, dimensions: int, trials: int, seed: int
) -> Floats:
    """The best value after each trial."""
    names = [f"x{number}" for number in range(dimensions)]
    space = Space.of(dict.fromkeys(names, (0.0, 1.0)))
    optimizer = Optimizer(Target(space), method, prior, seed=seed)
    values = []
    for _ in range(trials):
        suggestion = optimizer.ask()[0]
        values.append(function(np.array([suggestion.config[name] for name in names])))
        optimizer.tell([Told((values[-1],), id=suggestion.id)])
    best: Floats = np.minimum.accumulate(values)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--targets", type=int, default=8)
    parser.add_argument("--trials", type=int, default=100)
    parser.add_argument("--methods", default="auto,gp,gcp,gcp-smooth")
    given = parser.parse_args()
    looks = [n for n in LOOKS if n <= given.trials]
    for name in given.methods.split(","):
        method, rows = METHODS[name], {}
        prior = method.learn(None, seed=0)
        for family, (make, dimensions) in FAMILIES.items():
            runs = [
                play(method, prior, make(seed), dimensions, given.trials, seed)
                for seed in range(given.targets)
            ]
            logs = np.log10(np.maximum(runs, LEAST)).mean(axis=0)
            rows[family] = {f"after {n}": logs[n - 1] for n in looks}
        print(name, pd.DataFrame(rows).T.round(2).to_string(), sep="\n", flush=True)


if __name__ == "__main__":
    main()
