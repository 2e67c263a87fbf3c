import numpy as np
import pytest

from foretune.automl.knowledge.subspace_priors import lift_prior
from foretune.errors import MethodError
from foretune.methods.auto.learn import AutoPrior
from foretune.methods.contracts import Observations, Target
from foretune.methods.zero_shot.adaptive import AdaptivePrior
from foretune.search import METHODS, Optimizer
from tests.experience.whole_and_part import CONFIGS, PART, WHOLE, experience
from tests.refusals import refuses


def seen_in(space, n=6):
    configs = space.sample(n, seed=3)
    losses = np.random.default_rng(0).normal(size=(n, 1))
    return Observations(configs, losses, np.zeros(n, dtype=bool))


def test_a_lifted_posterior_says_what_the_whole_says_about_the_same_configurations():
    prior = METHODS["gp"].learn(None, seed=0)
    seen, x = seen_in(PART), PART.sample(9, seed=1)
    there = Observations(WHOLE.adopt(seen.configs), seen.losses, seen.believed)
    want = prior.surrogate(Target(WHOLE)).condition(there, seed=0)
    got = lift_prior(prior, WHOLE, PART).surrogate(Target(PART)).condition(seen, seed=0)
    assert got.best == want.best
    np.testing.assert_array_equal(got.predict(x).mean, want.predict(WHOLE.adopt(x)).mean)
    np.testing.assert_array_equal(got.predict(x).std, want.predict(WHOLE.adopt(x)).std)
    draws = want.sample(WHOLE.adopt(x), 4, seed=2)
    np.testing.assert_array_equal(got.sample(x, 4, seed=2), draws)


def test_the_same_space_needs_no_lift():
    prior = METHODS["gp"].learn(None, seed=0)
    assert lift_prior(prior, WHOLE, WHOLE) is prior
    assert len(lift_prior(prior, WHOLE, PART).opening(Target(PART))) == 0


def test_an_opening_is_what_lies_in_the_part_or_what_is_given_instead():
    prior = METHODS["zero-shot"].learn(experience(), seed=0)
    own = lift_prior(prior, WHOLE, PART)
    assert {config["model"] for config in own.opening(Target(PART)).dicts()} == {"forest", "naive"}
    first = PART.encode(CONFIGS[2:])
    assert lift_prior(prior, WHOLE, PART, first=first).opening(Target(PART)) == first


def test_known_good_configurations_are_restricted_to_the_part():
    configs = WHOLE.encode(CONFIGS)
    prior = lift_prior(AutoPrior({}, frozenset(), configs.take([2]), configs), WHOLE, PART)
    assert {config["model"] for config in prior.known_good(Target(PART)).dicts()} == {
        "forest",
        "naive",
    }


def test_the_reserve_is_restricted_to_the_part():
    configs = WHOLE.encode(CONFIGS)
    adaptive = AdaptivePrior(configs, np.eye(len(configs)))
    prior = lift_prior(AutoPrior({"a": adaptive}, frozenset("a"), configs, configs), WHOLE, PART)
    assert {each["model"] for each in prior.reserve(Target(PART)).dicts()} == {"forest", "naive"}
    other = lift_prior(METHODS["zero-shot"].learn(experience(), seed=0), WHOLE, PART)
    assert len(other.reserve(Target(PART))) == 0


def test_a_search_in_the_part_stays_in_it_with_and_without_a_pool():
    prior = lift_prior(METHODS["zero-shot-gp"].learn(experience(), seed=0), WHOLE, PART)
    for pool in (None, PART.sample(30, seed=5)):
        optimizer = Optimizer(Target(PART, pool=pool), METHODS["zero-shot-gp"], prior, seed=0)
        for _ in range(4):
            [suggestion] = optimizer.ask()
            assert PART.encode([suggestion.config]).dicts() == [suggestion.config]


def test_configurations_outside_the_whole_cannot_be_lifted():
    prior = METHODS["gp"].learn(None, seed=0)
    surrogate = lift_prior(prior, PART, WHOLE).surrogate(Target(WHOLE))
    with refuses("configuration-outside-whole-space"):
        surrogate.condition(seen_in(WHOLE, 20), seed=0)


def test_a_prior_that_bounds_the_search_is_not_lifted():
    prior = METHODS["autogp"].learn(experience(), seed=0)
    with refuses("bounding-prior-lifted", field="prior"):
        Optimizer(Target(PART), METHODS["autogp"], lift_prior(prior, WHOLE, PART))


def test_a_lifted_prior_holds_for_its_part_and_saves_the_whole(tmp_path):
    prior = METHODS["zero-shot"].learn(experience(), seed=0)
    made = lift_prior(prior, WHOLE, PART)
    with pytest.raises(MethodError, match="holds for the space"):
        made.surrogate(Target(WHOLE))
    made.save(tmp_path / "prior")
    again = METHODS["zero-shot"].load(tmp_path / "prior")
    assert again.opening(Target(WHOLE)) == prior.opening(Target(WHOLE))
