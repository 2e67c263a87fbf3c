"""The methods of this room, as learners for the registry."""

from dataclasses import replace

from foretune.methods.copula.learn import CopulaLearner
from foretune.methods.copula.model import CopulaSettings
from foretune.numerics.scores import midrank_scores
from foretune.numerics.transforms import copula_scores, standardise

OURS = CopulaSettings(prior_weight=1.0, grouped=True)
"""Our Gaussian process instead of the paper's."""
INFORMED = replace(OURS, target="informed", random_weights=True)


def cts() -> CopulaLearner:
    """Copula Thompson Sampling (Algorithm 1)."""
    return CopulaLearner("foretune-cts", copula_scores, CopulaSettings(adapts=False))


def ts() -> CopulaLearner:
    """The same on standardised losses."""
    return CopulaLearner("foretune-ts", standardise, CopulaSettings(adapts=False))


def gcp_prior_paper() -> CopulaLearner:
    """Gaussian Copula Process with the parametric prior, as published (Algorithm 2)."""
    return CopulaLearner("foretune-gcp-prior-paper", copula_scores, CopulaSettings())


def gp_prior() -> CopulaLearner:
    """The same on standardised losses."""
    return CopulaLearner("foretune-gp-prior", standardise, CopulaSettings(target="standardise"))


def gcp_prior() -> CopulaLearner:
    """Algorithm 2 with this room's improvements, each measured in PAPER.md."""
    return CopulaLearner("foretune-gcp-prior", midrank_scores, INFORMED)
