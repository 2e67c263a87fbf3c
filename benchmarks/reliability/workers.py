"""Many trials in worker processes: memory, descriptors and processes must not grow.

    python benchmarks/reliability/workers.py [--trials 1000] [--replaced 300] [--printed 1000]

First trials that return at once, then as many that each cost their worker, then one that prints
without end. What is open is counted after each tenth of them.
"""

import argparse
import gc
import os
import sys
import threading
import time
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parent)]

from rows import Row  # noqa: E402
from tests.run.attacks import attack  # noqa: E402

from foretune.run.executor import Limits  # noqa: E402
from foretune.run.memory import resident_bytes  # noqa: E402
from foretune.run.pool import ProcessPool  # noqa: E402

MOST_GROWTH_MB = 10.0


def held():
    """Descriptors, threads and children of this process."""
    gc.collect()
    children = Path(f"/proc/self/task/{os.getpid()}/children").read_text().split()
    return len(os.listdir("/proc/self/fd")), threading.active_count(), len(children)


def memory_mb():
    return (resident_bytes(os.getpid()) or 0) / 2**20


def run(pool, jobs):
    """Outcomes by job, and how many came twice."""
    keys = [pool.submit(job) for job in jobs]
    found, doubled = {}, 0
    while batch := pool.results():
        for outcome in batch:
            doubled += outcome.key in found
            found[outcome.key] = outcome
    return [found.get(key) for key in keys], doubled


def check(attack_name, make_jobs, expected, trials):
    """Run the trials in ten parts, and print what came of them as a row."""
    began, lost, doubled, wrong, counts, memory = time.monotonic(), 0, 0, 0, [], []
    with ProcessPool(attack, workers=2, limits=Limits(wall_seconds=300.0)) as pool:
        run(pool, [("give", 1)] * 4)
        for part in range(10):
            jobs = make_jobs(part, max(1, trials // 10))
            found, twice = run(pool, jobs)
            doubled += twice
            lost += found.count(None)
            wrong += sum(
                outcome is not None and not expected(job, outcome)
                for job, outcome in zip(jobs, found, strict=True)
            )
            run(pool, [("give", 1)] * 4)  # so that all workers are there again
            counts.append(held())
            memory.append(memory_mb())
    growth = memory[-1] - memory[0]
    wrong += len(set(counts)) > 1 or growth > MOST_GROWTH_MB
    note = f"{growth:+.1f} MiB; descriptors, threads, children {counts[0]} -> {counts[-1]}"
    seconds = time.monotonic() - began
    row = Row(attack_name, trials, lost, doubled, int(wrong), 0, seconds, max(memory), note)
    row.print()
    return row.faults


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--trials", type=int, default=1000)
    parser.add_argument("--replaced", type=int, default=300)
    parser.add_argument("--printed", type=int, default=1000, help="MiB that trials print")
    arguments = parser.parse_args()
    faults = check(
        "trials in worker processes",
        lambda part, n: [("give", part * n + each) for each in range(n)],
        lambda job, outcome: outcome.result == job[1],
        arguments.trials,
    )
    faults += check(
        "trials that end their worker",
        lambda _, n: ["die"] * n,
        lambda _, outcome: outcome.reason.endswith("exit code 9"),
        arguments.replaced,
    )
    faults += check(
        f"trials that print {arguments.printed} MiB in all",
        lambda _, n: [("write_bytes", arguments.printed * 2**20 // (10 * n))] * n,
        lambda _, outcome: outcome.result == "written",
        10,
    )
    sys.exit(bool(faults))


if __name__ == "__main__":
    main()
