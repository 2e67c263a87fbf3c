"""Layers in NumPy."""

import numpy as np
import pytest

from foretune.numerics.networks import apply_relu_layers, initial_layers


def test_initial_weights_are_he_normal_and_biases_zero() -> None:
    layers = initial_layers(np.random.default_rng(0), (200, 300, 5))
    assert [weights.shape for weights, _ in layers] == [(200, 300), (300, 5)]
    assert layers[0][0].std() == pytest.approx(np.sqrt(2 / 200), rel=0.02)
    assert layers[0][0].mean() == pytest.approx(0.0, abs=1e-3)
    assert layers[1][0].std() == pytest.approx(np.sqrt(2 / 300), rel=0.1)
    assert not any(biases.any() for _, biases in layers)
    assert all(array.dtype == np.float32 for layer in layers for array in layer)


def test_signals_keep_their_strength_through_rectified_layers() -> None:
    """What He's scale is for."""
    rng = np.random.default_rng(1)
    x = rng.normal(size=(50, 256)).astype(np.float32)
    signal = apply_relu_layers(initial_layers(rng, (256,) * 7), x)
    assert np.square(signal).mean() == pytest.approx(np.square(x).mean(), rel=0.5)


def test_stacked_networks_differ() -> None:
    [(weights, biases)] = initial_layers(np.random.default_rng(0), (3, 4), stack=(2,))
    assert weights.shape == (2, 3, 4)
    assert biases.shape == (2, 4)
    assert not np.array_equal(weights[0], weights[1])
