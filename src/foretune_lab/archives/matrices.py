"""Shared code of the importers of matrices."""

import numpy as np

from foretune.experience import Direction, Experience, Metric
from foretune.numerics import Bools

ERROR = Metric("error", Direction.MIN)


def with_records(experience: Experience, recorded: Bools) -> Experience:
    """Leave out the tasks without records; `recorded` is (tasks, configurations)."""
    kept: Bools = np.any(recorded, axis=1)
    if kept.all():
        return experience
    return experience.only(task for task, keep in zip(experience.tasks, kept, strict=True) if keep)
