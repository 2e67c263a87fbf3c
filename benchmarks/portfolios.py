"""Compares portfolio builders at an equal budget of evaluations.

Datasets are split into folds. A builder sees all folds but one. Its portfolio is judged on that
one, by the error of the best of its first 1, 2 and 5 configurations. The results have one line of
JSON for each fold and builder. The same command goes on where it was stopped.

    python benchmarks/portfolios.py --experience oboe.parquet --out portfolios.jsonl
    python benchmarks/portfolios.py --report portfolios.jsonl
"""

import argparse
import json
import time
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path

import numpy as np
from scipy.stats import t as student

from foretune._base.arrays import Floats, Ints
from foretune.experience import Experience, Split, k_fold
from foretune.methods.zero_shot.build import BUILDERS
from foretune.methods.zero_shot.builder import spend_budget
from foretune.methods.zero_shot.jobs import look_up_jobs
from foretune.methods.zero_shot.naive import Naive
from foretune.methods.zero_shot.panel import panel_of
from foretune.methods.zero_shot.table import LossTable, loss_table
from foretune.numerics.greedy import Picks, greedy, mean, missing_as_worst
from foretune.numerics.normalise import reference_loss, relative_error_difference
from foretune_lab.bench.metrics import random_search_minimum

COUNTS = (1, 2, 5)
LENGTHS = (1, 2, 5, 10)
RANDOM_TRIALS = 500
PAIRS = {
    ("obo", "surrogate"): (-3.71, -2.82, -1.89),
    ("mf", "naive"): (-2.44, -2.96, -2.44),
    ("obo", "mf"): (-2.70, -2.35, -2.57),
    ("surrogate", "naive"): (-1.38, -2.11, -3.06),
    ("mf", "surrogate"): (-0.09, 0.35, 1.42),
    ("obo", "naive"): (-4.92, -4.75, -4.78),
    ("panel", "naive"): (),
    ("obo", "panel"): (),
    ("mf", "panel"): (),
    ("whole", "naive"): (),
    ("obo", "whole"): (),
}
"""The pairs of builders to compare, and the paper's combined values in percent."""


class NaiveOnPanel(Naive):
    """Builds naively on the adaptive builders' panel of tasks, to see the worth of the panel."""

    @cached_property
    def tasks(self) -> Ints:
        return panel_of(self.jobs, np.random.default_rng(self.seed))

    @cached_property
    def drawn(self) -> Ints:
        return self.random_order()[: self.jobs.budget // len(self.tasks)]

    def planned_jobs(self) -> tuple[Ints, Ints]:
        count = len(self.drawn)
        return np.tile(self.tasks, count), np.repeat(self.drawn, len(self.tasks))

    def picks(self) -> Picks:
        picks = greedy(self.jobs.losses[np.ix_(self.tasks, self.drawn)], self.k, self.aggregate)
        return Picks(self.drawn[picks.chosen], picks.losses)


CONTENDERS = {**BUILDERS, "panel": NaiveOnPanel, "whole": Naive}
"""The builders, and naive ones on a panel and on the whole table without a budget."""


def errors_of(experience: Experience, table: LossTable) -> Floats:
    """Return the measured errors (tasks, candidates); a missing one is the task's worst."""
    errors = np.full((len(experience.tasks), len(experience.configs)), np.nan, dtype=np.float32)
    errors[experience.task_index, experience.config_index] = experience.losses[:, 0]
    kept = [experience.tasks.index(task) for task in table.tasks]
    return missing_as_worst(errors[kept])


def judge_portfolio(
    table: LossTable, errors: Floats, split: Split, builder: str, budget: int, seed: int
) -> dict:
    """Build on the training tasks; return the errors of the first configurations on the others."""
    position = {task: row for row, task in enumerate(table.tasks)}
    train = [position[task] for task in split.train if task in position]
    test = [position[task] for task in split.test if task in position]
    seen = table.take_tasks(np.array(train))
    jobs = look_up_jobs(seen, None if builder == "whole" else budget)
    longest = max(LENGTHS) if builder in ("whole", "obo", "mf") else max(COUNTS)
    started = time.perf_counter()
    picks = spend_budget(CONTENDERS[builder](jobs, longest, mean, seed=seed), jobs)
    seconds = time.perf_counter() - started
    # Candidates are those that all training tasks share, perhaps not all of the table.
    chosen = np.flatnonzero(table.configs.isin(jobs.candidates))[picks.chosen]
    best = np.minimum.accumulate(errors[np.ix_(test, chosen)], axis=1)
    return {
        "jobs": jobs.used,
        "seconds": round(seconds, 2),
        "tasks": [table.tasks[row] for row in test],
        "errors": {n: [float(f"{e:.6g}") for e in best[:, n - 1]] for n in range(1, longest + 1)},
        "reference": [reference_loss(errors[row].astype(float)) for row in test],
        "random": random_curve(errors[test]) if builder == "whole" else [],
    }


def random_curve(errors: Floats) -> list[float]:
    """Return the expected RED after 1, 2, ... random trials, averaged over tasks.

    It is exact, because RED grows with the error.
    """
    rows = [row.astype(float) for row in errors]
    losses = [relative_error_difference(row, np.asarray(reference_loss(row))) for row in rows]
    return np.mean([random_search_minimum(row, RANDOM_TRIALS) for row in losses], axis=0).tolist()


def run(given: argparse.Namespace) -> None:
    """Add the missing results to the file, fold by fold."""
    done = {(r["suite"], r["seed"], r["fold"], r["builder"]) for r in _lines(given.out)}
    experience = Experience.open(given.experience)
    experience = experience.with_metrics([experience.metrics[0].name])
    suite = given.experience.stem
    whole = loss_table(experience)
    table, errors = whole.select_common(), errors_of(experience, whole)
    errors = errors[:, experience.configs.isin(table.configs)]
    for fold, split in enumerate(k_fold(experience, given.folds, seed=given.seed)):
        for builder in given.builders.split(","):
            if fold >= given.stop or (suite, given.seed, fold, builder) in done:
                continue
            row = {"suite": suite, "fold": fold, "folds": given.folds, "builder": builder}
            row |= {"budget": given.budget, "seed": given.seed}
            seed = 100 * given.seed + fold
            row |= judge_portfolio(table, errors, split, builder, given.budget, seed=seed)
            with given.out.open("a") as file:
                file.write(json.dumps(row) + "\n")
            print(suite, fold, builder, f"{row['seconds']} s", flush=True)


def report(path: Path) -> str:
    """Return tables of all results as Markdown."""
    rows = list(_lines(path))
    parts = []
    for suite in dict.fromkeys(row["suite"] for row in rows):
        of_suite = [row for row in rows if row["suite"] == suite]
        parts += [_comparisons(suite, of_suite), _levels(of_suite)]
        if any(row["builder"] == "whole" for row in of_suite):
            parts.append(_against_random(of_suite))
    return "\n\n".join(parts)


def _comparisons(suite: str, rows: list[dict]) -> str:
    lines = [
        f"### {suite}, budget {rows[0]['budget']:,}: average RED in percent ± standard error\n",
        "| comparison | datasets | " + " | ".join(f"{n}" for n in COUNTS) + " | paper |",
        "|---|" * (len(COUNTS) + 3),
    ]
    for (ours, other), paper in PAIRS.items():
        folds = {_fold(r) for r in rows if r["builder"] == ours}
        folds &= {_fold(r) for r in rows if r["builder"] == other}
        if not folds:
            continue
        cells = []
        own = sorted((r for r in rows if r["builder"] == ours and _fold(r) in folds), key=_fold)
        for n in COUNTS:
            difference = 100 * relative_error_difference(
                _errors(rows, ours, n, folds), _errors(rows, other, n, folds)
            )
            seeds = np.array([_fold(row)[0] for row in own for _ in row["tasks"]])
            cells.append(_mean_and_error(difference, seeds))
        combined = " / ".join(f"{value:+.2f}" for value in paper)
        named = f"{ours} vs {other}"
        lines.append(f"| {named} | {len(difference)} | {' | '.join(cells)} | {combined} |")
    return "\n".join(lines).replace("|---||---|", "|---|---|").replace("||", "|")


def _mean_and_error(differences: Floats, seeds: Floats) -> str:
    """Return the mean with its standard error; of several seeds with its 95% interval."""
    named = np.unique(seeds)
    if len(named) == 1:
        error = differences.std(ddof=1) / np.sqrt(len(differences))
        return f"{differences.mean():+.2f} ± {error:.2f}"
    means = np.array([differences[seeds == seed].mean() for seed in named])
    error = student.ppf(0.975, len(means) - 1) * means.std(ddof=1) / np.sqrt(len(means))
    return f"{means.mean():+.2f} ± {error:.2f}"


def _levels(rows: list[dict]) -> str:
    lines = [
        "| builder | folds | " + " | ".join(f"RED to reference, {n}" for n in COUNTS) + " | s |",
        "|---|---|---|---|---|---|",
    ]
    for builder in dict.fromkeys(row["builder"] for row in rows):
        own = [row for row in rows if row["builder"] == builder]
        folds = {_fold(row) for row in own}
        reference = np.concatenate([row["reference"] for row in sorted(own, key=_fold)])
        cells = [
            f"{100 * gain.mean():.2f}"
            for n in COUNTS
            for gain in [relative_error_difference(_errors(rows, builder, n, folds), reference)]
        ]
        seconds = np.mean([row["seconds"] for row in own])
        lines.append(f"| {builder} | {len(own)} | {' | '.join(cells)} | {seconds:.1f} |")
    return "\n".join(lines)


def _against_random(rows: list[dict]) -> str:
    """Return after how many random trials the average RED is as low as the portfolio's."""
    whole = [row for row in rows if row["builder"] == "whole"]
    curve = np.average(
        [row["random"] for row in whole], axis=0, weights=[len(row["tasks"]) for row in whole]
    )
    heads = " | ".join(f"first {n}" for n in LENGTHS)
    lines = [f"| random trials that match the | {heads} |", "|---|---|---|---|---|"]
    for builder in ("whole", "obo", "mf"):
        own = sorted((row for row in rows if row["builder"] == builder), key=_fold)
        reference = np.concatenate([row["reference"] for row in own])
        folds = {_fold(row) for row in own}
        cells = []
        for n in LENGTHS:
            reached = relative_error_difference(_errors(rows, builder, n, folds), reference).mean()
            matching = np.flatnonzero(curve <= reached)
            cells.append(str(matching[0] + 1) if len(matching) else f"over {RANDOM_TRIALS}")
        lines.append(f"| {builder} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _errors(rows: list[dict], builder: str, n: int, folds: set[int]) -> Floats:
    own = [row for row in rows if row["builder"] == builder and _fold(row) in folds]
    return np.concatenate([row["errors"][str(n)] for row in sorted(own, key=_fold)])


def _fold(row: dict) -> tuple[int, int]:
    return row.get("seed", 0), row["fold"]


def _lines(path: Path) -> Iterator[dict]:
    if path.exists():
        for line in path.read_text().splitlines():
            yield json.loads(line)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", type=Path)
    parser.add_argument("--out", type=Path, default=Path("portfolios.jsonl"))
    parser.add_argument("--report", type=Path, help="print the tables of such a file, and end")
    parser.add_argument("--budget", type=int, default=3000)
    parser.add_argument("--folds", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0, help="of the folds and the builders")
    parser.add_argument("--stop", type=int, default=10, help="only so many of the folds")
    parser.add_argument("--builders", default=",".join(CONTENDERS))
    given = parser.parse_args()
    if given.report:
        print(report(given.report))
    else:
        run(given)


if __name__ == "__main__":
    main()
