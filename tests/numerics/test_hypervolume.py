import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretune.numerics.acquisition import expected_improvement
from foretune.numerics.hypervolume import improving_boxes, log_expected_volume
from foretune_lab.bench.metrics import hypervolume

TWO, FAR = np.array([[1.0, 3.0], [2.0, 1.0]]), np.full(2, -np.inf)
SURE = 1e-12
"""A standard deviation of next to nothing."""


def test_the_boxes_of_two_points_equal_those_by_hand():
    boxes = improving_boxes(TWO, np.array([4.0, 5.0]), FAR)
    found = {(*low, *high) for low, high in zip(boxes.lower, boxes.upper, strict=True)}
    far = -np.inf
    # Below the lower point everything is new; above both only what is left of the first.
    assert found == {
        (far, far, 4.0, 1.0),
        (far, 1.0, 2.0, 3.0),
        (far, 3.0, 1.0, 5.0),
    }


def test_one_loss_gives_the_expected_improvement():
    mean, std = np.array([[0.3], [1.2], [-4.0]]), np.array([[0.5], [0.1], [2.0]])
    boxes = improving_boxes(np.array([[1.0], [0.7]]), np.array([3.0]), FAR[:1])
    expected = expected_improvement(mean[:, 0], std[:, 0], 0.7)
    np.testing.assert_allclose(np.exp(log_expected_volume(mean, std, boxes)), expected)


def test_a_sure_trial_adds_the_rectangle_by_hand():
    boxes = improving_boxes(TWO, np.array([4.0, 5.0]), FAR)
    added = np.exp(log_expected_volume(np.array([[1.5, 2.0]]), np.full((1, 2), SURE), boxes))
    # It takes (1.5..2) x (2..3) of what was free.
    np.testing.assert_allclose(added, [0.5], rtol=1e-6)


def test_nothing_is_gained_beyond_the_ideal():
    boxes = improving_boxes(TWO, np.array([4.0, 5.0]), np.array([0.5, 0.0]))
    far, ideal = (
        np.exp(log_expected_volume(np.array([place]), np.full((1, 2), SURE), boxes))
        for place in ([-9.0, -9.0], [0.5, 0.0])
    )
    np.testing.assert_allclose(far, ideal)
    # All of (0.5..4) x (0..5) but what the two points have: 3 x 2 and 2 x 4, of which 2 x 2 twice.
    np.testing.assert_allclose(ideal, [17.5 - 10.0])


points = st.lists(st.lists(st.integers(0, 6), min_size=3, max_size=3), min_size=1, max_size=7).map(
    lambda rows: np.array(rows, dtype=float)
)


@given(points, st.lists(st.integers(-1, 7), min_size=3, max_size=3), st.integers(2, 3))
def test_a_sure_trial_adds_as_much_as_the_hypervolume_grows(front, trial, objectives):
    front, reference = front[:, :objectives], np.full(objectives, 6.5)
    trial = np.array([trial[:objectives]], dtype=float)
    boxes = improving_boxes(front, reference, np.full(objectives, -np.inf))
    added = np.exp(log_expected_volume(trial, np.full(trial.shape, SURE), boxes))
    before, after = (hypervolume(p, reference) for p in (front, np.vstack([front, trial])))
    np.testing.assert_allclose(added, after - before, atol=1e-6)


@pytest.mark.parametrize("objectives", [2, 3])
def test_an_unsure_trial_adds_the_mean_over_draws(objectives):
    rng = np.random.default_rng(0)
    front, reference = rng.normal(size=(6, objectives)), np.full(objectives, 2.0)
    mean, std = rng.normal(size=(3, objectives)), rng.uniform(0.2, 1.0, size=(3, objectives))
    boxes = improving_boxes(front, reference, np.full(objectives, -np.inf))
    found = np.exp(log_expected_volume(mean, std, boxes))
    before = hypervolume(front, reference)
    for place in range(3):
        draws = rng.normal(mean[place], std[place], size=(400, objectives))
        gains = [hypervolume(np.vstack([front, draw]), reference) - before for draw in draws]
        np.testing.assert_allclose(found[place], np.mean(gains), atol=4 * np.std(gains) / 20)


def test_hopeless_configurations_have_a_finite_logarithm():
    boxes = improving_boxes(np.zeros((1, 2)), np.ones(2), FAR)
    found = log_expected_volume(np.full((1, 2), 1e6), np.full((1, 2), 1e-6), boxes)
    assert np.isfinite(found).all()


def test_points_worse_than_the_reference_take_nothing_away():
    reference = np.array([4.0, 5.0])
    plain, with_it = (
        improving_boxes(front, reference, FAR) for front in (TWO, np.vstack([TWO, [0.0, 9.0]]))
    )
    np.testing.assert_array_equal(plain.lower, with_it.lower)
    np.testing.assert_array_equal(plain.upper, with_it.upper)
