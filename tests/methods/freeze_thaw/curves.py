"""Past tasks whose curves follow a known law, for tests."""

import numpy as np

from foretune.experience import (
    Direction,
    Evaluation,
    Metric,
    Status,
    build_experience,
)
from foretune.experience.curves import Curve
from foretune.space import Space

SPACE = Space.of({"rate": (0.0, 1.0), "size": (0.0, 1.0)})
LAST = 16


def losses_of(x, task_shift=0.0, scale=1.0, offset=0.0, steps=LAST):
    """Return (len(x), steps): a bowl at the end, a slow fall for small rates."""
    at = np.arange(1, steps + 1) / steps
    end = np.square(x[:, 0] - 0.7 - task_shift) + 0.3 * np.square(x[:, 1] - 0.2)
    fall = (0.3 + 0.5 * x[:, [0]]) * (at**-0.5 - 1.0) / 3.0
    return offset + scale * (end[:, None] + fall)


def past(tasks=5, configs=60, steps=LAST, *, lengths=None, seed=0):
    """Return an experience with curves. `lengths` gives each task a number of steps of its own."""
    rng = np.random.default_rng(seed)
    rows = []
    for number in range(tasks):
        count = steps if lengths is None else lengths[number]
        x = rng.random((configs, 2))
        values = losses_of(
            x, 0.05 * rng.standard_normal(), 10.0 ** rng.uniform(-1, 1), rng.normal(), count
        )
        for config, row in zip(x, values, strict=True):
            curve = Curve(list(range(1, count + 1)), {"loss": row.tolist()})
            rows.append(
                Evaluation(
                    f"task-{number}",
                    {"rate": float(config[0]), "size": float(config[1])},
                    {"loss": float(row[-1])},
                    Status.DONE,
                    curve=curve,
                )
            )
    return build_experience(SPACE, [Metric("loss", Direction.MIN)], rows)
