import numpy as np

from foretune.methods.contracts import Observations
from foretune.search.feasibility import BARRIER, HOPELESS, learn_feasibility
from foretune.space import Encoded, Space

SPACE = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0)})


def seen(configs: Encoded, failed: np.ndarray) -> Observations:
    losses = np.where(failed, np.nan, 1.0)[:, None]
    return Observations(configs, losses, np.zeros(len(configs), dtype=bool))


def test_without_failures_everything_is_possible() -> None:
    configs = SPACE.sample(10, seed=0)
    model = learn_feasibility(seen(configs, np.zeros(10, dtype=bool)))
    assert (model.discount(configs) == 0).all()


def test_the_failing_half_is_recognised() -> None:
    configs = SPACE.sample(40, seed=0, how="sobol")
    model = learn_feasibility(seen(configs, configs.x[:, 0] > 0.5))
    probability = model.probability(SPACE.sample(200, seed=1))
    in_failing_half = SPACE.sample(200, seed=1).x[:, 0] > 0.5
    assert probability[in_failing_half].mean() < 0.3
    assert probability[~in_failing_half].mean() > 0.8


def test_no_place_is_impossible_for_ever() -> None:
    configs = SPACE.sample(40, seed=0)
    model = learn_feasibility(seen(configs, configs.x[:, 0] > 0.1))
    assert np.isfinite(model.discount(configs)).all()


def test_one_failure_does_not_rule_a_choice_out_but_five_do() -> None:
    space = Space.of({"kind": ["good", "bad"], "a": (0.0, 1.0)})
    bad = space.encode([{"kind": "bad", "a": a} for a in (0.1, 0.3, 0.5, 0.7, 0.9)])
    good = space.encode([{"kind": "good", "a": a} for a in (0.1, 0.3, 0.5, 0.7, 0.9)])
    new = space.encode([{"kind": "bad", "a": 0.4}])

    def after(failures: int) -> float:
        configs = Encoded.concat([good, bad.take(np.arange(failures))])
        failed = np.arange(len(configs)) >= len(good)
        return float(learn_feasibility(seen(configs, failed)).probability(new)[0])

    assert after(5) < HOPELESS < after(1)


def test_believed_rows_are_not_counted_as_successes() -> None:
    """Nothing has succeeded yet, whatever is believed of what is pending."""
    configs = SPACE.sample(3, seed=0)
    losses = np.array([[np.nan], [np.nan], [1.0]])
    assert learn_feasibility(Observations(configs, losses, np.zeros(3, dtype=bool))).trees
    believed = np.array([False, False, True])
    assert learn_feasibility(Observations(configs, losses, believed)).trees is None


def test_nearly_certain_failure_outweighs_any_improvement() -> None:
    configs = SPACE.sample(40, seed=0, how="sobol")
    model = learn_feasibility(seen(configs, configs.x[:, 0] > 0.5))
    chance, lost = model.probability(configs), -model.discount(configs)
    assert (lost[chance < HOPELESS / 2] > BARRIER * HOPELESS / 2).all()
    np.testing.assert_allclose(lost[chance >= HOPELESS], -np.log(chance[chance >= HOPELESS]))
    assert 0 < np.count_nonzero(chance < HOPELESS / 2) < 40


def test_the_forest_learns_from_early_and_late_ones_of_very_many_trials() -> None:
    configs = SPACE.sample(60, seed=0)
    for failing in (np.arange(60) < 20, np.arange(60) >= 40):
        assert learn_feasibility(seen(configs, failing), most=20).trees is not None
