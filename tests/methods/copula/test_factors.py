from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foretune._base.progress import SILENT
from foretune.errors import MethodError
from foretune.experience import Direction, Experience, Metric
from foretune.methods.contracts import Observations, Target
from foretune.methods.copula.factors import (
    LEAST_ODDS,
    FactorsLearner,
    FactorsPrior,
    factors,
    mean_and_components,
)
from foretune.numerics.scores import midrank_scores
from foretune.space import Encoded, Space
from tests.refusals import refuses

SPACE = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0)})
METRIC = (Metric("loss", Direction.MIN),)


def losses_of(x: np.ndarray, place: float) -> np.ndarray:
    """Tasks differ by where the best is along one hyperparameter; the other does not count."""
    return np.square(x[:, 0] - place)


def experience(*, shared: bool, tasks: int = 8, n: int = 60) -> Experience:
    rng = np.random.default_rng(0)
    places = np.linspace(0.0, 1.0, tasks)
    drawn = [SPACE.sample(n, seed=0 if shared else seed) for seed in range(tasks)]
    configs = drawn[0] if shared else Encoded.concat(drawn)
    index = np.tile(np.arange(n), tasks) if shared else np.arange(n * tasks)
    losses = np.concatenate(
        [losses_of(each.x, place) for each, place in zip(drawn, places, strict=True)]
    )
    order = rng.permutation(n * tasks)  # records come in any order
    return Experience.build(
        SPACE,
        METRIC,
        [f"task {number}" for number in range(tasks)],
        np.repeat(np.arange(tasks), n)[order],
        configs,
        index[order],
        losses[order, None],
    )


def learnt(*, shared: bool = True) -> FactorsPrior:
    return factors().learn(experience(shared=shared), seed=0, progress=SILENT)


def test_components_of_a_table_that_differs_along_one_direction() -> None:
    table = np.array([[1.0, 2.0, 0.0], [3.0, 2.0, 4.0]])
    found = mean_and_components(table, 5)
    assert found[:, 0] == pytest.approx([2.0, 2.0, 2.0])
    # Both rows lie (1, 0, 2) from their mean: tasks have that standard deviation, times sqrt 2.
    assert np.abs(found[:, 1]) == pytest.approx(np.sqrt(2.0) * np.array([1.0, 0.0, 2.0]))
    assert found.shape == (3, 2)


def test_components_have_the_covariance_of_tasks() -> None:
    table = np.random.default_rng(0).standard_normal((6, 4))
    components = mean_and_components(table, 10)[:, 1:]
    assert components @ components.T == pytest.approx(np.cov(table.T))
    assert mean_and_components(table, 2).shape == (4, 3)
    assert mean_and_components(table[:1], 2) == pytest.approx(table[:1].T)


def test_shared_configurations_are_read_as_recorded() -> None:
    past, prior = experience(shared=True), learnt()
    scores = [midrank_scores(past.task(name).losses[:, 0]) for name in past.tasks]
    rows = [past.task(name).config_index for name in past.tasks]
    table = np.array([each[np.argsort(row)] for each, row in zip(scores, rows, strict=True)])
    assert len(prior.configs) == 60
    assert prior.table[:, 0] == pytest.approx(table.mean(axis=0), abs=1e-6)
    assert prior.forest.predict(prior.configs.x) == pytest.approx(prior.table, abs=1e-6)


@pytest.mark.parametrize("shared", [True, False])
def test_a_few_trials_tell_what_a_task_is_like_everywhere(shared: bool) -> None:
    """Trials on the left alone tell that the best is on the right."""
    surrogate = learnt(shared=shared).surrogate(Target(SPACE))
    at = SPACE.encode([{"a": a, "b": b} for a in np.linspace(0.0, 1.0, 11) for b in (0.2, 0.8)])
    tried = SPACE.encode([{"a": a, "b": 0.5} for a in (0.05, 0.15, 0.25, 0.35)])

    def best(place: float) -> float:
        seen = Observations(tried, losses_of(tried.x, place)[:, None], np.zeros(4, dtype=bool))
        found = surrogate.condition(seen, seed=0).predict(at).mean.argmin()
        return float(at.x[found, 0])

    assert best(0.9) >= 0.5
    assert best(0.1) <= 0.2


def test_trials_that_are_only_believed_do_not_change_the_fit() -> None:
    surrogate = learnt().surrogate(Target(SPACE))
    tried = SPACE.sample(8, seed=5)
    believed = np.arange(8) >= 6
    seen = Observations(tried, losses_of(tried.x, 0.7)[:, None], believed)
    told = Observations(tried.take(range(6)), seen.losses[:6], believed[:6])
    assert (
        surrogate.condition(seen, seed=0).model.hyper
        is surrogate.condition(told, seed=0).model.hyper
    )


def test_the_best_is_that_of_all_trials_pending_ones_included() -> None:
    surrogate = learnt().surrogate(Target(SPACE))
    tried = SPACE.encode([{"a": 0.0, "b": 0.5}, {"a": 0.4, "b": 0.5}, {"a": 0.7, "b": 0.5}])
    believed = np.array([False, False, True])
    posterior = surrogate.condition(
        Observations(tried, losses_of(tried.x, 0.7)[:, None], believed), seed=0
    )
    expected = posterior.predict(tried).mean
    assert posterior.best == pytest.approx(expected[2])
    assert expected[2] < expected[:2].min()


def test_a_task_that_is_described_is_left_to_those_who_read_descriptions() -> None:
    prior = learnt()
    assert prior.odds(Target(SPACE)) == 1.0
    assert prior.odds(Target(SPACE, meta_features={"rows": 3.0})) == LEAST_ODDS


def test_a_saved_prior_is_believed_as_far(tmp_path: Path) -> None:
    prior = replace(learnt(), reads_all=False)
    prior.save(tmp_path / "prior")
    again = factors().load(tmp_path / "prior")
    assert again.odds(Target(SPACE)) == LEAST_ODDS
    assert (again.table == prior.table).all()


def test_many_tasks_and_configurations_are_drawn_from() -> None:
    learner = FactorsLearner(most_tasks=3, most_configs=30)
    prior = learner.learn(experience(shared=False), seed=0, progress=SILENT)
    assert prior.table.shape == (30, 3)
    assert prior.odds(Target(SPACE)) == LEAST_ODDS


def test_it_opens_with_what_is_best_on_average() -> None:
    prior = learnt()
    opening = prior.opening(Target(SPACE))
    assert opening.dicts() == prior.configs.take([int(prior.table[:, 0].argmin())]).dicts()
    with refuses("prior-of-another-space", kind=MethodError):
        prior.opening(Target(Space.of({"z": (0.0, 1.0)})))
