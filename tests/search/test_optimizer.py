import pickle
import warnings
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from foretune.errors import (
    ExhaustedError,
    ExperienceError,
    ForetuneError,
    MethodError,
    SpaceError,
    UsageError,
)
from foretune.experience import Direction, Experience, Metric, Status
from foretune.methods.contracts import (
    Observations,
    Posterior,
    Prediction,
    Prior,
    Region,
    Surrogate,
    Target,
)
from foretune.methods.wrapped import WrappedPrior
from foretune.search import Optimizer, Suggestion, Told, method
from foretune.search.candidates import ChosenConfig, WholeSpace
from foretune.search.local_search import Score
from foretune.search.method_entry import Design
from foretune.search.pending_values import with_beliefs
from foretune.space import Encoded, Space
from tests.methods.doubles import PartPosterior, PartPrior
from tests.refusals import refuses, warns

SPACE = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0)})
OTHER = Space.of({"a": (0.0, 1.0), "z": (0, 5)})


def make(name: str = "gp", *, space: Space = SPACE, seed: int = 0, **settings: object) -> Optimizer:
    target = Target(space, **{k: v for k, v in settings.items() if k in ("pool", "objectives")})
    chosen = method(name)
    start = settings.get("start")
    assert start is None or isinstance(start, Encoded)
    return Optimizer(target, chosen, chosen.learn(None, seed=0), seed=seed, start=start)


def bowl(config: dict[str, float]) -> float:
    return (config["a"] - 0.7) ** 2 + (config["b"] - 0.2) ** 2


def tune(optimizer: Optimizer, trials: int, loss=bowl) -> list[float]:
    losses = []
    for _ in range(trials):
        suggestion = optimizer.ask()[0]
        losses.append(loss(suggestion.config))
        optimizer.tell([Told((losses[-1],), id=suggestion.id)])
    return losses


def test_gp_comes_close_to_the_minimum_of_a_bowl_in_twenty_trials() -> None:
    assert min(tune(make("gp"), 20)) < 1e-4


def test_forest_beats_random_search_on_a_bowl() -> None:
    forest = [min(tune(make("rf", seed=seed), 20)) for seed in range(2)]
    random = [min(tune(make("random", seed=seed), 20)) for seed in range(2)]
    assert np.mean(forest) < np.mean(random)


def test_the_best_trial_is_the_first_of_the_least_loss() -> None:
    optimizer = make("random")
    told = [(0.3, 0.1), (0.2, 0.4), (float("nan"), 0.5), (0.2, 0.6)]
    optimizer.tell([Told(loss, config={"a": a, "b": 0.0}) for loss, a in told])
    optimizer.ask()
    assert optimizer.best == Told((0.2,), config={"a": 0.4, "b": 0.0})
    assert [each.config["a"] for each in optimizer.front] == [0.4, 0.6]


def test_several_objectives_have_a_front_and_no_best() -> None:
    optimizer = make("random", objectives=("error", "seconds"))
    told = [(3.0, 1.0), (2.0, 2.0), (2.5, 2.0), (float("nan"), 0.0), (1.0, 5.0), (1.0, 6.0)]
    optimizer.tell([Told(each, config={"a": 0.1 * n, "b": 0.0}) for n, each in enumerate(told)])
    assert [each.losses for each in optimizer.front] == [(3.0, 1.0), (2.0, 2.0), (1.0, 5.0)]
    assert np.isnan(optimizer.told.losses[3]).all()  # it failed, whatever else was measured
    with refuses("best-of-one-objective", value=("error", "seconds"), kind=UsageError):
        _ = optimizer.best


def test_without_a_trial_that_succeeded_there_is_no_best() -> None:
    optimizer = make("random")
    assert optimizer.front == []
    optimizer.tell([Told(float("nan"), config={"a": 0.5, "b": 0.5})])
    with refuses("no-success", field="told", value=1, kind=UsageError):
        _ = optimizer.best


def test_methods_without_an_explanation_say_nothing() -> None:
    optimizer = make("random")
    assert optimizer.explain() == ""
    tune(optimizer, 2)
    assert optimizer.explain() == ""


def test_before_a_trial_has_succeeded_there_is_nothing_to_explain() -> None:
    optimizer = make("auto")
    optimizer.tell([Told(float("nan"), config={"a": 0.5, "b": 0.5})])
    assert optimizer.explain() == ""
    tune(optimizer, 1)
    assert optimizer.explain()


def test_ask_changes_nothing_but_what_is_pending() -> None:
    once, twice = make(), make()
    for optimizer in (once, twice):
        tune(optimizer, 7)
    first = once.ask()[0]
    a, b = twice.ask(2)
    assert first.config == a.config
    assert a.config != b.config
    assert len(twice.told) == 7
    assert list(twice.pending) == [7, 8]


def test_every_suggestion_has_randomness_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    seeds = []

    def draw(self: WholeSpace, tried: Encoded, *, seed: int, how: str, index: int) -> ChosenConfig:
        seeds.append(seed)
        return ChosenConfig(SPACE.sample(1, seed=seed))

    monkeypatch.setattr(WholeSpace, "draw", draw)
    optimizer = make("random")
    first, _ = optimizer.ask(2)
    optimizer.tell([Told(1.0, id=first.id)])
    optimizer.ask()
    assert len(set(seeds)) == 3


@pytest.mark.parametrize("objectives", [("loss",), ("loss", "size")])
def test_a_caller_may_have_numpy_raise_whatever_it_notices(objectives: tuple[str, ...]) -> None:
    optimizer = make("auto", objectives=objectives)
    with np.errstate(all="raise"):
        for _ in range(10):
            [suggestion] = optimizer.ask()
            losses = (bowl(suggestion.config), suggestion.config["a"])[: len(objectives)]
            optimizer.tell([Told(losses, id=suggestion.id)])
        assert optimizer.explain()


def test_pending_trials_push_the_next_ones_away() -> None:
    optimizer = make()
    tune(optimizer, 6)
    alone = SPACE.encode([optimizer.ask()[0].config])
    others = SPACE.encode([s.config for s in optimizer.ask(3)])
    gaps = np.linalg.norm(others.x - alone.x, axis=1)
    # Without beliefs the next best candidate is a neighbour of the first in the local search.
    assert (gaps > 0.01).all()


def test_a_batch_forms_its_belief_of_what_was_told_once() -> None:
    optimizer, counted = make_counted()
    tune(optimizer, 6)
    counted.pending.clear()

    asked = optimizer.ask(3)
    assert counted.pending == [0, 1, 2]

    optimizer.tell([Told((1.0,), id=asked[0].id)])
    optimizer.ask()
    assert counted.pending == [0, 1, 2, 0, 2]


def make_counted() -> "tuple[Optimizer, Counted]":
    """An optimiser with a GP, and the surrogate that it uses."""
    gp = method("gp")
    prior = CountedPrior(gp.learn(None, seed=0))
    optimizer = Optimizer(Target(SPACE), gp, prior)
    return optimizer, prior.made[0]


class CountedPrior(WrappedPrior):
    """A prior that keeps the surrogates that it made."""

    def __init__(self, inner: Prior) -> None:
        self.inner = inner
        self.made: list[Counted] = []

    def surrogate(self, target: Target) -> Surrogate:
        self.made.append(Counted(self.inner.surrogate(target)))
        return self.made[-1]


class Counted(Surrogate):
    """A surrogate that notes how many pending trials it is conditioned on."""

    def __init__(self, surrogate: Surrogate) -> None:
        self.surrogate = surrogate
        self.pending: list[int] = []
        self.last: Observations

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        self.pending.append(int(seen.believed.sum()))
        self.last = seen
        return self.surrogate.condition(seen, seed=seed)


def test_pending_of_an_earlier_life_are_taken_over() -> None:
    alive = make()
    tune(alive, 6)
    pending = alive.ask(2)
    reborn = make()
    history = zip(alive.told.configs.dicts(), alive.told.losses, strict=True)
    reborn.tell(Told(tuple(loss), config=config) for config, loss in history)
    reborn.assume_pending(pending)
    assert reborn.ask()[0] == alive.ask()[0]


def test_regions_where_trials_fail_are_avoided() -> None:
    def attempt(optimizer: Optimizer) -> bool:
        suggestion = optimizer.ask()[0]
        failed = suggestion.config["a"] > 0.5
        status = Status.FAILED if failed else Status.DONE
        loss = (bowl(suggestion.config),)
        optimizer.tell([Told(loss, id=suggestion.id, status=status)])
        return failed

    optimizer = make()
    outcomes = [attempt(optimizer) for _ in range(30)]
    # The optimum lies where everything fails, so an optimiser that does not learn from failures
    # keeps going there.
    assert np.mean(outcomes[15:]) < 0.3


def test_the_start_comes_first_and_in_order() -> None:
    start = SPACE.encode([{"a": 0.1, "b": 0.1}, {"a": 0.9, "b": 0.9}])
    optimizer = make(start=start)
    suggestions = optimizer.ask(3)
    assert [s.config for s in suggestions[:2]] == start.dicts()
    assert [s.reason for s in suggestions] == ["start", "start", "random"]


def test_a_start_stands_in_for_the_design_and_for_the_opening() -> None:
    start = SPACE.encode([{"a": 0.1, "b": 0.1}, {"a": 0.9, "b": 0.9}, {"a": 0.1, "b": 0.1}])
    assert _reasons(make("gp", start=start), 4) == ["start", "start", "ei", "ei"]
    assert _reasons(make("random", start=start), 4) == ["start", "start", "random", "random"]
    assert _reasons(make("gp", start=start.take([])), 6) == ["random"] * 5 + ["ei"]


def test_configurations_removed_from_the_start_are_not_suggested() -> None:
    start = SPACE.encode([{"a": 0.1, "b": 0.1}, {"a": 0.9, "b": 0.9}])
    optimizer = make(start=start)
    optimizer.strike_start([{"a": 0.1, "b": 0.1}, {"a": 0.5, "b": 0.5}])
    optimizer.strike_start([])
    assert optimizer.ask()[0].config == {"a": 0.9, "b": 0.9}


def test_told_configurations_stay_on_the_start_list_and_count_for_no_design() -> None:
    class OpeningPrior(PartPrior):
        def opening(self, target: Target) -> Encoded:
            return SPACE.encode([{"a": 0.1, "b": 0.1}])

        def surrogate(self, target: Target) -> Surrogate:
            return method("gp").learn(None, seed=0).surrogate(target)

    optimizer = Optimizer(Target(SPACE), method("gp"), OpeningPrior(), seed=0)
    optimizer.tell([Told((1.0,), config={"a": 0.1, "b": 0.1})])
    optimizer.strike_start([{"a": 0.1, "b": 0.1}])
    assert _reasons(optimizer, 6) == ["random"] * 5 + ["ei"]


def test_trials_from_elsewhere_stand_in_for_a_spread_over_the_space() -> None:
    elsewhere = [{"a": share, "b": 1.0 - share} for share in (0.1, 0.2, 0.3, 0.4, 0.45)]

    def chosen_after(trials: list[dict[str, float]]) -> list[str]:
        optimizer = make("auto")
        optimizer.tell(Told((bowl(config),), config=config) for config in trials)
        return _reasons(optimizer, 6)

    spread, model = "start", "mixture-ei"
    assert chosen_after([]) == [spread] * 5 + [model]
    assert chosen_after(elsewhere[:2]) == [spread] * 3 + [model] * 3
    assert chosen_after(elsewhere) == [model] * 6
    assert chosen_after(elsewhere[:1] * 9) == [spread] * 4 + [model] * 2  # one place is no spread


def test_who_goes_on_with_another_seed_spreads_no_more_trials() -> None:
    first, second = (Optimizer.of(SPACE, seed=seed) for seed in (0, 1))
    for _ in range(5):
        [suggestion] = first.ask()
        outcome = Told((bowl(suggestion.config),), config=suggestion.config)
        first.tell([outcome])
        second.tell([outcome])
    assert _reasons(second, 2) == ["mixture-ei"] * 2


def test_another_start_replaces_what_a_prior_opens_with() -> None:
    past = Experience.from_matrix(
        SPACE,
        SPACE.sample(4, seed=0),
        ["one", "two"],
        [Metric("loss")],
        {"loss": np.arange(8.0).reshape(2, 4)},
    )
    chosen = method("ws-gp")
    prior = chosen.learn(past, seed=0)
    start = SPACE.encode([{"a": 0.1, "b": 0.1}])
    own = Optimizer(Target(SPACE), chosen, prior).ask()[0]
    other = Optimizer(Target(SPACE), chosen, prior, start=start).ask()[0]
    assert own.config == past.configs.dicts()[0]
    assert other.config == start.dicts()[0]


def test_a_method_that_reads_meta_features_refuses_a_target_without() -> None:
    chosen = method("as-ml")
    prior = method("random").learn(None, seed=0)
    with refuses("needs-meta-features", value="as-ml", kind=MethodError):
        Optimizer(Target(SPACE), chosen, prior)
    assert Optimizer(Target(SPACE, meta_features={"rows": 10.0}), chosen, prior).ask()


def _reasons(optimizer: Optimizer, trials: int) -> list[str]:
    reasons = []
    for _ in range(trials):
        suggestion = optimizer.ask()[0]
        reasons.append(suggestion.reason)
        optimizer.tell([Told((bowl(suggestion.config),), id=suggestion.id)])
    return reasons


def test_choosing_among_given_ones_leaves_the_start_waiting_and_the_design_as_long() -> None:
    start = SPACE.sample(4, seed=0)
    optimizer = make("gp", start=start)
    reasons = []
    for number in range(3):
        [suggestion] = optimizer.ask(among=SPACE.sample(20, seed=number + 1))
        reasons.append(suggestion.reason)
        optimizer.tell([Told(bowl(suggestion.config), id=suggestion.id)])
    assert reasons == ["random", "ei", "ei"]  # nothing was told before the first
    assert [s.config for s in optimizer.ask(4)] == start.dicts()


def test_the_opening_of_a_prior_is_tried_once_before_the_model() -> None:
    grid = Space.of({"k": ["a", "b", "c", "d", "e"], "m": ["x", "y"]})
    auto = method("auto")
    prior = auto.learn(None, seed=2)
    opening = prior.opening(Target(grid))
    different = len(opening.first_occurrences())
    assert different < len(opening)

    optimizer = Optimizer(Target(grid), auto, prior, seed=2)
    reasons = []
    for number in range(different + 2):
        [suggestion] = optimizer.ask()
        reasons.append(suggestion.reason)
        optimizer.tell([Told(number % 3, id=suggestion.id)])
    assert reasons == ["start"] * different + ["mixture-ei"] * 2

    elsewhere = Optimizer(Target(grid), auto, prior, seed=2)
    others = (config for config in grid.sample(99, seed=0).dicts() if config not in opening.dicts())
    elsewhere.tell([Told(1.0, config=next(others)) for _ in range(2 * different)])
    assert elsewhere.ask()[0].reason == "mixture-ei"


def test_a_start_outside_the_pool_is_refused() -> None:
    pool = SPACE.sample(5, seed=0)
    with refuses("config-in-pool", value={"a": 0.5, "b": 0.5}, kind=UsageError):
        make(pool=pool, start=SPACE.encode([{"a": 0.5, "b": 0.5}])).ask()


def test_suggestions_of_a_pool_name_their_row() -> None:
    pool = SPACE.sample(8, seed=0)
    suggestion = make(pool=pool).ask()[0]
    assert suggestion.pool_index is not None
    assert suggestion.config == pool.dicts()[suggestion.pool_index]


def test_a_suggestion_among_given_ones_names_its_row_in_the_pool() -> None:
    pool = SPACE.sample(8, seed=0)
    [suggestion] = make(pool=pool).ask(among=pool.take([5, 6, 7]))
    assert suggestion.pool_index in (5, 6, 7)
    assert suggestion.config == pool.dicts()[suggestion.pool_index]
    with refuses("config-in-pool", kind=UsageError):
        make(pool=pool).ask(among=SPACE.sample(3, seed=1))


def test_without_a_pool_a_suggestion_among_given_ones_names_no_row() -> None:
    [suggestion] = make().ask(among=SPACE.sample(3, seed=1))
    assert suggestion.pool_index is None


@pytest.mark.parametrize(
    ("among", "rule"),
    [
        (OTHER.sample(3, seed=0), "another-space"),
        ([{"a": 0.5, "b": 0.5}], "not-encoded"),
    ],
)
def test_only_configurations_of_the_space_can_be_chosen_among(among: object, rule: str) -> None:
    optimizer = make("random")
    with refuses(rule, field="among", kind=UsageError):
        optimizer.ask(among=among)
    assert not optimizer.pending
    assert len(optimizer.ask(2)) == 2


def test_a_start_of_another_space_is_refused() -> None:
    with refuses("another-space", field="start", value=OTHER, kind=UsageError):
        make("random", start=OTHER.sample(3, seed=0))


def test_the_same_space_may_be_made_twice() -> None:
    again = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0)})
    pool = again.sample(3, seed=0)
    [suggestion] = make("random", pool=pool).ask(among=again.sample(3, seed=0).take([1]))
    assert suggestion.pool_index == 1
    assert make("random", start=pool).ask()[0].config == pool.dicts()[0]


def test_an_exhausted_pool_says_so() -> None:
    optimizer = make("random", pool=SPACE.sample(3, seed=0))
    optimizer.ask(3)
    with refuses("pool-exhausted", value=3, kind=ExhaustedError):
        optimizer.ask()


def test_an_exhausted_space_says_so() -> None:
    optimizer = make("random", space=Space.of({"c": ["x", "y"]}))
    optimizer.ask(2)
    with pytest.raises(ExhaustedError, match="widen the space"):
        optimizer.ask()


CONSTANT = Space.of({"a": 7, "b": (3, 3)})


@pytest.mark.parametrize("name", ["random", "sobol", "gp", "auto", "dre-ri"])
def test_a_constant_space_tries_its_one_configuration_once(name: str) -> None:
    optimizer = make(name, space=CONSTANT)
    [suggestion] = optimizer.ask()
    assert suggestion.config == {"a": 7, "b": 3}
    optimizer.tell([Told(0.5, id=suggestion.id)])
    with pytest.raises(ExhaustedError, match="widen the space"):
        optimizer.ask()


@pytest.mark.parametrize("how", ["random", "sobol"])
def test_a_grid_is_tried_to_its_last_configuration(how: str) -> None:
    """Also if random draws do not meet the last ones."""
    grid = Space.of({"a": (1, 6), "b": ["x", "y", "z"], "c": {"u": {"n": (1, 2)}, "v": {}}})
    source, tried = WholeSpace(grid, attempts=2, least_samples=1), grid.encode([])
    for index in range(6 * 3 * 3):
        choice = source.draw(tried, seed=index, how=how, index=index)
        assert not choice.config.isin(tried).any()
        tried = Encoded.concat([tried, choice.config])
    with refuses("space-exhausted", value=54, kind=ExhaustedError):
        source.draw(tried, seed=54, how=how, index=54)


def test_sobol_covers_every_quarter_with_four_draws() -> None:
    configs = make("sobol").ask(4)
    quarters = {(s.config["a"] > 0.5, s.config["b"] > 0.5) for s in configs}
    assert len(quarters) == 4


def test_several_objectives_are_told_together() -> None:
    optimizer = make("gcp", objectives=("error", "latency"))
    for _ in range(9):
        s = optimizer.ask()[0]
        optimizer.tell([Told((bowl(s.config), s.config["a"]), id=s.id)])
    assert optimizer.told.losses.shape == (9, 2)
    assert optimizer.ask()[0].reason == "ei"


def test_one_loss_may_be_told_as_a_number_and_a_status_as_its_own() -> None:
    optimizer = make("random")
    first, second = optimizer.ask(2)
    optimizer.tell([Told(0.5, id=first.id), Told((0.25,), id=second.id, status=0)])
    optimizer.tell([])
    assert optimizer.told.losses.tolist() == [[0.5], [0.25]]


@pytest.mark.parametrize("seed", [-3, 2**32, "a", None, 1.5, True])
def test_seeds_that_are_none_are_refused(seed: object) -> None:
    with refuses("not-a-seed", field="seed", value=seed, kind=UsageError):
        make("random", seed=seed).ask()
    with refuses("not-a-seed", field="seed", value=seed, kind=UsageError):
        method("gp").learn(None, seed=seed)


def test_the_largest_seed_is_one() -> None:
    assert make("random", seed=2**32 - 1).ask()


def test_wrong_outcomes_change_nothing() -> None:
    optimizer = make()
    suggestion = optimizer.ask()[0]
    wrong = [
        (Told((1.0, 2.0), id=suggestion.id), "one-loss-per-objective"),
        (Told(np.ones((1, 1)), id=suggestion.id), "one-loss-per-objective"),
        (Told((1.0,), id=99), "outcome-of-pending"),
        (Told((1.0,), id=[0]), "outcome-of-pending"),
        (Told((1.0,), id="0"), "outcome-of-pending"),
        (Told(True, id=suggestion.id), "not-a-number"),
        (Told((0.5, np.True_), id=suggestion.id), "not-a-number"),
        (Told((1.0,)), "outcome-names-trial"),
        (
            Told((1.0,), id=suggestion.id, config={"a": 0.3, "b": 0.3}),
            "outcome-of-suggested-config",
        ),
    ]
    for outcome, rule in wrong:
        with refuses(rule, kind=UsageError):
            optimizer.tell([Told((1.0,), config={"a": 0.3, "b": 0.3}), outcome])
    with refuses("illegal-value", field="a", kind=SpaceError):
        optimizer.tell([Told((1.0,), config={"a": 7.0, "b": 0.0})])
    assert len(optimizer.told) == 0
    assert list(optimizer.pending) == [suggestion.id]


def test_the_same_suggestion_told_twice_in_one_call_is_refused() -> None:
    optimizer = make()
    suggestion = optimizer.ask()[0]
    twice = [Told((1.0,), id=suggestion.id)] * 2
    with refuses("outcome-once", field="id", value=suggestion.id, kind=UsageError):
        optimizer.tell(twice)
    assert len(optimizer.told) == 0


def test_a_suggestion_told_by_its_configuration_is_pending_no_longer() -> None:
    by_id, by_config = make(), make()
    tune(by_id, 8)
    for _ in range(8):
        [suggestion] = by_config.ask()
        by_config.tell([Told((bowl(suggestion.config),), config=suggestion.config)])
    assert not by_config.pending
    assert by_config.ask(2) == by_id.ask(2)


def test_each_outcome_settles_one_suggestion() -> None:
    optimizer = make("random")
    same, other = {"a": 0.3, "b": 0.3}, {"a": 0.6, "b": 0.6}
    optimizer.assume_pending(
        [Suggestion(1, same, ""), Suggestion(2, other, ""), Suggestion(3, same, "")]
    )
    optimizer.tell([Told(0.5, config=same), Told(0.5, config={"a": 0.9, "b": 0.9})])
    assert list(optimizer.pending) == [2, 3]
    optimizer.tell([Told(0.5, config=same), Told(0.5, id=3, config=same)])
    assert list(optimizer.pending) == [2]


@pytest.mark.parametrize(
    ("ids", "left"), [([1], [2]), ([None], [2]), ([1, None], []), ([None, None], [])]
)
def test_equal_suggestions_are_settled_one_for_each_outcome(
    ids: list[int | None], left: list[int]
) -> None:
    optimizer = make("random")
    same = {"a": 0.3, "b": 0.3}
    optimizer.assume_pending([Suggestion(1, same, ""), Suggestion(2, same, "")])
    optimizer.tell([Told(0.5, id=id_, config=same) for id_ in ids])
    assert list(optimizer.pending) == left


@pytest.mark.parametrize("n", [0, 2.5, "3", True])
def test_asking_for_none_or_for_a_part_is_refused(n: object) -> None:
    with refuses("number-of-suggestions", field="n", value=n, kind=UsageError):
        make().ask(n)


def test_the_id_of_what_is_pending_is_not_taken_for_something_else() -> None:
    """Optimisers all count from 0: an outcome would be told of another's configuration."""
    optimizer = make("random")
    own = optimizer.ask(2)
    other = Suggestion(0, {"a": 0.3, "b": 0.3}, "elsewhere")
    with refuses("unique-id", field="id", value=0, kind=UsageError):
        optimizer.assume_pending([Suggestion(5, {"a": 0.6, "b": 0.6}, ""), other])
    optimizer.assume_pending(own)
    assert optimizer.pending == {each.id: each.config for each in own}


def test_no_id_is_given_twice_whatever_is_taken_meanwhile() -> None:
    optimizer = make("random")
    optimizer.ask(2)
    optimizer.assume_pending([Suggestion(-1, {"a": 0.3, "b": 0.3}, "elsewhere")])
    optimizer.assume_pending([])
    assert optimizer.ask()[0].id == 2


@pytest.mark.parametrize("given", [[{"a": 0.3, "b": 0.3}], 3, [3]])
def test_unknown_suggestions_are_refused(given) -> None:
    with refuses("list-of-one-kind", field="Suggestion", value=given, kind=UsageError):
        make("random").assume_pending(given)


@pytest.mark.parametrize(
    ("changes", "part", "given"),
    [
        ({"design": Design("soboll", 5)}, "design", "soboll"),
        ({"acquisition": "ucb"}, "acquisition", "ucb"),
    ],
)
def test_a_method_of_unknown_parts_is_refused(changes, part: str, given: str) -> None:
    """Else it would begin at random unseen, or end in the middle of a search."""
    with refuses("unknown-method-part", field=part, value=given):
        Optimizer.of({"a": (0.0, 1.0)}, method=replace(method("gp"), **changes))


def test_an_ask_that_fails_leaves_nothing_pending() -> None:
    optimizer = make(space=Space.of({"a": ["x", "y"], "b": [1, 2]}))
    [earlier] = optimizer.ask()
    with refuses("enough-untried-configs", field="n", value=8, kind=ExhaustedError):
        optimizer.ask(8)
    assert list(optimizer.pending) == [earlier.id]
    assert len(optimizer.ask(3)) == 3


def test_only_what_is_pending_can_be_withdrawn() -> None:
    optimizer = make()
    [suggestion] = optimizer.ask()
    with refuses("withdraw-pending", value=[5], kind=UsageError):
        optimizer.withdraw([suggestion.id, 5])
    with refuses("withdraw-pending", value=[[0]], kind=UsageError):
        optimizer.withdraw([suggestion.id, [0]])
    assert list(optimizer.pending) == [suggestion.id]
    optimizer.withdraw([suggestion.id, suggestion.id])
    assert not optimizer.pending


def test_a_whole_number_too_large_for_a_float_is_a_failure_as_an_infinite_loss_is() -> None:
    optimizer = make("random")
    first, second = optimizer.ask(2)
    optimizer.tell([Told(10**400, id=first.id), Told(np.inf, id=second.id)])
    assert np.isnan(optimizer.told.losses).all()


def test_beliefs_about_huge_losses_are_finite() -> None:
    optimizer, noted = make_counted()
    tune(optimizer, 6, lambda config: 1.7e308 * (2.0 * config["a"] - 1.0))
    noted.pending.clear()
    optimizer.ask(3)
    assert noted.pending == [0, 1, 2]
    assert np.isfinite(noted.last.losses).all()


def test_a_pending_trial_takes_the_expected_losses_of_several_objectives() -> None:
    target = Target(SPACE, ("near", "far"))
    a = np.linspace(0.0, 1.0, 9)
    configs = SPACE.encode([{"a": each, "b": 0.5} for each in a])
    told = Observations(configs, np.stack([a, 1.0 - a], axis=1), np.zeros(9, dtype=bool))
    surrogate = method("gcp-smooth").learn(None, seed=0).surrogate(target)
    pending = SPACE.encode([{"a": 0.06, "b": 0.5}])
    believed = with_beliefs(told, pending, surrogate.condition(told, seed=0)).losses[-1]
    np.testing.assert_allclose(believed, [0.06, 0.94], atol=0.05)


def test_a_status_may_be_told_by_its_name() -> None:
    optimizer = make()
    first, second = optimizer.ask(2)
    optimizer.tell(
        [Told(0.5, id=first.id, status="done"), Told(0.5, id=second.id, status="FAILED")]
    )
    np.testing.assert_array_equal(optimizer.told.losses, [[0.5], [np.nan]])


def test_a_trial_that_failed_needs_no_loss() -> None:
    optimizer = make("random")
    [suggestion] = optimizer.ask()
    optimizer.tell([Told(None, id=suggestion.id, status=Status.FAILED)])
    assert np.isnan(optimizer.told.losses).all()


@pytest.mark.parametrize(
    ("told", "rule"),
    [
        (Told(0.5), "list-of-one-kind"),
        ([(0, 0.5)], "list-of-one-kind"),
        ([Told("abc", config={"a": 0.3, "b": 0.3})], "not-a-number"),
        ([Told("0.5", config={"a": 0.3, "b": 0.3})], "not-a-number"),
        ([Told(None, config={"a": 0.3, "b": 0.3})], "not-a-number"),
        ([Told((0.5, None), config={"a": 0.3, "b": 0.3})], "not-a-number"),
        ([Told(np.array([None]), config={"a": 0.3, "b": 0.3})], "not-a-number"),
        ([Told(0.5, config={"a": 0.3, "b": 0.3}, status="ok")], "unknown-status"),
        ([Told(0.5, config={"a": 0.3, "b": 0.3}, status=None)], "unknown-status"),
    ],
)
def test_invalid_outcomes_are_refused(told: object, rule: str) -> None:
    optimizer = make()
    with refuses(rule, kind=UsageError):
        optimizer.tell(told)
    assert len(optimizer.told) == 0


@pytest.mark.parametrize(
    ("parts", "rule", "field"),
    [
        ({"space": {"a": (0.0, 1.0)}}, "not-a-space", "space"),
        ({"space": SPACE, "objectives": "loss"}, "list-not-text", "objectives"),
        ({"space": SPACE, "objectives": ()}, "distinct-objectives", "objectives"),
        ({"space": SPACE, "objectives": ("a", "a")}, "distinct-objectives", "objectives"),
        ({"space": SPACE, "pool": SPACE.encode([])}, "empty-pool", "pool"),
        ({"space": SPACE, "pool": OTHER.sample(3, seed=0)}, "another-space", "pool"),
        ({"space": SPACE, "pool": [{"a": 0.5, "b": 0.5}]}, "not-encoded", "pool"),
    ],
)
def test_a_target_is_made_of_what_it_needs(parts: dict[str, object], rule: str, field: str) -> None:
    with refuses(rule, field=field, kind=UsageError):
        Target(**parts)


@pytest.mark.parametrize("name", ["gp", "auto"])
def test_an_optimiser_that_was_pickled_goes_on_as_the_other(name: str) -> None:
    optimizer = make(name)
    tune(optimizer, 6)
    again = pickle.loads(pickle.dumps(optimizer))
    assert again.ask(2) == optimizer.ask(2)


@pytest.fixture
def looked(monkeypatch: pytest.MonkeyPatch) -> list[Encoded]:
    """What each ask starts local searches from, besides random samples."""
    looked: list[Encoded] = []

    def best(
        self: WholeSpace, score: Score, tried: Encoded, around: Encoded, *, seed: int
    ) -> ChosenConfig:
        looked.append(around)
        return ChosenConfig(tried.take([0]))

    monkeypatch.setattr(WholeSpace, "best", best)
    return looked


def test_nothing_is_looked_for_around_trials_on_a_plateau(looked: list[Encoded]) -> None:
    optimizer = make()
    told = [(0.1, 1.0), (0.2, 1.0), (0.3, 3.0), (0.4, 2.0), (0.5, 4.0), (0.6, 1.0)]
    optimizer.tell([Told((loss,), config={"a": a, "b": 0.5}) for a, loss in told])
    optimizer.ask()
    assert [config["a"] for config in looked[0].dicts()] == [0.4, 0.3, 0.5]


def test_the_unit_of_an_objective_does_not_change_its_weight(looked: list[Encoded]) -> None:
    """The trial that is second in everything comes before those that are best in one alone."""
    optimizer = make(objectives=("error", "milliseconds"))
    errors = [0.7, 0.2, 0.1, 0.3, 0.4, 0.5, 0.6]
    milliseconds = [100.0, 200.0, 700.0, 300.0, 400.0, 500.0, 600.0]
    for place, losses in enumerate(zip(errors, milliseconds, strict=True)):
        optimizer.tell([Told(losses, config={"a": place / 10, "b": 0.5})])
    optimizer.ask()
    assert [config["a"] for config in looked[0].dicts()] == [0.1, 0.3, 0.0, 0.2, 0.4]


# What a prior knows of the space


@dataclass(frozen=True)
class Falling(PartPrior, Surrogate, PartPosterior):
    """A prior, and all that comes of it: the loss falls with `a`, whatever was told."""

    trusts_past: bool = True
    best: float = 0.0

    def surrogate(self, target: Target) -> Surrogate:
        return self

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        return self

    def predict(self, x: Encoded) -> Prediction:
        return Prediction(-x.x[:, 0], np.ones(len(x)))

    def log_utility(self, x: Encoded) -> np.ndarray:
        return -self.predict(x).mean


@dataclass(frozen=True)
class LeftHalf(Region):
    def contains(self, x: Encoded) -> np.ndarray:
        return x.x[:, 0] < 0.5

    def sample(self, n: int, *, seed: int) -> Encoded:
        return SPACE.from_unit(np.random.default_rng(seed).random((n, 2)) * [0.5, 1.0])


class Bounding(Falling):
    def region(self, target: Target) -> Region:
        return LeftHalf()


class Knowing(Falling):
    def known_good(self, target: Target) -> Encoded:
        return SPACE.encode([{"a": 0.3, "b": 0.1}, {"a": 0.3, "b": 0.8}, {"a": 0.2, "b": 0.5}])


class KnowingAndBounding(Knowing, Bounding):
    pass


class Opened(Falling):
    """Opens with one configuration and has three more, of which the first is the same."""

    def opening(self, target: Target) -> Encoded:
        return LISTED.take([2])

    def reserve(self, target: Target) -> Encoded:
        return LISTED.take([2, 0, 1])


LISTED = SPACE.encode([{"a": a, "b": 0.7} for a in (0.1, 0.4, 0.9)])


def test_while_nothing_is_told_a_batch_goes_on_with_what_past_tasks_would() -> None:
    chosen = replace(method("random"), design=Design("random", 0), acquisition="own")
    batch = Optimizer(Target(SPACE), chosen, Opened()).ask(5)
    assert [each.config for each in batch[:3]] == LISTED.take([2, 0, 1]).dicts()
    assert [each.reason for each in batch] == ["start", "start", "start", "random", "random"]

    pool = Encoded.concat([SPACE.sample(3, seed=1), LISTED])
    pooled = Optimizer(Target(SPACE, pool=pool), chosen, Opened())
    assert [each.pool_index for each in pooled.ask(3)] == [5, 3, 4]
    pooled.tell([Told(np.nan, config=LISTED.dicts()[2])])
    assert pooled.ask()[0].reason == "random"  # the three are pending or failed

    asked = Optimizer(Target(SPACE), chosen, Opened())
    asked.tell([Told(1.0, id=asked.ask()[0].id)])
    assert asked.ask()[0].reason == "own"
    among = Optimizer(Target(SPACE), chosen, Opened()).ask(among=LISTED.take([0, 1]))
    assert among[0].reason == "random"


def by_what_is_expected(
    prior: Falling, told: list[dict[str, float]], **settings: object
) -> Optimizer:
    """An optimiser that was told equal losses: on a plateau nothing is looked for around trials."""
    chosen = replace(method("random"), design=Design("random", 0), acquisition="own")
    optimizer = Optimizer(Target(SPACE, **settings), chosen, prior)
    optimizer.tell([Told(1.0, config=config) for config in told])
    return optimizer


CORNERS = [{"a": 0.0, "b": 0.0}, {"a": 0.0, "b": 1.0}]


def test_a_prior_may_bound_the_search() -> None:
    assert by_what_is_expected(Falling(), CORNERS).ask()[0].config["a"] > 0.9
    assert 0.4 < by_what_is_expected(Bounding(), CORNERS).ask()[0].config["a"] < 0.5
    told = Knowing().known_good(Target(SPACE)).dicts()
    assert 0.4 < by_what_is_expected(KnowingAndBounding(), told).ask()[0].config["a"] < 0.5
    listed = by_what_is_expected(Bounding(), CORNERS, pool=LISTED)
    assert listed.ask()[0].pool_index == 1


def test_known_good_configurations_come_first_without_a_pool() -> None:
    known = Knowing().known_good(Target(SPACE)).dicts()
    assert by_what_is_expected(Knowing(), CORNERS).ask()[0].config in known
    assert by_what_is_expected(Knowing(), CORNERS, pool=LISTED).ask()[0].pool_index == 2


def test_who_trusts_the_past_no_more_looks_everywhere_or_among_what_is_given() -> None:
    misled = by_what_is_expected(Knowing(trusts_past=False), CORNERS)
    assert misled.ask()[0].config["a"] > 0.9
    assert misled.ask(among=LISTED.take([0, 1]))[0].config == LISTED.dicts()[1]


def test_differences_without_effect_are_not_tried() -> None:
    """As if `b` were of no effect, also where nothing is known of past tasks."""
    told = [{"a": 0.3, "b": 0.1}, {"a": 0.0, "b": 0.0}]
    known = by_what_is_expected(Knowing(), told, effect=a_alone).ask()[0].config
    assert known == {"a": 0.2, "b": 0.5}

    grid = Space.of({"a": (0, 3), "b": (0, 3)})
    chosen = replace(method("random"), design=Design("random", 0), acquisition="own")
    for seed in range(5):
        optimizer = Optimizer(Target(grid, effect=a_alone), chosen, Level(), seed=seed)
        optimizer.tell([Told(float(a), config={"a": a, "b": 0}) for a in (0, 1, 2)])
        assert optimizer.ask()[0].config["a"] == 3


def a_alone(x: Encoded) -> Encoded:
    return x.space.from_values(x.values * [1.0, 0.0])


class Level(Falling):
    def predict(self, x: Encoded) -> Prediction:
        return Prediction(np.zeros(len(x)), np.ones(len(x)))


class Drawing(Falling):
    """Draws another order of the space once it has seen a trial."""

    def condition(self, seen: Observations, *, seed: int) -> Posterior:
        return Drawing(best=float(len(seen)))

    def sample(self, x: Encoded, n: int, *, seed: int) -> np.ndarray:
        return np.tile(self.predict(x).mean * (-1.0 if self.best else 1.0), (n, 1))


def test_a_design_by_the_prior_draws_from_what_it_knew_before_any_trial() -> None:
    chosen = replace(method("random"), design=Design("prior", 2), acquisition="thompson")
    optimizer = Optimizer(Target(SPACE, pool=LISTED), chosen, Drawing())
    rows = []
    for _ in range(3):
        [suggestion] = optimizer.ask()
        rows.append((suggestion.reason, suggestion.pool_index))
        optimizer.tell([Told(1.0, id=suggestion.id)])
    assert rows == [("thompson", 2), ("thompson", 1), ("thompson", 0)]


def test_failures_after_the_first_model_are_learnt_too() -> None:
    optimizer = by_what_is_expected(Falling(), CORNERS)
    optimizer.ask()
    failed = [{"a": a, "b": b} for a in (0.6, 0.7, 0.8, 0.9) for b in (0.2, 0.5, 0.8)]
    worked = [{"a": a, "b": b} for a in (0.1, 0.2, 0.3, 0.4) for b in (0.2, 0.5, 0.8)]
    optimizer.tell([Told(float("nan"), config=config) for config in failed])
    optimizer.tell([Told(n, config=config) for n, config in enumerate(worked)])
    assert optimizer.ask()[0].config["a"] < 0.6


# In one line


def past_runs(**directions: Direction) -> Experience:
    """Two tasks; `error` is a bowl, other metrics are something else."""
    configs = SPACE.sample(12, seed=0)
    bowls = [bowl(config) for config in configs.dicts()]
    drawn = np.random.default_rng(0).random(12)
    values = {name: np.array([drawn, drawn]) for name in directions}
    return Experience.from_matrix(
        SPACE,
        configs,
        ["one", "two"],
        [Metric("error"), *(Metric(name, direction) for name, direction in directions.items())],
        {"error": np.array([bowls, bowls]), **values},
    )


def first(optimizer: Optimizer, trials: int = 7) -> list[Suggestion]:
    suggestions = []
    for _ in range(trials):
        suggestions += optimizer.ask()
        optimizer.tell([Told(bowl(suggestions[-1].config), id=suggestions[-1].id)])
    return suggestions


@pytest.mark.parametrize("space", [SPACE, {"a": (0.0, 1.0), "b": (0.0, 1.0)}])
def test_one_line_gives_what_the_long_way_gives(space: object) -> None:
    gp = method("gp")
    long = Optimizer(Target(SPACE), gp, gp.learn(None, seed=3), seed=3)
    assert first(Optimizer.of(space, method="gp", seed=3)) == first(long)
    assert Optimizer.of(space).method is method("auto")


def test_one_line_learns_with_its_seed() -> None:
    auto = method("auto")
    long = Optimizer(Target(SPACE), auto, auto.learn(None, seed=3), seed=3)
    assert Optimizer.of(SPACE, seed=3).ask() == long.ask()
    assert Optimizer.of(SPACE, seed=4).ask() != long.ask()


def test_one_line_learns_from_experience_or_from_its_file(tmp_path: Path) -> None:
    past = past_runs()
    past.save(tmp_path / "past.parquet")
    chosen = method("ws-gp")
    target = Target(SPACE, ("error",))
    expected = first(Optimizer(target, chosen, chosen.learn(past, seed=1), seed=1), 3)
    for given in (past, tmp_path / "past.parquet", str(tmp_path / "past.parquet")):
        for space in (SPACE, None):
            optimizer = Optimizer.of(space, given, method="ws-gp", seed=1)
            assert first(optimizer, 3) == expected
            assert optimizer.target == target


def test_one_line_learns_from_the_metrics_that_are_told() -> None:
    past = past_runs(accuracy=Direction.MAX)
    [by_accuracy] = Optimizer.of(None, past, method="ws-gp", objectives=("accuracy",)).ask()
    [by_error] = Optimizer.of(None, past, method="ws-gp").ask()
    accuracies = past.task("one").values[:, 1]
    assert by_accuracy.config == past.configs.dicts()[int(accuracies.argmax())]
    assert by_error.config == min(past.configs.dicts(), key=bowl)


def test_one_line_takes_a_pool_meta_features_and_a_method_itself() -> None:
    pool = SPACE.sample(5, seed=0)
    optimizer = Optimizer.of(SPACE, method=method("gp"), pool=pool, meta_features={"rows": 3.0})
    assert optimizer.ask()[0].pool_index is not None
    assert optimizer.target.meta_features == {"rows": 3.0}


def test_one_line_learns_from_runs_of_a_space_that_has_changed_since() -> None:
    past = past_runs()
    best = min(past.configs.dicts(), key=bowl)
    now = {"a": (-1.0, 1.0), "b": (0.0, 1.0), "new": ["x", "y"]}
    with warns("past-runs-of-another-space") as said:
        [suggestion] = Optimizer.of(now, past, method="ws-gp").ask()
    assert [each.filename for each in said] == [__file__]
    assert {name: suggestion.config[name] for name in "ab"} == best
    known = past.in_space(Space.of(now), assumed={"new": "y"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        [suggestion] = Optimizer.of(now, known, method="ws-gp").ask()
    assert suggestion.config == {**best, "new": "y"}


@pytest.mark.parametrize(
    ("arguments", "error", "rule"),
    [
        ({"space": SPACE, "method": "gpp"}, MethodError, "unknown-method"),
        ({}, UsageError, "space-or-experience"),
        ({"space": 5}, SpaceError, "not-a-space"),
        ({"space": SPACE, "experience": {"a": 1}}, UsageError, "not-an-experience"),
        (
            {"space": {"z": (0, 1)}, "experience": past_runs()},
            ExperienceError,
            "no-shared-hyperparameter",
        ),
        ({"experience": past_runs(), "objectives": ("loss",)}, ExperienceError, "unknown-metric"),
        ({"experience": past_runs(), "objectives": "error"}, UsageError, "list-not-text"),
        ({"space": SPACE, "method": "ws-gp"}, MethodError, "needs-experience"),
    ],
)
def test_one_line_states_what_does_not_fit(
    arguments: dict[str, object], error: type[ForetuneError], rule: str
) -> None:
    with refuses(rule, kind=error):
        Optimizer.of(**arguments)
