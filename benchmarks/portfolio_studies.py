"""The studies of the zero-shot paper's appendix on recorded results, with the naive builder.

Figure 3: the mean or the 90th percentile as the aggregate. Figure 4: all configurations, a quarter,
or a sixteenth of them. Appendix A: normalisations. Section 1: the number of tasks. And the number
of configurations of a portfolio. Datasets are dealt into ten folds; a portfolio that was built on
nine is judged on the tenth by the error of the best of its first five configurations, as RED in
percent to the dataset's ten best. Each seed deals anew; a number is the mean over seeds with its
95% interval. The 90th percentile over datasets stands beside the mean.

    python benchmarks/portfolio_studies.py --experience oboe.parquet --seeds 10
"""

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.experience import Experience
from foretune.methods.zero_shot.table import loss_table
from foretune.numerics.greedy import find_aggregate, greedy, missing_as_worst
from foretune.numerics.normalise import NORMALISATIONS, reference_loss, relative_error_difference
from portfolio_clock import interval
from portfolios import errors_of

FOLDS, K, LONGEST = 10, 5, 20


@dataclass(frozen=True)
class Setting:
    """One way to build a portfolio."""

    study: str
    name: str
    aggregate: str = "mean"
    normalisation: str = "red"
    share: float = 1.0
    """The share of the configurations that are considered."""
    tasks: int | None = None
    """The number of datasets to learn from. Default: all of the other folds."""
    size: int = K


def settings() -> Iterator[Setting]:
    """Return all settings, study by study."""
    for aggregate in ("mean", "median", "p90"):
        yield Setting("aggregate (Figure 3)", aggregate, aggregate=aggregate)
    for share, name in ((1.0, "all"), (1 / 4, "1/4"), (1 / 16, "1/16")):
        yield Setting("configurations (Figure 4)", name, share=share)
    for name in NORMALISATIONS:
        yield Setting("normalisation (Appendix A)", name, normalisation=name)
    for tasks in (5, 10, 20, 40, 80, 160):
        yield Setting("datasets", str(tasks), tasks=tasks)
    for size in (1, 2, 5, 10, LONGEST):
        yield Setting("size", str(size), size=size)


def judge(setting: Setting, errors: Floats, train: Ints, test: Ints, seed: int) -> Floats:
    """Build on some datasets, and return the RED in percent on others."""
    rng = np.random.default_rng(seed)
    if setting.tasks is not None:
        train = rng.permutation(train)[: setting.tasks]
    count = max(round(setting.share * errors.shape[1]), setting.size)
    columns = rng.permutation(errors.shape[1])[:count]
    # The unit of a task comes from all of its recorded errors, as in the paper.
    unit = NORMALISATIONS[setting.normalisation]
    losses = np.array([unit(errors[row].astype(float)) for row in train])[:, columns]
    chosen = columns[greedy(losses, setting.size, find_aggregate(setting.aggregate)).chosen]
    best = errors[np.ix_(test, chosen)].min(axis=1).astype(float)
    reference = np.array([reference_loss(errors[row].astype(float)) for row in test])
    return 100 * relative_error_difference(best, reference)


def run_setting(setting: Setting, errors: Floats, seeds: int) -> tuple[Floats, Floats]:
    """Return the mean and the 90th percentile over datasets for each seed."""
    means, tails = [], []
    for seed in range(seeds):
        order = np.random.default_rng(seed).permutation(len(errors))
        folds = np.array_split(order, FOLDS)
        found = [
            judge(setting, errors, np.setdiff1d(order, test), test, 100 * seed + number)
            for number, test in enumerate(folds)
        ]
        every = np.concatenate(found)
        means.append(every.mean())
        tails.append(np.percentile(every, 90))
    return np.array(means), np.array(tails)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experience", type=Path, required=True)
    parser.add_argument("--seeds", type=int, default=10)
    given = parser.parse_args()
    experience = Experience.open(given.experience)
    experience = experience.with_metrics([experience.metrics[0].name])
    whole = loss_table(experience)
    common = whole.select_common()
    errors = errors_of(experience, whole)[:, experience.configs.isin(common.configs)]
    errors = missing_as_worst(errors)
    print(f"### {given.experience.stem}: {errors.shape[0]} datasets, {errors.shape[1]} configs\n")
    print("| study | setting | mean RED | 90th percentile |\n|---|---|---|---|", flush=True)
    for setting in settings():
        if setting.tasks is not None and setting.tasks > 0.9 * len(errors):
            continue
        means, tails = run_setting(setting, errors, given.seeds)
        cells = [f"{each.mean():.2f} ± {interval(each):.2f}" for each in (means, tails)]
        print(f"| {setting.study} | {setting.name} | {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
