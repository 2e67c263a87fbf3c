"""Randomness that a resumed study repeats exactly.

A draw depends on the study's seed and on how much has happened so far, never on how often
somebody asked; so a study that was interrupted goes on as if it never had been.
"""

import numpy as np

from foretune.errors import UsageError


def derived_seed(*parts: int) -> int:
    """One 32-bit seed from several whole numbers of at least 0, well mixed."""
    if min(parts) < 0:
        raise UsageError(
            f"a seed must be a whole number of at least 0, but got {min(parts)}: give another"
        )
    return int(np.random.SeedSequence(parts).generate_state(1)[0])
