"""The table of `foretune fit --demo`: 1,000 credits and whether they were paid back.

German credit data of Hans Hofmann (UCI Machine Learning Repository, CC BY 4.0), written by
benchmarks/build_fit_demo.py. The experience that ships has not seen it, so the demo shows what
happens on a new dataset.
"""

from importlib.resources import files

import pandas as pd

NAME = "credit"
TARGET = "risk"
HELD_OUT = 0.25


def demo_frames() -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return rows to learn from and rows to test on."""
    from sklearn.model_selection import train_test_split

    with files("foretune.automl").joinpath("credit.csv").open(encoding="utf-8") as file:
        frame = pd.read_csv(file)
    learn, held = train_test_split(
        frame, test_size=HELD_OUT, stratify=frame[TARGET], random_state=0
    )
    return learn.reset_index(drop=True), held.reset_index(drop=True)
