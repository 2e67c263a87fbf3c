"""Losses that pending trials are believed to end with, so that a batch spreads."""

import numpy as np
from scipy.stats import rankdata

from foretune._base.arrays import Floats
from foretune.methods.contracts import Observations, Posterior
from foretune.space import Encoded

MOST_COMPARED = 1_000
"""Predicting all of 100,000 trials would take longer than the rest of a suggestion."""


def with_beliefs(
    told: Observations, pending: Encoded, posterior: Posterior, reported: Floats | None = None
) -> Observations:
    """Return the told trials, and the pending ones as if they had ended as `posterior` predicts.

    reported: (pending, objectives), the last losses that each pending trial has reported, or NaN.
        Reported losses replace the prediction.
    """
    good = _informative(told.successes())
    expected = posterior.predict_each(pending)
    known = posterior.predict_each(good.configs)
    width = good.losses.shape[1]
    columns = zip(
        np.broadcast_to(expected, (len(pending), width)).T,
        np.broadcast_to(known, (len(good), width)).T,
        good.losses.T,
        strict=True,
    )
    believed = np.column_stack([impute_pending_losses(*column) for column in columns])
    if reported is not None:
        believed = np.where(np.isnan(reported), believed, reported)
    return Observations(
        Encoded.concat([told.configs, pending]),
        np.concatenate([told.losses, believed]),
        np.concatenate([told.believed, np.ones(len(pending), dtype=bool)]),
    )


def _informative(good: Observations) -> Observations:
    """Return the trials to compare pending ones with.

    If there are many, half of them are the best by the mean of their ranks, and half are spread
    evenly over the search.
    """
    if len(good) <= MOST_COMPARED:
        return good
    half = MOST_COMPARED // 2
    ranks = rankdata(good.losses, axis=0).mean(axis=1)
    best = np.argsort(ranks, kind="stable")[:half]
    spread = np.linspace(0, len(good) - 1, half).astype(np.int64)
    rows = np.union1d(best, spread)
    return Observations(good.configs.take(rows), good.losses[rows], good.believed[rows])


def impute_pending_losses(expected: Floats, known: Floats, losses: Floats) -> Floats:
    """Return (m,), the losses that pending trials with predictions `expected` (m,) may end with.

    The surrogate predicts in its own unit: `known` (n,) for the trials that ended with `losses`
    (n,). A pending trial is believed to end like the trial with the nearest prediction, moved along
    the trend of losses against predictions.
    """
    nearest = np.abs(known[None, :] - expected[:, None]).argmin(axis=1)
    with np.errstate(over="ignore"):
        believed = losses[nearest] + (expected - known[nearest]) * trend(known, losses)
    finite: Floats = np.where(np.isfinite(believed), believed, losses[nearest])
    return finite


def trend(predictions: Floats, losses: Floats) -> float:
    """Return the slope of the losses (n,) against the predictions (n,), by least squares."""
    centred = predictions - predictions.mean()
    variance = float(centred @ centred)
    if not variance:
        return 0.0
    # A power of two causes no rounding, and keeps sums of huge losses finite.
    unit = np.exp2(np.frexp(np.abs(losses).max())[1] - 1)
    scaled = losses / unit
    with np.errstate(over="ignore"):
        slope = float(centred @ (scaled - scaled.mean()) / variance * unit)
    return slope if np.isfinite(slope) else 0.0
