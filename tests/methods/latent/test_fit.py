from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import approx_fprime

from foretune._base.arrays import Floats
from foretune.methods.latent.embedding import AlgorithmEmbedding, random_stack
from foretune.methods.latent.fit import Fitted, HeadFit, Trials, _flat
from foretune.numerics.coregion import CoregionPoints, Hyper, HyperPrior, surprise
from foretune.numerics.transforms import standardise
from tests.methods.latent.examples import ALGORITHMS, SPACE, losses

EMBEDDING = AlgorithmEmbedding(ALGORITHMS, random_stack(ALGORITHMS, seed=0))
PRIOR = HyperPrior.of(len(ALGORITHMS), slope=(0.7, 0.5))


def fit(pull: float = 0.01, kind: type[HeadFit] = HeadFit) -> HeadFit:
    strengths = np.full(len(ALGORITHMS), pull)
    return kind(EMBEDDING.head, PRIOR, strengths, lambda y: standardise(y[:, 0]))


def trials(n: int) -> Trials:
    configs = SPACE.sample(n, seed=1)
    return Trials(
        EMBEDDING.features(configs),
        ALGORITHMS.algorithm_of(configs),
        losses(configs, 0.4)[:, None] * [[5.0, 2.0]],
        losses(configs, 0.3)[:, None],
    )


def test_the_objective_is_the_surprise_the_prior_and_the_pull() -> None:
    """Equations 5 and 6: at the start nothing pulls, one step of one weight costs alpha / K."""
    seen, chosen = trials(10), fit(pull=0.25)
    z = chosen.output(seen.losses)
    start = np.concatenate([PRIOR.mode, _flat(EMBEDDING.head)])
    at_start, _ = chosen.objective(start, seen, z)
    placed = seen.features @ EMBEDDING.head[0][0] + EMBEDDING.head[0][1][:, None]
    points = CoregionPoints(placed[seen.which, np.arange(10)], seen.which, seen.beside)
    assert at_start == pytest.approx(surprise(PRIOR.mode, points, z).value)
    unused = start.copy()
    # The last bias is of `rule`; at a configuration of it alone, only the pull can see it move.
    only_net = np.flatnonzero(seen.which == 0)
    unused[-1] += 2.0
    before, _ = chosen.objective(start, seen.take(only_net), z[only_net])
    after, _ = chosen.objective(unused, seen.take(only_net), z[only_net])
    assert after - before == pytest.approx(0.25 * 2.0**2)


def test_its_gradient_agrees_with_finite_differences() -> None:
    seen, chosen = trials(9), fit()
    z = chosen.output(seen.losses)
    rng = np.random.default_rng(0)
    vector = np.concatenate([PRIOR.mode, _flat(EMBEDDING.head)])
    vector = vector + 0.1 * rng.normal(size=len(vector))
    _, gradient = chosen.objective(vector, seen, z)
    numeric = approx_fprime(vector, lambda v: chosen.objective(v, seen, z)[0], 1e-6)
    np.testing.assert_allclose(gradient, numeric, rtol=1e-3, atol=1e-3)


def test_a_fit_lowers_the_objective_and_depends_on_the_trials_alone() -> None:
    seen = trials(20)
    warm, cold = fit(), fit()
    for n in (5, 8, 19):
        warm(seen.first(n))
    found = warm(seen)
    again = cold(seen)
    np.testing.assert_array_equal(found.hyper.to_vector(), again.hyper.to_vector())
    np.testing.assert_array_equal(_flat(found.head), _flat(again.head))
    z = cold.output(seen.losses)
    start = np.concatenate([PRIOR.mode, _flat(EMBEDDING.head)])
    end = np.concatenate([found.hyper.to_vector(), _flat(found.head)])
    value = [cold.objective(v, seen, z)[0] for v in (start, end)]
    assert value[1] < value[0] - 1.0


@pytest.mark.parametrize(
    ("n", "expected"),
    [(3, [(3, 15)]), (4, [(4, 50)]), (7, [(4, 50), (7, 15)]), (8, [(4, 50), (8, 50)])],
)
def test_a_fit_begins_where_the_last_anchor_ended(n: int, expected: list) -> None:
    made = []

    class RecordedFit(HeadFit):
        def minimise(self, begin: Fitted, trials: Trials, z: Floats, iterations: int) -> Fitted:
            found = super().minimise(begin, trials, z, iterations)
            made.append((begin, len(trials.which), iterations, found))
            return found

    chosen = fit(kind=RecordedFit)
    chosen(trials(n))
    assert [(length, iterations) for _, length, iterations, _ in made] == expected
    assert made[0][0].head is chosen.start
    np.testing.assert_array_equal(made[0][0].hyper.to_vector(), PRIOR.mode)
    for before, after in pairwise(made):
        assert after[0] is before[-1]


def test_a_strong_pull_holds_the_pre_trained_layer() -> None:
    seen = trials(20)
    z = fit().output(seen.losses)
    begin = Fitted(Hyper.from_vector(PRIOR.mode), EMBEDDING.head)
    moved = [
        float(np.abs(_flat(fit(pull).minimise(begin, seen, z, 30).head) - _flat(begin.head)).max())
        for pull in (1e-6, 1e4)
    ]
    assert moved[1] < 0.01 < moved[0]
