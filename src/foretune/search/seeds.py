"""Randomness that a resumed study repeats exactly.

A draw depends on the study's seed and on how much has happened so far, never on how often
somebody asked; so a study that was interrupted goes on as if it never had been.
"""

from numbers import Integral
from typing import Any

import numpy as np

from foretune.errors import UsageError

LARGEST_SEED = 2**32 - 1
"""What the libraries that draw random numbers take; the command line has it written out."""


def is_seed(given: Any) -> bool:
    """Whether random numbers can be drawn with it."""
    whole = isinstance(given, Integral) and not isinstance(given, bool)
    return whole and 0 <= int(given) <= LARGEST_SEED


def check_seed(seed: int) -> None:
    """Refuse what is no seed, before anything is drawn or learnt."""
    if not is_seed(seed):
        raise UsageError(
            f"a seed must be a whole number from 0 to {LARGEST_SEED}, but got {seed!r}: give "
            "another"
        )


def derive_seed(*parts: int) -> int:
    """One 32-bit seed from several seeds, well mixed."""
    for part in parts:
        check_seed(part)
    return int(np.random.SeedSequence(parts).generate_state(1)[0])
