"""The methods of this folder, as learners for the registry."""

from dataclasses import replace

from foretune.methods.copula.learn import CopulaLearner
from foretune.methods.copula.model import CopulaSettings
from foretune.numerics.scores import midrank_scores
from foretune.numerics.transforms import copula_scores, standardise

OURS = CopulaSettings(prior_weight=1.0, grouped=True)
"""Settings with our Gaussian process instead of the paper's."""
INFORMED = replace(OURS, target="informed", random_weights=True)


def cts() -> CopulaLearner:
    """Return the learner of Copula Thompson Sampling (Algorithm 1)."""
    return CopulaLearner("foretune-cts", copula_scores, CopulaSettings(adapts=False))


def ts() -> CopulaLearner:
    """Return the learner of `cts` on standardised losses."""
    return CopulaLearner("foretune-ts", standardise, CopulaSettings(adapts=False))


def gcp_prior_paper() -> CopulaLearner:
    """Return the learner of the published Gaussian Copula Process with a prior (Algorithm 2)."""
    return CopulaLearner("foretune-gcp-prior-paper", copula_scores, CopulaSettings())


def gp_prior() -> CopulaLearner:
    """Return the learner of `gcp_prior_paper` on standardised losses."""
    return CopulaLearner("foretune-gp-prior", standardise, CopulaSettings(target="standardise"))


def gcp_prior() -> CopulaLearner:
    """Return the learner of Algorithm 2 with our improvements, each measured in PAPER.md."""
    return CopulaLearner("foretune-gcp-prior", midrank_scores, INFORMED)
