"""A space and a part of it, and an experience in the whole."""

import numpy as np

from foretune.experience import Direction, Experience, Metric
from foretune.space import Space

WHOLE = Space.of(
    {
        "model": {
            "svm": {"C": (1e-3, 1e3, "log"), "kernel": ["rbf", "linear"]},
            "forest": {"trees": (10, 500), "share": (0.1, 1.0)},
            "naive": {},
        },
        "scale": ["none", "standard"],
    },
    stages=("model", "scale"),
)
PART = Space.of(
    {
        "model": {"naive": {}, "forest": {"trees": (10, 500), "share": (0.1, 1.0)}},
        "scale": ["standard", "none"],
    },
    stages=("model", "scale"),
)
CONFIGS = [
    {"model": "svm", "scale": "none", "model:svm:C": 1.0, "model:svm:kernel": "rbf"},
    {"model": "forest", "scale": "standard", "model:forest:trees": 40, "model:forest:share": 0.5},
    {"model": "naive", "scale": "none"},
]


def experience(values=((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))):
    values = np.array(values)
    return Experience.from_matrix(
        WHOLE,
        WHOLE.encode(CONFIGS),
        [f"t{i}" for i in range(len(values))],
        [Metric("error", Direction.MIN)],
        {"error": values},
        seconds=values * 10,
        meta_features={"t0": {"rows": 5.0}},
        splits={"s": {"train": ["t0"], "test": ["t1"]}},
        starts={"t0": {"a": [0, 2]}},
    )
