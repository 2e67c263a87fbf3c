import numpy as np
import pytest

from foretune.numerics import anchored
from foretune.numerics.anchored import (
    AnchoredFit,
    AnchorLimits,
    farthest_first,
    informative_subset,
    last_anchor,
)
from foretune.numerics.gp import fit_hyper
from foretune.numerics.hyper import GPHyper
from foretune.numerics.transforms import Standardise, copula_scores


def observations(n: int, d: int = 3, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    x = np.random.default_rng(seed).random((n, d))
    return x, np.sin(7.0 * x[:, 0]) + x[:, 1] ** 2


def test_last_anchor():
    sizes = (1, 3, 4, 5, 7, 8, 15, 16, 100)
    assert [last_anchor(n) for n in sizes] == [4, 4, 4, 4, 4, 8, 8, 16, 64]


def test_resuming_at_any_point_gives_the_same_bits_as_never_stopping():
    x, y = observations(41)
    running = AnchoredFit()
    for n in range(1, len(x) + 1):
        uninterrupted = running.hyper(x[:n], y[:n]).to_vector()
        if n in (1, 2, 3, 4, 5, 8, 13, 16, 17, 31, 32, 33, 41):
            resumed = AnchoredFit().hyper(x[:n].copy(), y[:n].copy()).to_vector()
            np.testing.assert_array_equal(uninterrupted, resumed)


def test_other_observations_in_between_change_nothing():
    x, y = observations(20)
    fits = AnchoredFit()
    fits.hyper(*observations(30, seed=1))
    fits.hyper(x, -y)
    np.testing.assert_array_equal(
        fits.hyper(x, y).to_vector(), AnchoredFit().hyper(x, y).to_vector()
    )


def test_an_online_step_costs_one_fit():
    x, y = observations(40)
    sizes = []

    def counted(x, y, **options):
        sizes.append(len(x))
        return fit_hyper(x, y, **options)

    fits = AnchoredFit(fit=counted)
    for n in range(1, 41):
        fits.hyper(x[:n], y[:n])
    assert sizes == list(range(1, 41))
    fits.hyper(x, y)
    assert len(sizes) == 40
    AnchoredFit(fit=counted).hyper(x, y)
    assert sizes[40:] == [4, 8, 16, 32, 40]


def test_scores_that_change_with_every_loss_still_cost_one_fit_a_step():
    x, y = observations(20)
    sizes = []

    def counted(x, y, **options):
        sizes.append(len(x))
        return fit_hyper(x, y, **options)

    fits = AnchoredFit(output=copula_scores, fit=counted)
    for n in range(1, 21):
        np.testing.assert_array_equal(fits.gp(x[:n], y[:n]).y, copula_scores(y[:n]))
    assert sizes == list(range(1, 21))


def test_an_output_may_read_further_columns():
    x, y = observations(9)
    columns = np.column_stack([y, np.arange(9.0)])
    gp = AnchoredFit(output=lambda told: told[:, 0] - told[:, 1]).gp(x, columns)
    np.testing.assert_array_equal(gp.y, y - np.arange(9.0))


def test_the_cache_is_bounded():
    fits = AnchoredFit()
    for seed in range(anchored.CACHED + 10):
        fits.hyper(*observations(2, seed=seed))
    assert len(fits._known) == anchored.CACHED


def test_an_anchor_is_at_least_as_probable_as_the_fit_from_the_default():
    x, y = observations(32)
    from_default = fit_hyper(x, y)
    fits = AnchoredFit()
    anchor = fits.hyper(x, y)
    again = fit_hyper(x, y, starts=(from_default, anchor))
    np.testing.assert_allclose(again.to_vector(), anchor.to_vector(), atol=0.1)


def test_gp_uses_the_fit_and_the_given_units():
    x, y = observations(12)
    units = Standardise(0.0, 1.0)
    fits = AnchoredFit(units=units)
    gp = fits.gp(x, y)
    assert gp.units == units
    assert isinstance(gp.hyper, GPHyper)
    np.testing.assert_array_equal(gp.hyper.to_vector(), fits.hyper(x, y).to_vector())


def test_small_sets_are_kept_whole():
    x, y = observations(10)
    np.testing.assert_array_equal(informative_subset(x, y, 10), np.arange(10))


def test_subset_holds_the_best_the_latest_and_fills_space():
    x = np.full((100, 1), 0.5)
    x[:5, 0] = [0.0, 1.0, 0.25, 0.75, 0.5]
    y = np.arange(100.0)
    y[[40, 41, 42, 43]] = -1.0
    subset = informative_subset(x, y, 20)
    assert len(np.unique(subset)) == 20
    assert {40, 41, 42, 43} <= set(subset)
    assert {96, 97, 98, 99} <= set(subset)
    assert {0, 1, 2, 3} <= set(subset)
    np.testing.assert_array_equal(subset, np.sort(subset))


def test_the_farthest_from_all_that_is_taken_comes_first():
    # 0.4 is 0.4 away from what is taken, 0.1 is 0.1, and 0.95 is 0.05.
    x, taken = np.array([[0.4], [0.95], [0.1]]), np.array([[0.0], [1.0]])
    assert farthest_first(x, taken, 3).tolist() == [0, 2, 1]


@pytest.mark.parametrize("size", [5, 37])
def test_subset_of_exact_duplicates_never_repeats_an_index(size):
    subset = informative_subset(np.zeros((50, 2)), np.zeros(50), size)
    assert len(np.unique(subset)) == size


def test_many_observations_are_fitted_and_conditioned_by_subsets():
    x, y = observations(70)
    gp = AnchoredFit(limits=AnchorLimits(largest_fit=20, early_anchor=8, largest_gp=40)).gp(x, y)
    assert len(gp.x) == 40
    mean, _ = gp.predict(x)
    assert np.corrcoef(mean, y)[0, 1] > 0.99


def test_many_observations_are_fitted_now_and_then_from_an_early_anchor():
    fitted = []

    def counting(x, y, **options):
        fitted.append((len(x), len(options["starts"])))
        return fit_hyper(x, y, **options)

    x, y = observations(40)
    fits = AnchoredFit(
        limits=AnchorLimits(largest_fit=20, refit_every=10, early_anchor=8), fit=counting
    )
    found = [fits.hyper(x[:n], y[:n]).to_vector() for n in (30, 31, 39)]
    # The anchors of 4 and 8, the latter from two starts, then one fit to 20 of 30 for all three.
    assert fitted == [(4, 1), (8, 2), (20, 1)]
    np.testing.assert_array_equal(found, [found[0]] * 3)
    fits.hyper(x, y)
    assert fitted[3:] == [(20, 1)]
