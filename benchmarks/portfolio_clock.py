"""Runs the builders of portfolios on recorded results with several simulated workers on one clock.

Each evaluation takes a run time with a heavy tail: the product of a number of its task and one of
its configuration, both log-normal, so that the slowest of a thousand evaluations take a hundred
times as long as the middle one. A worker asks the builder as soon as it is idle. A builder sees
`--tasks` random datasets. Its portfolio is judged on all others, at ten times of the clock: the
mean RED, in percent, of the best of its first five to the dataset's ten best. The results have one
line of JSON for each run.

    python benchmarks/portfolio_clock.py --experience oboe.parquet --builder mf --out clock.jsonl
    python benchmarks/portfolio_clock.py --report clock.jsonl
"""

import argparse
import heapq
import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from foretune._base.arrays import Floats
from foretune.experience import Experience
from foretune.methods.zero_shot.build import BUILDERS
from foretune.methods.zero_shot.builder import Builder
from foretune.methods.zero_shot.jobs import Jobs
from foretune.methods.zero_shot.table import loss_table
from foretune.numerics.greedy import mean
from foretune.numerics.normalise import reference_loss, relative_error_difference
from portfolios import errors_of

SPREAD = 1.0
"""The standard deviation of the logarithm of each of the two factors of a run time."""
TIMES = 10
K = 5


def run_times(tasks: int, configs: int, seed: int) -> Floats:
    """Return seconds (tasks, configs), 1 in the middle."""
    rng = np.random.default_rng([seed, 7])
    of_tasks = rng.lognormal(0.0, SPREAD, tasks)
    return of_tasks[:, None] * rng.lognormal(0.0, SPREAD, configs)


@dataclass
class Clock:
    """Workers that run the jobs of a builder."""

    builder: Builder
    losses: Floats
    seconds: Floats
    workers: int
    now: float = 0.0
    busy: float = 0.0
    running: list[tuple[float, int, int]] = field(default_factory=list)

    def begin(self) -> None:
        """Give each idle worker a job, as long as the builder has one."""
        jobs = self.builder.jobs
        while len(self.running) < self.workers and jobs.remaining > 0:
            job = self.builder.next_job()
            if job is None:
                return
            jobs.begin(*job)
            took = float(self.seconds[job.task, job.candidate])
            self.busy += took
            heapq.heappush(self.running, (self.now + took, job.task, job.candidate))

    def run_until(self, end: float) -> bool:
        """Run to a time; False if nothing is left to run."""
        self.begin()
        while self.running and self.running[0][0] <= end:
            self.now, task, candidate = heapq.heappop(self.running)
            loss = self.losses[[task], [candidate]]
            self.builder.jobs.finish(np.array([task]), np.array([candidate]), loss)
            self.begin()
        return bool(self.running)

    @property
    def utilisation(self) -> float:
        """The share of the workers' time in which they ran something."""
        return self.busy / (self.workers * self.now)


def run(given: argparse.Namespace) -> dict:
    """Run one builder, and return its curve and its utilisation."""
    experience = Experience.open(given.experience)
    experience = experience.with_metrics([experience.metrics[0].name])
    whole = loss_table(experience)
    table = whole.select_common()
    errors = errors_of(experience, whole)[:, experience.configs.isin(table.configs)]
    order = np.random.default_rng(given.seed).permutation(len(table.tasks))
    seen, held = order[: given.tasks], order[given.tasks :]
    losses = table.losses[seen].astype(float)
    jobs = Jobs(given.tasks, table.configs, budget=given.budget)
    seconds = run_times(given.tasks, len(table.configs), given.seed)
    builder = BUILDERS[given.builder](jobs, K, mean, seed=given.seed)
    clock, curve = Clock(builder, losses, seconds, given.workers), []
    whole_time = given.budget * float(seconds.mean()) / given.workers
    for tenth in range(1, TIMES + 1):
        clock.run_until(tenth / TIMES * whole_time)
        due = tenth % given.every == 0
        curve.append((jobs.used, judge(builder, errors[held]) if due else float("nan")))
    while clock.run_until(np.inf):
        pass
    return {
        "suite": given.experience.stem,
        "builder": given.builder,
        "workers": given.workers,
        "seed": given.seed,
        "utilisation": round(clock.utilisation, 4),
        "slowest": round(float(seconds.max() / np.median(seconds)), 1),
        "curve": curve,
        "end": judge(builder, errors[held]),
    }


def judge(builder: Builder, errors: Floats) -> float:
    """Return the mean RED in percent of the first five on other datasets."""
    chosen = builder.picks().chosen
    if not len(chosen):
        return float("nan")
    best = errors[:, chosen].min(axis=1).astype(float)
    reference = np.array([reference_loss(row.astype(float)) for row in errors])
    return round(100 * float(relative_error_difference(best, reference).mean()), 3)


def report(path: Path) -> str:
    """Return the curves of all runs as Markdown, the means over seeds with 95% intervals."""
    rows = list(_lines(path))
    lines = [
        "| suite | builder | workers | seeds | utilisation | "
        + " | ".join(f"{tenth}/10" for tenth in range(1, TIMES + 1))
        + " | end |",
        "|---|" * (TIMES + 6),
    ]
    keys = dict.fromkeys((row["suite"], row["builder"], row["workers"]) for row in rows)
    for key in keys:
        own = [row for row in rows if (row["suite"], row["builder"], row["workers"]) == key]
        curves = np.array([[value for _, value in row["curve"]] for row in own])
        least = min(row["utilisation"] for row in own)
        ends = np.array([row["end"] for row in own])
        cells = [f"{value:.1f}" for value in curves.mean(axis=0)]
        suite, builder, workers = key
        lines.append(
            f"| {suite} | {builder} | {workers} | {len(own)} | at least {least:.1%} | "
            f"{' | '.join(cells)} | {ends.mean():.2f} ± {interval(ends):.2f} |"
        )
    return "\n".join(lines).replace("||", "|")


def interval(values: Floats) -> float:
    """Return half the width of the 95% interval of a mean."""
    n = len(values)
    if n < 2:
        return float("nan")
    return float(student.ppf(0.975, n - 1) * values.std(ddof=1) / np.sqrt(n))


def _lines(path: Path) -> Iterator[dict]:
    for line in path.read_text().splitlines():
        yield json.loads(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", type=Path)
    parser.add_argument("--builder", choices=list(BUILDERS), default="mf")
    parser.add_argument("--workers", type=int, default=8)
    parser.add_argument("--tasks", type=int, default=75)
    parser.add_argument("--budget", type=int, default=3000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--out", type=Path, default=Path("portfolio-clock.jsonl"))
    parser.add_argument("--every", type=int, default=1, help="judge at every so many tenths")
    parser.add_argument("--report", type=Path, help="print the table of such a file, and end")
    given = parser.parse_args()
    if given.report:
        print(report(given.report))
        return
    line = json.dumps(run(given))
    with given.out.open("a") as file:
        file.write(line + "\n")
    print(line)


if __name__ == "__main__":
    main()
