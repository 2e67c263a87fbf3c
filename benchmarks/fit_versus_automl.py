"""`foretune fit` against other AutoML tools with equal wall-clock: scores on unseen rows.

    python benchmarks/fit_versus_automl.py --flaml FLAML/bin/python --autogluon AG/bin/python \
        --tpot TPOT/bin/python --seconds 60 --datasets 8 --out automl.csv

Each tool runs in an environment of its own: `pip install 'flaml[automl]==2.7.0'`, `pip install
'autogluon.tabular[catboost,lightgbm,xgboost]==1.5.0'`, `pip install tpot==1.1.0`. All read the same
CSV file, have two workers, optimise accuracy or R², and keep a third of the rows for the test. The
datasets are those whose families the shipped knowledge has never seen, in the order of a hash of
their names. A score that is in the file already is not computed again.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import train_test_split

from foretune.automl.collection.sources import sources
from foretune.automl.tables.datasets import Table
from foretune.automl.tables.targets import Task

TARGET = "target"
READ = """
import sys, pandas as pd
train, test, out, task, metric, seconds = sys.argv[1:]
frame, rows = pd.read_csv(train), pd.read_csv(test)
"""
SCRIPTS = {
    "flaml": """
from flaml import AutoML
y = frame.pop("target")
model = AutoML(task=task, metric=metric, time_budget=float(seconds), n_jobs=2, verbose=0, seed=0)
model.fit(frame, y)
found = model.predict(rows)
""",
    "autogluon": """
from autogluon.tabular import TabularPredictor
model = TabularPredictor(label="target", eval_metric=metric, path="autogluon", verbosity=0)
found = model.fit(frame, time_limit=float(seconds), num_cpus=2).predict(rows)
""",
    "tpot": """
if __name__ == "__main__":
    from sklearn.preprocessing import LabelEncoder
    from tpot import TPOTClassifier, TPOTRegressor
    y, classes = frame.pop("target"), LabelEncoder()
    kind = TPOTClassifier if task == "classification" else TPOTRegressor
    model = kind(
        search_space="linear", scorers=[metric], scorers_weights=[1], cv=5, n_jobs=2,
        max_time_mins=float(seconds) / 60, max_eval_time_mins=float(seconds) / 120,
        preprocessing=True, random_state=0, verbose=0,
    )
    model.fit(frame, classes.fit_transform(y) if task == "classification" else y)
    found = model.predict(rows)
    found = classes.inverse_transform(found) if task == "classification" else found
""",
}
"""What each peer does between reading the rows and writing its predictions."""
WRITE = """
if __name__ == "__main__":
    pd.DataFrame({"prediction": list(found)}).to_csv(out, index=False)
"""


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


def by_foretune(folder: Path, task: Task, seconds: float, ensemble: int) -> np.ndarray:
    metric = "accuracy" if task is Task.CLASSIFICATION else "r2"
    command = [sys.executable, "-c", "from foretune.cli import main; main()"]
    fit = ["fit", "train.csv", "--target", TARGET, "--metric", metric, "--trials", "100000"]
    fit += ["--time", f"{seconds:g}s", "--jobs", "2", "--no-remember", "--out", "model"]
    fit += ["--ensemble", str(ensemble)]
    predict = ["predict", "model/model.foretune", "test.csv", "-o", "foretune.csv"]
    for each in (fit, predict):
        subprocess.run([*command, *each], cwd=folder, check=True, capture_output=True)
    return pd.read_csv(folder / "foretune.csv").iloc[:, -1].to_numpy()


def by_peer(folder: Path, task: Task, seconds: float, name: str, python: Path) -> np.ndarray:
    metric = "accuracy" if task is Task.CLASSIFICATION else "r2"
    script = folder / f"by_{name}.py"
    script.write_text(READ + SCRIPTS[name] + WRITE)
    given = ["train.csv", "test.csv", f"{name}.csv", str(task), metric, f"{seconds:g}"]
    command = [python, script.name, *given]
    subprocess.run(command, cwd=folder, check=True, capture_output=True)
    return pd.read_csv(folder / f"{name}.csv").prediction.to_numpy()


def compared(table: Table, given: argparse.Namespace, known: dict[str, float]) -> dict[str, float]:
    """The score of each tool, and the seconds that it took; what is known already stays."""
    rows = frame_of(table)
    groups = rows[TARGET] if table.task is Task.CLASSIFICATION else None
    train, test = train_test_split(rows, test_size=1 / 3, random_state=0, stratify=groups)
    score = accuracy_score if table.task is Task.CLASSIFICATION else r2_score
    found = dict(known)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train.to_csv(folder / "train.csv", index=False)
        test.drop(columns=TARGET).to_csv(folder / "test.csv", index=False)
        for tool in (tool for tool in asked(given) if tool not in known):
            began = time.perf_counter()
            if tool == "foretune":
                predicted = by_foretune(folder, table.task, given.seconds, given.ensemble)
            else:
                python = getattr(given, tool)
                predicted = by_peer(folder, table.task, given.seconds, tool, python)
            found[f"{tool} seconds"] = round(time.perf_counter() - began, 1)
            found[tool] = score(test[TARGET], predicted)
    return found


def asked(given: argparse.Namespace) -> list[str]:
    return ["foretune", *(name for name in SCRIPTS if getattr(given, name))]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for name in SCRIPTS:
        parser.add_argument(f"--{name}", type=Path, help=f"Python that has {name}")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--datasets", type=int, default=25)
    parser.add_argument("--skip", type=int, default=0, help="so many of the first")
    parser.add_argument("--ensemble", type=int, default=5, help="pipelines that `fit` blends")
    parser.add_argument("--out", type=Path, default=Path("fit_versus_automl.csv"))
    given = parser.parse_args()
    found = [source for task in Task for source in sources(f"catalogue:{task}-held-out", task)]
    found.sort(key=lambda source: sha256(source.name.encode()).hexdigest())
    scores = pd.read_csv(given.out, index_col=0) if given.out.exists() else pd.DataFrame()
    rows = {str(name): row.dropna().to_dict() for name, row in scores.iterrows()}
    for source in found[given.skip :][: given.datasets]:
        rows[source.name] = compared(source.load(), given, rows.get(source.name, {}))
        table = pd.DataFrame.from_dict(rows, orient="index")
        table.to_csv(given.out)
        print(table[asked(given)].round(4).to_string(), flush=True)
    whole = pd.DataFrame.from_dict(rows, orient="index")[asked(given)].dropna()
    print(f"mean rank on {len(whole)} datasets:")
    print(whole.rank(axis=1, ascending=False).mean().round(2).to_string())


if __name__ == "__main__":
    main()
