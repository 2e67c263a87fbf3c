from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri

from foretune.methods.contracts import Observations, Target
from foretune.methods.ranking.curvature import criterion
from foretune.methods.ranking.ensemble import one_loss, random_ensemble
from foretune.methods.ranking.model import LARGEST_LIST, RankingPrior, RankingSettings, _ranks_among
from foretune.methods.ranking.tuning import FineTuning, fine_tune
from foretune.numerics.anchored import informative_subset
from foretune.numerics.transforms import standardise
from foretune.space import Space

SPACE = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0)})
POOL = SPACE.sample(50, seed=0)
PRIOR = RankingPrior(
    "test",
    SPACE,
    random_ensemble(2, seed=0, meta_features=True),
    RankingSettings(FineTuning(variance=0.3, steps=10)),
)


def seen(n: int, believed: int = 0) -> Observations:
    losses = np.square(POOL.x[:n] - 0.4).sum(axis=1)[:, None]
    return Observations(POOL.take(np.arange(n)), losses, np.arange(n) >= n - believed)


def posterior(n: int = 20, believed: int = 0, unit: str = "scores"):
    prior = replace(PRIOR, settings=replace(PRIOR.settings, unit=unit))
    return prior.surrogate(Target(SPACE, pool=POOL)).condition(seen(n, believed), seed=0)


def test_ranks_by_hand() -> None:
    ordered = np.array([-1.0, 0.0, 2.0, 5.0])
    assert _ranks_among(ordered, np.array([5.0, 2.0, -1.0, 9.0]), "ranks").tolist() == [1, 2, 4, 0]
    found = _ranks_among(ordered, np.array([5.0, -1.0, 1.0]), "scores")
    np.testing.assert_allclose(found, [ndtri(1 / 8), ndtri(7 / 8), 0.0], atol=1e-12)


def test_beyond_the_references_ranks_go_on() -> None:
    ordered = np.array([-1.0, 0.0, 2.0, 5.0])
    found = _ranks_among(ordered, np.array([5.0, 6.0, 7.0]), "scores")
    np.testing.assert_allclose(np.diff(found), -1.0 / ordered.std())


def test_each_scorer_gives_every_rank_once() -> None:
    found = posterior(unit="ranks").sample(POOL, 30, seed=0)
    np.testing.assert_array_equal(np.sort(found, axis=1), np.tile(np.arange(1, 51), (30, 1)))


def test_the_mean_follows_the_losses_that_were_told() -> None:
    mean = posterior(40).predict(POOL).mean
    truth = np.square(POOL.x - 0.4).sum(axis=1)
    assert np.corrcoef(mean[:40], truth[:40])[0, 1] > 0.8
    assert np.corrcoef(mean[40:], truth[40:])[0, 1] > 0.5


def test_the_best_is_the_incumbents_mean_rank() -> None:
    found = posterior()
    incumbent = int(np.argmin(seen(20).losses[:, 0]))
    assert found.best == pytest.approx(found.predict(POOL).mean[incumbent])


def test_a_believed_trial_may_be_the_incumbent() -> None:
    losses = seen(20).losses.copy()
    losses[19] = -1.0
    told = Observations(POOL.take(np.arange(20)), losses, np.arange(20) == 19)
    found = PRIOR.surrogate(Target(SPACE, pool=POOL)).condition(told, seed=0)
    assert found.incumbent.dicts() == POOL.take([19]).dicts()


def test_the_belief_is_the_mean_and_the_spread_over_scorers() -> None:
    found = posterior()
    drawn = np.stack([found.sample(POOL, 1, seed=seed)[0] for seed in range(100)])
    scorers = np.unique(drawn, axis=0)
    belief = found.predict(POOL)
    np.testing.assert_allclose(belief.mean, scorers.mean(axis=0))
    np.testing.assert_allclose(belief.std, scorers.std(axis=0))


def test_before_any_trial_nothing_is_an_improvement() -> None:
    nothing = PRIOR.surrogate(Target(SPACE, pool=POOL)).condition(seen(0), seed=0)
    assert nothing.log_utility(POOL).tolist() == [0.0] * 50


def test_scorers_are_tuned_to_the_informative_trials_of_many() -> None:
    many = SPACE.sample(LARGEST_LIST + 30, seed=5)
    losses = np.square(many.x - 0.4).sum(axis=1)
    told = Observations(many, losses[:, None], np.zeros(len(many), dtype=bool))
    found = PRIOR.surrogate(Target(SPACE, pool=POOL)).condition(told, seed=0)
    keep = informative_subset(many.x, losses, LARGEST_LIST)
    assert len(keep) == LARGEST_LIST
    inputs = PRIOR.ensemble.inputs(many.x[keep], found.meta_features)
    rank = criterion("list-wise", losses[keep])
    expected = fine_tune(PRIOR.ensemble.scorers, inputs, rank, PRIOR.settings.tuning)
    for mine, theirs in zip(found.scorers, expected, strict=True):
        np.testing.assert_allclose(mine[0], theirs[0], atol=1e-5)


@pytest.mark.parametrize("enormous", [1e8, 1e30])
def test_beside_an_enormous_loss_the_others_keep_their_order(enormous: float) -> None:
    losses = seen(20).losses.copy()
    losses[3] = enormous
    y = one_loss(losses)
    order = np.argsort(losses[:, 0])
    assert np.argsort(y.astype(np.float32)).tolist() == order.tolist()
    assert len(np.unique(y.astype(np.float32))) == 20
    told = Observations(POOL.take(np.arange(20)), losses, np.zeros(20, dtype=bool))
    found = PRIOR.surrogate(Target(SPACE, pool=POOL)).condition(told, seed=0)
    assert found.incumbent == POOL.take([order[0]])


@pytest.mark.parametrize("y", [[3.0], [1.0, 1e9], [0.5, 0.5, 0.5, 1e9], [0.1, 0.3, 0.2, 50.0]])
def test_other_losses_are_standardised(y: list[float]) -> None:
    np.testing.assert_array_equal(one_loss(np.array(y)[:, None]), standardise(np.array(y)))


def test_utility_is_the_mean_gain_over_the_incumbent() -> None:
    found = posterior()
    each = np.stack([found.sample(POOL, 1, seed=seed)[0] for seed in range(100)])
    scorers = np.unique(each, axis=0)
    incumbent = int(np.argmin(seen(20).losses[:, 0]))
    assert len(scorers) == 10
    gain = np.maximum(scorers[:, [incumbent]] - scorers, 0.0).mean(axis=0)
    np.testing.assert_allclose(np.exp(found.log_utility(POOL)), gain, atol=0.05 * np.log(2.0))
    assert np.isfinite(found.log_utility(POOL)).all()


def test_without_trials_the_prior_opens_with_what_it_ranks_best() -> None:
    target = Target(SPACE, pool=POOL)
    nothing = PRIOR.surrogate(target).condition(seen(0), seed=0)
    best = int(np.argmin(nothing.predict(POOL).mean))
    assert PRIOR.opening(target).dicts() == POOL.take([best]).dicts()


def test_without_tuning_trials_change_only_the_meta_features() -> None:
    fixed = replace(PRIOR, settings=replace(PRIOR.settings, tuning=None))
    found = fixed.surrogate(Target(SPACE, pool=POOL)).condition(seen(20), seed=0)
    assert found.scorers is PRIOR.ensemble.scorers
    assert found.meta_features.shape == (16,)
