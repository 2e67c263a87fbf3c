import numpy as np
import pytest

from foretune.report.importance import MOST_TRIALS, NOTHING_LEARNT, importance
from foretune.space import Space

CUBE = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0), "c": (0.0, 1.0)})
CHOICE = Space.of({"model": {"good": {"depth": (0.0, 1.0)}, "bad": {"width": (0.0, 1.0)}}})


def shares(found):
    return {effect.parameter: effect.share for effect in found.effects}


def test_the_larger_effect_comes_first():
    configs = CUBE.sample(300, seed=0)
    losses = 4 * configs.values[:, 0] + configs.values[:, 1]
    found = importance(configs, losses, seed=0)
    assert [effect.parameter for effect in found.effects] == ["a", "b", "c"]
    # 16 and 1 parts of the variance; the third has none.
    assert shares(found) == pytest.approx({"a": 16 / 17, "b": 1 / 17, "c": 0.0}, abs=0.1)
    assert found.explained > 0.8
    assert not found.reason


def test_an_interaction_counts_for_both():
    configs = CUBE.sample(1000, seed=0)
    losses = (configs.values[:, 0] - 0.5) * (configs.values[:, 1] - 0.5)
    found = shares(importance(configs, losses, seed=0))
    assert min(found["a"], found["b"]) > 0.5 > found["c"]


def test_the_choice_gets_the_credit_and_not_what_hangs_on_it():
    configs = CHOICE.sample(200, seed=0)
    losses = configs.values[:, CHOICE.names.index("model")]
    found = shares(importance(configs, losses, seed=0))
    assert found["model"] > 0.9
    assert found["model:good:depth"] < 0.05
    assert found["model:bad:width"] < 0.05


def test_effects_are_counted_where_active():
    configs = CHOICE.sample(100, seed=0)
    found = importance(configs, np.random.default_rng(0).random(100), seed=0)
    counts = {effect.parameter: effect.trials for effect in found.effects}
    assert counts["model:good:depth"] + counts["model:bad:width"] == counts["model"] == 100


def test_disasters_do_not_decide():
    configs = CUBE.sample(300, seed=0)
    losses = configs.values[:, 0].copy()
    losses[np.argmax(configs.values[:, 1])] = 1e12
    assert importance(configs, losses, seed=0).effects[0].parameter == "a"


def test_failed_trials_are_left_out():
    configs = CUBE.sample(50, seed=0)
    losses = configs.values[:, 0].copy()
    losses[::2] = np.nan
    assert importance(configs, losses, seed=0).trials == 25


def test_many_trials_are_sampled():
    configs = CUBE.sample(MOST_TRIALS + 1, seed=0)
    assert importance(configs, configs.values[:, 0], seed=0).trials == MOST_TRIALS


def test_equal_seeds_give_equal_effects():
    configs = CUBE.sample(60, seed=0)
    losses = configs.values[:, 0]
    assert importance(configs, losses, seed=3) == importance(configs, losses, seed=3)


@pytest.mark.parametrize("n", [0, 1, 9])
def test_too_few_trials_say_so(n):
    found = importance(CUBE.sample(n, seed=0), np.arange(n, dtype=float), seed=0)
    assert "10 successful trials" in found.reason
    assert not found.effects


def test_equal_scores_say_so():
    found = importance(CUBE.sample(20, seed=0), np.zeros(20), seed=0)
    assert "scored the same" in found.reason


def test_equal_configurations_say_so():
    configs = CUBE.sample(1, seed=0).take(np.zeros(20, dtype=int))
    assert "different values" in importance(configs, np.arange(20.0), seed=0).reason


def test_noise_teaches_nothing():
    noise = np.random.default_rng(1).random(80)
    assert importance(CUBE.sample(80, seed=0), noise, seed=0).reason == NOTHING_LEARNT
