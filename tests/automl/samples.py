"""Small tables with every kind of column."""

import numpy as np
import pandas as pd

from foretune.automl.tables.datasets import Table, Task


def mixed_frame(n=90, seed=0):
    rng = np.random.default_rng(seed)
    number = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "number": number,
            "gaps": np.where(rng.random(n) < 0.2, np.nan, rng.normal(size=n)),
            "letter": rng.choice(list("xyz"), n),
            "town": [None if u < 0.2 else f"town {int(9 * u)}" for u in rng.random(n)],
            "member": rng.random(n) < 0.5,
            "day": pd.date_range("2020-01-01", periods=n, freq="9D").astype(str),
            "always": "same",
            "never": [None] * n,
            "row": np.arange(n) + 7,
            "note": [f"note number {i}" for i in range(n)],
        }
    )
    frame["class"] = np.where(
        number > 0.4, "high", np.where(frame["letter"] == "x", "middle", "low")
    )
    frame["amount"] = 3.0 * number + rng.normal(size=n)
    return frame


def mixed_table(task, n=90, seed=0):
    frame = mixed_frame(n, seed)
    if task is Task.CLASSIFICATION:
        return Table.of(frame.drop(columns="amount"), "class", name="mixed", task=task)
    return Table.of(frame.drop(columns="class"), "amount", name="mixed", task=task)
