import numpy as np
import pytest

from foretune._base.progress import SILENT
from foretune.methods.contracts import Observations, Target
from foretune.methods.curve_contracts import SeenCurves
from foretune.methods.freeze_thaw.curve_prior import CurvePrior, Shares
from foretune.methods.freeze_thaw.points import points_of_curves
from foretune.methods.freeze_thaw.prior import FreezeThawPrior, load_prior
from foretune.methods.freeze_thaw.process import OBSERVED_NOISE, CurveProcess
from foretune.methods.freeze_thaw.variants import freeze_thaw
from foretune.numerics.kernels import matern52, squared_distances
from foretune.space import Encoded
from tests.methods.freeze_thaw.curves import LAST, SPACE, losses_of, past

NOTHING = Observations(SPACE.encode([]), np.empty((0, 1)), np.empty(0, dtype=bool))


def encoded(x):
    return SPACE.encode([{"rate": float(a), "size": float(b)} for a, b in x])


def seen(x, reached, losses, goals=None, last=LAST):
    steps = [np.arange(1.0, n + 1) for n in reached]
    values = [row[:n, None] for row, n in zip(losses, reached, strict=True)]
    goals = np.full(len(x), np.nan) if goals is None else np.array(goals)
    return SeenCurves(encoded(x), steps, values, goals, 1.0, last)


@pytest.fixture(scope="module")
def learnt() -> FreezeThawPrior:
    return freeze_thaw().learn(past(), seed=0, progress=SILENT)


def small_prior(rng, width=2, knots=3, functions=2, factors=1):
    return CurvePrior(
        knots=np.array([0.25, 0.5, 1.0]),
        lengthscales=np.array([0.5, 0.8]),
        centres=rng.random((4, width)),
        level=rng.normal(size=knots),
        weights=rng.normal(size=(4, knots)),
        factor_levels=rng.normal(size=(factors, knots)),
        factor_weights=rng.normal(size=(factors, 4, knots)),
        basis=rng.normal(size=(knots, functions)),
        noise=rng.random(knots) + 0.1,
        shares=Shares(0.2, 0.5, 0.3, 1.4),
        units=None,
    )


def dense(prior: CurvePrior, x, knots):
    """Return mean and covariance of scores at all pairs of a configuration and a knot."""
    mean, factors = prior.expect(prior.features(x))
    rows = np.repeat(np.arange(len(x)), len(knots))
    at = np.tile(knots, len(x))
    scaled = x / (prior.lengthscales * prior.shares.stretch)
    shares = prior.shares
    among = shares.smooth * matern52(squared_distances(scaled, scaled)) + shares.task
    among += shares.own * np.eye(len(x))
    steps = prior.basis[at]
    shared = factors[rows, at]
    covariance = among[np.ix_(rows, rows)] * (steps @ steps.T) + shared @ shared.T
    return mean[rows, at], covariance


def test_predictions_equal_those_of_a_dense_normal_distribution():
    rng = np.random.default_rng(4)
    prior, x = small_prior(rng), rng.random((5, 2))
    losses = rng.normal(size=(3, 4))
    curves = seen(x[:3], [4, 2, 1], losses, last=4)
    points = points_of_curves(curves, NOTHING, prior.knots)
    process = CurveProcess.condition(prior, points, 0)

    mean, covariance = dense(prior, x, [0, 1, 2])
    known = [0, 1, 2, 3, 4, 6]
    at = [0, 1, 2, 0, 1, 0]
    values = [losses[0, 0], losses[0, 1], losses[0, 3], losses[1, 0], losses[1, 1], losses[2, 0]]
    scores = process.unit.to_scores(np.array(values))
    noisy = covariance[np.ix_(known, known)] + np.diag(prior.noise[at] + OBSERVED_NOISE)
    for knot in range(3):
        ends = 3 * np.arange(5) + knot
        gain = np.linalg.solve(noisy, covariance[np.ix_(known, ends)]).T
        expected = mean[ends] + gain @ (scores - mean[known])
        left = covariance[np.ix_(ends, ends)] - gain @ covariance[np.ix_(known, ends)]
        found, std = process.predict(encoded(x), knot)
        np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(std, np.sqrt(np.diag(left)), rtol=1e-5, atol=1e-7)
    drawn = process.sample(encoded(x), 40_000, np.random.default_rng(0))
    np.testing.assert_allclose(np.cov(drawn.T), left, atol=0.05 * left.max())


def test_a_running_trial_is_expected_to_go_on_as_predicted():
    rng = np.random.default_rng(4)
    prior, x = small_prior(rng), rng.random((3, 2))
    losses = rng.normal(size=(3, 4))
    alone = points_of_curves(seen(x, [2, 2, 2], losses, last=4), NOTHING, prior.knots)
    goals = [np.nan, np.nan, 4.0]
    runs = points_of_curves(seen(x, [2, 2, 2], losses, goals, last=4), NOTHING, prior.knots)
    before, after = (CurveProcess.condition(prior, each, 0) for each in (alone, runs))
    mean, std = before.predict(encoded(x))
    same, less = after.predict(encoded(x))
    np.testing.assert_allclose(same, mean, rtol=1e-9)
    assert (less <= std + 1e-12).all()
    assert less[2] < 0.95 * std[2]
    assert after.best == pytest.approx(min(before.best, mean[2]))


@pytest.mark.parametrize(("scale", "offset"), [(1.0, 0.0), (0.001, 5.0), (-1.0, 3.0)])
def test_the_end_of_a_curve_is_predicted_from_its_beginning(learnt, scale, offset):
    # A negative scale is a task on which good and bad are exchanged.
    rng = np.random.default_rng(1)
    x = rng.random((12, 2))
    truth = losses_of(x, scale=abs(scale), offset=offset)
    if scale < 0:
        truth = losses_of(1.0 - x, offset=offset)
    reached = [LAST] * 4 + [6] * 4 + [2] * 4
    target = Target(SPACE, ("loss",))
    posterior = learnt.surrogate(target).condition_on_curves(
        seen(x, reached, truth), NOTHING, seed=0
    )
    prediction = posterior.predict_end(encoded(x))
    error = np.abs(prediction.mean - truth[:, -1]) / np.ptp(truth[:, -1])
    assert error[:4].max() < 0.1
    assert error[4:8].max() < 0.3
    assert np.isfinite(posterior.best)
    at = posterior.predict_curve(encoded(x[:2]), np.array([2.0, 16.0]))
    np.testing.assert_allclose(at.mean[:, 1], prediction.mean[:2], rtol=1e-9)


def test_past_tasks_of_other_lengths_and_scales_teach_the_same():
    mixed = past(lengths=[16, 32, 8, 64, 100])
    prior = freeze_thaw().learn(mixed, seed=0, progress=SILENT)
    assert prior.last_step is None
    best = prior.opening(Target(SPACE)).dicts()[0]
    assert best["rate"] == pytest.approx(0.7, abs=0.2)
    assert best["size"] == pytest.approx(0.2, abs=0.35)


def test_a_permuted_past_loses_its_weight():
    whole = past(tasks=6)
    rng = np.random.default_rng(5)
    order = np.concatenate(
        [rng.permutation(np.arange(len(whole))[whole.rows(t)]) for t in whole.tasks]
    )
    from dataclasses import replace

    permuted = replace(whole, config_index=whole.config_index[order])
    prior = freeze_thaw().learn(permuted, seed=0, progress=SILENT)
    x = rng.random((20, 2))
    surrogate = prior.surrogate(Target(SPACE))
    posterior = surrogate.condition_on_curves(seen(x, [8] * 20, losses_of(x)), NOTHING, seed=0)
    centred = [len(p.prior.centres) > 0 for p in posterior.belief.processes]
    past_weight = float(np.sum(posterior.belief.weights[np.array(centred)]))
    new = rng.random((30, 2))
    truth = losses_of(new)[:, -1]
    found = posterior.predict(encoded(new)).mean
    assert np.corrcoef(found, truth)[0, 1] > 0.5 or past_weight < 0.5


def test_nothing_is_needed_to_begin():
    prior = FreezeThawPrior()
    assert prior.spreads
    x = np.random.default_rng(0).random((4, 2))
    curves = losses_of(x)
    curves[1, 2:] = np.nan
    surrogate = prior.surrogate(Target(SPACE))
    nothing = [np.empty((0, 1))] * 4
    silent = SeenCurves(encoded(x), [np.empty(0)] * 4, nothing, np.full(4, 2.0), 1.0, LAST)
    for state in (silent, seen(x[:2], [1, 3], curves[:2]), seen(x, [1, 3, 5, 16], curves)):
        posterior = surrogate.condition_on_curves(state, NOTHING, seed=0)
        assert np.isfinite(posterior.log_improvement(encoded(x))).all()
        assert np.isfinite(posterior.predict(encoded(x)).std).all()


def test_a_saved_prior_is_the_same(learnt, tmp_path):
    learnt.save(tmp_path / "prior")
    again = load_prior(tmp_path / "prior")
    assert again.last_step == learnt.last_step == LAST
    for mine, other in zip(learnt.experts, again.experts, strict=True):
        assert mine.keys() == other.keys()
        for name in mine:
            for key, array in mine[name].pack().items():
                np.testing.assert_array_equal(array, other[name].pack()[key])
    assert isinstance(again.good, Encoded)


@pytest.mark.parametrize("tasks", [1, 2])
def test_few_past_tasks_are_enough(tasks):
    prior = freeze_thaw().learn(past(tasks=tasks), seed=0, progress=SILENT)
    assert len(prior.opening(Target(SPACE))) == 1


def test_bands_hold_what_they_say_and_grow_with_their_share(learnt):
    rng = np.random.default_rng(8)
    x = rng.random((60, 2))
    truth = losses_of(x, scale=2.0)
    surrogate = learnt.surrogate(Target(SPACE))
    reached = rng.choice([1, 2, 4, 8], 60)
    posterior = surrogate.condition_on_curves(seen(x, reached, truth), NOTHING, seed=0)
    inside = []
    for share in (0.5, 0.9):
        low, high = posterior.belief.predict_band(encoded(x), share)
        assert (low < high).all()
        inside.append(np.mean((low <= truth[:, -1]) & (truth[:, -1] <= high)))
    assert inside[1] >= max(inside[0], 0.8)
