"""The table of methods, by name."""

import copyreg
import difflib
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from importlib import import_module
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from foretune.errors import MethodError
from foretune.methods.contracts import Learner
from foretune.search.method_entry import Design, Method, StepsBy
from foretune.search.plugins import load_plugin, plugin_entry_points

if TYPE_CHECKING:
    from foretune.methods.auto.learn import AutoLearner


def lazy_learner(module: str, maker: str) -> Callable[[], Learner]:
    """Return a function that imports `module` and makes the learner with `maker`.

    Listing methods then imports none of them.
    """

    def make() -> Learner:
        learner: Learner = getattr(import_module(module), maker)()
        return learner

    return make


def _portfolio_then(name: str, continuation: str) -> Callable[[], Learner]:
    """Return the learner of a method that opens with a portfolio and goes on as another method."""

    def make() -> Learner:
        from foretune.methods.zero_shot.learn import portfolio_then

        return portfolio_then(name, METHODS[continuation].learn(None, seed=0).surrogate)

    return make


def auto_learner(*, has_jax: bool | None = None) -> "AutoLearner":
    """Make the learner of `auto`: three papers' methods that learn from past tasks, and a plain GP.

    Two of the methods need JAX to learn. Without JAX the method `factors` replaces them.
    """
    from foretune.methods.auto.learn import AutoLearner

    portfolio, networks, linear = "adaptive-portfolio", ("gcp-prior", "deeppipe"), "factors"
    if has_jax is None:
        has_jax = find_spec("jax") is not None
    taught = (portfolio, *(networks if has_jax else (linear,)))
    return AutoLearner(
        taught={name: METHODS[name].learner for name in taught},
        from_nothing={"gcp-smooth": METHODS["gcp-smooth"].learner},
        lister=portfolio,
        others={name: METHODS[name].learner for name in (*networks, linear, "rgpe")},
        curves=METHODS["freeze-thaw"].learner,
    )


_COPULA = "foretune.methods.copula.variants"
_LATENT = "foretune.methods.latent.variants"
_PIPELINE = "foretune.methods.pipeline.variants"
_RANKING = "foretune.methods.ranking.variants"

_OWN_METHODS: dict[str, Method] = {
    entry.name: entry
    for entry in (
        Method(
            "auto",
            "a portfolio, then several models, weighted by how well each ranks the finished trials",
            auto_learner,
            design=Design("random", 0),
            acquisition="mixture-ei",
            uses_experience=True,
            steps=StepsBy.PAST_CURVES,
        ),
        Method(
            "random",
            "uniform random search",
            lazy_learner("foretune.methods.random.no_surrogate", "no_surrogate"),
            design=Design("random", None),
        ),
        Method(
            "sobol",
            "a scrambled Sobol sequence: random search that spreads evenly",
            lazy_learner("foretune.methods.random.no_surrogate", "no_surrogate"),
            design=Design("sobol", None),
        ),
        Method(
            "gp",
            "Gaussian process (Matérn-5/2, ARD) with expected improvement",
            lazy_learner("foretune.methods.gp.gaussian_process", "gaussian_process"),
        ),
        Method(
            "gcp",
            "Gaussian Copula Process: like gp, on Gaussian scores of the losses",
            lazy_learner("foretune.methods.gp.gaussian_process", "gaussian_copula_process"),
        ),
        Method(
            "gcp-smooth",
            "like gcp, on smoothed Gaussian scores, which still refine where many trials lie",
            lazy_learner("foretune.methods.gp.gaussian_process", "smooth_copula_process"),
        ),
        Method(
            "rf",
            "random forest with expected improvement and random trials in between, as in SMAC",
            lazy_learner("foretune.methods.forest.forest", "forest"),
            random_every=2,
        ),
        Method(
            "cts",
            "Copula Thompson Sampling: random draws from a model of past tasks",
            lazy_learner(_COPULA, "cts"),
            design=Design("prior", None),
            acquisition="thompson",
            needs_experience=True,
        ),
        Method(
            "gcp-prior",
            "Gaussian Copula Process on the residuals of a prior from past tasks",
            lazy_learner(_COPULA, "gcp_prior"),
            design=Design("prior", 1),
            needs_experience=True,
        ),
        Method(
            "gcp-prior-paper",
            "gcp-prior with the settings of its paper",
            lazy_learner(_COPULA, "gcp_prior_paper"),
            design=Design("prior", 5),
            needs_experience=True,
        ),
        Method(
            "ts",
            "cts on standardised losses, an ablation",
            lazy_learner(_COPULA, "ts"),
            design=Design("prior", None),
            acquisition="thompson",
            needs_experience=True,
        ),
        Method(
            "gp-prior",
            "gcp-prior-paper on standardised losses, an ablation",
            lazy_learner(_COPULA, "gp_prior"),
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
            "the portfolio of zero-shot, then a GP",
            _portfolio_then("zero-shot-gp", "gp"),
            design=Design("random", 0),
            needs_experience=True,
        ),
        Method(
            "adaptive-portfolio",
            "a portfolio that adapts: past tasks count by how well they rank the finished trials",
            lazy_learner("foretune.methods.zero_shot.adaptive", "adaptive_portfolio"),
            design=Design("random", 0),
            acquisition="own",
            needs_experience=True,
        ),
        Method(
            "factors",
            "GP around the mean of past tasks, with a mixture of their main differences",
            lazy_learner("foretune.methods.copula.factors", "factors"),
            design=Design("random", 0),
            needs_experience=True,
        ),
        Method(
            "freeze-thaw",
            "model of past curves: decides which trial, new or paused, gets the next steps",
            lazy_learner("foretune.methods.freeze_thaw.variants", "freeze_thaw"),
            design=Design("random", 0),
            uses_experience=True,
            steps=StepsBy.MODEL,
        ),
        Method(
            "rgpe",
            "ensemble of past tasks' GPs, weighted by how often each ranks the trials best",
            lazy_learner("foretune.methods.rgpe.rgpe", "rgpe"),
            needs_experience=True,
        ),
        Method(
            "dre",
            "Deep Ranking Ensemble: networks that learn to rank the configurations of past tasks",
            lazy_learner(_RANKING, "dre"),
            design=Design("random", 3),
            acquisition="own",
            needs_experience=True,
        ),
        Method(
            "dre-ri",
            "dre from random initial weights",
            lazy_learner(_RANKING, "dre_ri"),
            acquisition="own",
        ),
        Method(
            "deeppipe",
            "GP on embeddings of whole pipelines, learnt from past tasks",
            lazy_learner(_PIPELINE, "deeppipe"),
            design=Design("random", 0),
            needs_experience=True,
        ),
        Method(
            "deeppipe-paper",
            "deeppipe without a learnt mean: standardised losses and a fitted kernel, as published",
            lazy_learner(_PIPELINE, "deeppipe_paper"),
            design=Design("random", 0),
            needs_experience=True,
        ),
        Method(
            "deeppipe-ri",
            "deeppipe without past tasks: the network learns from the target alone",
            lazy_learner(_PIPELINE, "deeppipe_ri"),
        ),
        Method(
            "latent-cash",
            "all algorithms in one latent space, pre-trained on the past tasks that fit best",
            lazy_learner(_LATENT, "latent_cash"),
            design=Design("per-algorithm", 2),
            needs_experience=True,
        ),
        Method(
            "latent-cash-first",
            "latent-cash, pre-trained on the one past task that meta-features rank first",
            lazy_learner(_LATENT, "latent_cash_first"),
            design=Design("per-algorithm", 2),
            needs_experience=True,
            needs_meta_features=True,
        ),
        Method(
            "latent-cash-random",
            "latent-cash, pre-trained on a random past task, an ablation",
            lazy_learner(_LATENT, "latent_cash_random"),
            design=Design("per-algorithm", 2),
            needs_experience=True,
        ),
        Method(
            "latent-cash-ri",
            "latent-cash without pre-training, an ablation",
            lazy_learner(_LATENT, "latent_cash_ri"),
            design=Design("per-algorithm", 2),
        ),
    )
}

SHIPPED = frozenset(_OWN_METHODS)
"""The names of Foretune's own methods. Other packages may add methods, and change them."""


class MethodRegistry(MutableMapping[str, Method]):
    """Foretune's own methods, then those of installed packages, by name.

    A method of another package is imported when it is looked up, not when names are listed. A
    program may add methods of its own: `METHODS["mine"] = Method(...)`.
    """

    def __init__(self, own: Mapping[str, Method]) -> None:
        self._found = dict(own)

    def __getitem__(self, name: str) -> Method:
        if name not in self._found:
            self._found[name] = load_plugin(plugin_entry_points()[name])
        return self._found[name]

    def __setitem__(self, name: str, entry: Method) -> None:
        self._found[name] = entry

    def __delitem__(self, name: str) -> None:
        del self._found[name]

    def __contains__(self, name: object) -> bool:
        return name in self._found or name in plugin_entry_points()

    def __iter__(self) -> Iterator[str]:
        return iter(dict.fromkeys([*self._found, *plugin_entry_points()]))

    def __len__(self) -> int:
        return len(list(iter(self)))


METHODS = MethodRegistry(_OWN_METHODS)
"""All methods by name."""


def method(name: str) -> Method:
    """Return the method with this name, of Foretune or of another installed package."""
    if not isinstance(name, str):
        raise MethodError(
            f"a method must be given by its name, but got {name!r}: `foretune methods` lists them",
            rule="method-by-name",
            field="method",
            value=name,
        )
    if name in METHODS:
        return METHODS[name]
    close = difflib.get_close_matches(name, METHODS, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "`foretune methods` lists them"
    raise MethodError(
        f"a method must be one of {', '.join(METHODS)}, but got '{name}': {hint}",
        rule="unknown-method",
        field="method",
        value=name,
    )


def _reduce_method(entry: Method) -> str | tuple[Any, ...]:
    """Pickle a registered method by its name, because the function that makes its learner cannot
    be pickled.
    """
    if entry.name in METHODS and METHODS[entry.name] is entry:
        return method, (entry.name,)
    return object.__reduce_ex__(entry, 2)


copyreg.pickle(Method, _reduce_method)
