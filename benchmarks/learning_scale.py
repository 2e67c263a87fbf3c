"""Measures how the cost of learning grows with past tasks: time, memory, silence, asks.

    python benchmarks/learning_scale.py --tasks 1000 --evaluations 1000 --out FILE
    python benchmarks/learning_scale.py --tasks 50,100,200,500,1000 --evaluations 1000

Each run makes a seeded experience of related tasks in a mixed space of eight hyperparameters, and
appends one line of JSON to the file. Every measurement runs in a process of its own with an empty
cache, so its time begins with the start of Python. The line holds:

- `opening`: seconds from the start of Python until foretune is imported, the file is open, and the
  first suggestion is made, with CPU seconds beside them; `again` is the same with a full cache,
- `learnt`: seconds from the first suggestion until everything is learnt,
- `silent`: the longest time without progress, and `during`: the work at that time,
- `peak_mib`: the largest memory while learning, of all processes,
- `asks`: CPU seconds and seconds per ask (median and 95th percentile) after 1, 10 and 40 told
  trials,
- `added`: the same seconds after one task was added.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

SEARCHES = 3
TOLD = (1, 10, 40)
AGAIN = 4
"""The number of asks in a row that are measured from each of these numbers on."""
FAILED = 0.05
SPACE = {
    "lr": (1e-5, 1.0, "log"),
    "l2": (1e-8, 1e-1, "log"),
    "momentum": (0.0, 0.99),
    "dropout": (0.0, 0.7),
    "layers": (1, 8),
    "units": (16, 1024, "log"),
    "activation": ["relu", "tanh", "gelu", "swish"],
    "optimizer": ["sgd", "adam", "rmsprop"],
}


def synthetic_experience(tasks: int, evaluations: int, shared: bool):
    """Make related tasks: each shifts a common optimum, with heavy tails and some failures."""
    import numpy as np

    from foretune.experience import Experience, Metric
    from foretune.space import Space

    space = Space.of(SPACE)
    rows = evaluations if shared else tasks * evaluations
    configs = space.sample(rows, seed=1)
    rng = np.random.default_rng(2)
    index = np.tile(np.arange(evaluations), tasks) if shared else np.arange(rows)
    task_index = np.repeat(np.arange(tasks), evaluations)
    losses = task_losses(configs.x, index, task_index, tasks, rng)
    names = [f"task{number}" for number in range(tasks)]
    return Experience.build(space, [Metric("loss")], names, task_index, configs, index, losses)


def task_losses(x, index, task_index, tasks, rng):
    """Return losses (N,), NaN if the evaluation failed; x is (configurations, width)."""
    import numpy as np

    width = x.shape[1]
    centre = 0.2 + 0.6 * rng.random(width) + 0.15 * rng.standard_normal((tasks, width))
    curvature = np.exp(0.7 * rng.standard_normal(width) + 0.5 * rng.standard_normal((tasks, width)))
    scale = np.exp(1.5 * rng.standard_normal(tasks))
    distance = np.square(x[index] - centre[task_index]) * curvature[task_index]
    losses = scale[task_index] * np.expm1(distance.sum(axis=1))
    losses += 0.02 * scale[task_index] * rng.standard_normal(len(losses))
    losses *= np.where(rng.random(len(losses)) < 0.01, 1e4, 1.0)
    losses[rng.random(len(losses)) < FAILED] = np.nan
    return losses


class Heard:
    """Measures the longest time without progress."""

    def __init__(self) -> None:
        self.longest, self.last, self.during = 0.0, time.monotonic(), ""

    def _note(self, what: str) -> None:
        now = time.monotonic()
        if now - self.last > self.longest:
            self.longest, self.during = now - self.last, what
        self.last = now

    def start(self, what: str, total: int | None) -> None:
        del total
        self._note(f"before: {what}")

    def step(self, n: int = 1, note: str = "") -> None:
        del n, note
        self._note("between steps")

    def stop(self) -> None:
        self._note("at the end")


def read_usage() -> dict[str, float]:
    """Return the seconds and CPU seconds since this process began."""
    cpu = resource.getrusage(resource.RUSAGE_SELF)
    began = float(os.environ["LEARNING_SCALE_BEGAN"])
    return {"seconds": time.time() - began, "cpu_seconds": cpu.ru_utime + cpu.ru_stime}


def difference(after: dict[str, float], before: dict[str, float]) -> dict[str, float]:
    return {name: after[name] - before[name] for name in after}


def peak_mib() -> float:
    parts = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
    return sum(resource.getrusage(part).ru_maxrss for part in parts) / 1024


def first_only(path: str) -> dict[str, object]:
    """Measure from the start of Python to the first suggestion."""
    import foretune

    imported = read_usage()
    experience = foretune.Experience.open(path)
    opened = read_usage()
    foretune.Optimizer.of(experience=experience).ask()
    return {"imported": imported, "opened": opened, "first": read_usage()}


def learnt_only(path: str) -> dict[str, object]:
    """Measure the first suggestion and learning."""
    import foretune

    heard = Heard()
    optimizer = foretune.Optimizer.of(experience=path, progress=heard)
    optimizer.ask()
    first = read_usage()
    optimizer.finish_learning()
    learnt = difference(read_usage(), first)
    found = {"first": first, "learnt": learnt, "silent": heard.longest, "during": heard.during}
    return found | {"peak_mib": peak_mib()}


def measure_asks(path: str) -> dict[str, object]:
    """Measure asks after 1, 10 and 40 told trials; the cache has all that was learnt."""
    return {"asks": asks(path), "peak_after_asks_mib": peak_mib()}


def asks(path: str) -> dict[int, dict[str, float]]:
    """Return {told trials: times of an ask}, from several searches with different losses."""
    import numpy as np

    import foretune

    took: dict[int, list[tuple[float, float]]] = {told: [] for told in TOLD}
    for search in range(SEARCHES):
        rng = np.random.default_rng(search)
        optimizer = foretune.Optimizer.of(experience=path)
        optimizer.finish_learning()
        for told in range(max(TOLD) + AGAIN):
            began, cpu = time.perf_counter(), time.process_time()
            suggestion = optimizer.ask()[0]
            after = next((n for n in TOLD if n <= told < n + AGAIN), None)
            if after is not None:
                took[after].append((time.perf_counter() - began, time.process_time() - cpu))
            loss = abs(suggestion.config["dropout"] - 0.3) + 0.1 * float(rng.random())
            optimizer.tell([foretune.Told((loss,), id=suggestion.id)])
    return {told: _spread(np.array(each)) for told, each in took.items()}


def _spread(took):
    """Return the median and 95th percentile of rows (seconds, CPU seconds)."""
    import numpy as np

    found = {}
    for name, column in zip(("seconds", "cpu_seconds"), took.T, strict=True):
        found[f"{name}_median"] = float(np.median(column))
        found[f"{name}_p95"] = float(np.percentile(column, 95))
    return found


STEPS = {"first": first_only, "learn": learnt_only, "ask": measure_asks}


def measure_all(step: str, path: Path, cache: Path) -> dict[str, object]:
    """Return the result of a step that runs in a process of its own."""
    environment = os.environ | {
        "XDG_CACHE_HOME": str(cache),
        "LEARNING_SCALE_BEGAN": str(time.time()),
    }
    command = [sys.executable, __file__, "--step", step, "--experience", str(path)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True, env=environment)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def run(tasks: int, evaluations: int, shared: bool) -> dict[str, object]:
    """Return all measurements of one size."""
    with tempfile.TemporaryDirectory() as folder:
        path, more, cache = (Path(folder) / name for name in ("past.parquet", "more", "cache"))
        larger = synthetic_experience(tasks + 1, evaluations, shared)
        larger.save(more)
        larger.only(larger.tasks[:-1]).save(path)
        del larger
        line: dict[str, object] = {"tasks": tasks, "evaluations": evaluations, "shared": shared}
        line["opening"] = measure_all("first", path, cache)
        line |= measure_all("learn", path, cache)
        line |= measure_all("ask", path, cache)
        line["again"] = measure_all("first", path, cache)
        added = measure_all("learn", more, cache)
        line["added"] = {name: added[name] for name in ("first", "learnt", "silent", "during")}
    return line


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="50,100,200,500,1000", help="numbers, with commas")
    parser.add_argument("--evaluations", type=int, default=1000, help="of each task")
    parser.add_argument("--shared", action="store_true", help="all tasks try the same ones")
    parser.add_argument("--out", type=Path, help="a file that gets a line of JSON for each run")
    parser.add_argument("--step", choices=STEPS, help=argparse.SUPPRESS)
    parser.add_argument("--experience", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.step:
        print(json.dumps(STEPS[arguments.step](arguments.experience)))
        return
    for tasks in map(int, arguments.tasks.split(",")):
        line = json.dumps(run(tasks, arguments.evaluations, arguments.shared))
        print(line, flush=True)
        if arguments.out:
            with arguments.out.open("a") as file:
                file.write(line + "\n")


if __name__ == "__main__":
    main()
