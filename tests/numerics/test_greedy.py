"""Lemma 1 and Theorem 1 of the zero-shot paper, and the greedy algorithm against brute force."""

from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from foretune.numerics.greedy import (
    CHUNK,
    find_aggregate,
    greedy,
    meta_loss,
    missing_as_worst,
    worst_of_each,
)
from tests.refusals import refuses

NAN = np.nan
TABLE = np.array([[0.1, 0.9, 0.5, 0.4], [0.9, 0.1, 0.5, 0.4], [0.6, 0.6, 0.3, 0.4]])

tables = arrays.arrays(
    np.float64,
    arrays.array_shapes(min_dims=2, max_dims=2, min_side=2, max_side=7),
    elements=st.floats(-1.0, 1.0, width=32) | st.just(NAN),
)


def test_picks_by_hand():
    picks = greedy(TABLE, 3)
    # Alone the even column is best (0.4); beside it columns 0 and 1 save 0.3 each, and 0 is first.
    assert picks.chosen.tolist() == [3, 0, 1]
    np.testing.assert_allclose(picks.losses, [0.4, 0.3, 0.2])


def test_missing_losses_count_as_the_worst_of_their_task():
    table = np.array([[0.2, NAN, 0.8], [NAN, 0.5, 0.4], [NAN, NAN, NAN]])
    filled = [[0.2, 0.8, 0.8], [0.5, 0.5, 0.4], [0.0, 0.0, 0.0]]
    np.testing.assert_array_equal(missing_as_worst(table), filled)
    np.testing.assert_array_equal(worst_of_each(table), [0.8, 0.5, 0.0])
    assert greedy(table, 2).chosen.tolist() == [0, 2]


def test_what_helps_nothing_comes_by_its_own_mean():
    table = np.array([[0.0, 0.3, 0.2, 0.4], [0.0, 0.1, 0.1, 0.1]])
    assert greedy(table, 9).chosen.tolist() == [0, 2, 1, 3]


def test_aggregates_by_name():
    table = np.array([[0.0], [1.0], [2.0], [7.0]])
    found = {name: find_aggregate(name)(table)[0] for name in ("mean", "median", "p90", "p0")}
    assert found == pytest.approx({"mean": 2.5, "median": 1.5, "p90": 5.5, "p0": 0.0})
    for wrong in ("max", "p", "p101", "p-1", "90"):
        with refuses("unknown-aggregate", value=wrong):
            find_aggregate(wrong)


def test_the_worst_case_may_prefer_another_configuration():
    table = np.array([[0.0, 0.5]] * 8 + [[1.0, 0.6]] * 2)
    assert greedy(table, 1).chosen.tolist() == [0]
    assert greedy(table, 1, find_aggregate("p90")).chosen.tolist() == [1]


def test_chunks_change_nothing():
    table = np.random.default_rng(0).random((6, 2 * CHUNK + 5)).astype(np.float32)
    best, chosen = np.full(6, np.inf), []
    for _ in range(4):
        chosen.append(int(np.minimum(table, best[:, None]).mean(axis=0).argmin()))
        best = np.minimum(best, table[:, chosen[-1]])
    picks = greedy(table, 4)
    assert picks.chosen.tolist() == chosen
    assert picks.losses[-1] == pytest.approx(best.mean())


@given(tables, st.data())
def test_lemma_1(table, data):
    columns = list(range(table.shape[1]))
    larger = data.draw(st.lists(st.sampled_from(columns), unique=True, max_size=len(columns) - 1))
    smaller = data.draw(st.lists(st.sampled_from(larger), unique=True)) if larger else []
    new = data.draw(st.sampled_from([c for c in columns if c not in larger]))

    def gain(chosen):
        return meta_loss(table, chosen) - meta_loss(table, [*chosen, new])

    assert gain(smaller) >= gain(larger) - 1e-12  # supermodular
    assert gain(larger) >= -1e-12  # monotone


def optimal_gain(table, k):
    sets = combinations(range(table.shape[1]), min(k, table.shape[1]))
    return meta_loss(table, []) - min(meta_loss(table, chosen) for chosen in sets)


@given(tables, st.integers(1, 4))
def test_greedy_reaches_its_share_of_the_optimum(table, k):
    gain = meta_loss(table, []) - greedy(table, k).losses[-1]
    assert gain >= (1 - 1 / np.e) * optimal_gain(table, k) - 1e-12


@given(tables, st.integers(1, 4), st.floats(0.0, 0.9), st.integers(0, 2**32 - 1))
def test_theorem_1_approximate_steps(table, k, epsilon, seed):
    """Any column may be picked whose gain is at least (1 - epsilon) of the best one."""
    rng = np.random.default_rng(seed)
    chosen = []
    for _ in range(min(k, table.shape[1])):
        free = [c for c in range(table.shape[1]) if c not in chosen]
        before = meta_loss(table, chosen)
        gains = np.array([before - meta_loss(table, [*chosen, c]) for c in free])
        allowed = np.flatnonzero(gains >= (1 - epsilon) * gains.max())
        chosen.append(free[rng.choice(allowed)])
    gain = meta_loss(table, []) - meta_loss(table, chosen)
    assert gain >= (1 - np.exp(-1 + epsilon)) * optimal_gain(table, k) - 1e-9


def test_a_percentile_may_be_the_worst():
    np.testing.assert_array_equal(find_aggregate("p100")(TABLE), TABLE.max(axis=0))


def test_equal_aggregates_are_ordered_by_the_lower_mean():
    table = np.array([[0.5, 0.5], [0.5, 0.5], [0.9, 0.6], [1.0, 1.0], [0.0, 0.0]])
    assert greedy(table, 1, find_aggregate("median")).chosen.tolist() == [1]
