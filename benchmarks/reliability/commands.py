"""The commands that are attacked, and the files that they read."""

import json
import random
from pathlib import Path

OUT = "fit"
SPACE = {"x": {"range": [0.0, 1.0]}, "kind": {"a": {"rate": {"range": [0.001, 1.0]}}, "b": {}}}
TUNE = ("tune", "bowl:bowl", "--space", "space.json", "--method", "random", "--store", "study.db")
FIT = (
    *("fit", "table.csv", "--target", "label", "--only", "knn,naive_bayes,lda"),
    *("--method", "random", "--no-transfer", "--out", OUT),
)
LEARN = (
    *("learn", "--space", "pipeline-classification", "--method", "gcp-prior", "--out", "known"),
    *("--experience", f"{OUT}/trials.parquet", "--metric", "log_loss", "--metric", "auc"),
)
COLLECT = (
    *("collect", "--space", "cash", "--only", "knn,gaussian_nb,logistic", "--folds", "2"),
    *("--datasets", "tables", "--evaluations", "12", "--jobs", "1", "-o", "collected.parquet"),
)
BENCH = (
    *("bench", "run", "--experience", "runs.parquet", "--methods", "random,rf"),
    *("--trials", "15", "--seeds", "2", "--out", "results.parquet"),
)
IMPORT = (
    *("import", "table", "runs.csv", "--task", "dataset", "--value", "error:min"),
    *("-o", "imported.parquet"),
)
IMPORT_RUNS = tuple("runs.parquet" if word == "imported.parquet" else word for word in IMPORT)
"""Writes what `BENCH` reads."""


def prepare(folder: Path, *, rows: int = 150) -> None:
    """Write what the commands read."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "space.json").write_text(json.dumps(SPACE))
    draw = random.Random(0)
    table = ["a,b,label"]
    for _ in range(rows):
        a, b = draw.random(), draw.random()
        table.append(f"{a:.3f},{b:.3f},{'yes' if a + 0.3 * draw.random() > b else 'no'}")
    (folder / "table.csv").write_text("\n".join(table))
    (folder / "tables").mkdir(exist_ok=True)
    (folder / "tables" / "table.csv").write_text("\n".join(table))
    runs = ["dataset,lr,depth,error"]
    for number in range(240):
        lr, depth = 10 ** draw.uniform(-4, 0), draw.randint(1, 9)
        runs.append(f"task-{number % 4},{lr!r},{depth},{abs(lr - 0.01) + 0.1 * depth!r}")
    (folder / "runs.csv").write_text("\n".join(runs))
