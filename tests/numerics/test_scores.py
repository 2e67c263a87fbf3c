import numpy as np
import pytest
from scipy.stats import norm

from foretune.numerics.scores import informed_scores, midrank_scores


def test_midranks_by_hand() -> None:
    # Ranks 1, 2.5, 2.5, 4 of four losses.
    shares = np.array([0.5, 2.0, 2.0, 3.5]) / 4
    np.testing.assert_allclose(midrank_scores(np.array([0.1, 0.2, 0.2, 9.0])), norm.ppf(shares))


def test_in_full_doubt_scores_are_midranks() -> None:
    y = np.array([3.0, 1.0, 2.0])
    got = informed_scores(y, np.full(3, -5.0), np.ones(3), doubt=1.0)
    np.testing.assert_allclose(got, midrank_scores(y), atol=1e-3)


def test_without_doubt_scores_follow_the_prediction() -> None:
    """All of the same prediction N(-2, 0.5²): the median loss gets -2, the others its quantiles."""
    got = informed_scores(np.array([1.0, 2.0, 3.0]), np.full(3, -2.0), np.full(3, 0.5), doubt=0.0)
    assert got[1] == pytest.approx(-2.0, abs=1e-3)
    np.testing.assert_allclose(got, norm(-2.0, 0.5).ppf(np.array([0.5, 1.5, 2.5]) / 3), atol=1e-3)
