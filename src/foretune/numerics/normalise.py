"""Normalisations that make the losses of different tasks comparable (zero-shot paper, Appendix A).

Each function maps the losses (n,) of one task. NaN stays NaN.
"""

from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from foretune._base.arrays import Floats
from foretune.errors import UsageError
from foretune.numerics.transforms import standardise

REFERENCE_SIZE = 10
"""The reference loss of a task is the mean of this number of its best losses."""


def relative_error_difference(error: Floats, reference: Floats) -> Floats:
    """Return (a - b) / max(a, b), the relative error difference of errors >= 0, with 0/0 = 0."""
    error, reference = np.broadcast_arrays(error, reference)
    if np.nanmin([error, reference]) < 0.0:
        raise UsageError(
            "RED compares errors, which must not be negative, but got "
            f"{np.nanmin([error, reference]):g}: turn scores into errors first, as in 1 - accuracy",
            rule="negative-error",
            value=float(np.nanmin([error, reference])),
        )
    larger = np.maximum(error, reference)
    return np.divide(error - reference, larger, out=np.zeros(larger.shape), where=larger != 0.0)


def reference_loss(validation: Floats, test: Floats | None = None) -> float:
    """Return the mean test loss of the configurations with the lowest validation losses (n,).

    If only one loss was measured, pass it as both.
    """
    known = np.flatnonzero(~np.isnan(validation))
    best = known[np.argsort(validation[known], kind="stable")[:REFERENCE_SIZE]]
    # Sixteenths are exact, and a sum of ten of them stays finite.
    sixteenths = (validation if test is None else test)[best] / 16.0
    return 16.0 * float(sixteenths.mean())


def relative_error_to_best(losses: Floats) -> Floats:
    """Return RED to the task's own reference loss."""
    if np.isnan(losses).all():
        return losses
    return relative_error_difference(losses, np.asarray(reference_loss(losses)))


def keep_losses(losses: Floats) -> Floats:
    """Return the losses unchanged."""
    return losses


def share_of_better(losses: Floats) -> Floats:
    """Return the rank between 0 and 1: the share of the task's losses that are lower."""
    known = np.sort(losses[~np.isnan(losses)])
    lower = np.searchsorted(known, losses) / max(len(known), 1)
    return np.where(np.isnan(losses), np.nan, lower)


def normal_scores(losses: Floats) -> Floats:
    """Return the Gaussian quantile at that rank, not Winsorised. It tells the very best apart."""
    known = max(int(np.count_nonzero(~np.isnan(losses))), 1)
    scores: Floats = ndtri(share_of_better(losses) + 0.5 / known)
    return scores


def min_max(losses: Floats) -> Floats:
    """Scale the losses to 0 to 1. Equal losses become 0."""
    low, high = float(np.fmin.reduce(losses)), float(np.fmax.reduce(losses))
    # Halves are exact, and the difference of two huge values of unlike signs stays finite.
    part = 0.5 if high > 1.0 else 1.0
    shifted = part * losses - part * low
    return shifted / (part * high - part * low) if high > low else shifted


NORMALISATIONS: dict[str, Callable[[Floats], Floats]] = {
    "none": keep_losses,
    "rank": share_of_better,
    "stddev": standardise,
    "min-max": min_max,
    "red": relative_error_to_best,
    "normal": normal_scores,
}
