"""The protocol of HPO-B, by two commands."""

import json

import numpy as np
import pandas as pd
import pytest

from foretune_lab.bench.results import read


def dataset(best: float, seed: int, n: int = 30) -> dict[str, list[list[float]]]:
    """Accuracies of random configurations, the higher the nearer they are to `best`."""
    x = np.random.default_rng(seed).random((n, 2)).round(3)
    return {"X": x.tolist(), "y": [[1.0 - abs(a - best) - b / 4] for a, b in x]}


@pytest.fixture
def folder(tmp_path):
    files = {
        "meta-train-dataset.json": {"5860": {"1": dataset(0.3, 1), "2": dataset(0.4, 2)}},
        "meta-validation-dataset.json": {"5860": {"3": dataset(0.35, 3)}},
        "meta-test-dataset.json": {"5860": {"8": dataset(0.3, 4), "9": dataset(0.4, 5)}},
        "bo-initializations.json": {
            "5860": {
                task: {f"test{i}": [i, i + 10, i + 20] for i in range(5)} for task in ("8", "9")
            }
        },
    }
    for name, content in files.items():
        (tmp_path / name).write_text(json.dumps(content))
    return tmp_path


def test_meta_test_is_replayed_from_the_five_initialisations(foretune, folder) -> None:
    file, out = folder / "5860.parquet", folder / "results.parquet"
    words = ("import", "hpob", folder, "--space-id", "5860", "-o", file)
    assert foretune(*words)[0] == 0
    code, _, error = foretune(
        "bench", "run", "--experience", file, "--split", "hpob", "--start", "recorded",
        "--methods", "random,gp,ws-gp", "--trials", 6, "--seeds", 5, "--out", out,
    )  # fmt: skip
    assert (code, error) == (0, "")
    rows = read(out).rows
    assert set(rows["task"]) == {"8", "9"}
    assert len(read(out).runs) == 2 * 5 * 3
    accuracies = np.ravel(dataset(0.3, 4)["y"])
    for method in ("random", "gp", "ws-gp"):
        for seed in range(5):
            run = rows[(rows["task"] == "8") & (rows["method"] == method) & (rows["seed"] == seed)]
            begun = run.sort_values("trial")["value"].tolist()[:3]
            assert begun == pytest.approx(-accuracies[[seed, seed + 10, seed + 20]])
    code, _, error = foretune("bench", "report", out, "-o", folder / "report", "--at", "3,6")
    assert (code, error) == (0, "")
    how = pd.read_csv(folder / "report" / "runs.csv").iloc[0]
    assert (how["split"], how["start"]) == ("hpob", "recorded")
    assert (folder / "report" / "5860-critical-difference-6.png").exists()
