from dataclasses import replace

import numpy as np
import pytest

from foretune.experience import Direction, Experience, Metric
from foretune.methods.contracts import Observations, Target
from foretune.methods.latent.embedding import AlgorithmEmbedding, random_stack
from foretune.methods.latent.fit import Trials
from foretune.methods.latent.learn import _draw_sources, _in_latent_units, pad_source
from foretune.methods.latent.model import ChoosingSurrogate, latent_surrogate
from foretune.methods.latent.sources import panel
from foretune.numerics.coregion import CoregionalGP, CoregionPoints
from foretune.numerics.transforms import standardise
from foretune.space import Encoded
from tests.methods.latent.examples import ALGORITHMS, SPACE, losses

SOURCES = [AlgorithmEmbedding(ALGORITHMS, random_stack(ALGORITHMS, seed)) for seed in range(4)]
DRAWN, NEW = SPACE.sample(20, seed=1), SPACE.sample(15, seed=2)
CONFIGS = DRAWN.take(DRAWN.first_occurrences()[:9])
LOSSES = losses(CONFIGS, 0.3)[:, None]


def seen(believed: int = 0, configs: Encoded = CONFIGS, y: np.ndarray = LOSSES) -> Observations:
    return Observations(configs, y, np.arange(len(y)) >= len(y) - believed)


def test_the_belief_is_the_process_on_what_the_fit_has_placed() -> None:
    """Believed trials condition the process; what is fitted follows the observed ones."""
    surrogate = latent_surrogate(SOURCES[0], Target(SPACE), beside=SOURCES[1:3])
    posterior = surrogate.condition(seen(believed=2), seed=0)
    z, which = standardise(LOSSES[:, 0]), ALGORITHMS.algorithm_of(CONFIGS)
    beside = np.column_stack([source.bowl(CONFIGS) for source in SOURCES[1:3]])
    features = SOURCES[0].features(CONFIGS)
    fitted = surrogate.fit(Trials(features, which, beside, LOSSES).first(7))
    head = AlgorithmEmbedding(ALGORITHMS, (*SOURCES[0].stack[:-1], *fitted.head))
    process = CoregionalGP.condition(
        CoregionPoints(head.place(CONFIGS), which, beside), z, fitted.hyper
    )
    new = CoregionPoints(
        head.place(NEW),
        ALGORITHMS.algorithm_of(NEW),
        np.column_stack([source.bowl(NEW) for source in SOURCES[1:3]]),
    )
    mean, std = process.predict(new)
    found = posterior.predict(NEW)
    np.testing.assert_allclose(found.mean, mean, atol=1e-9)
    np.testing.assert_allclose(found.std, std, atol=1e-9)
    assert posterior.best == pytest.approx(z[:7].min())


def test_beside_an_enormous_loss_the_others_are_told_apart() -> None:
    y = LOSSES.copy()
    y[2] = 1e10
    found = latent_surrogate(SOURCES[0], Target(SPACE)).condition(seen(y=y), seed=0)
    others = np.delete(np.arange(9), 2)
    assert np.ptp(found.predict(CONFIGS).mean[others]) > 0.5


def test_draws_have_the_predicted_moments() -> None:
    posterior = latent_surrogate(SOURCES[0], Target(SPACE)).condition(seen(), seed=0)
    draws, belief = posterior.sample(NEW, 4000, seed=0), posterior.predict(NEW)
    np.testing.assert_allclose(draws.mean(axis=0), belief.mean, atol=0.06)
    np.testing.assert_allclose(draws.std(axis=0), belief.std, atol=0.06)


def test_a_pre_trained_head_is_held_and_its_bowl_is_believed() -> None:
    """alpha / K of each algorithm (Equation 6); with nothing pre-trained neither."""
    weights = 2 * 32 + 32 + 32 * 32 + 32 + 32 * 3 + 3
    learnt = latent_surrogate(SOURCES[0], Target(SPACE)).fit
    np.testing.assert_allclose(learnt.pull, np.full(3, 1e5 / weights))
    assert learnt.prior.mode[-1] == 0.7
    assert len(learnt.start) == 1
    untrained = latent_surrogate(replace(SOURCES[0], movable=3), Target(SPACE)).fit
    assert untrained.pull.tolist() == [0.0, 0.0, 0.0]
    assert (untrained.prior.mode[-1], untrained.prior.spread[-1]) == (0.0, 0.0)
    assert len(untrained.start) == 3


def test_sources_are_chosen_by_what_was_observed_alone() -> None:
    """Believed losses that speak for another source are not heard."""
    surrogate = ChoosingSurrogate(tuple(SOURCES), np.zeros(4), Target(SPACE))
    y = SOURCES[3].bowl(CONFIGS)
    y[6:] = 50.0 - 10.0 * y[6:]
    told = seen(believed=3, y=y[:, None])
    surrogate.condition(told, seed=0)
    assert list(surrogate._made) == [(3,)]
    assert panel(SOURCES, np.zeros(4), CONFIGS, y) != (3,)


def test_a_believed_trial_is_to_be_beaten() -> None:
    y = LOSSES.copy()
    y[8] = -1.0
    found = latent_surrogate(SOURCES[0], Target(SPACE)).condition(seen(believed=1, y=y), seed=0)
    assert found.best == pytest.approx(standardise(y[:, 0])[8])


@pytest.mark.parametrize(("trials", "heard"), [(7, 7), (10, 10), (12, 10)])
def test_at_least_ten_trials_choose_the_sources(trials: int, heard: int) -> None:
    """Two for each of three algorithms would be six."""
    asked = []

    class RecordedChoice(ChoosingSurrogate):
        def choose_sources(self, configs: Encoded, losses: np.ndarray) -> tuple[int, ...]:
            asked.append((len(configs), len(losses)))
            return super().choose_sources(configs, losses)

    configs = DRAWN.take(np.arange(trials))
    surrogate = RecordedChoice(tuple(SOURCES), np.zeros(4), Target(SPACE))
    surrogate.condition(seen(configs=configs, y=losses(configs, 0.3)[:, None]), seed=0)
    assert asked == [(heard, heard)]


def test_evaluations_are_sorted_by_algorithm_and_padded() -> None:
    inputs = np.arange(15.0).reshape(5, 3)
    gaps = np.array([0.1, 0.2, 0.3, 0.4, 0.5])
    source = pad_source(inputs, np.array([1, 0, 1, 4, 1]), gaps, algorithms=5)
    assert source.x.shape == (8, 64, 8)
    assert source.counts.tolist() == [1, 3, 0, 0, 1, 0, 0, 0]
    np.testing.assert_allclose(source.x[1, :3, :3], inputs[[0, 2, 4]])
    np.testing.assert_allclose(source.gap[1, :3], [0.1, 0.3, 0.5])
    np.testing.assert_allclose(source.x[4, 0, :3], inputs[3])
    assert float(np.abs(source.x).sum()) == inputs.sum()
    assert float(np.sum(source.gap)) == pytest.approx(1.5)


def test_the_latent_unit_keeps_the_directions() -> None:
    scaled = _in_latent_units(SOURCES[0], CONFIGS)
    assert scaled.bowl(CONFIGS).mean() == pytest.approx(1.0)
    np.testing.assert_allclose(
        scaled.place(NEW), SOURCES[0].place(NEW) / np.sqrt(SOURCES[0].bowl(CONFIGS).mean())
    )


def test_a_source_without_any_gap_has_no_unit() -> None:
    """Where all losses are equal, the best place is everywhere."""
    flat = tuple((0.0 * weights, 0.0 * biases) for weights, biases in SOURCES[0].stack)
    scaled = _in_latent_units(AlgorithmEmbedding(ALGORITHMS, flat), CONFIGS)
    assert not scaled.place(NEW).any()


def test_drawn_sources_keep_their_names() -> None:
    """A task without a success is no source; the others' losses become shares of better ones."""
    names = [f"task {number}" for number in range(6)]
    matrix = np.stack([np.roll(np.arange(9.0), number) for number in range(6)])
    failed = np.zeros(matrix.shape, dtype=bool)
    failed[2] = True
    matrix[2] = np.nan
    past = Experience.from_matrix(
        SPACE, CONFIGS, names, [Metric("loss", Direction.MIN)], {"loss": matrix}, failed=failed
    )
    drawn, tasks = _draw_sources(past, 3, seed=0)
    assert len(drawn) == len(tasks) == 3
    assert "task 2" not in drawn
    for name, task in zip(drawn, tasks, strict=True):
        expected = matrix[names.index(name)] / 9.0
        configs = past.configs.take(task.rows)
        places = [CONFIGS.keys().tolist().index(key) for key in configs.keys().tolist()]
        np.testing.assert_allclose(task.z, expected[places])


def test_the_best_front_that_was_reached_has_no_gap() -> None:
    """Else no configuration could lie at the bottom of the bowl (Equation 10)."""
    losses_ = {"loss": np.append(np.arange(8.0), 0.5), "seconds": np.arange(9.0)[::-1] ** 2}
    metrics = [Metric(name, Direction.MIN) for name in losses_]
    values = {name: column[None] for name, column in losses_.items()}
    past = Experience.from_matrix(SPACE, CONFIGS, ["task"], metrics, values)
    _, [task] = _draw_sources(past, 1, seed=0)
    # Shares in ninths: the last has 1 and 0, the first 0 and 8, the others 9 together.
    np.testing.assert_allclose(np.sort(9.0 * task.z), [0.0, 3.5, *[4.0] * 7], atol=1e-12)
