"""Failures teach: the probability that a configuration will run at all.

A Gaussian process on the labels (1 succeeded, 0 failed) with the usual length scales learns which
hyperparameters make trials fail. Its prediction, squashed into (0, 1), multiplies every
acquisition function; without failures it costs nothing.
"""

from dataclasses import dataclass

import numpy as np
from scipy.special import log_ndtr

from foretune.arrays import Floats
from foretune.contracts import Observations
from foretune.numerics.gp import GP, fit_hyper
from foretune.space import Encoded

PRIOR_SUCCESS = 0.9
"""What is believed of a region in which nothing was tried."""


@dataclass(frozen=True, slots=True)
class Feasibility:
    """The log-probability of success, learnt from the trials that failed."""

    model: GP | None

    def log_probability(self, x: Encoded) -> Floats:
        """(len(x),), at most 0; all 0 when nothing has failed."""
        if self.model is None:
            return np.zeros(len(x))
        mean, std = self.model.predict(x.x)
        margin = mean + PRIOR_SUCCESS - 0.5
        # The 0.25 keeps a certain model from declaring any place impossible for ever.
        result: Floats = log_ndtr(margin / np.sqrt(std**2 + 0.25**2))
        return result


def learn_feasibility(seen: Observations) -> Feasibility:
    """Fit to which of the told trials failed (believed ones are not told)."""
    told = ~seen.believed
    succeeded = seen.succeeded[told]
    if succeeded.all():
        return Feasibility(None)
    x = seen.configs.x[told]
    labels = succeeded.astype(float) - PRIOR_SUCCESS
    return Feasibility(GP.condition(x, labels, fit_hyper(x, labels)))
