from dataclasses import dataclass, replace

import numpy as np
import pytest
from scipy.special import logsumexp, softmax

from foretune._base.progress import SILENT
from foretune.errors import MethodError
from foretune.methods.auto.learn import (
    ODDS_OF_NOTHING,
    AutoLearner,
    AutoPrior,
    cheapest_first,
)
from foretune.methods.auto.model import AutoSurrogate, MixturePosterior
from foretune.methods.contracts import Observations, Posterior, Prediction, Surrogate, Target
from foretune.methods.zero_shot.adaptive import RESERVE, AdaptivePrior
from foretune.numerics.acquisition import log_expected_improvement
from foretune.numerics.order import order_score
from foretune.search import METHODS
from foretune.space import Encoded, Space
from foretune.testing.problems import problem
from tests.methods.doubles import PartLearner, PartPrior
from tests.refusals import refuses

SPACE = Space.of({"a": (0.0, 1.0)})


def at(*places: float) -> Encoded:
    return SPACE.encode([{"a": place} for place in places])


def seen(places: list[float], losses: list[float], believed: int = 0) -> Observations:
    n = len(losses)
    return Observations(at(*places), np.array(losses)[:, None], np.arange(n) >= n - believed)


@dataclass(frozen=True)
class Line(Surrogate, Posterior):
    """Believes that the loss is `slope` times a, whatever it is shown."""

    slope: float
    std: float = 0.1
    best: float = 0.0

    def condition(self, seen: Observations, *, seed: int) -> "Line":
        return self

    def predict(self, x: Encoded) -> Prediction:
        return Prediction(self.slope * x.x[:, 0], np.full(len(x), self.std))

    def sample(self, x: Encoded, n: int, *, seed: int) -> np.ndarray:
        return np.tile(self.predict(x).mean, (n, 1))


@dataclass(frozen=True)
class OfOneObjective(Line):
    """Foretells a weighted sum of the objectives."""

    weights: tuple[float, ...] = (1.0, 0.0)

    def objective_weights(self) -> np.ndarray:
        return np.array(self.weights)


UP, DOWN = Line(1.0), Line(-1.0)
FIRST_TAUGHT = np.array([True, False])


def council(*experts: Line, greedy: int = 0) -> AutoSurrogate:
    names = ("past", "nothing")
    return AutoSurrogate(names, experts, np.zeros(len(experts)), FIRST_TAUGHT, greedy)


def test_the_mixture_has_the_moments_of_its_parts() -> None:
    mixture = MixturePosterior(
        (Line(2.0, 0.3), Line(0.0, 0.4)), np.array([0.25, 0.75]), FIRST_TAUGHT
    )
    belief = mixture.predict(at(1.0, 0.4))
    np.testing.assert_allclose(belief.mean, [0.5, 0.2])
    second_moments = 0.25 * (np.array([4.0, 0.64]) + 0.09) + 0.75 * 0.16
    np.testing.assert_allclose(belief.std, np.sqrt(second_moments - [0.25, 0.04]))


def test_every_draw_of_the_mixture_is_one_experts() -> None:
    mixture = MixturePosterior((UP, DOWN), np.array([0.25, 0.75]), FIRST_TAUGHT)
    draws = mixture.sample(at(0.2, 0.6), 2000, seed=0)
    of_first = (draws == [0.2, 0.6]).all(axis=1)
    assert (of_first | (draws == [-0.2, -0.6]).all(axis=1)).all()
    assert of_first.mean() == pytest.approx(0.25, abs=0.04)


def test_expectations_of_each_objective_are_weighted_like_experts() -> None:
    """Who does not tell objectives apart expects the same of both."""

    class Apart(Line):
        def predict_each(self, x: Encoded) -> np.ndarray:
            return np.column_stack([x.x[:, 0], 3.0 + x.x[:, 0]])

    mixture = MixturePosterior((Apart(0.0), UP), np.array([0.25, 0.75]), FIRST_TAUGHT)
    found = mixture.predict_each(at(0.2, 0.6))
    np.testing.assert_allclose(found, [[0.2, 0.95], [0.6, 1.35]])


def test_experts_of_the_mixture_are_drawn_independently_of_each_other() -> None:
    class Noise(Line):
        def sample(self, x: Encoded, n: int, *, seed: int) -> np.ndarray:
            return np.random.default_rng(seed).standard_normal((n, len(x)))

    mixture = MixturePosterior((Noise(0.0), Noise(0.0)), np.array([0.5, 0.5]), FIRST_TAUGHT)
    draws = mixture.sample(at(0.2, 0.6), 40, seed=0)
    assert len(np.unique(draws)) == 80
    np.testing.assert_array_equal(draws, mixture.sample(at(0.2, 0.6), 40, seed=0))
    assert (draws != mixture.sample(at(0.2, 0.6), 40, seed=1)).any()


def test_its_improvement_is_the_mean_of_theirs() -> None:
    parts = (Line(0.5, 0.2, best=0.3), Line(-0.5, 0.6, best=-0.1))
    mixture = MixturePosterior(parts, np.array([0.4, 0.6]), FIRST_TAUGHT)
    x = at(0.1, 0.9)
    each = [log_expected_improvement(p.predict(x).mean, p.predict(x).std, p.best) for p in parts]
    expected = logsumexp(each, axis=0, b=[[0.4], [0.6]])
    np.testing.assert_allclose(mixture.log_utility(x), expected)
    assert mixture.best == pytest.approx(0.4 * 0.3 - 0.6 * 0.1)


def test_an_expert_with_a_utility_of_its_own_is_taken_at_its_word() -> None:
    class Own(Line):
        def log_utility(self, x: Encoded) -> np.ndarray:
            return -3.0 + x.x[:, 0]

    mixture = MixturePosterior((Own(1.0),), np.ones(1), FIRST_TAUGHT[:1])
    np.testing.assert_allclose(mixture.log_utility(at(0.0, 1.0)), [-3.0, -2.0])


def test_before_two_trials_only_the_odds_count() -> None:
    surrogate = AutoSurrogate(("a", "b"), (UP, DOWN), np.log([3.0, 1.0]), FIRST_TAUGHT)
    np.testing.assert_allclose(surrogate.weights(seen([0.5], [1.0])), [0.75, 0.25])


def test_experts_that_rank_the_trials_well_get_weight() -> None:
    places = [0.5, 0.1, 0.9, 0.3, 0.7, 0.2]
    right = council(UP, DOWN).weights(seen(places, places))
    assert right[0] > 0.99
    wrong = council(UP, DOWN).weights(seen(places, [-place for place in places]))
    assert wrong[0] < 0.01


def test_past_tasks_are_trusted_as_long_as_their_experts_have_the_majority() -> None:
    places = [0.5, 0.1, 0.9, 0.3, 0.7, 0.2]
    right = council(UP, DOWN).condition(seen(places, places), seed=0)
    wrong = council(DOWN, UP).condition(seen(places, places), seed=0)
    assert right.trusts_past
    assert not wrong.trusts_past


@pytest.mark.parametrize(("share", "trusted"), [(0.49, False), (0.5, False), (0.51, True)])
def test_a_majority_is_more_than_half(share: float, trusted: bool) -> None:
    mixture = MixturePosterior((UP, DOWN), np.array([share, 1.0 - share]), FIRST_TAUGHT)
    assert mixture.trusts_past is trusted


def test_those_that_past_tasks_taught_have_their_majority_together() -> None:
    weights, taught = np.array([0.3, 0.3, 0.4]), np.array([True, True, False])
    assert MixturePosterior((UP, UP, DOWN), weights, taught).trusts_past
    assert not MixturePosterior((UP, DOWN, DOWN), weights, ~taught).trusts_past


def test_it_says_whom_it_believed() -> None:
    places = [0.5, 0.1, 0.9, 0.3, 0.7, 0.2]
    said = council(UP, DOWN).explain(seen(places, places))
    assert said.endswith("past 100%, nothing 0% (which uses this task's own trials only).")
    alone = AutoSurrogate(("gcp",), (UP,), np.zeros(1), np.array([False]))
    assert "no past tasks" in alone.explain(seen(places, places))


def test_believed_trials_have_no_vote() -> None:
    told, losses = [0.5, 0.1, 0.9], [0.5, 0.1, 0.9]
    before = council(UP, DOWN).weights(seen(told, losses))
    after = council(UP, DOWN).weights(seen([*told, 0.2], [*losses, 5.0], believed=1))
    np.testing.assert_array_equal(before, after)


def test_trials_that_failed_have_no_vote() -> None:
    places, losses = [0.5, 0.1, 0.9, 0.3, 0.7], [0.5, 0.1, 0.9, 0.3, 0.7]
    before = council(UP, DOWN).weights(seen(places, losses))
    failed = seen([*places[:2], 0.2, *places[2:]], [*losses[:2], np.nan, *losses[2:]])
    np.testing.assert_array_equal(before, council(UP, DOWN).weights(failed))


def test_further_trials_are_weighed_anew() -> None:
    places = [0.5, 0.1, 0.9]
    asked_before = council(UP, DOWN)
    asked_before.weights(seen(places, places))

    for turned in (seen(places[::-1], places), seen(places, [-place for place in places])):
        anew = council(UP, DOWN).weights(turned)
        np.testing.assert_array_equal(asked_before.weights(turned), anew)


def test_experts_are_asked_with_the_seed_and_judged_by_whole_rows() -> None:
    noted = []

    class Noting(Line):
        def condition(self, seen: Observations, *, seed: int) -> Line:
            noted.append((len(seen), len(seen.configs), len(seen.believed), seed))
            return self

    places = [0.5, 0.1, 0.9, 0.3, 0.7]
    council(Noting(1.0), UP).condition(seen(places, places), seed=17)
    assert [rows for *rows, _ in noted] == [[2] * 3, [4] * 3, [5] * 3]
    assert noted[-1][-1] == 17


def test_an_expert_without_weight_is_not_asked() -> None:
    class Broken(Line):
        def condition(self, seen: Observations, *, seed: int) -> Line:
            if len(seen) > 4:
                raise AssertionError("asked for its opinion")
            return self

    places = [0.5, 0.1, 0.9, 0.3, 0.7, 0.2, 0.6]
    mixture = council(UP, Broken(-1.0)).condition(seen(places, places), seed=0)
    assert isinstance(mixture, MixturePosterior)
    assert len(mixture.experts) == 1
    assert mixture.weights.tolist() == [1.0]


def test_a_single_expert_is_believed_alone() -> None:
    alone = AutoSurrogate(("nothing",), (UP,), np.zeros(1), np.array([False]))
    told = seen([0.1, 0.5, 0.9], [3.0, 2.0, 1.0])
    assert alone.weights(told).tolist() == [1.0]
    np.testing.assert_allclose(alone.condition(told, seed=0).predict(at(0.4)).mean, [0.4])


def test_old_mistakes_are_forgotten() -> None:
    """Only the last two blocks count: 16 trials in order make up for 8 in disorder."""
    rng = np.random.default_rng(0)
    first, later = rng.random(8), rng.random(24)
    losses = [*(-first), *later]
    assert council(UP, DOWN).weights(seen([*first, *later], losses))[0] > 0.9


def test_the_last_two_blocks_count_together() -> None:
    """Of eight trials the third and fourth were foretold by two, the last four by four."""
    experts = (Line(1.0, 0.5), Line(-1.0, 0.5))
    places, losses = np.random.default_rng(0).random((2, 8))
    scores = [
        sum(
            order_score(expert.slope * places[:n], np.full(n, 0.5), losses[:n], known)
            for known, n in ((2, 4), (4, 8))
        )
        for expert in experts
    ]
    weights = council(*experts).weights(seen(places.tolist(), losses.tolist()))
    np.testing.assert_allclose(weights, softmax(scores))


LISTER = "adaptive-portfolio"


def learner(**makers: str) -> AutoLearner:
    return AutoLearner(
        taught={name: METHODS[name].learner for name in (LISTER, *makers.values())},
        from_nothing={"gcp": METHODS["gcp"].learner},
        lister=LISTER,
        trials=3,
    )


def test_the_latest_of_each_block_of_very_many_trials_weigh_the_experts() -> None:
    places = np.random.default_rng(0).random(16)
    losses = np.where(np.arange(16) < 12, -places, places)
    found = replace(council(UP, DOWN), most_judged=4).weights(seen(places, losses))
    # The blocks are trials 4 to 7 and 8 to 15; the latest four of each are judged.
    scores = [
        sum(
            order_score(slope * places[rows], np.full(4, UP.std), losses[rows], 0)
            for rows in (slice(4, 8), slice(12, 16))
        )
        for slope in (1.0, -1.0)
    ]
    np.testing.assert_allclose(found, softmax(scores))


def test_the_order_of_the_very_best_counts() -> None:
    """The best two of a hundred, of which Winsorised scores would say nothing."""
    places = np.concatenate([np.linspace(0.1, 0.9, 98), [0.0, 0.05]])
    swapped = np.concatenate([places[:98], [0.05, 0.0]])
    sharp = (Line(1.0, 1e-3), DOWN)
    right = council(*sharp).weights(seen(places, places))
    wrong = council(*sharp).weights(seen(places, swapped))
    odds = np.log(right[0] / right[1]) - np.log(wrong[0] / wrong[1])
    assert odds > 0.05


def test_without_experience_it_opens_spread_out() -> None:
    prior = learner().learn(None, seed=4, progress=SILENT)
    first = prior.opening(Target(SPACE))
    assert first == SPACE.sample(3, seed=4, how="sobol")
    assert len(prior.reserve(Target(SPACE))) == 0
    assert list(prior.experts) == ["gcp"]
    assert len(prior.known_good(Target(SPACE))) == 0
    assert prior.spreads
    assert prior.space is None


def test_a_saved_prior_without_experience_opens_alike(tmp_path) -> None:
    prior = learner().learn(None, seed=4, progress=SILENT)
    prior.save(tmp_path / "prior")
    again = learner().load(tmp_path / "prior")
    assert again.opening(Target(SPACE)) == prior.opening(Target(SPACE))


def test_every_expert_learns_with_the_seed() -> None:
    seeds = []

    class Noting(PartLearner):
        def learn(self, experience, *, seed: int, progress) -> "Said":
            seeds.append(seed)
            return Said(UP)

    made = AutoLearner({}, {"one": Noting, "two": Noting}, LISTER)
    made.learn(None, seed=6, progress=SILENT)
    assert seeds == [6, 6]


def test_lessons_of_past_tasks_belong_to_their_space() -> None:
    prior = AutoPrior({}, frozenset(), at(0.5), at(0.5))
    assert prior.space == SPACE
    assert not prior.spreads
    other = Target(Space.of({"z": (0.0, 1.0)}))
    for ask in (prior.opening, prior.known_good):
        with refuses("prior-of-another-space", kind=MethodError):
            ask(other)


def test_a_saved_prior_says_the_same(tmp_path) -> None:
    bowls = problem("flat").experience
    made = learner(past="rgpe")
    prior = made.learn(bowls, seed=5, progress=SILENT)
    prior.save(tmp_path / "prior")
    again = made.load(tmp_path / "prior")
    assert isinstance(again, AutoPrior)
    assert (again.trials, again.seed) == (3, 5)
    target = Target(bowls.space)
    np.testing.assert_array_equal(prior.opening(target).x, again.opening(target).x)
    np.testing.assert_array_equal(prior.known_good(target).x, again.known_good(target).x)
    task = bowls.task(bowls.tasks[0])
    some = Observations(task.configs.take(np.arange(6)), task.losses[:6], np.zeros(6, dtype=bool))
    x = bowls.configs
    once = prior.surrogate(target).condition(some, seed=1).predict(x)
    twice = again.surrogate(target).condition(some, seed=1).predict(x)
    np.testing.assert_array_equal(once.mean, twice.mean)


def test_experts_that_cannot_learn_here_are_still_read(tmp_path) -> None:
    bowls = problem("flat").experience
    learner(past="rgpe").learn(bowls, seed=0, progress=SILENT).save(tmp_path / "prior")
    reader = replace(learner(), others={"rgpe": METHODS["rgpe"].learner})
    assert list(reader.load(tmp_path / "prior").experts) == [LISTER, "rgpe", "gcp"]


def test_experts_that_know_the_target_alone_are_of_today(tmp_path) -> None:
    """A prior that was saved with another one is read, and the better one has its place."""
    bowls = problem("flat").experience
    earlier = replace(learner(), from_nothing={"gp": METHODS["gp"].learner})
    earlier.learn(bowls, seed=0, progress=SILENT).save(tmp_path / "prior")
    again = learner().load(tmp_path / "prior")
    assert list(again.experts) == [LISTER, "gcp"]
    assert again.taught == {LISTER}


def test_experience_that_says_the_opposite_loses_its_weight() -> None:
    """Copula Thompson Sampling never looks at the trials, so turned past tasks mislead it."""
    bowls = problem("flat")
    turned = replace(bowls.experience, values=-bowls.experience.values)
    prior = learner(past="cts").learn(turned, seed=0, progress=SILENT)
    surrogate = prior.surrogate(bowls.target())
    assert isinstance(surrogate, AutoSurrogate)
    configs = bowls.space.sample(24, seed=3)
    losses = bowls.losses(configs)
    few = Observations(configs.take(np.arange(2)), losses[:2], np.zeros(2, dtype=bool))
    many = Observations(configs, losses, np.zeros(24, dtype=bool))
    assert surrogate.weights(few)[surrogate.taught].sum() > 0.5
    assert surrogate.weights(many)[surrogate.taught].sum() < 0.5


def test_a_prior_may_bring_odds_of_its_own() -> None:
    bowls = problem("flat").experience
    prior = learner(past="rgpe").learn(bowls, seed=0, progress=SILENT)
    surrogate = prior.surrogate(Target(bowls.space))
    assert isinstance(surrogate, AutoSurrogate)
    modest = prior.experts[LISTER]
    own = modest.odds(Target(bowls.space))
    np.testing.assert_allclose(np.exp(surrogate.log_prior), [own, 1.0, ODDS_OF_NOTHING])


def test_the_cheapest_on_past_tasks_comes_first() -> None:
    bowls = problem("flat").experience
    seconds = 10.0 - bowls.config_index.astype(np.float32)
    timed = replace(bowls, seconds=seconds)
    first = bowls.configs.take([1, 4, 2])
    np.testing.assert_array_equal(
        cheapest_first(first, timed).values, bowls.configs.take([4, 2, 1]).values
    )
    untimed = replace(bowls, seconds=np.full_like(seconds, np.nan))
    np.testing.assert_array_equal(cheapest_first(first, untimed).values, first.values)


def test_the_cost_of_a_configuration_is_its_mean_over_past_tasks() -> None:
    """The first took 1 and 9 seconds, the second 4 both times, and once nobody looked."""
    bowls = problem("flat").experience
    seconds = np.full(len(bowls.config_index), np.nan, dtype=np.float32)
    for row, cost in ((0, (1.0, 9.0)), (3, (4.0, 4.0))):
        seconds[np.flatnonzero(bowls.config_index == row)[:2]] = cost
    timed = replace(bowls, seconds=seconds)
    np.testing.assert_array_equal(
        cheapest_first(bowls.configs.take([0, 3]), timed).values, bowls.configs.take([3, 0]).values
    )


def test_the_lister_names_good_configurations_and_the_opening() -> None:
    bowls = problem("flat").experience
    whole = METHODS["auto"].learner()
    assert isinstance(whole, AutoLearner)
    # The networks of the others would only take their time.
    alone = replace(whole, taught={whole.lister: whole.taught[whole.lister]})
    prior = alone.learn(bowls, seed=0, progress=SILENT)
    assert isinstance(prior, AutoPrior)
    lister = prior.experts["adaptive-portfolio"]
    assert isinstance(lister, AdaptivePrior)
    np.testing.assert_array_equal(
        prior.known_good(Target(bowls.space)).values, lister.configs.values
    )
    assert prior.opening(Target(bowls.space)) == lister.portfolio(3)
    assert prior.reserve(Target(bowls.space)) == lister.portfolio(RESERVE)
    timed = replace(bowls, seconds=10.0 - bowls.config_index.astype(np.float32))
    opening = alone.learn(timed, seed=0, progress=SILENT).opening(Target(bowls.space))
    assert opening == cheapest_first(lister.portfolio(3), timed) != lister.portfolio(3)


class TestGreed:
    def test_the_first_trials_go_where_the_best_is_expected(self) -> None:
        told = seen([0.2, 0.4, 0.6, 0.8], [0.2, 0.4, 0.6, 0.8])
        places = at(0.1, 0.5, 0.9)
        posterior = council(UP, DOWN, greedy=9).condition(told, seed=0)
        expected = -posterior.predict(places).mean
        np.testing.assert_allclose(posterior.log_utility(places), expected)
        assert int(np.argmax(expected)) == 0

    def test_later_ones_are_weighed_against_what_is_not_known(self) -> None:
        told = seen([0.2, 0.4, 0.6], [0.2, 0.4, 0.6])
        posterior = council(UP, UP, greedy=3).condition(told, seed=0)
        assert not posterior.greedy
        expected = UP.log_improvement(at(0.1))
        np.testing.assert_allclose(posterior.log_utility(at(0.1)), expected)

    def test_the_number_of_greedy_trials_is_limited(self) -> None:
        told = seen([0.2, 0.4, 0.6], [0.2, 0.4, 0.6])
        assert council(UP, DOWN).condition(told, seed=0).trusts_past
        assert council(UP, DOWN, greedy=4).condition(told, seed=0).greedy
        assert not council(UP, DOWN, greedy=3).condition(told, seed=0).greedy

    def test_nobody_is_greedy_by_a_past_that_misleads(self) -> None:
        told = seen([0.2, 0.4, 0.6, 0.8], [0.2, 0.4, 0.6, 0.8])
        assert not council(DOWN, UP, greedy=9).condition(told, seed=0).greedy
        assert council(UP, DOWN, greedy=9).condition(told, seed=0).greedy

    def test_only_a_described_task_in_a_whole_space_is_begun_greedily(self) -> None:
        prior = AutoPrior({"past": Said(UP)}, frozenset({"past"}), at(0.5))
        described, pool = {"log_rows": 5.0}, at(0.1, 0.2)
        assert prior.surrogate(Target(SPACE, meta_features=described)).greedy_trials == 10
        assert prior.surrogate(Target(SPACE)).greedy_trials == 0
        listed = Target(SPACE, pool=pool, meta_features=described)
        assert prior.surrogate(listed).greedy_trials == 0


@dataclass(frozen=True)
class Said(PartPrior):
    """A prior whose surrogate is given."""

    line: Line

    def surrogate(self, target: Target) -> Line:
        return self.line


def test_several_objectives_are_judged_by_the_weights_of_who_foretold_them() -> None:
    """The first objective rises along a and the second falls, so that on average all is level."""
    places = np.linspace(0.05, 0.95, 16)
    losses = np.column_stack([places, -places])
    told = Observations(at(*places), losses, np.zeros(16, dtype=bool))
    for slope, weights in ((1.0, (1.0, 0.0)), (-1.0, (0.0, 1.0))):
        right = OfOneObjective(slope, weights=weights)
        wrong = OfOneObjective(-slope, weights=weights)
        assert council(right, wrong).weights(told)[0] > 0.99
    assert council(UP, DOWN).weights(told)[0] == pytest.approx(0.5)


def test_whom_past_tasks_taught_may_weigh_tasks_and_judges_objectives_all_the_same() -> None:
    """What its posterior calls its weights are those of five tasks, not of the two objectives."""
    places = np.linspace(0.05, 0.95, 9)
    known = AdaptivePrior(at(*places), np.stack([places + shift for shift in range(5)]))
    told = Observations(at(*places), np.column_stack([places, places]), np.zeros(9, dtype=bool))
    assert council(known.surrogate(Target(SPACE)), DOWN).weights(told)[0] > 0.99
