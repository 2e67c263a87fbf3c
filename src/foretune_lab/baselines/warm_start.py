"""WS-GP: a Gaussian process whose first trials are the best configurations of past tasks.

Feurer et al. (2015), as the copula paper's appendix B has it: one configuration a past task, and
no meta-features. The paper leaves their order open; ours begins with those that are good on most
past tasks, so that a short budget spends its trials well however many past tasks there are.
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
    """Where to begin; what follows is the plain GP."""

    best: Encoded

    def opening(self, target: Target) -> Encoded:
        """The best configuration of each past task, those first that are good on most tasks."""
        check_space(self.best.space, target)
        return self.best

    def surrogate(self, target: Target) -> Surrogate:
        """The GP of the target's own trials."""
        check_space(self.best.space, target)
        return GaussianProcessSurrogate.on(standardise, target)

    def save(self, path: Path) -> None:
        """Write the configurations."""
        save_configs(path, KIND, self.best)


def warm_started_gp() -> BestOfEachLearner[WarmStartPrior]:
    """The learner of WS-GP."""
    return BestOfEachLearner(KIND, WarmStartPrior)
