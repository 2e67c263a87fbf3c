"""The methods of this room, as learners for the registry."""

from collections.abc import Callable
from functools import partial

from foretune.methods.copula.learn import CopulaLearner
from foretune.methods.copula.model import Settings
from foretune.methods.copula.scores import midrank_scores
from foretune.numerics.transforms import copula_scores, standardise


def cts() -> CopulaLearner:
    """Copula Thompson Sampling (Algorithm 1)."""
    return CopulaLearner("foretune-cts", copula_scores, Settings(adapts=False))


def ts() -> CopulaLearner:
    """The same on standardised losses."""
    return CopulaLearner("foretune-ts", standardise, Settings(adapts=False))


def gcp_prior_paper() -> CopulaLearner:
    """Gaussian Copula Process with the parametric prior, as published (Algorithm 2)."""
    return CopulaLearner("foretune-gcp-prior-paper", copula_scores, Settings())


def gp_prior() -> CopulaLearner:
    """The same on standardised losses."""
    return CopulaLearner("foretune-gp-prior", standardise, Settings(target="standardise"))


def gcp_prior() -> CopulaLearner:
    """Algorithm 2 with this room's improvements, each measured in PAPER.md."""
    return ABLATIONS["midrank+informed+directions+outcome"]()


def _variant(name: str) -> CopulaLearner:
    parts = name.split("+")
    settings = Settings(
        target="informed" if "informed" in parts else "copula",
        directions="directions" in parts,
        outcome="outcome" in parts,
    )
    scores = midrank_scores if "midrank" in parts else copula_scores
    return CopulaLearner(f"foretune-gcp-prior-{name}", scores, settings)


ABLATIONS: dict[str, Callable[[], CopulaLearner]] = {
    name: partial(_variant, name)
    for name in (
        "midrank",
        "midrank+informed",
        "midrank+directions",
        "midrank+outcome",
        "midrank+informed+directions",
        "midrank+informed+outcome",
        "midrank+informed+directions+outcome",
    )
}
"""What `gcp-prior` adds to the paper's settings, one by one, for the ablation."""
