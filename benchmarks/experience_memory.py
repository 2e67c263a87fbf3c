"""Measures seconds, file size and memory of an experience: 553 tasks x 38,151 configurations.

    python benchmarks/experience_memory.py
    python benchmarks/experience_memory.py --experience FILE

Each step runs in a process of its own, so that its peak memory is its own. Without --experience
a matrix of that size is made, 76% filled, like the largest public table of pipelines.
"""

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from foretune.experience import Direction, Experience, Metric, summarise
from foretune.space import Space

TASKS, CONFIGS, FILLED = 553, 38_151, 0.76
ALGORITHMS, HYPERPARAMETERS = 12, 4


def synthetic_space() -> Space:
    """Return a space that chooses among algorithms, each with its own hyperparameters."""
    names = [f"algorithm{i}" for i in range(ALGORITHMS)]
    return Space.of(
        {
            "algorithm": {
                name: {f"x{j}": (0.0, 1.0) for j in range(HYPERPARAMETERS)} for name in names
            }
        }
    )


def build_and_save(path: Path) -> dict[str, float]:
    """Make an experience of a matrix and save it; the matrix itself counts towards the peak."""
    rng = np.random.default_rng(0)
    space = synthetic_space()
    configs = space.sample(CONFIGS, seed=0)
    matrix = rng.random((TASKS, CONFIGS), dtype=np.float32)
    for row in matrix:
        row[rng.random(CONFIGS, dtype=np.float32) > FILLED] = np.nan
    tasks = [f"task{i}" for i in range(TASKS)]
    began = time.perf_counter()
    metrics = [Metric("accuracy", Direction.MAX)]
    experience = Experience.from_matrix(space, configs, tasks, metrics, {"accuracy": matrix})
    built = time.perf_counter()
    experience.save(path)
    return {
        "rows": len(experience),
        "build seconds": built - began,
        "save seconds": time.perf_counter() - built,
        "file MiB": path.stat().st_size / 2**20,
    }


def open_file(path: Path) -> dict[str, float]:
    """Open an experience from a file."""
    began = time.perf_counter()
    experience = Experience.open(path)
    return {"rows": len(experience), "open seconds": time.perf_counter() - began}


def saved_again(path: Path) -> dict[str, float]:
    """Open an experience from a file and save it again."""
    experience = Experience.open(path)
    began = time.perf_counter()
    with tempfile.TemporaryDirectory() as folder:
        experience.save(Path(folder) / "again.parquet")
    return {"save seconds": time.perf_counter() - began}


def memory_use(path: Path) -> dict[str, float]:
    """Open an experience, leave one task out, and compute all losses and a summary."""
    experience = Experience.open(path)
    began = time.perf_counter()
    others = experience.without(experience.tasks[:1])
    without = time.perf_counter()
    best = np.nanmin(others.losses, axis=0)
    losses = time.perf_counter()
    summarise(experience)
    return {
        "without seconds": without - began,
        "losses seconds": losses - without,
        "summary seconds": time.perf_counter() - losses,
        "best loss": float(best[0]),
    }


STEPS = {
    "build and save": build_and_save,
    "open": open_file,
    "open and save": saved_again,
    "use": memory_use,
}


def measure_memory(step: str, path: Path) -> dict[str, float]:
    """Return the step's own numbers and its peak memory, measured in a new process."""
    command = [sys.executable, __file__, "--step", step, "--experience", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", type=Path, help="an experience file to use instead")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        numbers = STEPS[arguments.step](arguments.experience)
        numbers["peak MiB"] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
        print(json.dumps(numbers))
        return
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.experience or Path(folder) / "experience.parquet"
        for step in STEPS:
            if step == "build and save" and arguments.experience:
                continue
            numbers = measure_memory(step, path)
            shown = "  ".join(f"{name} {value:,.4g}" for name, value in numbers.items())
            print(f"{step:15} {shown}", flush=True)


if __name__ == "__main__":
    main()
