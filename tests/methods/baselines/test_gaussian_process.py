"""The plain processes, which know the target alone."""

import numpy as np
import pytest

from foretune.methods.contracts import Observations, Target
from foretune.methods.gp.gaussian_process import GaussianProcessPosterior
from foretune.numerics.gp import GP
from foretune.numerics.scores import smooth_scores
from foretune.numerics.transforms import copula_scores, standardise
from foretune.search import method
from foretune.space import Space

SPACE = Space.of({"a": (0.0, 1.0), "kind": ["p", "q", "r"]})
CONFIGS, NEW = SPACE.sample(9, seed=0), SPACE.sample(5, seed=1)
LOSSES = np.array([5.0, 3.0, 7.0, 1.0, 80.0, 6.0, 2.0, 4.0, 0.0])


def posterior(name: str, n: int, believed: int = 0) -> GaussianProcessPosterior:
    surrogate = method(name).learn(None, seed=0).surrogate(Target(SPACE))
    told = LOSSES[:n, None]
    rows = CONFIGS.take(np.arange(n))
    return surrogate.condition(Observations(rows, told, np.arange(n) >= n - believed), seed=0)


@pytest.mark.parametrize(
    ("name", "scores"),
    [("gp", standardise), ("gcp", copula_scores), ("gcp-smooth", smooth_scores)],
)
def test_the_belief_is_the_process_on_the_scores_of_its_method(name, scores) -> None:
    found, z = posterior(name, 9), scores(LOSSES)
    assert found.best == pytest.approx(z.min())
    mean, std = GP.condition(CONFIGS.x, z, found.model.hyper).predict(NEW.x)
    belief = found.predict(NEW)
    np.testing.assert_allclose(belief.mean, mean)
    np.testing.assert_allclose(belief.std, std)


def test_expected_losses_of_pending_trials_are_no_observations() -> None:
    """It conditions the process and is to be beaten, but does not move the hyperparameters."""
    found, alone = posterior("gp", 9, believed=1), posterior("gp", 8)
    np.testing.assert_array_equal(found.model.hyper.to_vector(), alone.model.hyper.to_vector())
    assert len(found.model.x) == 9
    assert found.best == pytest.approx(standardise(LOSSES)[8])


def test_choices_of_one_hyperparameter_share_a_lengthscale() -> None:
    lengthscales = posterior("gp", 9).model.hyper.log_lengthscales
    of_kind = SPACE.column_groups == SPACE.names.index("kind")
    assert of_kind.sum() == 3
    assert np.ptp(lengthscales[of_kind]) == 0.0


def test_draws_follow_their_seed() -> None:
    found = posterior("gp", 9)
    first = found.sample(NEW, 2, seed=1)
    np.testing.assert_array_equal(first, found.sample(NEW, 2, seed=1))
    assert (first != found.sample(NEW, 2, seed=2)).any()
