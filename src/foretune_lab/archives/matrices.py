"""What importers of matrices share."""

import numpy as np

from foretune.experience import Direction, Experience, Metric
from foretune.numerics import Bools

ERROR = Metric("error", Direction.MIN)


def with_records(experience: Experience, recorded: Bools) -> Experience:
    """Without the tasks of which nothing is recorded; `recorded` is (tasks, configurations)."""
    kept: Bools = np.any(recorded, axis=1)
    if kept.all():
        return experience
    return experience.only(task for task, keep in zip(experience.tasks, kept, strict=True) if keep)
