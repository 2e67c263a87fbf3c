"""What `fit` tries first: what suited datasets like this one."""

from dataclasses import replace

import numpy as np
import pytest

from foretune.automl.knowledge.knowledge import FitKnowledge
from foretune.automl.plan import FitOptions
from foretune.automl.trial_search import load_start_knowledge, opening_configs
from foretune.experience import Direction, Experience, Metric
from foretune.methods.contracts import Target
from foretune.search.optimizer import Optimizer
from foretune.search.registry import method
from foretune.space import Space

from .past import knowledge_of

SPACE = Space.of({"depth": (0.0, 1.0)})
CONFIGS = SPACE.encode([{"depth": each} for each in (0.1, 0.5, 0.9)])


@pytest.fixture
def knowledge() -> FitKnowledge:
    """Small tables want a small depth, large ones a large one; small depths are cheap."""
    losses = np.array([[0.0, 1.0, 2.0]] * 6 + [[2.0, 1.0, 0.0]] * 6)
    names = [f"table {number}" for number in range(12)]
    found = Experience.from_matrix(
        SPACE, CONFIGS, names, [Metric("loss", Direction.MIN)], {"loss": losses}
    )
    rows = {name: {"log_rows": float(number)} for number, name in enumerate(names)}
    seconds = found.config_index.astype(float)
    return knowledge_of(replace(found, meta_features=rows, seconds=seconds))


def depths(configs) -> list[float]:
    return [config["depth"] for config in configs.dicts()]


def test_like_tables_count_most_and_the_cheapest_comes_first(knowledge) -> None:
    small = opening_configs(FitOptions(), knowledge, {"log_rows": 0.0})
    assert depths(small)[0] == pytest.approx(0.1)
    assert len(small) == 3
    assert depths(small) == sorted(depths(small))
    one = knowledge.suggest(1, {"log_rows": 11.0})
    assert depths(one.configs) == [pytest.approx(0.9)]


def test_the_search_is_given_both(knowledge) -> None:
    known = load_start_knowledge(FitOptions(method="zero-shot"), knowledge, {"log_rows": 0.0})
    assert known.start is None


def test_other_methods_begin_as_they_do(knowledge) -> None:
    assert opening_configs(FitOptions(method="zero-shot"), knowledge, {"log_rows": 0.0}) is None


def test_without_knowledge_there_is_nothing_to_begin_with() -> None:
    known = load_start_knowledge(FitOptions(), None, {"log_rows": 0.0})
    assert known.start is None
    assert known.meta_features == {"log_rows": 0.0}


def test_experience_of_another_part_of_the_space_is_as_good_as_none() -> None:
    models = {"model": {"knn": {"k": (1, 20)}, "svm": {"C": (0.1, 10.0)}}}
    whole, part = Space.of(models), Space.of({"model": {"svm": {"C": (0.1, 10.0)}}})
    configs = whole.encode([{"model": "knn", "model:knn:k": each} for each in (1, 5, 9)])
    found = Experience.from_matrix(
        whole, configs, ["a"], [Metric("loss", Direction.MIN)], {"loss": np.arange(3.0)[None]}
    )
    known = load_start_knowledge(FitOptions(), knowledge_of(found, part), {"log_rows": 0.0})
    assert known.start is None
    assert known.prior.taught == frozenset()


def test_the_first_trials_do_not_wait_for_the_prior() -> None:
    knowledge = FitKnowledge.for_space("pipeline-classification", metric="log_loss", own=False)
    known = load_start_knowledge(FitOptions(), knowledge, {"log_rows": 6.0})
    assert known.start is not None
    target = Target(knowledge.space, ("log_loss",))
    optimizer = Optimizer(target, method("auto"), known.prior, start=known.start)
    asked = optimizer.ask(len(known.start))
    assert [each.config for each in asked] == known.start.dicts()
    assert optimizer.must_learn
    assert not known.prior.has_learnt
    optimizer.finish_learning()
    whole = knowledge.prior(method("auto"))
    np.testing.assert_array_equal(
        known.prior.known_good(target).values, whole.known_good(target).values
    )
