"""A task's meta-features move the mean that past tasks taught."""

from dataclasses import replace

import numpy as np
import pytest
from sklearn.linear_model import Ridge

from foretune._base.progress import SILENT
from foretune.experience import Direction, Experience, Metric
from foretune.methods.contracts import Target
from foretune.methods.past_data import PastTask
from foretune.methods.pipeline.described import (
    MOST_AXES,
    THEMSELVES,
    Described,
    FeatureReading,
    _Normal,
    _Past,
)
from foretune.methods.pipeline.layout import NetworkLayout, Sizes
from foretune.methods.pipeline.learn import DeepPipeLearner, DeepPipePrior
from foretune.methods.pipeline.training import initial_network
from foretune.numerics.scores import midrank_scores
from foretune.space import Space

SPACE = Space.of({"x": (0.0, 1.0), "y": (0.0, 1.0)})
SIZES = Sizes(latent=4, learns_mean=True)


def description(rng: np.random.Generator, linear: float) -> dict[str, float]:
    """Noise, but for how well a linear model does."""
    noise = {name: float(rng.standard_normal()) for name in (*THEMSELVES, "more", "constant")}
    return noise | {"landmark_linear": linear, "constant": 1.0}


def past(tasks: int, *, telling: bool = True) -> Experience:
    """x should be small where a linear model does well, and large where it does badly."""
    rng = np.random.default_rng(0)
    configs = SPACE.sample(16, seed=0)
    linear = rng.choice([-1.0, 1.0], size=tasks)
    said = linear if telling else rng.permutation(linear)
    names = [f"task {number}" for number in range(tasks)]
    matrix = np.stack([each * configs.x[:, 0] for each in linear])
    found = Experience.from_matrix(
        SPACE, configs, names, [Metric("loss", Direction.MIN)], {"loss": matrix}
    )
    described = {name: description(rng, s) for name, s in zip(names, said, strict=True)}
    return replace(found, meta_features=described)


@pytest.fixture(scope="module")
def learnt() -> DeepPipePrior:
    return DeepPipeLearner(SIZES, midrank_scores).learn(past(30), seed=0, progress=SILENT)


def mean_at(prior: DeepPipePrior, linear: float) -> np.ndarray:
    said = description(np.random.default_rng(1), linear)
    surrogate = prior.surrogate(Target(SPACE, meta_features=said))
    return surrogate.source.model.place(
        SPACE.encode([{"x": 0.1, "y": 0.5}, {"x": 0.9, "y": 0.5}])
    ).mean


def test_the_description_says_which_half_is_good(learnt: DeepPipePrior) -> None:
    assert learnt.described is not None
    assert learnt.described.left < 0.5
    small, large = mean_at(learnt, 1.0)
    assert small < large - 0.5
    small, large = mean_at(learnt, -1.0)
    assert large < small - 0.5


def test_the_process_expects_less_to_be_left_over(learnt: DeepPipePrior) -> None:
    said = description(np.random.default_rng(1), 1.0)
    model = learnt.surrogate(Target(SPACE, meta_features=said)).source.model
    left = learnt.described.left
    assert np.exp(model.log_signal) == pytest.approx(left * np.exp(learnt.model.log_signal))


def test_a_task_without_a_description_has_the_mean_of_all(learnt: DeepPipePrior) -> None:
    model = learnt.surrogate(Target(SPACE, meta_features={"landmark_linear": 1.0})).source.model
    assert model.layers is learnt.model.layers
    assert model.log_signal == learnt.model.log_signal


def test_descriptions_that_say_nothing_are_not_believed(learnt: DeepPipePrior) -> None:
    """The losses, and so the network, are those of `learnt`."""
    experience = past(30, telling=False)
    assert np.array_equal(experience.values, past(30).values)
    tasks, said = DeepPipeLearner(SIZES, midrank_scores)._all(experience)
    assert Described.learn(learnt.model, experience.configs, tasks, said, seed=0) is None


def test_few_tasks_or_other_meta_features_are_not_read() -> None:
    experience = past(12)
    model = initial_network(NetworkLayout.of(SPACE, SIZES), experience.configs, 0)
    tasks, said = DeepPipeLearner(SIZES, midrank_scores)._all(experience)
    assert Described.learn(model, experience.configs, tasks[:9], said[:9], seed=0) is None
    unknown = [{"rows": 1.0} for _ in said]
    assert Described.learn(model, experience.configs, tasks, unknown, seed=0) is None


def test_a_perfect_mean_needs_no_correction() -> None:
    """A task of one evaluation has the score 0, which an untrained mean expects of all."""
    experience = past(12)
    model = initial_network(NetworkLayout.of(SPACE, SIZES), experience.configs, 0)
    tasks = [PastTask(np.array([number]), np.zeros(1)) for number in range(12)]
    said = list(experience.meta_features.values())
    assert Described.learn(model, experience.configs, tasks, said, seed=0) is None


def test_a_saved_prior_reads_descriptions_alike(learnt: DeepPipePrior, tmp_path) -> None:
    learnt.save(tmp_path / "prior")
    again = DeepPipeLearner(SIZES, midrank_scores).load(tmp_path / "prior")
    np.testing.assert_array_equal(mean_at(again, 1.0), mean_at(learnt, 1.0))


def test_a_description_far_from_all_past_ones_counts_as_less_far() -> None:
    rng = np.random.default_rng(0)
    reading = FeatureReading.of([description(rng, float(k)) for k in range(20)])
    one, other = (description(np.random.default_rng(3), far) for far in (1e3, 1e6))
    np.testing.assert_array_equal(reading(one), reading(other))
    assert np.isfinite(reading(one)).all()


def test_unmeasured_rows_are_not_read() -> None:
    rng = np.random.default_rng(0)
    whole = [description(rng, float(k)) for k in range(20)]
    for gap in (np.nan, np.inf):
        reading = FeatureReading.of([*whole[:-1], whole[-1] | {"more": gap}])
        assert "more" not in reading.names
        assert np.isfinite(reading.functions).all()
        assert reading(whole[0] | {"more": gap}) is not None
        assert reading(whole[0] | {"landmark_linear": gap}) is None


def test_tasks_whose_description_lacks_something_important_are_left_out(
    learnt: DeepPipePrior,
) -> None:
    experience = past(30)
    tasks, said = DeepPipeLearner(SIZES, midrank_scores)._all(experience)
    gaps = [{}, said[7] | {"landmark_linear": np.nan}]
    found = Described.learn(
        learnt.model, experience.configs, [*tasks, *tasks[:2]], [*said, *gaps], seed=0
    )
    expected = learnt.described
    np.testing.assert_allclose(found.weights, expected.weights)
    few = [*gaps, *said[2:11]]
    assert Described.learn(learnt.model, experience.configs, tasks[:11], few, seed=0) is None


def test_a_wide_network_is_read_along_its_principal_axes() -> None:
    """It costs no more than the shipped ones, and the regression finds what there is to find."""
    space = Space.of({f"x{n}": (0.0, 1.0) for n in range(20)})
    rng = np.random.default_rng(0)
    configs = space.sample(600, seed=0)
    said = [description(rng, linear) for linear in rng.choice([-1.0, 1.0], size=20)]
    tasks = [
        PastTask(
            np.arange(30 * k, 30 * (k + 1)),
            each["landmark_linear"] * (configs.x[30 * k : 30 * (k + 1), 0] - 0.5),
        )
        for k, each in enumerate(said)
    ]
    model = initial_network(NetworkLayout.of(space, SIZES), configs, 0)
    assert model.layout.hidden > MOST_AXES
    found = Described.learn(model, configs, tasks, said, seed=0)
    assert found is not None
    assert found.weights.shape == (model.layout.hidden + 1, len(THEMSELVES) + 6)
    described = found.apply(model, said[0])
    corrected = described.place(configs).mean[:30]
    assert np.square(corrected - tasks[0].z).mean() < 0.5 * np.square(tasks[0].z).mean()


def test_the_weights_are_those_of_ridge_regression() -> None:
    rng = np.random.default_rng(0)
    hidden, mean = rng.standard_normal((40, 3)), rng.standard_normal(40)
    tasks = [PastTask(np.arange(5 + k, 25 + k), rng.standard_normal(20)) for k in range(6)]
    psi = rng.standard_normal((6, 2))
    known = [_Past.of(hidden, mean, *each) for each in zip(tasks, psi, strict=True)]
    found = _Normal.of(known).solve(0.7)
    ones = np.hstack([hidden, np.ones((40, 1))])
    inputs = np.vstack(
        [np.kron(ones[task.rows], read) for task, read in zip(tasks, psi, strict=True)]
    )
    over = np.concatenate([task.z - mean[task.rows] for task in tasks])
    reference = Ridge(alpha=0.7 * 20, fit_intercept=False).fit(inputs, over)
    np.testing.assert_allclose(found.ravel(), reference.coef_, rtol=1e-6)
    left = sum(each.remaining_loss(found) for each in known)
    assert left == pytest.approx(np.square(over - inputs @ reference.coef_).sum() / 20)
