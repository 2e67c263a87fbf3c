import tracemalloc
from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from foretune.methods.latent.embedding import (
    AlgorithmEmbedding,
    Bowls,
    Stack,
    activations,
    gradients,
    random_stack,
)
from tests.methods.latent.examples import ALGORITHMS, SPACE

CONFIGS = SPACE.sample(12, seed=3)
INPUTS, WHICH = ALGORITHMS.inputs(CONFIGS), ALGORITHMS.algorithm_of(CONFIGS)


def stack_of(seed: int) -> Stack:
    """Random networks whose biases are not 0, as they are after training."""
    rng = np.random.default_rng(seed)
    layers = random_stack(ALGORITHMS, seed)
    return tuple((weights, 0.1 * rng.normal(size=biases.shape)) for weights, biases in layers)


STACK = stack_of(0)


def test_each_configuration_goes_through_its_own_algorithms_network() -> None:
    placed = activations(STACK, INPUTS, WHICH)[-1]
    for row in range(len(CONFIGS)):
        signal = INPUTS[row]
        for number, (weights, biases) in enumerate(STACK):
            signal = signal @ weights[WHICH[row]] + biases[WHICH[row]]
            signal = np.maximum(signal, 0.0) if number < 2 else signal
        np.testing.assert_allclose(placed[row], signal)


def test_gradients_agree_with_finite_differences() -> None:
    slope = np.random.default_rng(1).normal(size=(len(CONFIGS), 3))
    found = gradients(STACK, activations(STACK, INPUTS, WHICH), WHICH, slope)
    for number in range(3):
        weights, biases = STACK[number]

        some = np.random.default_rng(2).choice(weights.size, 12, replace=False)

        def value(entries: np.ndarray, number: int = number, some=some) -> float:
            weights = STACK[number][0].copy()
            weights.ravel()[some] = entries
            moved = (*STACK[:number], (weights, STACK[number][1]), *STACK[number + 1 :])
            return float((activations(moved, INPUTS, WHICH)[-1] * slope).sum())

        numeric = approx_fprime(weights.ravel()[some], value, 1e-7)
        np.testing.assert_allclose(found[number][0].ravel()[some], numeric, atol=1e-5)

        def shifted(entries: np.ndarray, number: int = number) -> float:
            layer = (STACK[number][0], entries.reshape(STACK[number][1].shape))
            moved = (*STACK[:number], layer, *STACK[number + 1 :])
            return float((activations(moved, INPUTS, WHICH)[-1] * slope).sum())

        numeric = approx_fprime(biases.ravel(), shifted, 1e-7)
        np.testing.assert_allclose(found[number][1].ravel(), numeric, atol=1e-5)


def test_features_and_head_together_are_the_embedding() -> None:
    for movable in (1, 2, 3):
        embedding = AlgorithmEmbedding(ALGORITHMS, STACK, movable=movable)
        placed = activations(embedding.head, embedding.features(CONFIGS), WHICH)[-1]
        np.testing.assert_allclose(placed, embedding.place(CONFIGS))


def test_random_networks_keep_the_size_of_what_they_read() -> None:
    """He-normal weights by the number of inputs, and no biases."""
    big = random_stack(replace(ALGORITHMS, columns=(np.arange(500),)), seed=0)
    for (weights, biases), fan_in in zip(big, (500, 32, 32), strict=True):
        assert weights.shape[:2] == (3, fan_in)
        assert weights.std() == pytest.approx(np.sqrt(2.0 / fan_in), rel=0.1)
        assert not biases.any()


def test_bowls_of_several_embeddings_are_those_of_each() -> None:
    embeddings = [AlgorithmEmbedding(ALGORITHMS, stack_of(seed)) for seed in range(3)]
    each = [np.square(embedding.place(CONFIGS)).sum(axis=1) for embedding in embeddings]
    np.testing.assert_allclose(Bowls.of(embeddings)(CONFIGS), np.column_stack(each))
    np.testing.assert_allclose(embeddings[1].bowl(CONFIGS), each[1])


def test_bowls_of_many_configurations_need_little_memory() -> None:
    """By chunks: of 6,000 configurations at once, 20 embeddings would take 90 MB."""
    bowls = Bowls.of([AlgorithmEmbedding(ALGORITHMS, stack_of(seed)) for seed in range(20)])
    many = SPACE.sample(6000, seed=0)
    tracemalloc.start()
    found = bowls(many)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 25e6
    some = np.arange(0, 6000, 1500)
    np.testing.assert_allclose(found[some], bowls(many.take(some)))
