"""Randomness that a resumed study repeats exactly.

A draw depends on the study's seed and on the trials so far, never on the number of calls. Therefore
an interrupted study goes on as if it had not been interrupted.
"""

from numbers import Integral
from typing import Any

import numpy as np

from foretune.errors import UsageError

LARGEST_SEED = 2**32 - 1
"""The largest seed that the libraries for random numbers take. The command line repeats it."""


def is_seed(given: Any) -> bool:
    """Return whether random numbers can be drawn with a value."""
    whole = isinstance(given, Integral) and not isinstance(given, bool)
    return whole and 0 <= int(given) <= LARGEST_SEED


def check_seed(seed: int) -> None:
    """Refuse an invalid seed, before anything is drawn or learnt."""
    if not is_seed(seed):
        raise UsageError(
            f"a seed must be a whole number from 0 to {LARGEST_SEED}, but got {seed!r}: give "
            "another",
            rule="not-a-seed",
            field="seed",
            value=seed,
        )


def derive_seed(*parts: int) -> int:
    """Mix several seeds into one 32-bit seed."""
    for part in parts:
        check_seed(part)
    return int(np.random.SeedSequence(parts).generate_state(1)[0])
