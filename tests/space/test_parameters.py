import numpy as np
import pytest
from ConfigSpace import ConfigurationSpace
from ConfigSpace.hyperparameters import (
    BetaFloatHyperparameter,
    NormalIntegerHyperparameter,
    UniformFloatHyperparameter,
    UniformIntegerHyperparameter,
)

from foretune.space import Kind, Parameter, Space
from tests.refusals import refuses
from tests.space.spaces import EVERY_KIND


def parameter(value: object) -> Parameter:
    return Space.of({"p": value}).parameters[0]


def test_every_kind_is_read_with_its_range_and_columns() -> None:
    parameters = {p.name: p for p in Space.of(EVERY_KIND).parameters}
    assert {name: p.kind for name, p in parameters.items()} == {
        "rate": Kind.FLOAT,
        "share": Kind.FLOAT,
        "depth": Kind.INT,
        "trees": Kind.INT,
        "kernel": Kind.CATEGORICAL,
        "size": Kind.ORDINAL,
        "seed": Kind.CONSTANT,
    }
    assert (parameters["rate"].low, parameters["rate"].high) == (1e-4, 1e-1)
    assert parameters["rate"].log
    assert not parameters["share"].log
    assert parameters["kernel"].choices == ("linear", "poly", "rbf")
    widths = {name: p.width for name, p in parameters.items()}
    assert widths == {
        "rate": 1,
        "share": 1,
        "depth": 1,
        "trees": 1,
        "kernel": 3,
        "size": 1,
        "seed": 0,
    }
    ends = [p.columns.stop for p in Space.of(EVERY_KIND).parameters]
    assert ends[-1] == sum(widths.values()) == Space.of(EVERY_KIND).width


def test_normal_and_beta_are_their_bounded_ranges() -> None:
    space = Space.of(
        ConfigurationSpace(
            {
                "n": NormalIntegerHyperparameter("n", mu=5, sigma=2, lower=1, upper=9),
                "b": BetaFloatHyperparameter("b", alpha=2, beta=3, lower=0.0, upper=4.0),
            }
        )
    )
    beta, normal = space.parameters
    assert (beta.kind, beta.low, beta.high) == (Kind.FLOAT, 0.0, 4.0)
    assert (normal.kind, normal.low, normal.high) == (Kind.INT, 1.0, 9.0)
    assert space.sample(500, seed=0).values[:, 1].max() == 9


@pytest.mark.parametrize(
    ("value", "number", "unit"),
    [
        ((0.0, 4.0), 1.0, 0.25),
        ((1e-4, 1e-0, "log"), 1e-3, 0.25),
        ((1, 11), 6, 0.5),
        ((1, 16, "log"), 4, 0.5),
        ({"ordinal": ["s", "m", "l"]}, 1, 0.5),
    ],
)
def test_unit_scale_there_and_back(value: object, number: float, unit: float) -> None:
    one = parameter(value)
    np.testing.assert_allclose(one.to_unit(np.array([number])), [unit], rtol=1e-14)
    np.testing.assert_allclose(one.from_unit(np.array([unit])), [number], rtol=1e-14)


def test_ranks_are_the_nearest_ones() -> None:
    sizes = parameter({"ordinal": ["s", "m", "l"]})
    assert sizes.from_unit(np.array([0.2, 0.4, 0.8])).tolist() == [0, 1, 2]


def test_from_unit_never_leaves_the_range() -> None:
    one = parameter((0.01, 0.11, "log"))  # its upper end is rounded upwards
    ends = one.from_unit(np.array([0.0, 1.0]))
    assert ends[0] >= one.low
    assert ends[1] <= one.high


def test_quantile_gives_every_integer_its_share() -> None:
    unit = (np.arange(30_000) + 0.5) / 30_000
    values, counts = np.unique(parameter((1, 3)).quantile(unit), return_counts=True)
    assert values.tolist() == [1, 2, 3]
    assert counts.tolist() == [10_000] * 3
    assert parameter((1, 3)).quantile(np.array([0.0, 1.0])).tolist() == [1, 3]
    # On a log scale an integer gets log((k + 1/2) / (k - 1/2)) of log(3.5 / 0.5).
    _, counts = np.unique(parameter((1, 3, "log")).quantile(unit), return_counts=True)
    shares = np.log([1.5 / 0.5, 2.5 / 1.5, 3.5 / 2.5]) / np.log(7)
    np.testing.assert_allclose(counts / 30_000, shares, atol=1e-4)


def test_allowed_in_words() -> None:
    assert parameter((1e-4, 0.5, "log")).allowed_text == "[0.0001, 0.5] log"
    assert parameter((1, 9)).allowed_text == "{1..9}"
    assert parameter(["a", None]).allowed_text == "{'a', None}"


def test_size() -> None:
    assert parameter((1, 9)).size == 9
    assert parameter(["a", "b"]).size == 2
    assert parameter((0.0, 1.0)).size == np.inf


def test_integers_that_float64_cannot_hold_are_refused() -> None:
    for bounds in ((0, 2**60), (-(2**60), 0)):
        huge = UniformIntegerHyperparameter("n", *bounds)
        with refuses("integer-too-large", field="n", value=bounds):
            Space.of(ConfigurationSpace({"n": huge}))
    assert parameter((0, 2**53)).high == 2**53


@pytest.mark.filterwarnings("ignore::RuntimeWarning")  # of ConfigSpace
def test_a_range_without_an_end_is_refused() -> None:
    endless = UniformFloatHyperparameter("x", 0.0, np.inf, default_value=1.0)
    with refuses("infinite-bounds", field="x"):
        Space.of(ConfigurationSpace({"x": endless}))


def test_truth_values_are_no_numbers_within_lists_either() -> None:
    layers = parameter([(1, 2), (3, 4)])
    assert layers.index_of([1.0, 2]) == 0
    assert layers.index_of((True, 2)) is None


@pytest.mark.parametrize("given", [[1.0, np.nan], {"ordinal": [(1, np.nan), (1, 2)]}])
def test_nan_is_no_value_for_nothing_would_find_it(given: object) -> None:
    with refuses("nan-choice", field="n"):
        Space.of({"n": given})


def test_infinity_is_a_value_as_any_other() -> None:
    space = Space.of({"eps": [1.0, np.inf], "limit": -np.inf})
    configs = [{"eps": np.inf, "limit": -np.inf}]
    assert Space.from_json(space.to_json()).encode(configs).dicts() == configs
