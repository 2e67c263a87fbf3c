"""Every method on experiences from which little or nothing can be learnt.

    python benchmarks/reliability/degenerate.py                 # every method, every kind
    python benchmarks/reliability/degenerate.py --methods auto gp --kinds "one task"

A cell learns a prior, saves and loads it, and asks and tells five trials. It works, or is refused
with a ForetuneError, or raises something else, which is a fault.
"""

import argparse
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from parts import run_parts
from rows import Row, peak_mb

from foretune.errors import ArtifactError, ForetuneError
from foretune.experience import Experience, Metric, Status
from foretune.methods.contracts import Target
from foretune.search import METHODS, Optimizer, Told
from foretune.search.method_entry import Method
from foretune.space import Space

TRIALS = 5
WORKED, REFUSED, RAISED = "worked", "refused", "raised"
SPACE = {"x": (0.0, 1.0), "n": (1, 9), "model": {"svm": {"C": (0.01, 10.0, "log")}, "tree": {}}}
META_FEATURES = {"rows": 100.0, "columns": 5.0}


def make_experience(
    space: Mapping[str, object] = SPACE,
    tasks: int = 3,
    rows: int = 12,
    *,
    loss: Callable[[int, np.ndarray], np.ndarray] = lambda task, x: x + task,
    status: Status = Status.DONE,
    twice: bool = False,
    seconds: float = 1.0,
) -> Experience:
    """Evaluations of the same configurations on each task.

    loss: of a task's number and of the mean (n,) of each configuration's unit cube.
    """
    read = Space.of(dict(space))
    configs = read.sample(rows, seed=1)
    names = [f"task{number}" for number in range(tasks)]
    x = configs.x.mean(axis=1) if read.width else np.zeros(len(configs))
    values = np.concatenate([np.asarray(loss(task, x), dtype=float) for task in range(tasks)])
    n = len(values)
    order = np.arange(n) if not twice else np.concatenate([np.arange(n), np.arange(n)])
    statuses = np.full(n, status)
    if status is not Status.DONE:
        statuses[0] = Status.DONE  # an experience has a success
    made = Experience.build(
        read,
        [Metric("loss")],
        names,
        np.repeat(np.arange(tasks), rows)[order],
        configs,
        np.tile(np.arange(rows), tasks)[order],
        values[order],
        status=statuses[order],
        seconds=np.full(n, seconds)[order],
    )
    return made.with_meta_features(dict.fromkeys(names, META_FEATURES))


def all_failed_but_one_task() -> Experience:
    """One task with successes, two on which all trials failed."""
    return make_experience(loss=lambda task, x: x if task == 0 else np.full_like(x, np.nan))


CASES: dict[str, Callable[[], Experience | None]] = {
    "no tasks": lambda: None,
    "one task": lambda: make_experience(tasks=1),
    "one evaluation": lambda: make_experience(tasks=1, rows=1),
    "two tasks of one row": lambda: make_experience(tasks=2, rows=1),
    "all values equal": lambda: make_experience(loss=lambda _, x: np.full_like(x, 0.5)),
    "constant per task": lambda: make_experience(loss=lambda task, x: np.full_like(x, float(task))),
    "tasks twice": lambda: make_experience(loss=lambda _, x: x),
    "rows twice": lambda: make_experience(twice=True),
    "one success": lambda: make_experience(status=Status.FAILED),
    "failed tasks": all_failed_but_one_task,
    "unknown seconds": lambda: make_experience(seconds=float("nan")),
    "1 dimension": lambda: make_experience({"x": (0.0, 1.0)}),
    "60 dimensions": lambda: make_experience({f"x{number}": (0.0, 1.0) for number in range(60)}),
    "constants only": lambda: make_experience({"x": 1.0, "model": "svm"}, rows=1),
    "values of 1e300": lambda: make_experience(loss=lambda task, x: 1e300 * (x + task)),
    "values of both 1e300": lambda: make_experience(loss=lambda _, x: 1e300 * (x - 0.5) * 3),
    "values of 1e-300": lambda: make_experience(loss=lambda task, x: 1e-300 * (x + task)),
}


@dataclass(frozen=True)
class Cell:
    """What became of one method on one kind."""

    outcome: str
    said: str
    seconds: float


def try_method(method: Method, experience: Experience | None) -> Cell:
    """Learn, save, load, ask and tell."""
    began = time.perf_counter()
    outcome, said = WORKED, ""
    try:
        _search(method, experience)
    except ArtifactError as error:  # what was just saved can be loaded
        outcome, said = RAISED, str(error)
    except ForetuneError as error:
        outcome, said = REFUSED, str(error)
    except Exception as error:
        frames = traceback.extract_tb(error.__traceback__)[-3:]
        places = [f"{Path(frame.filename).name}:{frame.lineno}" for frame in frames]
        outcome, said = RAISED, f"{type(error).__name__}: {error} ({' '.join(places)})"
    return Cell(outcome, said.splitlines()[0] if said else "", time.perf_counter() - began)


def _search(method: Method, experience: Experience | None) -> None:
    prior = method.learn(experience, seed=1)
    with tempfile.TemporaryDirectory() as folder:
        prior.save(Path(folder) / "prior")
        prior = method.load(Path(folder) / "prior")
    space = Space.of(dict(SPACE)) if experience is None else experience.space
    described = META_FEATURES if method.needs_meta_features else {}
    target = Target(space, ("loss",), meta_features=described)
    optimizer = Optimizer(target, method, prior, seed=1)
    for _ in range(TRIALS):
        try:
            [asked] = optimizer.ask()
        except ForetuneError:
            if len(space.sample(99, seed=1).first_occurrences()) > len(optimizer.told):
                raise
            return  # all configurations have been tried
        [encoded] = space.encode([asked.config]).x.mean(axis=1, keepdims=True)
        optimizer.tell([Told((float(np.nan_to_num(encoded[0])),), id=asked.id)])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--methods", nargs="+", default=list(METHODS), choices=list(METHODS))
    parser.add_argument("--kinds", nargs="+", default=list(CASES), choices=list(CASES))
    parser.add_argument("--jobs", type=int, default=1, help="methods at the same time")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    parts = [(name, tuple(arguments.kinds)) for name in arguments.methods]
    cells, peak = [], 0.0
    for _, (found, peak_of_part) in run_parts(cells_of, parts, arguments.jobs):
        cells += found
        peak = max(peak, peak_of_part)
        _row_of(cells, peak).print()
    sys.exit(1 if any(cell.outcome == RAISED for cell in cells) else 0)


def cells_of(part: tuple[str, tuple[str, ...]]) -> tuple[list[Cell], float]:
    """What became of one method on each kind, and the peak of memory."""
    name, kinds = part
    cells = []
    for kind in kinds:
        cells.append(cell := try_method(METHODS[name], CASES[kind]()))
        if cell.outcome != WORKED:
            print(f"{name} | {kind}: {cell.outcome}: {cell.said}", flush=True)
    of = Counter(cell.outcome for cell in cells)
    told = ", ".join(f"{of[each]} {each}" for each in (WORKED, REFUSED, RAISED))
    print(f"{name}: {told} ({sum(cell.seconds for cell in cells):.0f} s)", flush=True)
    return cells, peak_mb()


def _row_of(cells: list[Cell], peak: float) -> Row:
    counts = Counter(cell.outcome for cell in cells)
    return Row(
        "methods on degenerate experiences",
        count=len(cells),
        wrong=counts[RAISED],
        refused=counts[REFUSED],
        longest_s=round(max(cell.seconds for cell in cells), 1),
        peak_mb=round(peak),
    )


if __name__ == "__main__":
    main()
