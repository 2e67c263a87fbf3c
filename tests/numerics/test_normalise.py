import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretune.numerics.normalise import (
    NORMALISATIONS,
    reference_loss,
    relative_error_difference,
    relative_error_to_best,
)
from tests.refusals import refuses

NAN = np.nan


def test_red_by_hand():
    found = relative_error_difference(
        np.array([0.3, 0.03, 0.4, 0.0, 0.2]), np.array([0.4, 0.04, 0.3, 0.0, 0.0])
    )
    np.testing.assert_allclose(found, [-0.25, -0.25, 0.25, 0.0, 1.0])


@given(st.floats(0, 10), st.floats(0, 10))
def test_red_is_antisymmetric_and_bounded(a, b):
    forth, back = (
        relative_error_difference(np.array(a), np.array(b)),
        relative_error_difference(np.array(b), np.array(a)),
    )
    assert forth == -back
    assert -1.0 <= forth <= 1.0


def test_red_refuses_negative_values():
    with refuses("negative-error", value=-0.9):
        relative_error_difference(np.array([-0.9]), np.array([0.1]))


def test_the_reference_is_the_mean_test_loss_of_the_ten_best_by_validation():
    validation = np.append(np.arange(12.0)[::-1], NAN)
    # What is best by validation is worst by test: 9, 8, ... by validation are 2, 3, ... by test.
    test = np.append(np.arange(12.0), 0.0)
    assert reference_loss(validation, test) == np.mean(np.arange(2.0, 12.0))
    assert reference_loss(validation) == 4.5
    assert reference_loss(np.array([3.0, NAN, 1.0])) == 2.0


@pytest.mark.filterwarnings("error")
def test_losses_near_the_largest_float_are_compared():
    losses = np.array([0.1, 0.2, 0.3, 1.7e308, 1.7e308])
    np.testing.assert_allclose(relative_error_to_best(losses), [-1.0, -1.0, -1.0, 0.6, 0.6])
    between = NORMALISATIONS["min-max"](np.array([-1.7e308, 0.0, 1.7e308]))
    np.testing.assert_allclose(between, [0.0, 0.5, 1.0])


def test_each_normalisation_by_hand():
    losses = np.array([0.2, NAN, 0.4, 0.6, 0.4])
    expected = {
        "none": losses,
        "rank": [0.0, NAN, 0.25, 0.75, 0.25],
        "stddev": (losses - 0.4) / np.sqrt(0.02),
        "min-max": [0.0, NAN, 0.5, 1.0, 0.5],
        "red": [-0.5, NAN, 0.0, 1 / 3, 0.0],
        "normal": [-1.1503494, NAN, -0.3186394, 1.1503494, -0.3186394],
    }
    assert set(expected) == set(NORMALISATIONS)
    for name, normalised in expected.items():
        np.testing.assert_allclose(NORMALISATIONS[name](losses), normalised, 1e-6, err_msg=name)


@given(st.lists(st.floats(1e-3, 1.0), min_size=2, max_size=8), st.sampled_from([0.125, 0.5, 8.0]))
def test_all_but_none_survive_rescaling(losses, factor):
    plain = np.array(losses)
    for name in set(NORMALISATIONS) - {"none"}:
        normalise = NORMALISATIONS[name]
        np.testing.assert_allclose(normalise(plain * factor), normalise(plain), atol=1e-6)


def test_only_none_and_red_leave_simple_datasets_alone():
    simple = 0.3 + np.linspace(0.0, 1e-4, 20)
    spread = {name: np.ptp(normalise(simple)) for name, normalise in NORMALISATIONS.items()}
    assert {name for name, width in spread.items() if width < 1e-3} == {"none", "red"}


def test_a_task_without_records_stays_missing():
    assert np.isnan(relative_error_to_best(np.full(3, NAN))).all()


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("name", NORMALISATIONS)
def test_a_task_that_knows_nothing_stays_unknown_and_equal_losses_stay_equal(name):
    assert np.isnan(NORMALISATIONS[name](np.full(3, NAN))).all()
    assert len(set(NORMALISATIONS[name](np.full(3, 0.5)).tolist())) == 1
