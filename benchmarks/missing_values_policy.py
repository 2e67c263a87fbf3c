"""Compares three policies for a hyperparameter that past runs did not record.

    python benchmarks/missing_values_policy.py svc.parquet rpart.parquet --out policy.csv --jobs 16

Each case leaves one task out and removes one hyperparameter from all or from half of the other
tasks, which are the past. A method learns from the past under each policy and searches the task
that was left out. Two references stand beside the policies: nothing is missing, and nothing is
known at all. If a policy leaves no past run, the method starts from nothing.

The distance to the best configuration of the task is relative to the median configuration's: 0 is
the best, 1 the median. Each row is written as soon as it is there. Rows that are in the file are
not played again, and --seconds ends the run early.
"""

import argparse
import csv
import hashlib
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import astuple, dataclass, fields
from functools import lru_cache
from multiprocessing import get_context
from pathlib import Path

import numpy as np
import pandas as pd
from scipy.stats import wilcoxon

from foretune._base.arrays import Floats, Ints
from foretune.errors import ExperienceError
from foretune.experience import Experience
from foretune.experience.alignment.carry_over import carry_over
from foretune.experience.alignment.missing_policy import MissingPolicy
from foretune.experience.build import take_rows
from foretune.methods.contracts import Target
from foretune.search import METHODS, Optimizer, Told
from foretune.space import Encoded
from foretune_lab.bench.pools import pool_of

LOOKS = (5, 10, 25)
WHOLE, NOTHING = "nothing missing", "nothing known"
VARIANTS = (*MissingPolicy, WHOLE, NOTHING)


@dataclass(frozen=True)
class Case:
    """One search: its past runs, the values that they lack, and the policy for them."""

    file: str
    task: str
    seed: int
    removed: str
    share: float
    method: str
    runs: int
    variant: str


def cases(given: argparse.Namespace) -> Iterator[Case]:
    """Yield all cases; files, seeds and tasks take turns, so that any part is fair."""
    wholes = {path: open_experience(str(path)) for path in given.experience}
    for seed in range(given.seeds):
        for number in range(given.tasks):
            for path, whole in wholes.items():
                if number < len(whole.tasks):
                    task = whole.tasks[number * len(whole.tasks) // given.tasks]
                    for removed in drawn_names(whole, task, seed, given.removed):
                        for share in given.shares:
                            for method in given.methods.split(","):
                                for variant in VARIANTS:
                                    yield Case(
                                        str(path), task, seed, removed, share, method, given.runs,
                                        str(variant),
                                    )  # fmt: skip


def drawn_names(whole: Experience, task: str, seed: int, n: int) -> list[str]:
    names = [p.name for p in whole.space.parameters if p.size > 1]
    order = generator(task, seed).permutation(len(names))
    return [names[place] for place in order[:n]]


def generator(*parts: object) -> np.random.Generator:
    drawn = hashlib.sha256(repr(parts).encode()).digest()
    return np.random.default_rng(int.from_bytes(drawn[:8]))


@lru_cache(maxsize=4)
def open_experience(path: str) -> Experience:
    whole = Experience.open(path)
    return whole.with_metrics([whole.metrics[0].name])


def past_of(case: Case) -> Experience | None:
    """Return the past runs as the policy of the case sees them; None if there are none."""
    if case.variant == NOTHING:
        return None
    whole = open_experience(case.file)
    past = some_runs(whole.without([case.task]), case)
    if case.variant == WHOLE:
        return past
    try:
        return carry_over(with_gaps(past, case), past.space, missing=case.variant).experience
    except ExperienceError:
        return None


def some_runs(past: Experience, case: Case) -> Experience:
    rng, rows = generator(case.task, case.seed, "runs"), list[Ints]()
    for task in past.tasks:
        of = past.rows(task)
        n = of.stop - of.start
        rows.append(of.start + np.sort(rng.choice(n, min(case.runs, n), replace=False)))
    return take_rows(past, np.concatenate(rows)).compact()


def with_gaps(past: Experience, case: Case) -> Experience:
    """Return the runs without one hyperparameter in the first tasks of a random order."""
    order = generator(case.task, case.seed, "tasks").permutation(len(past.tasks))
    lacks = np.isin(past.task_index, order[: round(case.share * len(order))])
    values = past.configs.values[past.config_index].copy()
    values[lacks, past.space.names.index(case.removed)] = np.nan
    rows = np.arange(len(past))
    return Experience.build(
        past.space,
        past.metrics,
        past.tasks,
        past.task_index,
        Encoded(past.space, values),
        rows,
        past.values,
        status=past.status,
        seconds=past.seconds,
        meta_features=past.meta_features,
    )


def play(case: Case) -> tuple[Case, list[float]]:
    target = open_experience(case.file).only([case.task])
    pool, method = pool_of(target, case.task), METHODS[case.method]
    past = past_of(case)
    if past is None and method.needs_experience:
        method = METHODS["gp"]
    goal = Target(
        target.space,
        (target.metrics[0].name,),
        pool=pool.configs,
        meta_features=target.meta_features.get(case.task),
    )
    optimizer = Optimizer(goal, method, method.learn(past, seed=case.seed), seed=case.seed)
    losses: list[float] = []
    for _ in range(min(max(LOOKS), len(pool.configs))):
        suggestion = optimizer.ask()[0]
        losses.append(float(pool.losses[suggestion.pool_index, 0]))
        optimizer.tell([Told(losses[-1], id=suggestion.id)])
    return case, [distance(pool.losses[:, 0], losses[:look]) for look in LOOKS]


def distance(all_losses: Floats, found: list[float]) -> float:
    low, middle = float(np.nanmin(all_losses)), float(np.nanmedian(all_losses))
    best = min((loss for loss in found if np.isfinite(loss)), default=float(np.nanmax(all_losses)))
    return (best - low) / (middle - low) if middle > low else 0.0


def show(path: Path) -> None:
    """Print the mean distance of each variant, and each policy beside the usual one."""
    looks = [f"after {look}" for look in LOOKS]
    rows = pd.read_csv(path)
    names = [field.name for field in fields(Case) if field.name != "variant"]
    table = rows.pivot_table(index=names, columns="variant", values=looks).dropna()
    print(f"{len(table)} cases with all variants")
    for (method, share), part in table.groupby(["method", "share"]):
        print(f"\n{method}, missing on {share:.0%} of the past tasks")
        mean = part.mean().unstack(0)[looks].reindex(list(map(str, VARIANTS)))
        print(mean.round(3).to_string())
        for policy in (MissingPolicy.MARGINALISE, MissingPolicy.DROP):
            for look in looks:
                gain = part[look]["default"] - part[look][str(policy)]
                p = wilcoxon(gain).pvalue if gain.any() else 1.0
                better = (gain > 0).mean() + (gain == 0).mean() / 2
                print(f"{policy} is ahead of default {look}: {better:.0%}, p = {p:.2g}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experience", type=Path, nargs="+")
    parser.add_argument("--methods", default="gcp-prior,zero-shot")
    parser.add_argument("--tasks", type=int, default=6, help="of each file")
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--removed", type=int, default=2, help="hyperparameters for each task")
    parser.add_argument("--shares", type=float, nargs="+", default=[0.5, 1.0])
    parser.add_argument("--runs", type=int, default=50, help="of each past task")
    parser.add_argument("--jobs", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=450.0)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    header = [field.name for field in fields(Case)] + [f"after {look}" for look in LOOKS]
    width = len(fields(Case))
    played = set[tuple[str, ...]]()
    if given.out.exists():
        with given.out.open(newline="") as stream:
            played = {tuple(row[:width]) for row in csv.reader(stream)}
    todo = [each for each in cases(given) if tuple(map(str, astuple(each))) not in played]
    print(f"{len(todo)} searches to play", flush=True)
    end = time.monotonic() + given.seconds
    with (
        given.out.open("a", newline="") as stream,
        ProcessPoolExecutor(given.jobs, mp_context=get_context("spawn")) as pool,
    ):
        write = csv.writer(stream)
        if not played:
            write.writerow(header)
        waiting = {pool.submit(play, each) for each in todo}
        for number, done in enumerate(as_completed(waiting), 1):
            case, found = done.result()
            write.writerow([*astuple(case), *found])
            stream.flush()
            if number % 20 == 0:
                print(f"{number} of {len(todo)}", flush=True)
            if time.monotonic() > end:
                pool.shutdown(wait=False, cancel_futures=True)
                break
    show(given.out)


if __name__ == "__main__":
    main()
