"""`auto` in a whole space of real numbers, on functions that a good search refines to many digits.

    python benchmarks/auto_smooth.py --targets 8 --trials 100

Recorded tables cannot show whether a search refines: they end at the nearest recorded
configuration. Here every task is a bowl with ripples in five dimensions, its centre and its widths
drawn around common ones; 20 past tasks have 100 random evaluations each. Reported is the median
over targets of the logarithm (base 10) of the best value so far, the minimum being 0; beside
`auto` the process that knows nothing and, where it is installed, Optuna's TPE.
"""

import argparse
from collections.abc import Callable, Iterator
from typing import TypeAlias

import numpy as np
import pandas as pd

from foretune.arrays import Floats
from foretune.contracts import Target
from foretune.experience import Experience, read_table
from foretune.search import METHODS, Optimizer, Told

DIMENSIONS = 5
CENTRE = np.array([0.7, 0.3, 0.6, 0.5, 0.5])
STEEPNESS = np.array([4.0, 2.0, 1.0, 1.0, 0.3])
PAST_TASKS, PAST_TRIALS = 20, 100
FIRST_TARGET = 500
LOOKS = (5, 10, 25, 50, 100, 200)

Function: TypeAlias = Callable[[Floats], float]


def function(seed: int) -> Function:
    rng = np.random.default_rng(seed)
    centre = np.clip(CENTRE + 0.15 * rng.standard_normal(DIMENSIONS), 0.02, 0.98)
    steepness = STEEPNESS * np.exp(0.5 * rng.standard_normal(DIMENSIONS))

    def value(x: Floats) -> float:
        away = x - centre
        return float(steepness @ np.square(away) + 0.05 * (1 - np.cos(6 * np.pi * away)).sum())

    return value
