from dataclasses import dataclass, field

import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import OrdinalHyperparameter

from foretune.methods.contracts import Observations, Posterior, Region, Surrogate, Target
from foretune.search import Design, Method, Optimizer, Told, candidates, method
from foretune.search.candidates import (
    CLIMBERS,
    LEAPS,
    SAMPLES_PER_ASK,
    SPACING,
    VICINITY,
    Pool,
    WholeSpace,
    nearest,
)
from foretune.space import Encoded, Space
from tests.methods.doubles import PartPrior

SPACE = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0)})
NOTHING = SPACE.from_values(np.empty((0, 2)))


@dataclass(frozen=True)
class LowerLeft(Region):
    """The quarter in which both are below one half."""

    def contains(self, x: Encoded) -> np.ndarray:
        return (x.x < 0.5).all(axis=1)

    def sample(self, n: int, *, seed: int) -> Encoded:
        return SPACE.from_unit(np.random.default_rng(seed).uniform(0, 0.5, (n, 2)))


def far_right(x: Encoded) -> np.ndarray:
    return x.x[:, 0]


def test_the_best_of_a_pool_is_its_highest_score_that_is_untried() -> None:
    pool = SPACE.sample(20, seed=0)
    order = np.argsort(-pool.x[:, 0])
    choice = Pool(pool).best(far_right, pool.take(order[:2]), NOTHING, seed=0)
    assert choice.pool_index == order[2]


@pytest.mark.parametrize("known", [None, SPACE.sample(30, seed=1)])
def test_scores_that_are_drawn_by_chance_are_asked_for_once(known: Encoded | None) -> None:
    lists = []

    def draws(x: Encoded) -> np.ndarray:
        lists.append(x)
        return np.random.default_rng(len(lists)).random(len(x))

    choice = WholeSpace(SPACE, known=known).best_of_one_list(draws, NOTHING, seed=0)
    [drawn] = lists
    assert len(drawn) == (SAMPLES_PER_ASK if known is None else 30)
    highest = np.random.default_rng(1).random(len(drawn)).argmax()
    np.testing.assert_array_equal(choice.config.values[0], drawn.values[highest])


def a_alone(x: Encoded) -> Encoded:
    """The configurations as if `b` were 0: it has no effect."""
    return SPACE.from_values(x.values * [1.0, 0.0])


class TestWithoutEffect:
    def test_differences_without_effect_are_not_new(self) -> None:
        known = SPACE.from_values(np.array([[0.9, 0.1], [0.9, 0.8], [0.3, 0.5]]))
        tried = known.take([0])
        plain = WholeSpace(SPACE, known=known).best(far_right, tried, NOTHING, seed=0)
        told = WholeSpace(SPACE, known=known, effect=a_alone)
        assert plain.config.values.tolist() == [[0.9, 0.8]]
        assert told.best(far_right, tried, NOTHING, seed=0).config.values.tolist() == [[0.3, 0.5]]

    def test_neighbours_keep_their_distance_where_it_has_an_effect(self) -> None:
        known = SPACE.from_values(np.array([[0.0, 0.0], [0.1, 0.0]]))
        tried = SPACE.from_values(np.array([[0.45, 0.1], [0.95, 0.9]]))
        source = WholeSpace(SPACE, known=known, effect=a_alone)
        for seed in range(10):
            [a, _] = source.best(far_right, tried, tried.take([0]), seed=seed).config.values[0]
            assert a == pytest.approx(0.1)  # no step is far enough from both trials

    def test_when_all_is_known_in_effect_an_untried_one_is_taken(self) -> None:
        known = SPACE.from_values(np.array([[0.9, 0.1], [0.9, 0.8]]))

        def nothing_matters(x: Encoded) -> Encoded:
            return SPACE.from_values(x.values * 0.0)

        source = WholeSpace(SPACE, known=known, effect=nothing_matters, samples=20)
        choice = source.best(far_right, known.take([0]), NOTHING, seed=0)
        assert not choice.config.isin(known.take([0])).any()


def test_ties_are_broken_by_the_seed() -> None:
    pool = SPACE.sample(20, seed=0)
    rows = {
        Pool(pool).best(lambda x: np.zeros(len(x)), NOTHING, NOTHING, seed=s).pool_index
        for s in range(9)
    }
    assert len(rows) > 3


def test_a_region_is_kept_to_while_it_lasts() -> None:
    pool = SPACE.encode([{"a": 0.2, "b": 0.2}, {"a": 0.9, "b": 0.9}])
    candidates = Pool(pool, LowerLeft())
    first = candidates.best(far_right, NOTHING, NOTHING, seed=0)
    assert first.pool_index == 0
    assert candidates.best(far_right, first.config, NOTHING, seed=0).pool_index == 1


@pytest.mark.parametrize("how", ["draw", "best"])
def test_a_region_of_the_whole_space_is_never_left(how: str) -> None:
    candidates = WholeSpace(SPACE, LowerLeft(), samples=100)
    for seed in range(10):
        if how == "draw":
            choice = candidates.draw(NOTHING, seed=seed, how="random", index=0)
        else:
            choice = candidates.best(far_right, NOTHING, SPACE.sample(3, seed=seed), seed=seed)
        assert LowerLeft().contains(choice.config).all()


@dataclass(frozen=True)
class OnePoint(LowerLeft):
    """A region that one trial exhausts."""

    def sample(self, n: int, *, seed: int) -> Encoded:
        return SPACE.from_unit(np.full((n, 2), 0.25))


def test_an_exhausted_region_gives_way_to_the_whole_space() -> None:
    candidates = WholeSpace(SPACE, OnePoint(), samples=100)
    first = candidates.draw(NOTHING, seed=0, how="random", index=0)
    assert first.config.x.tolist() == [[0.25, 0.25]]
    second = candidates.draw(first.config, seed=0, how="random", index=0)
    assert (second.config.x != first.config.x).all()  # no neighbour of the first


def test_the_best_of_a_space_is_found_by_climbing() -> None:
    def peak(x: Encoded) -> np.ndarray:
        return -np.square(x.x - [0.123, 0.777]).sum(axis=1)

    choice = WholeSpace(SPACE, samples=50).best(peak, NOTHING, NOTHING, seed=1)
    np.testing.assert_allclose(choice.config.x[0], [0.123, 0.777], atol=0.01)


def test_local_searches_start_from_the_best_samples_and_from_good_trials(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    begun = []

    def stay(starts: Encoded, score: object, *, seed: int, **_: object) -> Encoded:
        begun.append(starts)
        return starts

    monkeypatch.setattr(candidates, "climb", stay)
    good = SPACE.from_unit(np.array([[0.1, 0.1]]))
    choice = WholeSpace(SPACE, samples=100).best(far_right, NOTHING, good, seed=0)
    [starts] = begun
    assert starts.x[:CLIMBERS, 0].min() > 0.8
    assert starts.take(np.arange(CLIMBERS, len(starts))) == good
    assert choice.config.x[0, 0] == starts.x[:, 0].max()


def test_a_region_holds_for_what_is_near_good_trials_too() -> None:
    """The top lies beyond the region, in reach of a step as of what refines."""
    source = WholeSpace(SPACE, LowerLeft(), known=SPACE.from_unit(np.array([[0.1, 0.1]])))
    good = SPACE.from_unit(np.array([[0.3, 0.3]]))
    far_away = SPACE.from_unit(np.full((LEAPS, 2), 0.99))
    for tried, top in ((good, 0.9), (Encoded.concat([good, far_away]), 0.6)):
        choice = source.best(lambda x, top=top: -abs(x.x[:, 0] - top), tried, good, seed=0)
        assert LowerLeft().contains(choice.config).all()


def test_known_configurations_and_neighbours_come_before_corners() -> None:
    known = SPACE.from_unit(np.array([[0.2, 0.2], [0.6, 0.3], [0.4, 0.9]]))
    source = WholeSpace(SPACE, known=known)
    first = source.best(far_right, NOTHING, NOTHING, seed=0).config
    np.testing.assert_array_equal(first.x, [[0.6, 0.3]])
    near = source.best(far_right, first, first, seed=0).config
    assert near.x[0, 0] >= 0.6
    assert np.linalg.norm(near.x - first.x) >= SPACING
    assert source.best(far_right, known, NOTHING, seed=0).config.x[0, 0] > 0.95


def test_a_step_to_the_next_listed_choice_is_far_enough_and_to_the_next_number_is_not() -> None:
    rank = OrdinalHyperparameter("rank", [1, 2, 4, 8, 16, 32])
    space = Space.of(ConfigurationSpace({"rank": rank, "number": (1, 100)}))
    first = space.encode([{"rank": 4, "number": 50}])
    worst = space.encode([{"rank": 32, "number": 100}])

    def low(x: Encoded) -> np.ndarray:
        return -x.x.sum(axis=1)

    source = WholeSpace(space, known=worst)
    steps = [source.best(low, first, first, seed=seed).config.dicts()[0] for seed in range(5)]
    assert steps == [{"rank": 2, "number": 50}] * 5


def test_a_step_between_listed_choices_is_far_enough_where_a_number_is_not_active() -> None:
    space = Space.of({"kind": {"plain": {}, "deep": {"depth": (1, 100)}}, "n": (1, 100)})
    rank = OrdinalHyperparameter("rank", [1, 2, 4, 8, 16, 32])
    space.config_space.add(rank)
    space = Space.of(space.config_space)
    first = space.encode([{"kind": "plain", "n": 50, "rank": 4}])
    worst = space.encode([{"kind": "plain", "n": 100, "rank": 32}])

    def low(x: Encoded) -> np.ndarray:
        return np.array([-config["rank"] for config in x.dicts()])

    step = WholeSpace(space, known=worst).best(low, first, first, seed=0).config.dicts()[0]
    assert step == {"kind": "plain", "n": 50, "rank": 2}


class TestRefinement:
    KNOWN = SPACE.from_unit(np.array([[0.9, 0.9]]))
    GOOD = SPACE.from_unit(np.array([[0.3, 0.3]]))

    def best(self, top: list[float], trials: int) -> np.ndarray:
        """The choice after so many trials, where the score has its top there."""
        elsewhere = SPACE.from_unit(np.full((trials - 1, 2), 0.99))

        def peak(x: Encoded) -> np.ndarray:
            return -np.square(x.x - top).sum(axis=1)

        tried = Encoded.concat([self.GOOD, elsewhere])
        return WholeSpace(SPACE, known=self.KNOWN).best(peak, tried, self.GOOD, seed=0).config.x[0]

    def test_after_some_trials_the_vicinity_of_good_ones_is_searched(self) -> None:
        np.testing.assert_allclose(self.best([0.4, 0.45], LEAPS), [0.4, 0.45], atol=0.02)

    def test_before_that_steps_are_long(self) -> None:
        assert np.linalg.norm(self.best([0.4, 0.45], LEAPS - 1) - 0.3) >= SPACING

    def test_distant_configurations_are_left_to_known_ones(self) -> None:
        assert np.linalg.norm(np.array([0.8, 0.8]) - 0.3) > VICINITY
        np.testing.assert_array_equal(self.best([0.8, 0.8], LEAPS), [0.9, 0.9])


def test_nearest_members() -> None:
    members = SPACE.encode([{"a": 0.0, "b": 0.0}, {"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 0.0}])
    wanted = SPACE.encode([{"a": 0.9, "b": 0.2}, {"a": 0.1, "b": 0.1}])
    assert nearest(wanted, members).tolist() == [2, 0]


@dataclass(frozen=True)
class OpeningPrior(PartPrior, Surrogate):
    """Opens with three configurations; nothing else."""

    wanted: list[dict[str, float]] = field(
        default_factory=lambda: [{"a": 0.1, "b": 0.1}, {"a": 0.12, "b": 0.1}, {"a": 0.9, "b": 0.9}]
    )

    def opening(self, target: Target) -> Encoded:
        return target.space.encode(self.wanted)

    def surrogate(self, target: Target) -> Surrogate:
        return self

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        raise AssertionError("not asked in this test")


def opener() -> Method:
    return Method("opener", "", method("random").learner, design=Design("random", None))


def test_a_prior_opens_the_search() -> None:
    optimizer = Optimizer(Target(SPACE), opener(), OpeningPrior())
    assert [s.config for s in optimizer.ask(3)] == OpeningPrior().wanted
    assert optimizer.ask()[0].reason == "random"


def test_past_tasks_open_a_search_after_any_number_of_trials() -> None:
    optimizer = Optimizer(Target(SPACE), opener(), OpeningPrior())
    optimizer.tell([Told(1.0, config=config) for config in SPACE.sample(9, seed=0).dicts()])
    assert [s.config for s in optimizer.ask(3)] == OpeningPrior().wanted


def test_in_a_pool_the_nearest_members_open_once_each() -> None:
    pool = SPACE.encode([{"a": 0.8, "b": 0.8}, {"a": 0.5, "b": 0.5}, {"a": 0.1, "b": 0.0}])
    optimizer = Optimizer(Target(SPACE, pool=pool), opener(), OpeningPrior())
    suggestions = optimizer.ask(3)
    assert [s.pool_index for s in suggestions] == [2, 0, 1]
    assert [s.reason for s in suggestions] == ["start", "start", "random"]


CHOICE = Space.of({"model": {"a": {"x": (0.0, 1.0)}, "b": {"y": (0.0, 1.0)}, "c": {}}})


@pytest.mark.parametrize("pooled", [False, True])
def test_drawing_per_algorithm_takes_each_in_turn(pooled: bool) -> None:
    """`c` has one configuration only; once it is tried, the others take its turns."""
    samples = CHOICE.sample(60, seed=0)
    pool = samples.take(samples.first_occurrences())
    source = Pool(pool) if pooled else WholeSpace(CHOICE)
    tried, drawn = pool.take([]), []
    for number in range(7):
        choice = source.draw(tried, seed=number, how="per-algorithm", index=0)
        drawn.append(choice.config.dicts()[0]["model"])
        tried = Encoded.concat([tried, choice.config])
    assert drawn == ["a", "b", "c", "a", "b", "a", "b"]


def test_a_design_per_algorithm_has_so_many_trials_of_each() -> None:
    chosen = Method("test", "", method("rf").learner, design=Design("per-algorithm", 2))
    optimizer = Optimizer(Target(CHOICE), chosen, chosen.learn(None, seed=0))
    reasons = []
    for number in range(8):
        suggestion = optimizer.ask()[0]
        reasons.append(suggestion.reason)
        optimizer.tell([Told((float(number),), id=suggestion.id)])
    assert reasons == ["per-algorithm"] * 6 + ["ei"] * 2
