"""Measures time and peak memory of `foretune import table` for very many evaluations.

    python benchmarks/import_scale.py                       # 1e5, 1e6 and 1e7 evaluations
    python benchmarks/import_scale.py --rows 100000 1000000 --kinds unique --formats csv
    python benchmarks/import_scale.py --steps import show merge parts frame

Two kinds of tables are made from a seed: `shared`, where 100 tasks have the same configurations,
and `unique`, where each evaluation has a configuration of its own. Both have 8 hyperparameters,
one of them conditional. Each step is a process of its own, and the system reports its peak memory
after it has ended. The script prints one line of JSON for each run, and the exponents of both at
the end.
"""

import argparse
import json
import math
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.csv as pa_csv
import pyarrow.parquet as pq

TASKS = 100
ROWS_AT_ONCE = 1 << 18
COLUMNS = ["--task", "dataset", "--value", "error:min", "--seconds", "took"]
OPENED = "import sys; from foretune.experience import Experience; e = Experience.open(sys.argv[1]);"
STEPS = {
    "import": "",
    "given space": "",
    "show": "",
    "merge": f"{OPENED} e.merge(e.only(e.tasks[:5])).save(sys.argv[2])",
    "parts": f"{OPENED} e.without(e.tasks[:50]).compact().save(sys.argv[2])",
    "frame": f"{OPENED} print(e.to_frame().shape)",
    "in_space": f"{OPENED} print(len(e.in_space(e.space)))",
}


def table_parts(rows: int, kind: str) -> Iterator[pd.DataFrame]:
    """Yield the rows of a table, some at a time."""
    names = np.array([f"task{number}" for number in range(TASKS)])
    for part, start in enumerate(range(0, rows, ROWS_AT_ONCE)):
        row = np.arange(start, min(start + ROWS_AT_ONCE, rows))
        config = row % (rows // TASKS) if kind == "shared" else row
        drawn = uniform(config)
        model = (drawn[0] * 3).astype(int)
        depth = np.where(model == 1, 1 + (drawn[4] * 29).astype(int), np.nan)
        rng = np.random.default_rng(part)
        yield pd.DataFrame(
            {
                "dataset": names[row * TASKS // rows],
                "model": np.array(["svm", "tree", "mlp"])[model],
                "lr": 10 ** (-5 * drawn[1]),
                "momentum": drawn[2],
                "dropout": drawn[3] / 2,
                "depth": pd.array(depth, dtype="Int64"),
                "units": 8 + (drawn[5] * 504).astype(int),
                "activation": np.array(["relu", "tanh"])[(drawn[6] * 2).astype(int)],
                "nesterov": drawn[7] < 0.5,
                "error": rng.random(len(row)),
                "took": rng.random(len(row)) * 100,
            }
        )


def uniform(config: np.ndarray) -> np.ndarray:
    """Return numbers (8, n) in [0, 1) that depend only on the number of the configuration."""
    bits = (config[None, :] * 8 + np.arange(8)[:, None] + 1).astype(np.uint64)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        bits = (bits ^ (bits >> np.uint64(shift))) * np.uint64(factor)
    return (bits ^ (bits >> np.uint64(31))).astype(np.float64) / 2.0**64


def write_table(path: Path, rows: int, kind: str) -> None:
    """Write a CSV or Parquet file."""
    writer = None
    for part in table_parts(rows, kind):
        batch = pa.Table.from_pandas(part, preserve_index=False)
        if writer is None:
            make = pq.ParquetWriter if path.suffix == ".parquet" else pa_csv.CSVWriter
            writer = make(path, batch.schema)
        writer.write_table(batch)
    assert writer is not None
    writer.close()


def measure_import(command: list[str]) -> dict[str, float]:
    """Return the seconds, CPU seconds and peak memory of a command."""
    began = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert process.stdout is not None
    said = process.stdout.read().decode(errors="replace")
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{command} ended with {process.returncode}:\n{said}")
    return {
        "seconds": round(time.perf_counter() - began, 2),
        "cpu_seconds": round(used.ru_utime + used.ru_stime, 2),
        "peak_mb": round(used.ru_maxrss / 1024),
    }


def command_of(step: str, source: Path, out: Path) -> list[str]:
    """Return the command line of a step."""
    if step == "show":
        return [sys.executable, "-m", "foretune", "show", str(out)]
    if step in ("import", "given space"):
        given = ["--space", str(out.with_suffix(".space.json"))] if step == "given space" else []
        importing = ["import", "table", str(source), *COLUMNS, *given, "-o", str(out)]
        return [sys.executable, "-m", "foretune", *importing]
    return [sys.executable, "-c", STEPS[step], str(out), str(out.with_name("other.parquet"))]


def exponents(lines: list[dict[str, object]]) -> None:
    """Print how CPU seconds and memory grow with the rows if several sizes were run."""
    groups: dict[tuple[object, ...], list[dict[str, object]]] = {}
    for line in lines:
        groups.setdefault((line["step"], line["kind"], line["format"]), []).append(line)
    for (step, kind, form), runs in groups.items():
        if len(runs) < 2:
            continue
        rows = [math.log(float(str(run["rows"]))) for run in runs]
        fitted = {
            what: round(
                float(np.polyfit(rows, [math.log(float(str(run[what]))) for run in runs], 1)[0]), 2
            )
            for what in ("cpu_seconds", "peak_mb")
        }
        print(json.dumps({"step": step, "kind": kind, "format": form, "exponents": fitted}))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rows", type=int, nargs="+", default=[10**5, 10**6, 10**7])
    parser.add_argument("--kinds", nargs="+", default=["shared", "unique"])
    parser.add_argument("--formats", nargs="+", default=["csv"])
    parser.add_argument("--steps", nargs="+", default=["import", "given space", "show"])
    parser.add_argument("--folder", type=Path, help="where the tables stay; else they are removed")
    arguments = parser.parse_args()
    lines: list[dict[str, object]] = []
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.folder or Path(made)
        for kind in arguments.kinds:
            for form in arguments.formats:
                for rows in arguments.rows:
                    source = folder / f"{kind}-{rows}.{form}"
                    if not source.exists():
                        write_table(source, rows, kind)
                    for step in arguments.steps:
                        out = folder / f"{kind}-{rows}-out.parquet"
                        used = measure_import(command_of(step, source, out))
                        line: dict[str, object] = {"step": step, "kind": kind, "format": form}
                        lines.append({**line, "rows": rows, **used})
                        print(json.dumps(lines[-1]), flush=True)
    exponents(lines)


if __name__ == "__main__":
    main()
