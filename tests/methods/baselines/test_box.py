import numpy as np
import pytest

from foretune.errors import MethodError
from foretune.methods.contracts import Region, Target
from foretune.search import Method, Optimizer, method
from foretune.space import Space
from foretune.testing import problem
from foretune_lab.baselines.bounding_box import Box, gp_in_a_box
from tests.methods.baselines.examples import SPACE, mean_regret, small_experience
from tests.refusals import refuses

AUTOGP = Method("autogp", "a box", gp_in_a_box, needs_experience=True)


def test_the_box_spans_the_best_of_each_past_task():
    prior = AUTOGP.learn(small_experience(), seed=0)
    box = prior.region(Target(SPACE))
    assert isinstance(box, Region)
    tried = SPACE.encode(
        [
            {"width": 2.0, "depth": 2, "kind": "odd"},
            {"width": 5.0, "depth": 3, "kind": "plain"},
            {"width": 1.9, "depth": 2, "kind": "odd"},
            {"width": 3.0, "depth": 4, "kind": "odd"},
            {"width": 3.0, "depth": 2, "kind": "fancy"},
        ]
    )
    assert list(box.contains(tried)) == [True, True, False, False, False]


def test_samples_fill_the_box_evenly():
    box = Box.around(small_experience().configs.take([1, 3]))
    samples = box.sample(4000, seed=0)
    assert box.contains(samples).all()
    width, depth, kind = (
        samples.values[:, SPACE.names.index(name)] for name in ("width", "depth", "kind")
    )
    assert np.quantile(width, [0.25, 0.5, 0.75]) == pytest.approx([2.75, 3.5, 4.25], abs=0.1)
    assert (depth == 2).mean() == pytest.approx(0.5, abs=0.04)
    assert (kind == 0).mean() == pytest.approx(0.5, abs=0.04)
    assert box.sample(10, seed=0) == box.sample(10, seed=0)
    assert box.sample(10, seed=0) != box.sample(10, seed=1)


def test_logarithmic_and_ordinal_ranges():
    space = Space.of({"rate": (1e-4, 1.0, "log"), "size": (1, 1000, "log")})
    ends = [{"rate": 1e-3, "size": 10}, {"rate": 1e-1, "size": 100}]
    samples = Box.around(space.encode(ends)).sample(4000, seed=1)
    rate, size = samples.values.T
    assert np.median(rate) == pytest.approx(1e-2, rel=0.1)
    assert rate.min() >= 1e-3
    assert rate.max() <= 1e-1
    assert set(np.unique(size)) <= set(range(10, 101))
    assert np.median(size) == pytest.approx(np.sqrt(1000), rel=0.1)


def test_hyperparameters_inactive_in_the_best_keep_their_range():
    space = problem("cash").space
    best = space.encode(
        [
            {"model": "svm", "model:svm:C": 1.0, "model:svm:gamma": 0.1},
            {"model": "svm", "model:svm:C": 10.0, "model:svm:gamma": 0.1},
            {"model": "bayes"},
        ]
    )
    box = Box.around(best)
    trees = space.names.index("model:forest:trees")
    assert (box.low[trees], box.high[trees]) == (10, 500)
    samples = box.sample(200, seed=0)
    assert {config["model"] for config in samples.dicts()} == {"svm", "bayes"}
    inside = space.encode(
        [{"model": "svm", "model:svm:C": 2.0, "model:svm:gamma": 0.1}, {"model": "bayes"}]
    )
    outside = space.encode([{"model": "svm", "model:svm:C": 20.0, "model:svm:gamma": 0.1}])
    assert box.contains(inside).all()
    assert not box.contains(outside).any()


def test_forbidden_combinations_are_not_sampled():
    from ConfigSpace import ConfigurationSpace, ForbiddenAndConjunction, ForbiddenEqualsClause

    given = ConfigurationSpace({"a": ["x", "y", "z"], "b": ["u", "v"], "c": (0.0, 1.0)})
    given.add(
        ForbiddenAndConjunction(
            ForbiddenEqualsClause(given["a"], "x"), ForbiddenEqualsClause(given["b"], "v")
        )
    )
    space = Space.of(given)
    best = [{"a": "x", "b": "u", "c": 0.1}, {"a": "z", "b": "v", "c": 0.9}]
    samples = Box.around(space.encode(best)).sample(300, seed=0).dicts()
    assert {(s["a"], s["b"]) for s in samples} == {("x", "u"), ("z", "u"), ("z", "v")}


def test_suggestions_stay_in_the_box():
    prior = AUTOGP.learn(problem("flat").experience, seed=0)
    optimizer = Optimizer(problem("flat").target(), AUTOGP, prior)
    space = problem("flat").space
    suggestions = space.encode([s.config for s in optimizer.ask(6)])
    assert Box.around(prior.best).contains(suggestions).all()


def test_another_space_is_refused():
    prior = AUTOGP.learn(small_experience(), seed=0)
    target = Target(Space.of({"width": (0.0, 10.0)}))
    for use in (prior.region, prior.surrogate):
        with refuses("prior-of-another-space", kind=MethodError):
            use(target)


def test_it_beats_random_search_on_related_tasks():
    prior = AUTOGP.learn(problem("flat").experience, seed=0)
    random = method("random")
    ours = mean_regret(AUTOGP, prior, trials=10, seeds=3)
    assert ours < 0.5 * mean_regret(random, random.learn(None, seed=0), trials=10, seeds=3)
