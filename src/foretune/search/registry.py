"""The table of methods, by name."""

import copyreg
import difflib
from collections.abc import Callable, Iterator, Mapping, MutableMapping
from importlib import import_module
from typing import Any

from foretune.errors import MethodError
from foretune.methods.contracts import Learner
from foretune.search.method_entry import Design, Method
from foretune.search.plugins import load_plugin, plugin_entry_points


def lazy_learner(module: str, maker: str) -> Callable[[], Learner]:
    """A function that imports `module` when it is first called, and makes the learner there.

    Listing methods then imports none of them.
    """

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


_COPULA = "foretune.methods.copula.variants"
_LATENT = "foretune.methods.latent.variants"
_PIPELINE = "foretune.methods.pipeline.variants"
_RANKING = "foretune.methods.ranking.variants"

_OWN_METHODS: dict[str, Method] = {
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
            "Gaussian Copula Process: the same on Gaussian scores of the losses",
            lazy_learner("foretune.methods.gp.gaussian_process", "gaussian_copula_process"),
        ),
        Method(
            "gcp-smooth",
            "the same on smoothed Gaussian scores, which goes on refining where trials gather",
            lazy_learner("foretune.methods.gp.gaussian_process", "smooth_copula_process"),
        ),
        Method(
            "rf",
            "random forest with expected improvement, as in SMAC",
            lazy_learner("foretune.methods.forest.forest", "forest"),
        ),
        Method(
            "cts",
            "Copula Thompson Sampling: draws from what past tasks taught",
            lazy_learner(_COPULA, "cts"),
            design=Design("prior", None),
            acquisition="thompson",
            needs_experience=True,
        ),
        Method(
            "gcp-prior",
            "Gaussian Copula Process on what the past tasks' prior leaves unexplained",
            lazy_learner(_COPULA, "gcp_prior"),
            design=Design("prior", 1),
            needs_experience=True,
        ),
        Method(
            "gcp-prior-paper",
            "the same with the settings of its paper",
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
            "the same portfolio, then a GP",
            _portfolio_then("zero-shot-gp", "gp"),
            design=Design("random", 0),
            needs_experience=True,
        ),
        Method(
            "adaptive-portfolio",
            "a portfolio chosen as it is tried: past tasks count as far as they order the trials",
            lazy_learner("foretune.methods.zero_shot.adaptive", "adaptive_portfolio"),
            design=Design("random", 0),
            acquisition="own",
            needs_experience=True,
        ),
        Method(
            "factors",
            "GP about the past tasks' mean, of a mixture of what they differ by",
            lazy_learner("foretune.methods.copula.factors", "factors"),
            design=Design("random", 0),
            needs_experience=True,
        ),
        Method(
            "rgpe",
            "ensemble of past tasks' GPs, each as likely as it ranks the trials best",
            lazy_learner("foretune.methods.rgpe.rgpe", "rgpe"),
            needs_experience=True,
        ),
        Method(
            "dre",
            "Deep Ranking Ensemble: networks that learnt to rank past tasks' configurations",
            lazy_learner(_RANKING, "dre"),
            design=Design("random", 3),
            acquisition="own",
            needs_experience=True,
        ),
        Method(
            "dre-ri",
            "the same from random initial weights",
            lazy_learner(_RANKING, "dre_ri"),
            acquisition="own",
        ),
        Method(
            "deeppipe",
            "GP on embeddings of whole pipelines that past tasks taught",
            lazy_learner(_PIPELINE, "deeppipe"),
            design=Design("random", 0),
            needs_experience=True,
        ),
        Method(
            "deeppipe-paper",
            "the same with the settings of its paper",
            lazy_learner(_PIPELINE, "deeppipe_paper"),
            design=Design("random", 0),
            needs_experience=True,
        ),
        Method(
            "deeppipe-ri",
            "the same without past tasks: the network learns from the target alone",
            lazy_learner(_PIPELINE, "deeppipe_ri"),
        ),
        Method(
            "latent-cash",
            "algorithms on one latent space, pre-trained on the past tasks that suit best",
            lazy_learner(_LATENT, "latent_cash"),
            design=Design("per-algorithm", 2),
            needs_experience=True,
        ),
        Method(
            "latent-cash-random",
            "the same, pre-trained on a past task at random, an ablation",
            lazy_learner(_LATENT, "latent_cash_random"),
            design=Design("per-algorithm", 2),
            needs_experience=True,
        ),
        Method(
            "latent-cash-ri",
            "the same without pre-training, an ablation",
            lazy_learner(_LATENT, "latent_cash_ri"),
            design=Design("per-algorithm", 2),
        ),
    )
}

SHIPPED = frozenset(_OWN_METHODS)
"""The names of Foretune's own methods. Other packages may add methods, and change them at will."""


class MethodRegistry(MutableMapping[str, Method]):
    """Foretune's own methods, then those that installed packages bring, by name.

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
    """The method with this name: one of Foretune's own, or one that another package brings."""
    if not isinstance(name, str):
        raise MethodError(
            f"a method must be given by its name, but got {name!r}: `foretune methods` lists them"
        )
    if name in METHODS:
        return METHODS[name]
    close = difflib.get_close_matches(name, METHODS, n=3)
    hint = f"did you mean {' or '.join(close)}?" if close else "`foretune methods` lists them"
    raise MethodError(f"a method must be one of {', '.join(METHODS)}, but got '{name}': {hint}")


def _reduce_method(entry: Method) -> str | tuple[Any, ...]:
    """Pickle a registered method by its name, because the function that makes its learner cannot
    be pickled.
    """
    if entry.name in METHODS and METHODS[entry.name] is entry:
        return method, (entry.name,)
    return object.__reduce_ex__(entry, 2)


copyreg.pickle(Method, _reduce_method)
