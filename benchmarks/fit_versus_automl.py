"""`foretune fit` against FLAML with equal wall-clock: the score on rows that neither has seen.

    python benchmarks/fit_versus_automl.py --flaml ENVIRONMENT/bin/python --seconds 60 --datasets 8

FLAML runs in an environment of its own (`pip install 'flaml[automl]==2.7.0'`). Both read the same
CSV file, have two workers, optimise accuracy or R², and keep a third of the rows for the test. The
datasets are those whose families the shipped knowledge has never seen, the first of each task in
the order of a hash of their names.
"""

import argparse
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.metrics import accuracy_score, r2_score
from sklearn.model_selection import train_test_split

from foretune.automl.datasets import Table, Task
from foretune.automl.sources import sources

TARGET = "target"
BY_FLAML = """
import sys, pandas as pd
from flaml import AutoML
train, test, out, task, metric, seconds = sys.argv[1:]
frame, rows = pd.read_csv(train), pd.read_csv(test)
y = frame.pop("target")
model = AutoML(task=task, metric=metric, time_budget=float(seconds), n_jobs=2, verbose=0, seed=0)
model.fit(frame, y)
pd.DataFrame({"prediction": model.predict(rows)}).to_csv(out, index=False)
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
    fit += ["--ensemble", str(ensemble)] if ensemble > 1 else []
    predict = ["predict", "model/model.foretune", "test.csv", "-o", "foretune.csv"]
    for each in (fit, predict):
        subprocess.run([*command, *each], cwd=folder, check=True, capture_output=True)
    return pd.read_csv(folder / "foretune.csv").iloc[:, -1].to_numpy()


def by_flaml(folder: Path, task: Task, seconds: float, python: Path) -> np.ndarray:
    metric = "accuracy" if task is Task.CLASSIFICATION else "r2"
    given = ["train.csv", "test.csv", "flaml.csv", str(task), metric, f"{seconds:g}"]
    subprocess.run([python, "-c", BY_FLAML, *given], cwd=folder, check=True, capture_output=True)
    return pd.read_csv(folder / "flaml.csv").prediction.to_numpy()


def compared(table: Table, given: argparse.Namespace) -> dict[str, object]:
    rows = frame_of(table)
    groups = rows[TARGET] if table.task is Task.CLASSIFICATION else None
    train, test = train_test_split(rows, test_size=1 / 3, random_state=0, stratify=groups)
    score = accuracy_score if table.task is Task.CLASSIFICATION else r2_score
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        train.to_csv(folder / "train.csv", index=False)
        test.drop(columns=TARGET).to_csv(folder / "test.csv", index=False)
        foretune = score(
            test[TARGET], by_foretune(folder, table.task, given.seconds, given.ensemble)
        )
        flaml = score(test[TARGET], by_flaml(folder, table.task, given.seconds, given.flaml))
    return {"dataset": table.name, "rows": len(rows), "foretune": foretune, "flaml": flaml}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flaml", type=Path, required=True, help="Python that has FLAML")
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--datasets", type=int, default=25)
    parser.add_argument("--skip", type=int, default=0, help="so many of the first")
    parser.add_argument("--ensemble", type=int, default=1, help="pipelines that `fit` blends")
    given = parser.parse_args()
    found = [source for task in Task for source in sources(f"catalogue:{task}-held-out", task)]
    found.sort(key=lambda source: sha256(source.name.encode()).hexdigest())
    rows = []
    for source in found[given.skip :][: given.datasets]:
        rows.append(compared(source.load(), given))
        print(pd.DataFrame(rows).round(4).to_string(), flush=True)
    table = pd.DataFrame(rows)
    print(table[["foretune", "flaml"]].rank(axis=1, ascending=False).mean().round(2).to_string())


if __name__ == "__main__":
    main()
