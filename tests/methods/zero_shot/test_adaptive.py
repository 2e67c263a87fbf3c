from dataclasses import replace

import numpy as np
import pytest
from scipy.special import ndtri
from scipy.stats import norm

from foretune._base.progress import SILENT
from foretune.errors import MethodError
from foretune.experience import Experience, Metric
from foretune.methods.contracts import Observations, Target
from foretune.methods.zero_shot.adaptive import (
    NOISE,
    RESERVE,
    AdaptiveLearner,
    AdaptivePosterior,
    AdaptivePrior,
    best_of_each,
)
from foretune.methods.zero_shot.table import loss_table
from foretune.numerics.greedy import greedy, mean
from foretune.numerics.normalise import normal_scores
from foretune.numerics.order import DISTRUST
from foretune.search import Optimizer, Told, method
from foretune.space import Encoded, Space
from tests.methods.zero_shot.examples import (
    SPACE,
    bowls,
    candidates,
    experience_of,
    unshared_experience,
)
from tests.refusals import refuses

LINE = Space.of({"a": (0.0, 1.0)})
FOUR = LINE.encode([{"a": a} for a in (0.0, 0.3, 0.6, 1.0)])
SCORES = np.array([[-2.0, -1.0, 0.0, 1.0], [1.0, 0.0, -1.0, -2.0], [0.0, -1.5, 0.0, -1.0]])


def seen(configs: Encoded, losses: list[float], believed: int = 0) -> Observations:
    n = len(losses)
    return Observations(configs, np.array(losses)[:, None], np.arange(n) >= n - believed)


def posterior(configs: Encoded, losses: list[float], **limits: int) -> AdaptivePosterior:
    surrogate = AdaptivePrior(FOUR, SCORES).surrogate(Target(LINE))
    return replace(surrogate, **limits).condition(seen(configs, losses), seed=0)


def test_normal_scores_tell_the_best_apart() -> None:
    scores = normal_scores(np.array([3.0, 1.0, np.nan, 2.0]))
    np.testing.assert_allclose(scores, [ndtri(5 / 6), ndtri(1 / 6), np.nan, ndtri(0.5)], atol=1e-12)


def test_the_order_of_two_trials_by_hand() -> None:
    """The second trial is better: one task denies it by 1 score, the others say so by 1 and 1.5."""
    gaps = np.array([-1.0, 1.0, 1.5])
    right = DISTRUST / 2 + (1 - DISTRUST) * norm.cdf(gaps / (np.sqrt(2.0) * NOISE))
    after = posterior(FOUR.take([0, 1]), [2.0, 1.0])
    np.testing.assert_allclose(after.weights, right / right.sum())


def test_equal_losses_say_nothing() -> None:
    np.testing.assert_allclose(posterior(FOUR.take([0, 1]), [1.0, 1.0]).weights, 1 / 3)


def test_its_utility_is_the_improvement_expected_over_tasks() -> None:
    after = posterior(FOUR.take([1, 2]), [0.5, 0.2])
    best = SCORES[:, 1:3].min(axis=1)
    expected = after.weights @ np.maximum(best[:, None] - SCORES, 0.0)
    np.testing.assert_allclose(np.exp(after.log_utility(FOUR)), expected, atol=1e-4)
    assert after.weights[1] > after.weights[0]
    assert after.log_utility(FOUR).argmax() == 3


def test_its_belief_has_the_moments_of_the_tasks() -> None:
    after = posterior(FOUR.take([1]), [0.5])
    np.testing.assert_allclose(after.weights, 1 / 3)
    belief = after.predict(FOUR)
    np.testing.assert_allclose(belief.mean, SCORES.mean(axis=0))
    np.testing.assert_allclose(belief.std, np.sqrt(SCORES.var(axis=0) + NOISE**2))
    draws = after.sample(FOUR, 4000, seed=0)
    np.testing.assert_allclose(draws.mean(axis=0), belief.mean, atol=0.1)
    np.testing.assert_allclose(draws.std(axis=0), belief.std, atol=0.1)


def test_draws_are_those_of_the_tasks_that_are_believed() -> None:
    after = replace(posterior(FOUR.take([1]), [0.5]), weights=np.array([0.0, 1.0, 0.0]))
    draws = after.sample(FOUR, 4000, seed=0)
    np.testing.assert_allclose(draws.mean(axis=0), SCORES[1], atol=0.05)
    np.testing.assert_allclose(draws.std(axis=0), NOISE, atol=0.05)
    np.testing.assert_array_equal(after.sample(FOUR, 3, seed=1), after.sample(FOUR, 3, seed=1))
    assert (after.sample(FOUR, 3, seed=1) != after.sample(FOUR, 3, seed=2)).any()


def test_the_latest_of_very_many_trials_describe_the_target() -> None:
    after = posterior(FOUR.take([0, 3, 2, 1]), [1.0, 9.0, 4.0, 5.0], latest=2)
    latest = posterior(FOUR.take([2, 1]), [4.0, 5.0])
    np.testing.assert_allclose(after.weights, latest.weights)
    assert after.weights[1] == after.weights.max()


def test_a_configuration_nobody_tried_is_taken_for_the_nearest() -> None:
    after = posterior(FOUR.take([1]), [0.5])
    near = LINE.encode([{"a": 0.9}])
    assert after.predict(near).mean[0] == after.predict(FOUR).mean[3]


def test_believed_trials_are_tried_but_say_nothing_about_tasks() -> None:
    surrogate = AdaptivePrior(FOUR, SCORES).surrogate(Target(LINE))
    believed = surrogate.condition(seen(FOUR.take([1, 2]), [0.5, 0.2], believed=1), seed=0)
    np.testing.assert_allclose(believed.weights, 1 / 3)
    np.testing.assert_allclose(believed.bests, SCORES[:, 1:3].min(axis=1))


def test_while_no_trial_tells_anything_it_goes_on_with_the_greedy_portfolio() -> None:
    configs = candidates()
    prior = AdaptiveLearner().learn(experience_of(bowls(configs), configs), seed=0, progress=SILENT)
    reserve = prior.reserve(Target(SPACE))
    assert reserve.take([0]) == prior.opening(Target(SPACE))
    assert len(reserve) == min(RESERVE, len(prior.configs))
    assert reserve.take(np.arange(4)) == prior.portfolio(4)


def test_before_trials_tell_tasks_apart_it_is_the_greedy_portfolio() -> None:
    configs = candidates()
    prior = AdaptiveLearner().learn(experience_of(bowls(configs), configs), seed=0, progress=SILENT)
    picks = greedy(prior.scores, 4, mean).chosen
    surrogate = prior.surrogate(Target(SPACE))
    tried = [int(picks[0])]
    for pick in picks[1:].tolist():
        # Trials of one loss put nothing in order.
        flat = seen(prior.configs.take(tried), [1.0] * len(tried))
        utility = surrogate.condition(flat, seed=0).log_utility(prior.configs)
        assert int(utility.argmax()) == pick
        tried.append(pick)


@pytest.mark.parametrize("likes_right", [False, True])
def test_it_turns_to_what_suits_tasks_like_this(likes_right: bool) -> None:
    configs = candidates()
    losses = bowls(configs, tasks=31)
    target, past = losses[int(likes_right)], np.delete(losses, [0, 1], axis=0)
    adaptive = method("adaptive-portfolio")
    prior = adaptive.learn(experience_of(past, configs), seed=0)
    optimizer = Optimizer(Target(SPACE, pool=configs), adaptive, prior, seed=0)
    for _ in range(5):
        row = optimizer.ask()[0]
        assert row.pool_index is not None
        optimizer.tell([Told((float(target[row.pool_index]),), id=row.id)])
    assert optimizer.told.losses.min() <= np.sort(target)[2]


def test_a_saved_prior_says_the_same(tmp_path) -> None:
    prior = AdaptiveLearner().learn(unshared_experience(), seed=0, progress=SILENT)
    prior.save(tmp_path / "prior")
    again = AdaptiveLearner().load(tmp_path / "prior")
    np.testing.assert_array_equal(prior.scores, again.scores)
    np.testing.assert_array_equal(prior.configs.values, again.configs.values)


def test_forests_complete_a_table_without_common_configurations() -> None:
    experience = unshared_experience()
    prior = AdaptiveLearner().learn(experience, seed=0, progress=SILENT)
    truth = bowls(prior.configs, tasks=6)
    assert np.isfinite(prior.scores).all()
    agreement = [np.corrcoef(a, b)[0, 1] for a, b in zip(prior.scores, truth, strict=True)]
    assert np.mean(agreement) > 0.8


def test_two_tasks_that_share_nothing_agree_where_they_have_seen_the_same() -> None:
    space = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0)})
    configs = space.sample(80, seed=1)
    losses = ((configs.x - 0.3) ** 2).sum(axis=1)
    own = np.repeat([True, False], 40)
    matrix = np.where([own, ~own], losses, np.nan)
    experience = Experience.from_matrix(space, configs, ["t", "u"], [Metric("m")], {"m": matrix})
    prior = AdaptiveLearner().learn(experience, seed=0, progress=SILENT)
    truth = ((prior.configs.x - 0.3) ** 2).sum(axis=1)
    assert all(np.corrcoef(scores, truth)[0, 1] > 0.6 for scores in prior.scores)


def test_a_draw_of_tasks_that_share_less_than_all_is_completed(tmp_path) -> None:
    losses = np.full((12, 6), np.nan)
    losses[:7, 0] = np.arange(7.0)
    losses[np.arange(7, 12), np.arange(1, 6)] = 1.0
    experience = experience_of(losses, SPACE.sample(6, seed=0))
    table = loss_table(experience, "normal")
    assert table.has_common_configs
    seed = next(n for n in range(1000) if not table.some_tasks(8, seed=n).has_common_configs)
    learner = AdaptiveLearner(most_tasks=8, most_forests=7)
    prior = learner.learn(experience, seed=seed, progress=SILENT)
    assert len(prior.scores) == 7
    assert np.isfinite(prior.scores).all()
    prior.save(tmp_path / "prior")


def test_only_the_best_of_each_task_are_kept() -> None:
    losses = np.array([[3.0, 1.0, 2.0, np.nan], [np.nan, np.nan, np.nan, 5.0]])
    assert best_of_each(losses, best=2).tolist() == [1, 2, 3]


def test_the_best_are_kept_of_too_many() -> None:
    losses = np.array([[3.0, 1.0, 2.0, 4.0, 9.0], [9.0, 2.0, 3.0, 4.0, 1.0]])
    # Columns 1 and 4 are a row's best; column 2 is the second best of the first row.
    assert best_of_each(losses, most=3).tolist() == [1, 2, 4]


def test_many_tasks_are_a_better_guide_than_a_few() -> None:
    few, many = (AdaptivePrior(FOUR, np.tile(SCORES, (n, 1))) for n in (1, 100))
    assert few.odds(Target(LINE)) == pytest.approx(3 / 25)
    assert many.odds(Target(LINE)) == 3.0


def test_on_a_described_task_it_leaves_the_word_to_others() -> None:
    prior = AdaptivePrior(FOUR, np.tile(SCORES, (100, 1)))
    assert prior.odds(Target(LINE, meta_features={"log_rows": 5.0})) < 1e-3


def test_in_a_pool_of_other_configurations_it_is_modest() -> None:
    prior = AdaptivePrior(FOUR, np.tile(SCORES, (100, 1)))
    half = Encoded.concat([FOUR.take([0, 1]), LINE.sample(20, seed=0)])
    assert prior.odds(Target(LINE, pool=half)) == 1.5
    assert prior.odds(Target(LINE, pool=LINE.sample(20, seed=0))) < 1e-3


def test_another_space_is_refused() -> None:
    with refuses("prior-of-another-space", kind=MethodError):
        AdaptivePrior(FOUR, SCORES).surrogate(Target(SPACE))
