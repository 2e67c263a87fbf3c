"""Tests `auto` with past runs of a space that has changed since.

    python benchmarks/changed_spaces.py fcnet.parquet nas201.parquet --out changed.csv

Past tasks have 200 runs each. For every task one hyperparameter is drawn, which changes in a way:

- new: past runs had it at one value (for a float, the fifth of the runs nearest to a value) and did
  not record it; now it is searched;
- gone: it was searched; now it has one value and is not in the space;
- wider: past runs had three fifths of its range or choices; now it has all;
- narrower: past runs had all; now it has three fifths.

`auto` with these past runs is compared with `auto` without any and, if possible, with the same runs
in a space that has not changed. The distance to the best of the pool is relative to that of the
median configuration. Runs that are in the file are not repeated.
"""

import argparse
import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import CategoricalHyperparameter, OrdinalHyperparameter
from scipy.stats import wilcoxon

from foretune._base.arrays import Floats, Ints
from foretune.experience import Experience
from foretune.experience.alignment.carry_over import carry_over
from foretune.experience.selection import take_rows
from foretune.methods.contracts import Target
from foretune.search import METHODS, Optimizer, Told
from foretune.space import Parameter, Space
from foretune.space.notation import number_range
from foretune_lab.bench.pools import pool_of

LOOKS = (5, 10, 25)
RUNS = 200
SHARE = 0.6
"""The share of a range or of choices that a narrower space keeps."""
NEAR = 0.2
"""The share of the runs that count as having one value of a float."""


@dataclass(frozen=True)
class Case:
    """A change of the space: past runs as they were recorded, and the task as it is searched."""

    change: str
    past: Experience
    target: Experience
    assumed: dict[str, object]


def cases(whole: Experience, task: str, seed: int) -> Iterator[Case]:
    drawn = hashlib.sha256(f"{task} {seed}".encode()).digest()
    rng = np.random.default_rng(int.from_bytes(drawn[:8]))
    past, target = whole.without([task]), whole.only([task])
    column = int(rng.integers(len(whole.space)))
    parameter = whole.space.parameters[column]
    value = whole.configs.values[rng.integers(len(whole.configs)), column]
    lesser = without(whole.space, parameter)
    narrow = narrow_space(whole.space, parameter, upper=bool(rng.integers(2)))
    one_value = {parameter.name: _outward(parameter, value)}
    had_it = near(past, column, parameter, value)
    have_it = near(target, column, parameter, value)
    yield Case("same", sample_runs(past, rng), target, {})
    yield Case("new", in_space(sample_runs(had_it, rng), lesser), target, one_value)
    yield Case("gone", sample_runs(past, rng), in_space(have_it, lesser), {})
    yield Case("wider", sample_runs(in_space(past, narrow), rng), target, {})
    yield Case("narrower", sample_runs(past, rng), in_space(target, narrow), {})


def near(experience: Experience, column: int, parameter: Parameter, value: float) -> Experience:
    """Return the runs that have a value of a hyperparameter; for a float, the nearest runs."""
    values = experience.configs.values[experience.config_index, column]
    distance = np.abs(parameter.to_unit(values) - parameter.to_unit(np.array([value])))
    few = np.quantile(distance, NEAR) if parameter.is_number else 0.0
    return take_rows(experience, np.flatnonzero(distance <= few))


def sample_runs(experience: Experience, rng: np.random.Generator) -> Experience:
    rows: list[Ints] = []
    for task in experience.tasks:
        of = experience.rows(task)
        n = of.stop - of.start
        rows.append(of.start + np.sort(rng.choice(n, min(RUNS, n), replace=False)))
    return take_rows(experience, np.concatenate(rows)).compact()


def in_space(experience: Experience, space: Space) -> Experience:
    return carry_over(experience.compact(), space).experience.compact()


def without(space: Space, parameter: Parameter) -> Space:
    lesser = ConfigurationSpace()
    lesser.add(*(each for each in space.config_space.values() if each.name != parameter.name))
    return Space.of(lesser)


def narrow_space(space: Space, parameter: Parameter, *, upper: bool) -> Space:
    """Return the space with three fifths of one hyperparameter, at one of its ends."""
    ends = np.array([1.0 - SHARE, 1.0] if upper else [0.0, SHARE])
    low, high = parameter.from_unit(ends)
    kept = parameter.choices[int(low) : int(high) + 1]
    name = parameter.name
    if parameter.is_number:
        integer = parameter.kind == "int"
        low, high = (int(low), int(high)) if integer else (float(low), float(high))
        made = number_range(name, low, high, log=parameter.log, integer=integer)
    elif parameter.kind == "ordinal":
        made = OrdinalHyperparameter(name, list(kept))
    else:
        made = CategoricalHyperparameter(name, list(kept))
    changed = ConfigurationSpace()
    changed.add(*(made if each.name == name else each for each in space.config_space.values()))
    return Space.of(changed)


def variants(case: Case) -> Iterator[tuple[str, Experience | None]]:
    space = case.target.space
    if case.change == "same":
        yield "nothing known", None
        yield "same space", case.past
        return
    if case.change in ("gone", "narrower"):
        yield "nothing known", None
    yield "carried over", carry_over(case.past, space).experience
    if case.change == "new":
        middle = {p.name: p.default for p in space.parameters if p.name in case.assumed}
        yield "the default assumed", carry_over(case.past, space, assumed=middle).experience
        yield "its value said", carry_over(case.past, space, assumed=case.assumed).experience


def distances(target: Experience, past: Experience | None, seed: int) -> dict[str, float]:
    pool = pool_of(target, target.tasks[0])
    auto = METHODS["auto"]
    goal = Target(target.space, (target.metrics[0].name,), pool=pool.configs)
    optimizer = Optimizer(goal, auto, auto.learn(past, seed=seed), seed=seed)
    losses: list[float] = []
    for _ in range(max(LOOKS)):
        suggestion = optimizer.ask()[0]
        losses.append(float(pool.losses[suggestion.pool_index, 0]))
        optimizer.tell([Told(losses[-1], id=suggestion.id)])
    return {f"after {look}": _distance(pool.losses, losses[:look]) for look in LOOKS}


def _distance(all_losses: Floats, found: list[float]) -> float:
    low, middle = float(np.nanmin(all_losses)), float(np.nanmedian(all_losses))
    return (float(np.nanmin(found)) - low) / (middle - low)


def _outward(parameter: Parameter, value: float) -> object:
    return float(value) if parameter.is_number else parameter.choices[int(value)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("experience", type=Path, nargs="+")
    parser.add_argument("--tasks", type=int, default=4, help="the first ones of each table")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--out", type=Path, required=True)
    given = parser.parse_args()
    rows = pd.read_csv(given.out).to_dict("records") if given.out.exists() else []
    keys = ("table", "task", "seed", "change", "past")
    played = {tuple(row[key] for key in keys) for row in rows}
    for path in given.experience:
        whole = Experience.open(path)
        whole = whole.with_metrics([whole.metrics[0].name])
        for seed in range(given.seeds):
            for task in whole.tasks[: given.tasks]:
                for case in cases(whole, task, seed):
                    for past, known in variants(case):
                        key = (path.stem, task, seed, case.change, past)
                        if key in played:
                            continue
                        found = distances(case.target, known, seed)
                        rows.append({**dict(zip(keys, key, strict=True)), **found})
                        pd.DataFrame(rows).to_csv(given.out, index=False)
                        print(*key, flush=True)
    looks = [f"after {look}" for look in LOOKS]
    played_all = pd.DataFrame(rows)
    print(played_all.groupby(["change", "past"], sort=False)[looks].mean().round(3).to_string())
    print(beside_nothing(played_all, looks).to_string())


def beside_nothing(rows: pd.DataFrame, looks: list[str]) -> pd.DataFrame:
    """Return how often runs with past ones are ahead of runs without, and Wilcoxon's test."""
    where = ["table", "task", "seed"]
    by = rows.set_index([*where, "change", "past"])[looks]
    told = []
    for change in ("same", "new", "gone", "wider", "narrower"):
        pool = change if change in ("gone", "narrower") else "same"
        nothing = by.xs((pool, "nothing known"), level=("change", "past"))
        past = "same space" if change == "same" else "carried over"
        known, nothing = by.xs((change, past), level=("change", "past")).align(nothing, "inner")
        for look in looks:
            gain = nothing[look] - known[look]
            ahead, p = (gain > 0).mean() + (gain == 0).mean() / 2, wilcoxon(gain).pvalue
            told.append((change, look, f"{ahead:.0%}, p = {p:.2g}"))
    return pd.DataFrame(told, columns=["change", "look", "ahead"]).pivot(
        index="change", columns="look", values="ahead"
    )[looks]


if __name__ == "__main__":
    main()
