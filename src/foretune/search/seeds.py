"""Randomness that a resumed study repeats exactly.

A draw depends on the study's seed and on how much has happened so far, never on how often
somebody asked; so a study that was interrupted goes on as if it never had been.
"""

import numpy as np

from foretune.errors import UsageError

LARGEST_SEED = 2**32 - 1
"""What the libraries that draw random numbers take; the command line has it written out."""


def check_seed(seed: int) -> None:
    """Refuse what is no seed, before anything is drawn or learnt."""
    if not 0 <= seed <= LARGEST_SEED:
        raise UsageError(
            f"a seed must be a whole number from 0 to {LARGEST_SEED}, but got {seed}: give another"
        )


def derived_seed(*parts: int) -> int:
    """One 32-bit seed from several seeds, well mixed."""
    for part in parts:
        check_seed(part)
    return int(np.random.SeedSequence(parts).generate_state(1)[0])
