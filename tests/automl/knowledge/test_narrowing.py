import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace, ForbiddenEqualsClause
from hypothesis import given, settings
from hypothesis import strategies as st

from foretune.automl.knowledge.lifting import lifted
from foretune.automl.knowledge.narrowing import narrowed, reencoded
from foretune.contracts import Informed, Observations, Opening, Target
from foretune.errors import ExperienceError, MethodError
from foretune.experience import Direction, Experience, Metric
from foretune.methods.auto.learn import AutoPrior
from foretune.search import METHODS, Optimizer
from foretune.space import Space

WHOLE = Space.of(
    {
        "model": {
            "svm": {"C": (1e-3, 1e3, "log"), "kernel": ["rbf", "linear"]},
            "forest": {"trees": (10, 500), "share": (0.1, 1.0)},
            "naive": {},
        },
        "scale": ["none", "standard"],
    },
    stages=("model", "scale"),
)
PART = Space.of(
    {
        "model": {"naive": {}, "forest": {"trees": (10, 500), "share": (0.1, 1.0)}},
        "scale": ["standard", "none"],
    },
    stages=("model", "scale"),
)
CONFIGS = [
    {"model": "svm", "scale": "none", "model:svm:C": 1.0, "model:svm:kernel": "rbf"},
    {"model": "forest", "scale": "standard", "model:forest:trees": 40, "model:forest:share": 0.5},
    {"model": "naive", "scale": "none"},
]


def experience(values=((0.1, 0.2, 0.3), (0.4, 0.5, 0.6))):
    values = np.array(values)
    return Experience.from_matrix(
        WHOLE,
        WHOLE.encode(CONFIGS),
        [f"t{i}" for i in range(len(values))],
        [Metric("error", Direction.MIN)],
        {"error": values},
        seconds=values * 10,
        meta_features={"t0": {"rows": 5.0}},
        splits={"s": {"train": ["t0"], "test": ["t1"]}},
        starts={"t0": {"a": [0, 2]}},
    )


def test_configurations_that_both_spaces_have_stay_exactly_the_same():
    there, rows = reencoded(WHOLE.encode(CONFIGS), PART)
    assert rows.tolist() == [1, 2]
    assert there.dicts() == PART.encode(CONFIGS[1:]).dicts()


@settings(max_examples=30)
@given(seed=st.integers(0, 10_000))
def test_there_and_back_again_is_the_same(seed):
    batch = PART.sample(20, seed=seed)
    larger, all_rows = reencoded(batch, WHOLE)
    assert len(all_rows) == 20
    back, rows = reencoded(larger, PART)
    assert len(rows) == 20
    assert back == batch


@pytest.mark.parametrize(
    ("notation", "configs", "left"),
    [
        ({"x": (0.0, 1.0)}, [{"x": 0.5}, {"x": 2.0}], [{"x": 0.5}]),
        ({"x": (0, 3)}, [{"x": 1.0}, {"x": 2.5}], [{"x": 1}]),
        ({"x": ["a", 1.0]}, [{"x": 1.0}, {"x": 2.0}], [{"x": 1.0}]),
        ({"x": 2.0}, [{"x": 1.0}, {"x": 2.0}], [{"x": 2.0}]),
        ({"x": (0.0, 5.0), "new": (1, 9)}, [{"x": 1.0}], [{"x": 1.0, "new": 5}]),
    ],
)
def test_values_outside_are_dropped_and_what_is_new_gets_its_default(notation, configs, left):
    source = Space.of({"x": (0.0, 5.0)})
    there, _ = reencoded(source.encode(configs), Space.of(notation))
    assert there.dicts() == left


@pytest.mark.parametrize(
    ("notation", "to", "values", "left"),
    [
        ({"x": [2, "b", True]}, {"x": (0, 5)}, [2, "b", True], [{"x": 2}]),
        ({"x": ["a", "b"]}, {"x": ["b", "c"]}, ["a", "b"], [{"x": "b"}]),
        ({"x": {"ordinal": [1, 2, 4]}}, {"x": (1.0, 2.0)}, [1, 2, 4], [{"x": 1.0}, {"x": 2.0}]),
    ],
)
def test_choices_become_what_they_stand_for(notation, to, values, left):
    batch = Space.of(notation).encode([{"x": value} for value in values])
    assert reencoded(batch, Space.of(to))[0].dicts() == left


def test_a_hyperparameter_that_is_active_and_unknown_there_drops_the_row():
    there, rows = reencoded(WHOLE.encode(CONFIGS), Space.of({"model": ["svm", "forest", "naive"]}))
    assert (len(there), rows.tolist()) == (0, [])


def test_forbidden_combinations_and_changed_conditions_drop_the_row():
    flat = Space.of({"a": ["x", "y"], "b": (0.0, 1.0)})
    batch = flat.encode([{"a": "x", "b": 0.5}, {"a": "y", "b": 0.5}])
    conditional = Space.of({"a": {"x": {}, "y": {}}, "b": (0.0, 1.0)}).config_space
    clauses = ConfigurationSpace({"a": ["x", "y"], "b": (0.0, 1.0)})
    clauses.add(ForbiddenEqualsClause(clauses["a"], "y"))
    assert reencoded(batch, Space.of(clauses))[1].tolist() == [0]
    assert reencoded(batch, Space.of(conditional))[1].tolist() == [0, 1]
    child = Space.of({"a": {"x": {}, "y": {"b": (0.0, 1.0)}}})
    renamed = Space.of({"a": ["x", "y"], "a:y:b": (0.0, 1.0)})
    given = renamed.encode([{"a": "x", "a:y:b": 0.5}, {"a": "y", "a:y:b": 0.5}])
    assert reencoded(given, child)[1].tolist() == [1]


def test_experience_keeps_its_rows_notes_and_times():
    left = narrowed(experience(), PART)
    assert left.space == PART
    assert left.tasks == ("t0", "t1")
    assert [config["model"] for config in left.configs.dicts()] == ["forest", "naive"]
    np.testing.assert_allclose(left.task("t1").losses[:, 0], [0.5, 0.6])
    np.testing.assert_allclose(left.task("t0").seconds, [2.0, 3.0], rtol=1e-6)
    assert left.meta_features == {"t0": {"rows": 5.0}}
    assert left.splits["s"]["test"] == ("t1",)
    assert left.starts == {"t0": {"a": (1,)}}


def test_tasks_without_anything_left_are_left_out():
    nan = np.nan
    left = narrowed(experience([[0.1, nan, nan], [nan, 0.2, nan]]), PART)
    assert left.tasks == ("t1",)


def test_nothing_left_is_said():
    only = Space.of({"model": {"boosting": {}}, "scale": ["none"]}, stages=("model", "scale"))
    with pytest.raises(ExperienceError, match="none of 3 lies in"):
        narrowed(experience(), only)


# Priors of the whole in a part


def seen_in(space, n=6):
    configs = space.sample(n, seed=3)
    losses = np.random.default_rng(0).normal(size=(n, 1))
    return Observations(configs, losses, np.zeros(n, dtype=bool))


def test_a_lifted_posterior_says_what_the_whole_says_about_the_same_configurations():
    prior = METHODS["gp"].learn(None, seed=0)
    seen, x = seen_in(PART), PART.sample(9, seed=1)
    there = Observations(WHOLE.adopt(seen.configs), seen.losses, seen.believed)
    want = prior.surrogate(Target(WHOLE)).condition(there, seed=0)
    got = lifted(prior, WHOLE, PART).surrogate(Target(PART)).condition(seen, seed=0)
    assert got.best == want.best
    np.testing.assert_array_equal(got.predict(x).mean, want.predict(WHOLE.adopt(x)).mean)
    np.testing.assert_array_equal(got.predict(x).std, want.predict(WHOLE.adopt(x)).std)
    draws = want.sample(WHOLE.adopt(x), 4, seed=2)
    np.testing.assert_array_equal(got.sample(x, 4, seed=2), draws)


def test_the_same_space_needs_no_lift():
    prior = METHODS["gp"].learn(None, seed=0)
    assert lifted(prior, WHOLE, WHOLE) is prior
    assert not isinstance(lifted(prior, WHOLE, PART), Opening)


def test_an_opening_is_what_lies_in_the_part_or_what_is_given_instead():
    prior = METHODS["zero-shot"].learn(experience(), seed=0)
    own = lifted(prior, WHOLE, PART)
    assert isinstance(own, Opening)
    assert {config["model"] for config in own.opening(Target(PART)).dicts()} == {"forest", "naive"}
    first = PART.encode(CONFIGS[2:])
    assert lifted(prior, WHOLE, PART, first=first).opening(Target(PART)) == first


def test_what_is_known_is_what_lies_in_the_part():
    configs = WHOLE.encode(CONFIGS)
    prior = lifted(AutoPrior({}, frozenset(), configs.take([2]), configs), WHOLE, PART)
    assert isinstance(prior, Informed)
    assert {config["model"] for config in prior.known(Target(PART)).dicts()} == {"forest", "naive"}


def test_a_search_in_the_part_stays_in_it_with_and_without_a_pool():
    prior = lifted(METHODS["zero-shot-gp"].learn(experience(), seed=0), WHOLE, PART)
    for pool in (None, PART.sample(30, seed=5)):
        optimizer = Optimizer(Target(PART, pool=pool), METHODS["zero-shot-gp"], prior, seed=0)
        for _ in range(4):
            [suggestion] = optimizer.ask()
            assert PART.encode([suggestion.config]).dicts() == [suggestion.config]


def test_what_the_whole_does_not_have_cannot_be_lifted():
    prior = METHODS["gp"].learn(None, seed=0)
    surrogate = lifted(prior, PART, WHOLE).surrogate(Target(WHOLE))
    with pytest.raises(MethodError, match="does not lie in"):
        surrogate.condition(seen_in(WHOLE, 20), seed=0)


def test_a_prior_that_bounds_the_search_is_not_lifted():
    prior = METHODS["autogp"].learn(experience(), seed=0)
    with pytest.raises(MethodError, match="bounds the search"):
        lifted(prior, WHOLE, PART)


def test_a_lifted_prior_holds_for_its_part_and_saves_the_whole(tmp_path):
    prior = METHODS["zero-shot"].learn(experience(), seed=0)
    made = lifted(prior, WHOLE, PART)
    with pytest.raises(MethodError, match="holds for the space"):
        made.surrogate(Target(WHOLE))
    made.save(tmp_path / "prior")
    again = METHODS["zero-shot"].load(tmp_path / "prior")
    assert again.opening(Target(WHOLE)) == prior.opening(Target(WHOLE))
