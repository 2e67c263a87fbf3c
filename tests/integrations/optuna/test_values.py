"""Values between Optuna and a space."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from optuna.distributions import (
    BaseDistribution,
    CategoricalDistribution,
    FloatDistribution,
    IntDistribution,
)

from foretune.space import Space
from foretune.stores.optuna.values import UNFIT, representable, to_optuna_value, to_space_value


def parameter(distribution: BaseDistribution) -> Any:
    return Space.of({"p": distribution}).parameters[0]


numbers = st.one_of(
    st.builds(
        lambda low, size: FloatDistribution(low, low + size),
        st.floats(-1e3, 1e3),
        st.floats(0.1, 1e3),
    ),
    st.builds(
        lambda low, factor: FloatDistribution(low, low * factor, log=True),
        st.floats(1e-6, 1.0),
        st.floats(2.0, 1e6),
    ),
    st.builds(
        lambda low, steps, step: IntDistribution(low, low + steps * step, step=step),
        st.integers(-50, 50),
        st.integers(1, 40),
        st.integers(1, 5),
    ),
    st.builds(
        lambda steps, tenths: FloatDistribution(0.3, 0.3 + steps * tenths / 10, step=tenths / 10),
        st.integers(1, 30),
        st.integers(1, 7),
    ),
)


@settings(max_examples=60)
@given(numbers, st.integers(0, 1000))
def test_samples_of_a_space_are_legal_in_optuna(distribution, seed):
    drawn = Space.of({"p": distribution}).sample(1, seed=seed).dicts()[0]["p"]
    value = to_optuna_value(distribution, drawn)
    assert distribution._contains(distribution.to_internal_repr(value))
    assert type(value) is (int if isinstance(distribution, IntDistribution) else float)
    assert value == pytest.approx(drawn, rel=1e-9)
    assert to_space_value(parameter(distribution), value) == pytest.approx(drawn, rel=1e-9)


def test_choices_keep_their_types():
    mixed = CategoricalDistribution([True, "True", None, 2, 0.5])
    for choice in mixed.choices:
        inside = to_space_value(parameter(mixed), choice)
        assert (type(inside), inside) == (type(choice), choice)
        assert to_optuna_value(mixed, choice) is choice
    assert to_optuna_value(CategoricalDistribution([1, 2]), True) is UNFIT


@pytest.mark.parametrize(
    ("distribution", "value"),
    [
        (FloatDistribution(0.0, 1.0), 1.5),
        (FloatDistribution(0.0, 1.0), "much"),
        (IntDistribution(1, 3), 4),
        (IntDistribution(1, 9, step=2), 11),
        (CategoricalDistribution(["a", "b"]), "c"),
    ],
)
def test_values_without_a_place_are_unfit(distribution, value):
    assert to_optuna_value(distribution, value) is UNFIT
    assert to_space_value(parameter(distribution), value) is UNFIT


def test_fractions_are_no_integers():
    assert to_space_value(parameter(IntDistribution(1, 9)), 2.5) is UNFIT
    assert to_space_value(parameter(IntDistribution(1, 9)), 3.0) == 3


def test_bounds_that_were_rounded_still_hold():
    narrow = FloatDistribution(0.0, 1.0)
    assert to_optuna_value(narrow, 1.0 + 1e-12) == 1.0
    assert to_space_value(parameter(narrow), -1e-12) == 0.0


def test_only_what_a_space_can_hold_is_planned():
    kept = representable(
        {
            "one": IntDistribution(3, 3),
            "fine": FloatDistribution(0.0, 1e6, step=0.001),
            "nan": CategoricalDistribution([float("nan"), 1.0]),
            "lists": CategoricalDistribution(["a", "b"]),
            "number": FloatDistribution(0.0, 1.0),
        }
    )
    assert set(kept) == {"fine", "lists", "number"}


@pytest.mark.parametrize("order", [[16, 32, 64], [64, 32, 16], [32, 64, 16]])
def test_an_ordinal_may_be_in_any_order(order):
    batch = Space.of({"p": {"ordinal": order}}).parameters[0]
    assert [to_space_value(batch, value) for value in order] == order
    assert to_space_value(batch, 60) == 64
    assert to_space_value(batch, 65) is UNFIT
    assert to_space_value(batch, 15) is UNFIT


def test_a_value_beside_a_fine_grid_is_handed_out_on_it():
    assert to_optuna_value(FloatDistribution(0.0, 1e6, step=0.001), 3.14159) == pytest.approx(3.142)
    assert to_optuna_value(IntDistribution(0, 10**9, step=20), 333) in (320, 340)
