"""A study of 100,000 trials: how long `foretune tune` takes to resume, to report and to import.

    python benchmarks/reliability/large_study.py [--trials 100000] [--store sqlite|postgresql]

The trials are written in one go, as if they had been run. Then the same command that began the
study runs three more trials of a random search and of `auto`, writes its report and its trials as a
Parquet file; and `foretune import optuna` reads the study.
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

from rows import Row
from servers import SERVERS

SPACE = {"x": {"range": [0.0, 1.0]}, "y": {"range": [0.001, 1.0, "log"]}, "kind": ["a", "b"]}
NAME = "large_study:bowl"
TIMES = ["2026-01-01 00:00:00.000000", "2026-01-01 00:00:02.000000"]


def bowl(config: dict) -> float:
    return (config["x"] - 0.3) ** 2 + (config["kind"] == "b")


def write_study(url: str, trials: int) -> None:
    """Begin a study, run one trial, and copy it with other values."""
    from sqlalchemy import MetaData, create_engine, insert, select

    from foretune.cli.tune_options import resolve_space
    from foretune.experience import Metric, Status
    from foretune.stores.addresses import storage_url
    from foretune.stores.studies import open_study

    space = resolve_space(Path("space.json"), None)
    settings = {"objective": NAME}
    configs = space.sample(trials, seed=0).dicts()
    with open_study(url, NAME, space=space, metrics=[Metric("loss")], settings=settings) as study:
        number = study.begin(configs[0], chosen_by="random")
        study.end(number, status=Status.DONE, values={"loss": bowl(configs[0])}, seconds=2.0)
    engine = create_engine(storage_url(url))
    tables = MetaData()
    tables.reflect(engine)
    with engine.begin() as database:
        first = dict(database.execute(select(tables.tables["trials"])).mappings().one())
        parts = ("trial_values", "trial_params", "trial_user_attributes", "trial_system_attributes")
        parts = {
            name: [dict(row) for row in database.execute(select(tables.tables[name])).mappings()]
            for name in parts
        }
        ids = {"trial_values": "trial_value_id", "trial_params": "param_id"}
        for low in range(1, trials, 10_000):
            numbers = range(low, min(low + 10_000, trials))
            of = first["trial_id"]
            rows = [first | {"trial_id": of + n, "number": n} for n in numbers]
            database.execute(insert(tables.tables["trials"]), rows)
            for name, copied in parts.items():
                key = ids.get(name, f"{name[:-1]}_id")
                rows = []
                for n in numbers:
                    for one in copied:
                        row = {k: v for k, v in one.items() if k != key} | {"trial_id": of + n}
                        if name == "trial_values":
                            row["value"] = bowl(configs[n])
                        elif name == "trial_params":
                            value = configs[n][row["param_name"]]
                            row["param_value"] = {"a": 0, "b": 1}.get(value, value)
                        rows.append(row)
                database.execute(insert(tables.tables[name]), rows)
        if engine.name == "postgresql":  # the next trial gets the next id
            from sqlalchemy import text

            last = first["trial_id"] + trials - 1
            query = "SELECT setval(pg_get_serial_sequence('trials', 'trial_id'), :last)"
            database.execute(text(query), {"last": last})
    engine.dispose()


def run(folder: Path, attack: str, trials: int, *words: str) -> None:
    """Run a command of Foretune and print its time and memory."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    began = time.monotonic()
    program = (
        "import resource, sys; from foretune.cli import main\n"
        "try: main()\n"
        "finally: print('PEAK', resource.getrusage(resource.RUSAGE_SELF).ru_maxrss,"
        " file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, *words],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": f"{Path(__file__).parent}:{os.environ.get('PYTHONPATH', '')}",
        },
        capture_output=True,
        text=True,
        check=False,
    )
    seconds = time.monotonic() - began
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    said = done.stderr.strip().splitlines()
    peak = [float(line.split()[1]) / 1024 for line in said if line.startswith("PEAK")]
    note = f"{own:.1f} s of CPU" + ("" if not done.returncode else f"; {said[-2:]}")
    Row(
        attack, trials, wrong=int(done.returncode != 0), longest_s=round(seconds, 1),
        peak_mb=round(max(peak, default=0.0)), note=note,
    ).print()  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--store", choices=["sqlite", "postgresql"], default="sqlite")
    parser.add_argument("--trials", type=int, default=100_000)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="large-") as name, SERVERS[given.store]() as url:
        folder = Path(name)
        os.chdir(folder)
        (folder / "space.json").write_text(json.dumps(SPACE))
        write_study(url, given.trials)
        tune = ["tune", NAME, "--space", "space.json", "--store", url]
        n = given.trials
        words = [*tune, "--study", "empty", "--method", "random", "--trials", "3"]
        run(folder, f"{given.store}: tune begins, 3 trials, random", 0, *words)
        for method, more, outputs in (
            ("random", 3, []),
            ("auto", 6, []),
            ("random", 9, ["--report", "report.html", "--out", "runs.parquet"]),
        ):
            words = [*tune, "--method", method, "--trials", str(n + more), *outputs]
            kind = "report and Parquet" if outputs else f"3 more trials, {method}"
            run(folder, f"{given.store}: tune resumes, {kind}", n, *words)
        if (report := folder / "report.html").exists():
            print(f"report: {report.stat().st_size / 2**20:.1f} MiB")
        source = url if "://" in url else str(folder / url)
        run(
            folder,
            f"{given.store}: import optuna",
            n,
            "import",
            "optuna",
            source,
            "--out",
            "imported.parquet",
        )


if __name__ == "__main__":
    main()
