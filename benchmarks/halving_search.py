"""Compares ForetuneSearchCV with HalvingRandomSearchCV, with a resource and at equal cost.

    python benchmarks/halving_search.py --out runs.jsonl [--seeds 5]

Both begin with 27 candidates and fit 27, 9, 3 and 1 of them with 1/27, 1/9, 1/3 and all of the
resources. The score is that of the refitted best candidate on a third of the rows, which the search
does not see. Cost is the sum of resources of all fits, in complete fits of one candidate. The same
command goes on with the runs that are missing in --out.
"""

import argparse
import json
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy.stats import loguniform, randint, uniform
from sklearn.datasets import load_breast_cancer, load_digits, make_classification
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.experimental import enable_halving_search_cv  # noqa: F401
from sklearn.metrics import log_loss
from sklearn.model_selection import HalvingRandomSearchCV, train_test_split
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC

from foretune import ForetuneSearchCV

CANDIDATES, FACTOR = 27, 3


def boosting() -> tuple[Any, dict[str, Any], dict[str, Any]]:
    space = {
        "learning_rate": loguniform(0.005, 1.0),
        "max_leaf_nodes": randint(3, 32),
        "min_samples_leaf": randint(1, 60),
        "l2_regularization": loguniform(1e-6, 1e2),
        "max_features": uniform(0.1, 0.9),
    }
    model = HistGradientBoostingClassifier(early_stopping=False, random_state=0)
    return model, space, {"resource": "max_iter", "max_resources": 81, "min_resources": 3}


def kernel() -> tuple[Any, dict[str, Any], dict[str, Any]]:
    space = {"svc__C": loguniform(1e-3, 1e3), "svc__gamma": loguniform(1e-5, 1e1)}
    model = make_pipeline(StandardScaler(), SVC(probability=True, random_state=0))
    return model, space, {"resource": "n_samples"}


def hard_classes() -> tuple[np.ndarray, np.ndarray]:
    return make_classification(
        1_500, 20, n_informative=8, n_clusters_per_class=4, flip_y=0.05, random_state=0
    )


TABLES: dict[str, Callable[[], Any]] = {
    "breast_cancer": lambda: load_breast_cancer(return_X_y=True),
    "made_20_columns": hard_classes,
    "digits": lambda: load_digits(return_X_y=True),
}
PROGRAMS = {"svc": kernel, "boosting": boosting}


def run(table: str, program: str, tool: str, seed: int) -> dict[str, float]:
    X, y = TABLES[table]()
    X, X_test, y, y_test = train_test_split(X, y, test_size=1 / 3, random_state=seed, stratify=y)
    model, space, options = PROGRAMS[program]()
    options |= {"factor": FACTOR, "cv": 3, "scoring": "neg_log_loss", "random_state": seed}
    if options["resource"] == "n_samples":
        options["min_resources"] = len(X) // FACTOR**3
    if tool == "foretune":
        search = ForetuneSearchCV(model, space, n_iter=CANDIDATES, **options)
    else:
        search = HalvingRandomSearchCV(model, space, n_candidates=CANDIDATES, **options)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        search.fit(X, y)
    resources = np.asarray(search.cv_results_["n_resources"])
    return {
        "loss": float(log_loss(y_test, search.predict_proba(X_test))),
        "cost": float(resources.sum() / resources.max()),
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    lines = given.out.read_text().splitlines() if given.out.exists() else []
    known = dict(json.loads(line) for line in lines)
    for program in PROGRAMS:
        for table in TABLES:
            found = {}
            for tool in ("foretune", "scikit-learn"):
                for seed in range(given.seeds):
                    name = f"{table}, {program}, {tool}, {seed}"
                    if name not in known:
                        known[name] = run(table, program, tool, seed)
                        with given.out.open("a") as file:
                            file.write(json.dumps([name, known[name]]) + "\n")
                    found.setdefault(tool, []).append(known[name])
            for tool, runs in found.items():
                losses = np.array([each["loss"] for each in runs])
                print(
                    f"{table:16} {program:9} {tool:13} log loss {losses.mean():.4f} +- "
                    f"{losses.std(ddof=1) / len(losses) ** 0.5:.4f}, cost "
                    f"{np.mean([each['cost'] for each in runs]):.2f}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
