"""Functions that a good search refines to many digits, as problems for tuners; needs NumPy alone.

Recorded tables cannot show whether a search refines: they end at the nearest recorded
configuration. The minimum of every function is 0 (of an explosion a little more, where its edge
covers the centre), and a seed draws one of its family. Of one family a trial sees the value with
noise; what counts is the value without.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from benchmarks.peers.objective import Floats, Parameter, Problem

Function = Callable[[Floats], float]


def bowl(seed: int) -> Function:
    """Wide in some dimensions and steep in others."""
    rng = np.random.default_rng(seed)
    centre, steepness = rng.random(6), np.exp(rng.normal(size=6))
    return lambda x: float(steepness @ np.square(x - centre))


def ripples(seed: int) -> Function:
    """A bowl with small waves."""
    rng = np.random.default_rng(seed)
    return add_ripples(rng.random(5), np.exp(0.7 * rng.normal(size=5)))


def add_ripples(centre: Floats, steepness: Floats) -> Function:
    """The bowl with small waves around a centre."""

    def value(x: Floats) -> float:
        away = x - centre
        return float(steepness @ np.square(away) + 0.05 * (1 - np.cos(6 * np.pi * away)).sum())

    return value


def valley(seed: int) -> Function:
    """Rosenbrock's, shifted."""
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
    """Hartmann's of six dimensions; there is only one."""
    del seed
    return lambda x: float(
        -DEPTHS @ np.exp(-(STEEPNESS * np.square(x - CENTRES)).sum(axis=1)) - HARTMANN_MINIMUM
    )


def explosion(seed: int) -> Function:
    """A bowl that explodes at one side, like training with too high a learning rate."""
    centre = 0.2 + 0.6 * np.random.default_rng(seed).random(5)

    def value(x: Floats) -> float:
        beyond = np.exp(20.0 * (x[0] - 0.7)) if x[0] > 0.7 else 0.0
        return float(np.square(x - centre).sum() + beyond)

    return value


def choices(seed: int) -> Function:
    """A bowl for each of three choices; one is the lowest. Two of six parameters are integers."""
    rng = np.random.default_rng(seed)
    centres, floors = 0.1 + 0.8 * rng.random((3, 5)), rng.permutation([0.0, 0.1, 0.3])
    steepness = np.exp(0.7 * rng.normal(size=5))
    centres[:, 3:] = np.rint(19 * centres[:, 3:]) / 19

    def value(x: Floats) -> float:
        away = np.append(x[1:4], (x[4:] - 1) / 19) - centres[int(x[0])]
        return float(steepness @ np.square(away) + floors[int(x[0])])

    return value


def needle(seed: int) -> Function:
    """Ackley's of five dimensions, shifted: many small minima around a narrow one."""
    centre = 0.2 + 0.6 * np.random.default_rng(seed).random(5)

    def value(x: Floats) -> float:
        z = 20.0 * (x - centre)
        round_about = 20.0 * (1.0 - np.exp(-0.2 * np.sqrt(np.square(z).mean())))
        return float(round_about + np.e - np.exp(np.cos(2 * np.pi * z).mean()))

    return value


@dataclass(frozen=True)
class Family:
    """A family of similar functions."""

    make: Callable[[int], Function]
    parameters: tuple[Parameter, ...]
    noise: float = 0.0
    """The standard deviation of the noise that a trial adds to the value."""


def numbers(n: int) -> tuple[Parameter, ...]:
    """The number of parameters; each lies between 0 and 1."""
    return tuple(Parameter(f"x{place}", "float", 0.0, 1.0, log=False) for place in range(n))


FAMILIES = {
    "bowl": Family(bowl, numbers(6)),
    "ripples": Family(ripples, numbers(5)),
    "valley": Family(valley, numbers(4)),
    "hartmann": Family(hartmann, numbers(6)),
    "explosion": Family(explosion, numbers(5)),
    "choices": Family(
        choices,
        (
            Parameter("choice", "categorical", 0, 2, log=False),
            *numbers(3),
            *(Parameter(name, "int", 1, 20, log=False) for name in ("m", "n")),
        ),
    ),
    "needle": Family(needle, numbers(5)),
    "noise": Family(bowl, numbers(6), noise=0.1),
}


@dataclass(frozen=True)
class FunctionProblem(Problem):
    """One function of a family, without recorded evaluations or past tasks."""

    value: Function
    """The value that counts in the comparison, without noise."""
    noise: float
    rng: np.random.Generator

    @classmethod
    def called(cls, task: str) -> "FunctionProblem":
        """Return the function with a name such as `bowl:3`."""
        name, _, seed = task.partition(":")
        family = FAMILIES[name]
        return cls.of(family.make(int(seed)), family.parameters, family.noise, seed=int(seed))

    @classmethod
    def of(
        cls, value: Function, parameters: tuple[Parameter, ...], noise: float = 0.0, *, seed: int
    ) -> "FunctionProblem":
        """Return the function with these parameters."""
        return cls(
            task="",
            parameters=parameters,
            values=np.empty((0, len(parameters))),
            losses=np.empty(0),
            past={},
            experience="",
            learnt_from=(),
            value=value,
            noise=noise,
            rng=np.random.default_rng([seed, 1]),
        )

    def loss(self, row: Floats) -> float:
        """Return the value that a trial sees, with noise."""
        return self.value(row) + self.noise * float(self.rng.standard_normal())
