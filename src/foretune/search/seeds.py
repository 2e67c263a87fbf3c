"""Randomness that a resumed study repeats exactly.

A draw depends on the study's seed and on how much has happened so far, never on how often
somebody asked; so a study that was interrupted goes on as if it never had been.
"""

import numpy as np


def derived_seed(*parts: int) -> int:
    """One 32-bit seed from several whole numbers, well mixed."""
    return int(np.random.SeedSequence([abs(part) for part in parts]).generate_state(1)[0])
