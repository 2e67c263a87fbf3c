"""WS-GP: a Gaussian process whose first trials are the best configurations of past tasks.

Feurer et al. (2015), as in the copula paper's appendix B: one configuration for each past task,
and no meta-features. The paper leaves their order open. Here those that are good on most past
tasks come first, so that a short budget spends its trials well with any number of past tasks.
"""

from dataclasses import dataclass
from pathlib import Path

from foretune.methods import GaussianProcessSurrogate, Prior, Surrogate, Target, check_space
from foretune.numerics import standardise
from foretune.space import Encoded
from foretune_lab.baselines.best_of_past import BestOfEachLearner, save_configs

KIND = "foretune-ws-gp"


@dataclass(frozen=True, slots=True)
class WarmStartPrior(Prior):
    """The prior of a start list; the plain GP follows."""

    best: Encoded

    def opening(self, target: Target) -> Encoded:
        """Return the best configuration of each past task, first those good on most tasks."""
        check_space(self.best.space, target)
        return self.best

    def surrogate(self, target: Target) -> Surrogate:
        """Return the GP of the target's own trials."""
        check_space(self.best.space, target)
        return GaussianProcessSurrogate.on(standardise, target)

    def save(self, path: Path) -> None:
        """Write the configurations."""
        save_configs(path, KIND, self.best)


def warm_started_gp() -> BestOfEachLearner[WarmStartPrior]:
    """Make the learner of WS-GP."""
    return BestOfEachLearner(KIND, WarmStartPrior)
