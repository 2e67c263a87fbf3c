"""Small tables with every kind of column."""

from functools import cache

import numpy as np
import pandas as pd

from foretune.tables.table import Table
from foretune.tables.target import Task


def with_few_trees(config, most=8):
    """Return a configuration with at most so many trees or rounds, which says as much in a test."""
    of_trees = ("n_estimators", "max_iter")
    return {
        name: min(value, most) if name.rsplit(":", maxsplit=1)[-1] in of_trees else value
        for name, value in config.items()
    }


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


@cache
def mixed_table(task, n=90, seed=0):
    frame = mixed_frame(n, seed)
    if task is Task.CLASSIFICATION:
        return Table.of(frame.drop(columns="amount"), "class", name="mixed", task=task)
    return Table.of(frame.drop(columns="class"), "amount", name="mixed", task=task)


@cache
def table_with_texts(task, n=120, *, others=True):
    """One text that helps and one that does not, beside numbers and categories or alone."""
    rng = np.random.default_rng(2)
    good = rng.random(n) < 0.5
    number = rng.normal(size=n)
    frame = pd.DataFrame(
        {
            "review": [f"{'fine' if each else 'awful'} item no{i}" for i, each in enumerate(good)],
            "note": [f"{rng.choice(['red', 'blue'])} note no{i}" for i in range(n)],
        }
    )
    frame.loc[::9, "review"] = None
    if others:
        frame = frame.assign(number=number, letter=rng.choice(list("xyz"), n))
        frame.loc[::7, "number"] = np.nan
    frame["y"] = np.where(good, "yes", "no") if task is Task.CLASSIFICATION else good + 0.1 * number
    return Table.of(frame, "y", name="texts", task=task)


def noise_frame(task: Task, rows: int = 200) -> pd.DataFrame:
    """Return numbers that tell nothing about `y`. With this seed no model is better by chance."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.normal(size=(rows, 4)).round(2), columns=list("abcd"))
    is_class = task is Task.CLASSIFICATION
    return frame.assign(
        y=rng.choice(["no", "yes"], rows) if is_class else rng.normal(size=rows).round(2)
    )
