import jax
import jax.numpy as jnp
import numpy as np
import pytest
from scipy.optimize import approx_fprime

from foretune.methods.ranking.curvature import criterion
from foretune.numerics.ranking import LOSSES

SCORES = np.array([[0.3, -1.0, 2.0, 0.5, 0.1], [1.0, 1.5, -0.2, 0.0, 3.0]])
Y = np.array([2.0, 9.0, 1.0, 4.0, 4.0])


@pytest.mark.parametrize("name", LOSSES)
def test_values_are_those_of_the_jax_losses(name: str) -> None:
    loss = jax.jit(LOSSES[name])
    expected = [loss(jnp.asarray(row), jnp.asarray(Y), jnp.ones(5, bool)) for row in SCORES]
    np.testing.assert_allclose(criterion(name, Y)(SCORES).value, expected, rtol=1e-5)


@pytest.mark.parametrize("name", LOSSES)
def test_slope_and_curvature_agree_with_finite_differences(name: str) -> None:
    rank = criterion(name, Y)
    picture = rank(SCORES)
    for row, scores in enumerate(SCORES):
        slope = approx_fprime(scores, lambda s: float(rank(s[None]).value[0]), 1e-7)
        np.testing.assert_allclose(picture.slope[row], slope, atol=1e-5)
        curvature = approx_fprime(scores, lambda s: rank(s[None]).slope[0], 1e-7)
        np.testing.assert_allclose(picture.curvature[row], curvature, atol=1e-5)


def test_equal_losses_are_no_reason_for_any_score_but_0() -> None:
    """Also where their mean is rounded, as that of 12 times 0.1 is."""
    picture = criterion("regression", np.full(12, 0.1))(np.zeros((1, 12)))
    assert picture.value[0] == pytest.approx(0.0)


@pytest.mark.parametrize("name", [name for name in LOSSES if name.startswith("list-wise")])
def test_scores_may_lie_hundreds_apart(name: str) -> None:
    picture = criterion(name, np.array([1.0, 3.0, 2.0]))(np.array([[-300.0, 600.0, 0.0]]))
    assert np.isfinite(picture.value).all()
    assert picture.slope[0, 0] < 0.0 < picture.slope[0, 1]
    assert np.linalg.eigvalsh(picture.curvature[0]).min() > -1e-12
