"""Which hyperparameters made a difference among the trials of one run.

A random forest learns from the configurations how the trials rank. The effect of a hyperparameter
is the share of the forest's variance that is lost if its values are exchanged between trials. This
is Sobol's total-effect index, by Jansen's estimator. Ranks are used because a few very bad values
would decide everything.
"""

from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from foretune._base.arrays import Floats
from foretune.space import Encoded

FEWEST_TRIALS = 10
"""With fewer trials, or fewer with a hyperparameter active, nothing can be said."""
LEAST_EXPLAINED = 0.05
"""A forest that predicts less than this has learnt nothing."""
MOST_TRIALS = 2_000
"""More trials cost more and do not change the result."""
NOTHING_LEARNT = (
    "The trials do not show which hyperparameters matter: a random forest that learns from some of "
    "them cannot predict the others. More trials may help."
)
TREES = 64
EXCHANGES = 3
"""How often the values of a hyperparameter are exchanged. The effects are averaged."""


@dataclass(frozen=True, slots=True)
class HyperparameterEffect:
    """How much of the variation among trials one hyperparameter explains."""

    parameter: str
    share: float
    """Share of the forest's variance, with interactions. The shares may add up to more than 1."""
    trials: int
    """How many of the trials had the hyperparameter active."""


@dataclass(frozen=True, slots=True)
class Importance:
    """The effects, largest first, or the reason why they are unreliable."""

    effects: tuple[HyperparameterEffect, ...]
    trials: int = 0
    """How many trials were used."""
    explained: float = 0.0
    """The share of the variation that the forest predicts for trials it has not seen."""
    reason: str = ""


def importance(configs: Encoded, losses: Floats, *, seed: int) -> Importance:
    """Return the effects of the hyperparameters on losses (n,), ignoring those not finite."""
    rng = np.random.default_rng(seed)
    usable = np.flatnonzero(np.isfinite(losses))
    if len(usable) > MOST_TRIALS:
        usable = np.sort(rng.choice(usable, MOST_TRIALS, replace=False))
    configs, losses = configs.take(usable), losses[usable]
    reason = _hindrance(configs, losses)
    if reason:
        return Importance((), len(usable), reason=reason)
    return _measure(configs, rankdata(losses) / len(losses), rng)


def _hindrance(configs: Encoded, losses: Floats) -> str:
    if len(losses) < FEWEST_TRIALS:
        return (
            f"It takes {FEWEST_TRIALS} successful trials to tell which hyperparameters matter; "
            f"there {'is' if len(losses) == 1 else 'are'} {len(losses)}."
        )
    if np.ptp(losses) == 0:
        return "All trials scored the same, so nothing made a difference."
    if not _varying_columns(configs):
        return "No hyperparameter took different values in enough trials to be judged."
    return ""


def _varying_columns(configs: Encoded) -> list[int]:
    """Return the columns of hyperparameters that took more than one value, in enough trials."""
    columns = []
    for column in range(len(configs.space)):
        values = configs.values[configs.active[:, column], column]
        if len(values) >= FEWEST_TRIALS and np.ptp(values) > 0:
            columns.append(column)
    return columns


def _measure(configs: Encoded, ranks: Floats, rng: np.random.Generator) -> Importance:
    from sklearn.ensemble import RandomForestRegressor

    columns = _varying_columns(configs)
    active = configs.active[:, columns]
    # Inactive values become noise. A constant would tell which algorithm was chosen, and would take
    # the credit from the choice.
    codes = np.where(active, configs.codes[:, columns], rng.random(active.shape))
    forest = RandomForestRegressor(
        n_estimators=TREES,
        min_samples_leaf=3,
        max_features=0.7,
        oob_score=True,
        random_state=int(rng.integers(2**31)),
        n_jobs=1,
    ).fit(codes, ranks)
    predicted = forest.predict(codes)
    # All exchanges are predicted at once: a call to a forest costs much more than a row.
    owners = [np.flatnonzero(active[:, place]) for place in range(len(columns))]
    exchanged = [
        _exchange_values(codes[rows], place, rng)
        for place, rows in enumerate(owners)
        for _ in range(EXCHANGES)
    ]
    rows = np.concatenate([rows for rows in owners for _ in range(EXCHANGES)])
    changes = np.square(forest.predict(np.concatenate(exchanged)) - predicted[rows])
    ends = np.cumsum([EXCHANGES * len(rows) for rows in owners])[:-1]
    variance = float(predicted.var()) or 1.0
    effects = [
        HyperparameterEffect(
            configs.space.parameters[column].name,
            float(part.sum()) / (2 * EXCHANGES * len(ranks) * variance),
            len(part) // EXCHANGES,
        )
        for column, part in zip(columns, np.split(changes, ends), strict=True)
    ]
    effects.sort(key=lambda effect: -effect.share)
    explained = max(0.0, float(forest.oob_score_))
    reason = "" if explained >= LEAST_EXPLAINED else NOTHING_LEARNT
    return Importance(tuple(effects), len(ranks), explained, reason)


def _exchange_values(codes: Floats, column: int, rng: np.random.Generator) -> Floats:
    changed = codes.copy()
    changed[:, column] = rng.permutation(changed[:, column])
    return changed
