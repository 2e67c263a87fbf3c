"""Measures the time from the command to the first finished trial, on a table of 5,000 x 20.

    python benchmarks/fit_first_trial.py

It runs `foretune fit` as a user does, in a process of its own with a home of its own, until it says
that the first trial has ended. Imports, meta-features and the first suggestion are included.
"""

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import pandas as pd
from sklearn.datasets import make_classification

RUNS = 3


def seconds_to_first_trial(folder: Path) -> float:
    x, y = make_classification(5000, 20, n_informative=8, random_state=0)
    pd.DataFrame(x).assign(label=y).to_csv(folder / "train.csv", index=False)
    command = [sys.executable, "-c", "from foretune.cli import main; main()", "fit", "train.csv"]
    command += ["--target", "label", "--trials", "3", "--jobs", "2"]
    start = time.monotonic()
    process = subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "FORETUNE_HOME": str(folder / "home")},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )
    assert process.stderr is not None
    for line in process.stderr:
        if line.startswith("trial 1 "):
            took = time.monotonic() - start
            process.wait()
            return took
    raise RuntimeError("no trial has ended")


if __name__ == "__main__":
    for _ in range(RUNS):
        with tempfile.TemporaryDirectory() as folder:
            print(f"{seconds_to_first_trial(Path(folder)):.1f} s")
