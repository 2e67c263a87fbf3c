"""Regression on the last layer of a network."""

import numpy as np
import pytest
from scipy.stats import spearmanr

from foretune.methods.contracts import Observations
from foretune.numerics.transforms import standardise
from foretune.search import METHODS
from foretune.testing import problem
from foretune_lab.baselines.ablr import activations
from foretune_lab.baselines.dngo import (
    EPOCHS,
    RATE,
    UNITS,
    draw_batches,
    hidden_layers,
    random_layers,
)

FLAT = problem("flat")


def test_layers_are_those_of_the_paper() -> None:
    sizes = [weights.shape for weights, _ in random_layers(16, seed=0)]
    assert sizes == [(16, 50), (50, 50), (50, 50), (50, 1)]


def test_padding_of_rows_and_columns_leaves_no_trace() -> None:
    """Features of 6 columns, read without the padding that training had, fit the losses."""
    x = FLAT.space.sample(20, seed=0).x
    z = np.sin(5.0 * x[:, 0]) - np.sin(5.0 * x[:, 0]).mean()
    phi = activations(hidden_layers(x, z, seed=0), x)[-1]
    assert phi.shape == (20, UNITS[-1])
    fitted, *_ = np.linalg.lstsq(np.column_stack([phi[:, :8], np.ones(20)]), z, rcond=None)
    assert np.isfinite(fitted).all()
    residual = z - np.column_stack([phi[:, :8], np.ones(20)]) @ fitted
    assert residual.std() < 0.3 * z.std()


def test_predicts_what_it_has_learnt_from_and_doubts_the_rest() -> None:
    configs = FLAT.space.sample(30, seed=1)
    seen = Observations(configs, FLAT.losses(configs), np.zeros(30, dtype=bool))
    surrogate = METHODS["dngo"].learn(None, seed=0).surrogate(FLAT.target())
    posterior = surrogate.condition(seen, seed=0)
    truth = FLAT.losses(configs)[:, 0]
    standardised = (truth - truth.mean()) / truth.std()
    at_trials = posterior.predict(configs)
    elsewhere = posterior.predict(FLAT.space.sample(200, seed=2))
    assert np.square(at_trials.mean - standardised).mean() < 0.05
    assert at_trials.std.mean() < elsewhere.std.mean()


def test_expected_losses_of_pending_trials_are_no_observations() -> None:
    """It is regressed on and is to be beaten, but the network does not learn from it."""
    configs, new = FLAT.space.sample(9, seed=1), FLAT.space.sample(5, seed=2)
    losses = np.arange(9.0)[::-1, None]
    surrogate = METHODS["dngo"].learn(None, seed=0).surrogate(FLAT.target())
    found = surrogate.condition(Observations(configs, losses, np.arange(9) == 8), seed=0)
    alone = surrogate.condition(
        Observations(configs.take(np.arange(8)), losses[:8], np.zeros(8, dtype=bool)), seed=0
    )
    np.testing.assert_array_equal(found.features(new), alone.features(new))
    assert (found.predict(new).mean != alone.predict(new).mean).any()
    assert found.best == pytest.approx(standardise(losses[:, 0])[8])


def test_orders_what_it_has_not_seen_and_knows_how_well() -> None:
    configs, new = FLAT.space.sample(40, seed=1), FLAT.space.sample(200, seed=2)
    losses, truth = FLAT.losses(configs), FLAT.losses(new)[:, 0]
    surrogate = METHODS["dngo"].learn(None, seed=0).surrogate(FLAT.target())
    seen = Observations(configs, losses, np.zeros(40, dtype=bool))
    belief = surrogate.condition(seen, seed=0).predict(new)
    assert spearmanr(belief.mean, truth).statistic > 0.6
    error = (truth - losses.mean()) / losses.std() - belief.mean
    assert np.square(error / belief.std).mean() < 4.0


def test_an_epoch_reads_each_trial_once_in_batches_of_the_published_size() -> None:
    batches, rates = draw_batches(13, 1500, seed=0)
    epochs = batches[: 2 * EPOCHS].reshape(EPOCHS, -1)
    assert [*map(sorted, epochs[:3].tolist())] == [[-1] * 7 + [*range(13)]] * 3
    assert (epochs[0] != epochs[1]).any()
    assert (rates[: 2 * EPOCHS] == RATE).all()
    assert not rates[2 * EPOCHS :].any()
    assert (batches[2 * EPOCHS :] == -1).all()
