"""Every wrapper answers each ability as what it wraps would.

Every ability has one answer below that is not the default of its base class. Adding an ability to
a base class fails these tests until it has an answer here and every wrapper forwards it.
"""

import inspect
import pkgutil
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

import foretune
import foretune_lab
from foretune.automl.knowledge.subspace_priors import (
    LiftedPosterior,
    LiftedPrior,
    LiftedSurrogate,
    SpaceLift,
)
from foretune.errors import MethodError
from foretune.methods.auto.curves import WithCurves
from foretune.methods.contracts import (
    Learner,
    Observations,
    Posterior,
    Prediction,
    Prior,
    Region,
    Surrogate,
    Target,
)
from foretune.methods.curve_contracts import CurvePosterior, CurveSurrogate, SeenCurves
from foretune.methods.wrapped import WrappedPosterior, WrappedPrior, WrappedSurrogate
from foretune.search.early_opening import EarlyPrior
from foretune.space import Encoded
from tests.experience.whole_and_part import CONFIGS, PART, WHOLE

SOME = PART.sample(4, seed=0)
SEEN = Observations(SOME, np.arange(4.0)[:, None], np.zeros(4, dtype=bool))
TARGET = Target(PART, meta_features={"rows": 9.0})
BASES = (Learner, Prior, Surrogate, Posterior)
HELD = re.compile(r"(Posterior|Surrogate|Prior)\b")
COMBINERS = {
    "AutoPrior",
    "AutoSurrogate",
    "ChoosingSurrogate",
    "EnsemblePosterior",
    "EnsembleSurrogate",
    "FreezeThawPrior",
    "FreezeThawSurrogate",
    "MixturePosterior",
    "OneArmPosterior",
    "TransferPosterior",
    "TransferSurrogate",
    "TwoStagePosterior",
    "TwoStageSurrogate",
}
"""Classes that make something of their own out of what they hold."""


class KnownPosterior(Posterior):
    """Answers with numbers that follow from the configurations in the whole."""

    best = 0.125
    trusts_past = False

    def _numbers(self, x: Encoded, times: float) -> np.ndarray:
        assert x.space == WHOLE
        return times * np.nan_to_num(x.x).sum(axis=1)

    def predict(self, x: Encoded) -> Prediction:
        return Prediction(self._numbers(x, 1.0), self._numbers(x, 2.0))

    def sample(self, x: Encoded, n: int, *, seed: int) -> np.ndarray:
        return np.tile(self._numbers(x, float(seed)), (n, 1))

    def log_improvement(self, x: Encoded) -> np.ndarray:
        return self._numbers(x, 3.0)

    def log_utility(self, x: Encoded) -> np.ndarray:
        return self._numbers(x, 4.0)

    def predict_each(self, x: Encoded) -> np.ndarray:
        return np.column_stack([self._numbers(x, 5.0), self._numbers(x, 6.0)])

    def objective_weights(self) -> np.ndarray:
        return np.array([0.25, 0.75])


class KnownSurrogate(Surrogate):
    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        assert seen.configs.space == WHOLE
        return KnownPosterior()

    def explain(self, seen: Observations) -> str:
        assert seen.configs.space == WHOLE
        return f"{len(seen)} trials"


class NoCurves(KnownSurrogate, CurveSurrogate):
    """A model of curves that must not be asked about complete trials."""

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        raise AssertionError("asked about complete trials")

    def condition_on_curves(
        self, seen: SeenCurves, elsewhere: Observations, *, seed: int
    ) -> CurvePosterior:
        raise AssertionError("asked about curves")


class KnownPrior(Prior):
    """Knows configurations of the whole by place; the first of them lies outside the part."""

    spreads = True
    has_learnt = False

    def surrogate(self, target: Target) -> Surrogate:
        assert target.space == WHOLE
        return KnownSurrogate()

    def save(self, path: Path) -> None:
        path.write_text("known")

    def _some(self, target: Target, *rows: int) -> Encoded:
        assert target.space == WHOLE
        assert target.meta_features == TARGET.meta_features
        return WHOLE.encode(CONFIGS).take(list(rows))

    def opening(self, target: Target) -> Encoded:
        return self._some(target, 2)

    def reserve(self, target: Target) -> Encoded:
        return self._some(target, 0, 1, 2)

    def known_good(self, target: Target) -> Encoded:
        return self._some(target, 2, 0)

    def region(self, target: Target) -> Region | None:
        assert target.space == WHOLE
        return None

    def odds(self, target: Target) -> float:
        assert target.space == WHOLE
        return 0.5


def abilities(base: type) -> set[str]:
    public = {name for name in vars(base) if not name.startswith("_")}
    return public | set(inspect.get_annotations(base))


def classes() -> list[type]:
    """All classes of core and laboratory that follow a contract."""
    for package in (foretune, foretune_lab):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if ".methods" in module.name or ".baselines" in module.name:
                import_module(module.name)
    return [each for base in BASES for each in descendants(base) if "tests" not in each.__module__]


def descendants(base: type) -> Iterator[type]:
    for each in base.__subclasses__():
        yield each
        yield from descendants(each)


def test_wrapped_classes_forward_every_ability() -> None:
    for base, wrapped in (
        (Posterior, WrappedPosterior),
        (Surrogate, WrappedSurrogate),
        (Prior, WrappedPrior),
    ):
        assert abilities(base) <= set(vars(wrapped))


def test_known_answers_cover_every_ability() -> None:
    for base, known in ((Posterior, KnownPosterior), (Surrogate, KnownSurrogate)):
        assert abilities(base) <= set(vars(known))
    assert abilities(Prior) <= set(vars(KnownPrior))


def test_who_holds_another_wraps_it_or_is_known_to_combine() -> None:
    wrappers = (WrappedPosterior, WrappedSurrogate, WrappedPrior)
    found: set[str] = set()
    for each in classes():
        if is_dataclass(each) and not issubclass(each, wrappers):
            types = [str(one.type) for one in fields(each)]
            held = [one for one in types if "Callable" not in one and HELD.search(one)]
            found |= {each.__name__} if held else set()
    assert found == COMBINERS
    checked = {"EarlyPrior", "LiftedPosterior", "LiftedPrior", "LiftedSurrogate", "WithCurves"}
    forwarding = {each.__name__ for each in classes() if issubclass(each, wrappers)}
    assert forwarding - {each.__name__ for each in wrappers} == checked


def test_a_lifted_posterior_answers_as_the_posterior_of_the_whole() -> None:
    inner, there = KnownPosterior(), WHOLE.adopt(SOME)
    lifted = LiftedPosterior(inner, SpaceLift(WHOLE))
    assert (lifted.best, lifted.trusts_past) == (0.125, False)
    assert lifted.objective_weights().tolist() == [0.25, 0.75]
    for name in ("predict", "log_improvement", "log_utility", "predict_each"):
        np.testing.assert_array_equal(
            np.array(as_arrays(getattr(lifted, name)(SOME))),
            np.array(as_arrays(getattr(inner, name)(there))),
        )
    np.testing.assert_array_equal(lifted.sample(SOME, 3, seed=7), inner.sample(there, 3, seed=7))


def as_arrays(answer: Prediction | np.ndarray) -> list[np.ndarray]:
    return [answer.mean, answer.std] if isinstance(answer, Prediction) else [answer]


def test_a_surrogate_with_curves_answers_as_the_one_inside_about_complete_trials() -> None:
    seen = Observations(WHOLE.adopt(SOME), SEEN.losses, SEEN.believed)
    both = WithCurves(KnownSurrogate(), NoCurves())
    assert isinstance(both.condition(seen, seed=0), KnownPosterior)
    assert both.explain(seen) == "4 trials"


def test_a_lifted_surrogate_answers_as_the_surrogate_of_the_whole() -> None:
    lifted = LiftedSurrogate(KnownSurrogate(), SpaceLift(WHOLE))
    assert lifted.explain(SEEN) == "4 trials"
    posterior = lifted.condition(SEEN, seed=0)
    assert isinstance(posterior, LiftedPosterior)
    assert isinstance(posterior.inner, KnownPosterior)


def check_answers(prior: Prior, target: Target, path: Path) -> None:
    """What a lifted and an early prior answer alike."""
    assert prior.odds(target) == 0.5
    assert prior.region(target) is None
    prior.save(path)
    assert path.read_text() == "known"


def test_a_lifted_prior_answers_as_the_prior_of_the_whole(tmp_path: Path) -> None:
    lifted = LiftedPrior(KnownPrior(), WHOLE, PART)
    check_answers(lifted, TARGET, tmp_path / "prior")
    assert lifted.reserve(TARGET).dicts() == CONFIGS[1:]
    assert lifted.known_good(TARGET).dicts() == CONFIGS[2:]
    assert lifted.opening(TARGET).dicts() == CONFIGS[2:3]
    assert (lifted.spreads, lifted.has_learnt) == (True, False)
    assert isinstance(lifted.surrogate(TARGET), LiftedSurrogate)
    given = LiftedPrior(KnownPrior(), WHOLE, PART, PART.encode(CONFIGS[1:2]))
    assert given.opening(TARGET).dicts() == CONFIGS[1:2]
    assert not given.spreads


def test_an_early_prior_answers_as_the_prior_that_it_learns(tmp_path: Path) -> None:
    there = Target(WHOLE, meta_features=TARGET.meta_features)
    early = EarlyPrior(KnownPrior().opening(there), KnownPrior)
    assert early.opening(there) == KnownPrior().opening(there)
    assert (early.spreads, early.has_learnt) == (False, False)
    check_answers(early, there, tmp_path / "prior")
    assert early.has_learnt
    assert early.reserve(there).dicts() == CONFIGS
    assert early.known_good(there).dicts() == [CONFIGS[2], CONFIGS[0]]
    assert isinstance(early.surrogate(there), KnownSurrogate)


def test_abilities_that_a_posterior_lacks_have_honest_defaults() -> None:
    class Plain(Posterior):
        best = 1.0

        def predict(self, x: Encoded) -> Prediction:
            return Prediction(np.zeros(len(x)), np.ones(len(x)))

        def sample(self, x: Encoded, n: int, *, seed: int) -> np.ndarray:
            return np.zeros((n, len(x)))

    plain = Plain()
    # E[max(1 - N(0, 1), 0)] = Phi(1) + phi(1)
    np.testing.assert_allclose(np.exp(plain.log_improvement(SOME)), 1.0833154705876864)
    np.testing.assert_array_equal(plain.log_utility(SOME), plain.log_improvement(SOME))
    assert plain.predict_each(SOME).shape == (4, 1)
    assert plain.objective_weights() is None
    assert plain.trusts_past


def test_a_class_that_lacks_a_part_of_its_contract_cannot_be_made() -> None:
    class Half(Prior):
        def surrogate(self, target: Target) -> Surrogate:
            raise MethodError("not asked in this test")

    with pytest.raises(TypeError):
        Half()
