import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from foretune.methods.latent.embedding import activations
from foretune.methods.latent.learn import pad_source
from foretune.methods.latent.training import (
    AdversarialNetworks,
    apply_layers,
    bowl_loss,
    cross_entropy,
    initial_networks,
    pairs_of,
    pre_train,
    pre_training_loss,
    reverse_gradient,
)

gradient_of = jax.jit(jax.grad(pre_training_loss))
U = jnp.asarray([[[0.0, 3.0], [4.0, 0.0]], [[1.0, 0.0], [0.0, 1.0]]])


def test_the_bowl_by_hand() -> None:
    """Equation 11: mean of (gap - |u|²)² of each algorithm, summed over those that are there."""
    gap = jnp.asarray([[10.0, 16.0], [1.0, 3.0]])
    first, second = (1.0 + 0.0) / 2, (0.0 + 4.0) / 2
    both = jnp.asarray([True, True])
    assert bowl_loss(U, gap, both) == pytest.approx(first + second)
    assert bowl_loss(U, gap, jnp.asarray([True, False])) == pytest.approx(first)


def test_the_classifiers_cross_entropy_by_hand() -> None:
    """Equation 12 for one pair; the logit is the first coordinate."""
    classifier = [(jnp.asarray([[[1.0], [0.0]]]), jnp.zeros((1, 1)))]
    logits = np.array([0.0, 4.0, 1.0, 0.0])
    probability = 1.0 / (1.0 + np.exp(-logits))
    by_hand = -np.mean(np.log([*probability[:2], *(1.0 - probability[2:])]))
    both = jnp.asarray([True, True])
    assert cross_entropy(classifier, U, both) == pytest.approx(by_hand, abs=1e-5)
    assert cross_entropy(classifier, U, jnp.asarray([True, False])) == 0.0
    assert cross_entropy(classifier, U, jnp.asarray([False, True])) == 0.0
    # An algorithm alone is not to be told from itself.
    assert cross_entropy(classifier, U[:1], jnp.asarray([True])) == 0.0


def test_numpy_and_jax_read_stacked_networks_alike() -> None:
    rng = np.random.default_rng(0)
    sizes = ((3, 4), (4, 5), (5, 2))
    stack = tuple((rng.normal(size=(2, i, o)), rng.normal(size=(2, o))) for i, o in sizes)
    x = rng.normal(size=(2, 6, 3))
    layers = [tuple(jnp.asarray(array, dtype=jnp.float32) for array in layer) for layer in stack]
    found = jax.jit(apply_layers)(layers, jnp.asarray(x, dtype=jnp.float32))
    for m in range(2):
        expected = activations(stack, x[m], np.full(6, m))[-1]
        np.testing.assert_allclose(found[m], expected, rtol=1e-4, atol=1e-4)


def test_every_pair_of_algorithms_has_a_classifier() -> None:
    first, second = pairs_of(4)
    assert list(zip(first.tolist(), second.tolist(), strict=True)) == [
        (0, 1), (0, 2), (0, 3), (1, 2), (1, 3), (2, 3)
    ]  # fmt: skip


@pytest.mark.parametrize(("algorithms", "pairs"), [(4, 6), (2, 1), (1, 1)])
def test_every_algorithm_and_every_pair_has_a_network(algorithms: int, pairs: int) -> None:
    networks = initial_networks(np.random.default_rng(0), algorithms, 40)
    of_algorithms = [weights.shape for weights, _ in networks.embedding]
    assert of_algorithms == [(algorithms, 40, 32), (algorithms, 32, 32), (algorithms, 32, 3)]
    of_pairs = [weights.shape for weights, _ in networks.classifiers]
    assert of_pairs == [(pairs, 3, 16), (pairs, 16, 1)]


def test_the_descent_is_that_of_equation_13() -> None:
    """The embedding follows bowl - beta CE, the classifiers follow CE."""
    rng = np.random.default_rng(0)
    which = np.repeat([0, 1, 2], 20)
    source = pad_source(rng.random((60, 3)), which, rng.random(60), 3)
    networks = initial_networks(rng, *source.x.shape[::2])
    beta, draws = jnp.asarray(0.5), jnp.asarray(rng.random((4, 32), np.float32))
    found = gradient_of(networks, draws, source, beta)

    def parts(networks: AdversarialNetworks) -> tuple[jax.Array, jax.Array]:
        present = source.counts > 0
        rows = (draws * source.counts[:, None]).astype(jnp.int32)
        x = jnp.take_along_axis(source.x, rows[:, :, None], axis=1)
        u = apply_layers(networks.embedding, x)
        bowl = bowl_loss(u, jnp.take_along_axis(source.gap, rows, axis=1), present)
        return bowl, cross_entropy(networks.classifiers, u, present)

    outer = jax.jit(jax.grad(lambda n: parts(n)[0] - beta * parts(n)[1]))(networks).embedding
    inner = jax.jit(jax.grad(lambda n: parts(n)[1]))(networks).classifiers
    for ours, theirs in zip(jax.tree.leaves(found), jax.tree.leaves((outer, inner)), strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-5)


def test_pre_training_is_adam_on_fresh_batches_at_a_falling_rate() -> None:
    """By optax, array by array; the rate falls along half a cosine."""
    rng = np.random.default_rng(0)
    source = pad_source(rng.random((60, 3)), np.repeat([0, 1, 2], 20), rng.random(60), 3)
    found = pre_train(source, 0.5, steps=3, seed=2**40)

    rng = np.random.default_rng(2**40)
    networks = initial_networks(rng, *source.x.shape[::2])
    moments = optax.scale_by_adam().init(networks)
    update = jax.jit(optax.scale_by_adam().update)
    for draws, rate in zip(rng.random((3, 4, 32), np.float32), (0.01, 0.0075, 0.0025), strict=True):
        gradient = gradient_of(networks, jnp.asarray(draws), source, jnp.asarray(0.5))
        updates, moments = update(gradient, moments)
        networks = jax.tree.map(lambda old, step, by=rate: old - by * step, networks, updates)
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, atol=1e-4), found, networks)


def test_a_reversed_gradient_keeps_the_value() -> None:
    value, gradient = jax.value_and_grad(lambda u: reverse_gradient(u, jnp.asarray(0.1)) ** 2)(3.0)
    assert value == pytest.approx(9.0)
    assert gradient == pytest.approx(-0.6)
