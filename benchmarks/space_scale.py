"""Measures how the time of operations grows with the size of a space or of a table.

    python benchmarks/space_scale.py
    python benchmarks/space_scale.py --only deep

Each line is one space: CPU seconds of each operation, each measured once in this process. `grows`
is how many times the hyperparameters became more, and the slowest operation slower, since the line
before. Operations that are refused say so.
"""

import argparse
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from foretune.errors import ForetuneError
from foretune.search import Optimizer, Told
from foretune.space import Space
from foretune.tables.reading import read_table

Notation = dict[str, Any]
DEPTHS = (1, 12, 25, 50, 100, 200, 400, 401, 100_000)
COUNTS = (10, 100, 1_000, 3_000, 10_000, 10_001)
CHOICES = (10, 100, 1_000, 9_000, 10_001, 1_000_000)
COLUMNS = (100, 1_000, 10_000, 25_000, 25_001, 100_000)


def deep(levels: int) -> Notation:
    """Return choices inside of choices; each level has a number of its own."""
    notation: Notation = {"x": (0.0, 1.0)}
    for _ in range(levels):
        notation = {"m": {"a": notation, "b": {}}, "x": (0.0, 1.0)}
    return notation


def flat(count: int) -> Notation:
    """Return ranges, integers and lists side by side."""
    kinds = ((0.0, 1.0), (1, 100), ["a", "b"])
    return {f"h{i}": kinds[i % 3] if i % 3 < 2 or count <= 5_000 else (1, 9) for i in range(count)}


def wide(choices: int) -> Notation:
    """Return one list of choices beside a range."""
    return {"kind": [f"c{i}" for i in range(choices)], "x": (0.0, 1.0)}


def steps(notation: Notation) -> Iterator[tuple[str, float | str]]:
    """Yield operations and their CPU seconds; none follows if the space is refused."""
    kept: dict[str, Any] = {}

    def suggest(method: str) -> None:
        optimizer = Optimizer.of(kept["space"], method=method)
        for number in range(12):
            suggestion = optimizer.ask(1)[0]
            optimizer.tell([Told(1.0 / (1 + number), id=suggestion.id)])
        optimizer.ask(1)

    operations: dict[str, Callable[[], object]] = {
        "of": lambda: kept.update(space=Space.of(notation)),
        "read": lambda: Space(kept["space"].to_json()),
        "fingerprint": lambda: kept["space"].fingerprint,
        "structure": lambda: kept["space"].structure,
        "describe": lambda: kept.update(table=kept["space"].describe()),
        "sample": lambda: kept.update(batch=kept["space"].sample(100, seed=0)),
        "sobol": lambda: kept["space"].sample(16, seed=0, how="sobol"),
        "code": lambda: kept["space"].encode(kept["batch"].dicts()).x,
        "unit": lambda: kept["space"].from_unit(kept["batch"].x),
        "near": lambda: kept["space"].neighbours(kept["batch"].take(0), seed=0),
        "union": lambda: kept["space"].union(Space.of({"other": (0, 9)})),
        "renamed": lambda: kept["space"].renamed({kept["space"].names[0]: "new"}),
        "random": lambda: suggest("random"),
        "gp": lambda: suggest("gp"),
    }
    for name, operation in operations.items():
        began = time.process_time()
        try:
            operation()
        except ForetuneError:
            yield name, f"refused after {time.process_time() - began:.2f}"
            if "space" not in kept:
                return
            continue
        yield name, time.process_time() - began


def table_steps(columns: int) -> Iterator[tuple[str, float | str]]:
    """Yield CPU seconds to read a CSV file of 200 rows of random numbers and a target."""
    numbers = np.random.default_rng(0).random((200, columns - 1)).round(3)
    names = [*(f"c{i}" for i in range(columns - 1)), "y"]
    with TemporaryDirectory() as folder:
        path = Path(folder) / "table.csv"
        with path.open("w") as stream:
            stream.write(",".join(names) + "\n")
            for place, row in enumerate(numbers):
                stream.write(",".join(map(str, row.tolist())) + f",{'ab'[place % 2]}\n")
        began = time.process_time()
        try:
            read_table(path, "y")
        except ForetuneError:
            yield "read", f"refused after {time.process_time() - began:.2f}"
            return
        yield "read", time.process_time() - began


FAMILIES: dict[str, tuple[Callable[[int], Iterator[tuple[str, float | str]]], tuple[int, ...]]] = {
    "deep": (lambda levels: steps(deep(levels)), DEPTHS),
    "flat": (lambda count: steps(flat(count)), COUNTS),
    "wide": (lambda choices: steps(wide(choices)), CHOICES),
    "columns": (table_steps, COLUMNS),
}
"""The function and the sizes of each measurement, by name."""


def main() -> None:
    """Print a line for each space."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", choices=FAMILIES)
    parser.add_argument("--sizes", type=int, nargs="+", help="Instead of those of the family.")
    parser.add_argument("--json", action="store_true", help="A JSON object for each line.")
    given = parser.parse_args()
    for family, (measure, sizes) in FAMILIES.items():
        if given.only not in (None, family):
            continue
        before = None
        for size in given.sizes or sizes:
            took = dict(measure(size))
            seconds = [each for each in took.values() if isinstance(each, float)]
            total = sum(seconds)
            grows = f"{size / before[0]:.1f}x -> {total / before[1]:.1f}x" if before else ""
            before = (size, total) if total else before
            if given.json:
                print(json.dumps({"family": family, "size": size, "seconds": took}), flush=True)
                continue
            cells = [
                f"{name} {each if isinstance(each, str) else f'{each:.2f}'}"
                for name, each in took.items()
            ]
            print(f"{family} {size:,}: {total:.1f} s; {', '.join(cells)}; {grows}", flush=True)


if __name__ == "__main__":
    main()
