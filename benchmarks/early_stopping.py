"""Compares estimators that end by early stopping with those that ran for a fixed number of steps.

    python benchmarks/early_stopping.py TABLES --half 0 --out stopping.jsonl
    python benchmarks/early_stopping.py TABLES --summary --out stopping.jsonl

TABLES is a folder of Parquet files with an `index.csv` (name, family, kind, target). 30% of the
rows of a table are held out; five models, of the folds of the other rows (at most 6,000), are
averaged. A fold's own rows judge its steps. The loss is the log loss, or the root of 1 - R2, and
the time is CPU time of fitting and predicting. Tables are divided into halves by a hash of their
family: settings were chosen on half 0. A table that is in the file already is not played again.
"""

import argparse
import hashlib
import json
import math
import time
import warnings
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.folds import cross_validation
from foretune.tables import Table, Task

MOST_ROWS = 6000
MOST_SECONDS = 20.0
"""A fit in steps ends after so many seconds."""
LEAST_LOSS = 2e-3
"""Losses below this count alike: ratios of tiny losses say nothing."""
PLAIN = {"imputer": "median", "encoder": "ordinal", "scaler": "none", "reducer": "none"}
SCALED = {**PLAIN, "encoder": "one_hot", "encoder:one_hot:max_categories": 20, "scaler": "standard"}
TREES = {"learning_rate": 0.1, "colsample": 0.8, "subsample": 0.8, "l2": 1.0}
BOOSTERS: dict[str, dict[str, Any]] = {
    "lightgbm": {**TREES, "num_leaves": 31, "min_child_samples": 20},
    "xgboost": {**TREES, "max_depth": 6, "min_child_weight": 1.0},
    "hist_boosting": {
        "learning_rate": 0.1,
        "max_leaf_nodes": 31,
        "min_samples_leaf": 20,
        "l2": 1.0,
    },
}
NETWORK = {"learning_rate_init": 0.01, "alpha": 0.05, "layers": 2, "units": 128}
PAIRS = {
    **{f"{name}, early stopping": f"{name}, 100 rounds" for name in BOOSTERS},
    "network": "MLP of scikit-learn",
}
"""Each way, and the way that it is compared with."""


def ways() -> dict[str, dict[str, Any]]:
    """Return the configurations, by what they are called."""
    found = {}
    for name, settings in BOOSTERS.items():
        steps = "max_iter" if name == "hist_boosting" else "n_estimators"
        encoder = {} if name == "hist_boosting" else {"encoder": "one_hot"}
        slow = {**settings, "learning_rate": 0.05}
        found[f"{name}, 100 rounds"] = _config(PLAIN, name, {**settings, steps: 100})
        found[f"{name}, early stopping"] = _config({**PLAIN, **encoder}, name, slow)
    found["network"] = _config(PLAIN, "mlp", NETWORK)
    return found


def _config(steps: dict[str, Any], name: str, settings: dict[str, Any]) -> dict[str, Any]:
    prefixed = {f"estimator:{name}:{key}": value for key, value in settings.items()}
    return {**steps, "estimator": name, **prefixed}


def half_of(family: str) -> int:
    """Return the half of a family: 0, where settings were chosen, or 1, where they are checked."""
    return int(hashlib.md5(family.encode(), usedforsecurity=False).hexdigest(), 16) % 2


def play_table(table: Table, seed: int) -> Iterable[dict[str, Any]]:
    """Yield the loss and the seconds of each way."""
    order = np.random.default_rng(seed).permutation(len(table))
    first = int(0.7 * len(order))
    learn, held = table.rows(order[: min(first, MOST_ROWS)]), table.rows(order[first:])
    splits = cross_validation(learn, 5, 0)
    for way, config in ways().items():
        start, given = time.process_time(), []
        fixed = "100 rounds" in way
        for rows, validation in splits:
            judging = {} if fixed else {"validation": validation}
            member = refit(config, learn, seed=0, rows=rows, seconds=MOST_SECONDS, **judging)
            given.append(_predict(member, held))
        spent = time.process_time() - start
        yield {"way": way, "loss": _loss(held, np.mean(given, axis=0)), "seconds": spent}
    yield {"way": "MLP of scikit-learn", **_plain_network(learn, held, splits)}


def _plain_network(learn: Table, held: Table, splits: Any) -> dict[str, float]:
    """Average networks of scikit-learn on imputed, encoded and scaled columns."""
    from sklearn.compose import TransformedTargetRegressor
    from sklearn.neural_network import MLPClassifier, MLPRegressor
    from sklearn.pipeline import Pipeline
    from sklearn.preprocessing import StandardScaler

    from foretune.automl.estimators.pipelines import build_pipeline

    start, given = time.process_time(), []
    settings = {"hidden_layer_sizes": (128, 128), "learning_rate_init": 0.003, "alpha": 1e-3}
    for rows, _ in splits:
        some, texts = learn.rows(rows), tuple(learn.schema.texts.values())
        prepared = _config(SCALED, "knn", {"n_neighbors": 1, "p": 2, "weights": "uniform"})
        before = build_pipeline(prepared, learn.categorical, learn.task, seed=0, texts=texts)
        if learn.task is Task.REGRESSION:
            network = TransformedTargetRegressor(
                MLPRegressor(**settings, random_state=0), transformer=StandardScaler()
            )
            model = Pipeline([*before.steps[:-1], ("estimator", network)]).fit(some.x, some.y)
            given.append(model.predict(held.x))
            continue
        network = MLPClassifier(**settings, random_state=0)
        codes = some.y.astype(int)
        model = Pipeline([*before.steps[:-1], ("estimator", network)]).fit(some.x, codes)
        shares = np.zeros((len(held), len(held.classes)))
        shares[:, model.classes_] = model.predict_proba(held.x)
        given.append(shares)
    spent = time.process_time() - start
    return {"loss": _loss(held, np.mean(given, axis=0)), "seconds": spent}


def _predict(member: Any, held: Table) -> Any:
    if held.task is Task.REGRESSION:
        return member.predict(held.x)
    return member.probabilities(held.x, len(held.classes))


def _loss(held: Table, given: Any) -> float:
    if held.task is Task.REGRESSION:
        return float(np.sqrt(np.mean((given - held.y) ** 2) / np.var(held.y)))
    likely = given[np.arange(len(held)), held.y.astype(int)]
    return float(-np.log(np.clip(likely, 1e-15, 1.0)).mean())


def print_summary(frame: pd.DataFrame) -> None:
    """Print mean ratios of losses and seconds, by half and kind, with intervals over tables."""
    rng = np.random.default_rng(0)
    print("| | half | kind | tables | ratio of losses (95%) | better | ratio of CPU s |")
    print("|---|---|---|---|---|---|---|")
    for (half, kind), part in frame.groupby(["half", "kind"]):
        losses = part.pivot(index="table", columns="way", values="loss").clip(lower=LEAST_LOSS)
        seconds = part.pivot(index="table", columns="way", values="seconds")
        for way, other in PAIRS.items():
            if way not in losses:
                continue
            both = losses[[way, other]].dropna()
            logs = np.log(both[way] / both[other]).to_numpy()
            drawn = logs[rng.integers(len(logs), size=(2000, len(logs)))].mean(axis=1)
            low, high = np.exp(np.quantile(drawn, [0.025, 0.975]))
            spent = seconds.loc[both.index].sum()
            cells = (
                f"{way} / {other}",
                half,
                kind,
                len(logs),
                f"{math.exp(logs.mean()):.3f} ({low:.3f} to {high:.3f})",
                (logs < 0).sum(),
                f"{spent[way] / spent[other]:.2f}",
            )
            print("|", " | ".join(map(str, cells)), "|")


def main() -> None:
    """Play tables, or sum up what is in the file."""
    parser = argparse.ArgumentParser()
    parser.add_argument("tables", type=Path)
    parser.add_argument("--half", type=int, choices=(0, 1))
    parser.add_argument("--only", default="", help="names of tables, with commas")
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--summary", action="store_true")
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    index = pd.read_csv(given.tables / "index.csv")
    index["half"] = index.family.map(half_of)
    if given.summary:
        played = pd.concat(pd.read_json(each, lines=True) for each in _files(given.out))
        print_summary(
            played.merge(index[["name", "kind", "half"]], left_on="table", right_on="name")
        )
        return
    done = set() if not given.out.exists() else set(pd.read_json(given.out, lines=True).table)
    chosen = index if given.half is None else index[index.half == given.half]
    if given.only:
        chosen = index[index.name.isin(given.only.split(","))]
    for row in chosen.drop_duplicates("family").itertuples():
        if row.name in done:
            continue
        frame = pd.read_parquet(given.tables / f"{row.name}.parquet")
        table = Table.of(frame, row.target, name=row.name, task=Task(row.kind))
        with given.out.open("a") as file:
            for result in play_table(table, given.seed):
                print(json.dumps({"table": row.name, **result}), file=file, flush=True)


def _files(out: Path) -> list[Path]:
    return sorted(out.glob("*.jsonl")) if out.is_dir() else [out]


if __name__ == "__main__":
    main()
