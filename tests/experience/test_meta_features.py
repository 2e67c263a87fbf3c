import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from foretune.tables.meta_features import meta_features


def described(x, categorical, y, classification=True):
    return meta_features(
        np.asarray(x, dtype=float),
        np.asarray(categorical, dtype=bool),
        np.asarray(y, dtype=float),
        classification=classification,
    )


def test_simple_and_informational_ones_by_hand():
    x = np.array([[0, 0.0], [0, np.nan], [1, 2.0], [1, 3.0]])
    found = described(x, [True, False], [0, 0, 1, 1])
    assert found["log_rows"] == pytest.approx(np.log(4))
    assert found["log_rows_per_column"] == pytest.approx(np.log(2))
    assert found["share_categorical"] == 0.5
    assert found["share_missing"] == 1 / 8
    assert found["share_rows_missing"] == 1 / 4
    assert (found["levels_mean"], found["classes"], found["class_share_max"]) == (2, 2, 0.5)
    assert found["target_entropy"] == pytest.approx(np.log(2))
    assert found["target_entropy_relative"] == pytest.approx(1.0)
    # The categorical column says everything about the target.
    assert found["mutual_information_max"] == pytest.approx(np.log(2))
    assert found["best_column_information"] == pytest.approx(1.0)


def test_statistical_ones_by_hand():
    a = np.tile([-1.0, 1.0], 50)
    found = described(np.column_stack([a, -a]), [False, False], a, classification=False)
    assert found["correlation_mean"] == pytest.approx(1.0)
    assert found["target_correlation_min"] == pytest.approx(1.0)
    assert found["skewness_max"] == pytest.approx(0.0)
    assert found["kurtosis_mean"] == pytest.approx(np.log(2))
    assert found["components_first"] == pytest.approx(1.0)
    assert found["classes"] == 0


def test_rare_values_by_hand():
    # One of a hundred is 100: mean 1, variance 99, so that it lies 99 / sqrt(99) spreads away.
    rare, even = np.append(np.zeros(99), 100.0), np.tile([-1.0, 1.0], 50)
    found = described(np.column_stack([rare, even]), [False, False], rare, classification=False)
    assert found["outlier_share"] == pytest.approx(0.01 / 2)
    third = (99 * (-1.0) ** 3 + 99.0**3) / 100 / 99**1.5
    fourth = (99 * (-1.0) ** 4 + 99.0**4) / 100 / 99**2
    assert found["skewness_max"] == found["target_skewness"] == pytest.approx(third)
    assert found["kurtosis_max"] == found["target_kurtosis"] == pytest.approx(np.log(fourth + 1))
    # Their correlation is mean(rare * even) / sqrt(99) = 1 / sqrt(99).
    assert found["correlation_mean"] == pytest.approx(99**-0.5)
    assert found["target_correlation_max"] == pytest.approx(1.0)
    assert found["target_correlation_min"] == pytest.approx(99**-0.5)
    assert found["components_first"] == pytest.approx((1 + 99**-0.5) / 2)
    assert found["components_for_95"] == 1.0
    assert found["zero_share"] == 0.0
    constant = np.column_stack([np.ones(100), even])
    assert described(constant, [False, False], even, False)["zero_share"] == 0.5


@pytest.mark.parametrize("classification", [True, False])
def test_landmarks_tell_signal_from_noise(classification):
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 3))
    signal = (x[:, 0] > 0) if classification else x[:, 0]
    noise = rng.permutation(signal)
    clear = described(x, [False] * 3, signal, classification)
    muddled = described(x, [False] * 3, noise, classification)
    for name in ("landmark_tree", "landmark_linear", "landmark_stump"):
        assert clear[name] > 0.3 > muddled[name] + 0.1


@settings(max_examples=40)
@given(
    x=hnp.arrays(
        np.float64,
        st.tuples(st.integers(2, 12), st.integers(1, 4)),
        elements=st.one_of(st.just(np.nan), st.integers(0, 3), st.sampled_from([1e300, -1e-300])),
    ),
    classification=st.booleans(),
    seed=st.integers(0, 99),
)
def test_always_finite_with_the_same_names(x, classification, seed):
    rng = np.random.default_rng(seed)
    categorical = rng.random(x.shape[1]) < 0.5
    x = np.where(categorical & (np.abs(x) > 3), 0.0, x)
    y = rng.integers(0, 3, len(x)).astype(float)
    with np.errstate(all="ignore"):
        found = described(x, categorical, y, classification)
    assert np.isfinite(list(found.values())).all()
    assert set(found) == set(described([[0.0], [1.0]], [False], [0, 1]))


def test_the_order_of_rows_hardly_matters_and_the_result_repeats():
    rng = np.random.default_rng(1)
    x, y = rng.normal(size=(300, 4)), rng.integers(0, 2, 300)
    assert described(x, [False] * 4, y) == described(x, [False] * 4, y)
    order = rng.permutation(300)
    one, other = described(x, [False] * 4, y), described(x[order], [False] * 4, y[order])
    same = [name for name in one if not name.startswith("landmark")]
    assert [one[n] for n in same] == pytest.approx([other[n] for n in same])


def test_large_tables_are_sampled():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(5000, 150))
    found = described(x, np.arange(150) < 20, rng.integers(0, 2, 5000))
    assert found["log_rows"] == pytest.approx(np.log(5000))
    assert found["log_columns"] == pytest.approx(np.log(150))


def test_units_do_not_matter():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 3)), rng.normal(size=60)
    x[4, 1] = np.nan
    usual = described(x, [False] * 3, y, False)
    for unit in (2.0**1020, 2.0**-1000):
        assert described(unit * x, [False] * 3, unit * y, False) == usual
