from functools import cache

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import softmax

from foretune.numerics.ranking import (
    LOSSES,
    equal_weights,
    inverse_linear,
    inverse_log,
    position_dependent_attention,
    ranks,
    standardise_losses,
)

SCORES = np.array([0.3, -1.0, 2.0, 0.5])
LOSS_VALUES = np.array([2.0, 9.0, 1.0, 4.0])
EVERY = np.ones(4, dtype=bool)


@cache
def compiled(loss):
    """The loss and its gradient at scores, losses and what is valid: compiled as a whole.

    Operation by operation, JAX would compile each of them for each length.
    """
    return jax.jit(jax.value_and_grad(loss))


def value(name: str, scores, losses=LOSS_VALUES, valid=EVERY) -> float:
    return float(compiled(LOSSES[name])(scores, losses, valid)[0])


def test_ranks_count_what_is_at_most_as_large() -> None:
    losses, valid = jnp.array([2.0, 1.0, 2.0, 5.0, 0.0]), jnp.array([1, 1, 1, 1, 0], dtype=bool)
    assert ranks(losses, valid)[:4].tolist() == [3, 1, 3, 4]


def test_weights_by_hand() -> None:
    rank, n = jnp.array([1, 2, 3]), jnp.array(3)
    np.testing.assert_allclose(inverse_log(rank, n), 1 / np.log([2.0, 3.0, 4.0]), rtol=1e-6)
    np.testing.assert_allclose(inverse_linear(rank, n), [1.0, 1 / 2, 1 / 3], rtol=1e-6)
    np.testing.assert_allclose(position_dependent_attention(rank, n), [3 / 6, 2 / 6, 1 / 6])
    np.testing.assert_allclose(equal_weights(rank, n), [1.0, 1.0, 1.0])


@pytest.mark.parametrize(
    ("name", "weights"),
    [
        ("list-wise", 1 / np.log([2.0, 3.0, 4.0, 5.0])),
        ("list-wise unweighted", np.ones(4)),
        ("list-wise inverse linear", 1 / np.array([1.0, 2.0, 3.0, 4.0])),
        ("list-wise attention", np.array([4.0, 3.0, 2.0, 1.0]) / 10),
    ],
)
def test_equation_1_is_the_plackett_luce_likelihood(name: str, weights) -> None:
    """The best is chosen among all, the second among the rest, and so on."""
    in_order = SCORES[np.argsort(LOSS_VALUES)]
    chances = [softmax(in_order[place:])[0] for place in range(4)]
    assert value(name, SCORES) == pytest.approx(-np.sum(weights * np.log(chances)), rel=1e-5)


def test_two_scores_by_hand() -> None:
    """-log(e / (e + 1)) / log 2 for the first; the last of a list has no choice."""
    two = np.array([1.0, 0.0]), np.array([0.1, 0.2]), np.ones(2, dtype=bool)
    assert value("list-wise", *two) == pytest.approx(0.313262 / 0.693147, rel=1e-5)
    assert value("pair-wise", *two) == pytest.approx(0.313262, rel=1e-5)
    assert value("point-wise", *two) == pytest.approx(0.5**2 + 0.5**2)
    assert value("regression", *two) == pytest.approx(0.0 + 1.0)


@pytest.mark.parametrize("name", LOSSES)
def test_gradients_agree_with_finite_differences(name: str) -> None:
    with jax.enable_x64(True):
        gradient = compiled(LOSSES[name])(SCORES, LOSS_VALUES, EVERY)[1]
        numeric = approx_fprime(SCORES, lambda s: value(name, s), 1e-7)
        np.testing.assert_allclose(gradient, numeric, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_padding_takes_no_part(name: str) -> None:
    """Neither with losses below all others, nor above them, nor as large as one of them."""
    scores = np.concatenate([SCORES, [1e30, -7.0, 8.0]])
    losses = np.concatenate([LOSS_VALUES, [-5.0, 50.0, 4.0]])
    valid = np.arange(7) < 4
    assert value(name, scores, losses, valid) == pytest.approx(value(name, SCORES), rel=1e-6)
    gradient = compiled(LOSSES[name])(scores, losses, valid)[1]
    np.testing.assert_array_equal(gradient[4:], 0.0)
    nothing = value(name, scores, losses, np.zeros(7, dtype=bool))
    assert nothing == 0.0


@pytest.mark.parametrize("name", [name for name in LOSSES if name.startswith("list-wise")])
def test_scores_may_lie_hundreds_apart(name: str) -> None:
    """In the wrong order by 900: a sum of exponentials about one maximum would lose the tail."""
    scores, losses = np.array([-300.0, 600.0, 0.0]), np.array([1.0, 3.0, 2.0])
    found, gradient = compiled(LOSSES[name])(scores, losses, np.ones(3, dtype=bool))
    weights = {
        "list-wise": 1 / np.log([2.0, 3.0]),
        "list-wise unweighted": np.ones(2),
        "list-wise inverse linear": np.array([1.0, 0.5]),
        "list-wise attention": np.array([3.0, 2.0]) / 6,
    }[name]
    assert float(found) == pytest.approx(weights @ [900.0, 600.0], rel=1e-5)
    np.testing.assert_allclose(gradient, [-weights[0], weights.sum(), -weights[1]], atol=1e-6)


def test_the_right_order_far_apart_costs_what_is_left_of_it() -> None:
    """Deep in the list a gap of 1 still counts, whatever the scores above it are."""
    scores, losses = np.array([500.0, 1.0, 0.0]), np.array([0.0, 1.0, 2.0])
    _, gradient = compiled(LOSSES["list-wise unweighted"])(scores, losses, np.ones(3, dtype=bool))
    chance = 1 / (1 + np.e)
    np.testing.assert_allclose(gradient, [0.0, -chance, chance], atol=1e-6)


@pytest.mark.parametrize("name", ["list-wise", "pair-wise", "point-wise", "regression"])
def test_ties_do_not_hang_on_the_order_of_the_list(name: str) -> None:
    losses, scores = np.array([1.0, 2.0, 2.0, 3.0]), np.array([0.5, -0.3, 0.8, 0.1])
    swapped = scores[[0, 2, 1, 3]]
    assert value(name, scores, losses) == pytest.approx(value(name, swapped, losses), rel=1e-6)


@pytest.mark.parametrize("constant", [0.1, 0.7, 1.1, -2.3])
def test_equal_losses_are_standardised_to_0(constant: float) -> None:
    """Their mean is rounded; the spread that this leaves is no unit."""
    losses, valid = np.full(12, constant, np.float32), np.arange(12) < 10
    np.testing.assert_allclose(jax.jit(standardise_losses)(losses, valid), 0.0, atol=1e-6)
    assert value("regression", np.zeros(12), losses, valid) == pytest.approx(0.0, abs=1e-6)


@pytest.mark.parametrize("name", LOSSES)
def test_a_constant_list_pushes_equal_scores_nowhere_apart(name: str) -> None:
    gradient = compiled(LOSSES[name])(np.zeros(4), np.full(4, 0.25), EVERY)[1]
    assert float(np.ptp(gradient)) == pytest.approx(0.0, abs=1e-6)
