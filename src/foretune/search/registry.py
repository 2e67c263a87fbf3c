"""The one table of methods: name -> parts."""

import copyreg
import difflib
from collections.abc import Callable
from importlib import import_module
from typing import Any

from foretune.errors import MethodError
from foretune.methods.contracts import Learner
from foretune.search.method import Design, Method
from foretune.search.plugins import offered, plugged_in


def _made_by(module: str, maker: str) -> Callable[[], Learner]:
    """A learner imported when it is first needed, so that listing methods costs nothing."""

    def make() -> Learner:
        learner: Learner = getattr(import_module(module), maker)()
        return learner

    return make


def _portfolio_then(name: str, continuation: str) -> Callable[[], Learner]:
    """The learner of a method that opens with a portfolio and goes on as another one does."""

    def make() -> Learner:
        from foretune.methods.zero_shot.learn import portfolio_then

        return portfolio_then(name, METHODS[continuation].learn(None, seed=0).surrogate)

    return make


def _auto() -> Learner:
    """The learner of `auto`: what past tasks taught by three of the papers, beside a plain process.

    Without JAX, which two of them need to learn, what past tasks differ by stands in for these.
    """
    from importlib.util import find_spec

    from foretune.methods.auto.learn import AutoLearner

    portfolio, networks, linear = "adaptive-portfolio", ("gcp-prior", "deeppipe"), "factors"
    taught = (portfolio, *(networks if find_spec("jax") else (linear,)))
    return AutoLearner(
        taught={name: METHODS[name].learner for name in taught},
        from_nothing={"gcp-smooth": METHODS["gcp-smooth"].learner},
        lister=portfolio,
        others={name: METHODS[name].learner for name in (*networks, linear, "rgpe")},
    )


_BASELINES = "foretune.methods.baselines"
_COPULA = "foretune.methods.copula.variants"
_LATENT = "foretune.methods.latent.variants"
_PIPELINE = "foretune.methods.pipeline.variants"
_RANKING = "foretune.methods.ranking.variants"

METHODS: dict[str, Method] = {
    entry.name: entry
    for entry in (
        Method(
            "auto",
            "a portfolio, then several surrogates, each believed as far as it orders the trials",
            _auto,
            design=Design("random", 0),
            acquisition="mixture-ei",
            uses_experience=True,
        ),
        Method(
            "random",
            "uniform random search",
            _made_by(f"{_BASELINES}.nothing", "no_surrogate"),
            design=Design("random", None),
        ),
        Method(
            "sobol",
            "a scrambled Sobol sequence: random search that spreads evenly",
            _made_by(f"{_BASELINES}.nothing", "no_surrogate"),
            design=Design("sobol", None),
        ),
        Method(
            "gp",
            "Gaussian process (Matérn-5/2, ARD) with expected improvement",
            _made_by(f"{_BASELINES}.gaussian_process", "gaussian_process"),
        ),
        Method(
            "gcp",
            "Gaussian Copula Process: the same on Gaussian scores of the losses",
            _made_by(f"{_BASELINES}.gaussian_process", "gaussian_copula_process"),
        ),
        Method(
            "gcp-smooth",
            "the same on smoothed Gaussian scores, which goes on refining where trials gather",
            _made_by(f"{_BASELINES}.gaussian_process", "smooth_copula_process"),
        ),
        Method(
            "rf",
            "random forest with expected improvement, as in SMAC",
            _made_by(f"{_BASELINES}.forest", "forest"),
        ),
        Method(
            "cts",
            "Copula Thompson Sampling: draws from what past tasks taught",
            _made_by(_COPULA, "cts"),
            design=Design("prior", None),
            acquisition="thompson",
            needs_experience=True,
        ),
        Method(
            "gcp-prior",
            "Gaussian Copula Process on what the past tasks' prior leaves unexplained",
            _made_by(_COPULA, "gcp_prior"),
            design=Design("prior", 1),
            needs_experience=True,
        ),
        Method(
            "gcp-prior-paper",
            "the same with the settings of its paper",
            _made_by(_COPULA, "gcp_prior_paper"),
            design=Design("prior", 5),
            needs_experience=True,
        ),
        Method(
            "ts",
            "cts on standardised losses, an ablation",
            _made_by(_COPULA, "ts"),
            design=Design("prior", None),
            acquisition="thompson",
            needs_experience=True,
        ),
        Method(
            "gp-prior",
            "gcp-prior-paper on standardised losses, an ablation",
            _made_by(_COPULA, "gp_prior"),
            design=Design("prior", 5),
            needs_experience=True,
        ),
        Method(
            "zero-shot",
            "a portfolio that suits all past tasks, then random search",
            _portfolio_then("zero-shot", "random"),
            design=Design("random", None),
            needs_experience=True,
        ),
        Method(
            "zero-shot-gp",
            "the same portfolio, then a GP",
            _portfolio_then("zero-shot-gp", "gp"),
            design=Design("random", 0),
            needs_experience=True,
        ),
        Method(
            "adaptive-portfolio",
            "a portfolio chosen as it is tried: past tasks count as far as they order the trials",
            _made_by("foretune.methods.zero_shot.adaptive", "adaptive_portfolio"),
            design=Design("random", 0),
            acquisition="own",
            needs_experience=True,
        ),
        Method(
            "factors",
            "GP about the past tasks' mean, of a mixture of what they differ by",
            _made_by("foretune.methods.copula.factors", "factors"),
            design=Design("random", 0),
            needs_experience=True,
        ),
        Method(
            "ws-gp",
            "GP that opens with the best configuration of each past task",
            _made_by(f"{_BASELINES}.warm_start", "warm_started_gp"),
            design=Design("random", 0),
            needs_experience=True,
        ),
        Method(
            "autogp",
            "GP in the box around the past tasks' best configurations",
            _made_by(f"{_BASELINES}.box", "gp_in_a_box"),
            needs_experience=True,
        ),
        Method(
            "ablr",
            "Bayesian linear regression on features that past tasks share",
            _made_by(f"{_BASELINES}.ablr", "ablr"),
            needs_experience=True,
        ),
        Method(
            "ablr-copula",
            "the same on Gaussian scores of the losses",
            _made_by(f"{_BASELINES}.ablr", "ablr_copula"),
            needs_experience=True,
        ),
        Method(
            "dkgp",
            "GP on features that a network learns from the target alone",
            _made_by(f"{_BASELINES}.fsbo", "dkgp"),
        ),
        Method(
            "dngo",
            "Bayesian linear regression on the last layer of a network",
            _made_by(f"{_BASELINES}.dngo", "dngo"),
        ),
        Method(
            "fsbo",
            "GP on features and with a kernel that past tasks taught (few-shot)",
            _made_by(f"{_BASELINES}.fsbo", "fsbo"),
            needs_experience=True,
        ),
        Method(
            "pmf",
            "GP over latent positions of configurations, from a table of past losses",
            _made_by(f"{_BASELINES}.pmf", "pmf"),
            needs_experience=True,
        ),
        Method(
            "oboe",
            "low-rank table of past losses, completed by regression",
            _made_by(f"{_BASELINES}.oboe", "oboe"),
            design=Design("random", 0),
            needs_experience=True,
        ),
        Method(
            "sgpt",
            "past tasks' GPs vote where they rank trials as the target does",
            _made_by(f"{_BASELINES}.sgpt", "sgpt"),
            acquisition="own",
            needs_experience=True,
        ),
        Method(
            "sgpt-copula",
            "the same on Gaussian scores of the losses",
            _made_by(f"{_BASELINES}.sgpt", "sgpt_copula"),
            acquisition="own",
            needs_experience=True,
        ),
        Method(
            "rgpe",
            "ensemble of past tasks' GPs, each as likely as it ranks the trials best",
            _made_by(f"{_BASELINES}.rgpe", "rgpe"),
            needs_experience=True,
        ),
        Method(
            "tst",
            "two-stage transfer: past tasks' GPs averaged by how they rank the trials",
            _made_by(f"{_BASELINES}.tst", "tst"),
            needs_experience=True,
        ),
        Method(
            "taf",
            "transfer acquisition: the same past GPs as votes for an improvement",
            _made_by(f"{_BASELINES}.tst", "taf"),
            acquisition="own",
            needs_experience=True,
        ),
        Method(
            "dre",
            "Deep Ranking Ensemble: networks that learnt to rank past tasks' configurations",
            _made_by(_RANKING, "dre"),
            design=Design("random", 3),
            acquisition="own",
            needs_experience=True,
        ),
        Method(
            "dre-ri",
            "the same from random initial weights",
            _made_by(_RANKING, "dre_ri"),
            acquisition="own",
        ),
        Method(
            "deeppipe",
            "GP on embeddings of whole pipelines that past tasks taught",
            _made_by(_PIPELINE, "deeppipe"),
            design=Design("random", 0),
            needs_experience=True,
        ),
        Method(
            "deeppipe-paper",
            "the same with the settings of its paper",
            _made_by(_PIPELINE, "deeppipe_paper"),
            design=Design("random", 0),
            needs_experience=True,
        ),
        Method(
            "deeppipe-ri",
            "the same without past tasks: the network learns from the target alone",
            _made_by(_PIPELINE, "deeppipe_ri"),
        ),
        Method(
            "latent-cash",
            "algorithms on one latent space, pre-trained on the past tasks that suit best",
            _made_by(_LATENT, "latent_cash"),
            design=Design("per-algorithm", 2),
            needs_experience=True,
        ),
        Method(
            "latent-cash-random",
            "the same, pre-trained on a past task at random, an ablation",
            _made_by(_LATENT, "latent_cash_random"),
            design=Design("per-algorithm", 2),
            needs_experience=True,
        ),
        Method(
            "latent-cash-ri",
            "the same without pre-training, an ablation",
            _made_by(_LATENT, "latent_cash_ri"),
            design=Design("per-algorithm", 2),
        ),
        Method(
            "bandit-bo",
            "one GP an algorithm, which share nothing",
            _made_by(f"{_BASELINES}.bandits", "bandit_bo"),
            design=Design("per-algorithm", 2),
        ),
        Method(
            "rising-bandits",
            "one random forest an algorithm; algorithms that fall behind are dropped",
            _made_by(f"{_BASELINES}.bandits", "rising_bandits"),
            design=Design("per-algorithm", 2),
        ),
        Method(
            "pretrained-gps",
            "one GP an algorithm, with mean and kernel learnt from past tasks",
            _made_by(f"{_BASELINES}.pretrained_gps", "pretrained_gps"),
            design=Design("per-algorithm", 2),
            needs_experience=True,
        ),
        Method(
            "as-ml",
            "a GP on the algorithm that meta-features speak for",
            _made_by(f"{_BASELINES}.algorithm_selection", "as_ml"),
            needs_experience=True,
            needs_meta_features=True,
        ),
        Method(
            "ahs-ml",
            "configurations in the order that meta-features speak for",
            _made_by(f"{_BASELINES}.algorithm_selection", "ahs_ml"),
            design=Design("random", None),
            needs_experience=True,
            needs_meta_features=True,
        ),
    )
}

SHIPPED = frozenset(METHODS)
"""Those that come with this release; others may be added, and change when they like."""


def method(name: str) -> Method:
    """The method of that name: of the registry, or one that another package brings."""
    if not isinstance(name, str):
        raise MethodError(
            f"a method must be given by its name, but got {name!r}: `foretune methods` lists them"
        )
    if name in METHODS:
        return METHODS[name]
    others = offered()
    if name in others:
        METHODS[name] = plugged_in(others[name])
        return METHODS[name]
    known = [*METHODS, *others]
    close = difflib.get_close_matches(name, known, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "`foretune methods` lists them"
    raise MethodError(f"a method must be one of {', '.join(known)}, but got '{name}': {hint}")


def _travelling(entry: Method) -> str | tuple[Any, ...]:
    """An entry of the registry travels by its name: how its learner is made cannot."""
    if METHODS.get(entry.name) is entry:
        return method, (entry.name,)
    return object.__reduce_ex__(entry, 2)


copyreg.pickle(Method, _travelling)
