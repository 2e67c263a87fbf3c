from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy import stats

from foretune_lab.bench import statistics
from foretune_lab.bench.statistics import LARGEST_EXACT, compare, holm, wilcoxon_p
from tests.refusals import refuses


def separated(tasks=12):
    """Methods b and c are alike, a is far better, d far worse."""
    rng = np.random.default_rng(0)
    noise = rng.normal(size=(4, tasks)) * 0.1
    return np.array([0.0, 1.0, 1.0, 5.0])[:, None] + noise


def test_methods_come_in_the_order_of_their_ranks():
    comparison = compare(("d", "a", "b", "c"), separated()[[3, 0, 1, 2]])
    assert comparison.methods[0] == "a"
    assert comparison.methods[-1] == "d"
    assert comparison.ranks[0] == 1.0
    assert comparison.ranks.sum() == pytest.approx(1 + 2 + 3 + 4)


def test_only_methods_that_cannot_be_told_apart_share_a_group():
    comparison = compare(("a", "b", "c", "d"), separated())
    assert [set(group) for group in comparison.groups] == [{"b", "c"}]
    assert comparison.friedman_p < 1e-4


def test_p_values_are_wilcoxon_corrected_by_holm():
    losses = separated()[:3]
    comparison = compare(("a", "b", "c"), losses)
    raw = {
        frozenset((i, j)): stats.wilcoxon(losses["abc".index(i)], losses["abc".index(j)]).pvalue
        for i, j in ("ab", "ac", "bc")
    }
    corrected, largest = {}, 0.0
    for step, pair in enumerate(sorted(raw, key=raw.__getitem__)):
        largest = max(largest, min(1.0, raw[pair] * (3 - step)))
        corrected[pair] = largest
    for i, first in enumerate(comparison.methods):
        for j, second in enumerate(comparison.methods):
            expected = 1.0 if i == j else corrected[frozenset((first, second))]
            assert comparison.p_values[i, j] == pytest.approx(expected)


def test_friedman_agrees_with_a_hand_computed_statistic():
    # Ranks 1, 2, 3 on each of 4 tasks: the statistic is 12 / (4 * 12) * (16 + 64 + 144) - 48 = 8.
    losses = np.array([[0.1, 0.2, 0.3, 0.4], [0.2, 0.3, 0.4, 0.5], [0.9, 0.9, 0.9, 0.9]])
    assert compare(("a", "b", "c"), losses).friedman_p == pytest.approx(np.exp(-8 / 2))


def test_one_group_where_friedman_sees_no_difference():
    losses = np.tile([0.1, 0.2, 0.3], (3, 1))
    comparison = compare(("a", "b", "c"), losses)
    assert comparison.friedman_p == 1.0
    assert comparison.groups == (("a", "b", "c"),)
    assert (comparison.p_values == 1.0).all()


def test_two_methods_need_no_friedman_test():
    comparison = compare(("a", "d"), separated()[[0, 3]])
    assert np.isnan(comparison.friedman_p)
    assert comparison.groups == ()
    assert comparison.p_values[0, 1] == pytest.approx(2 / 2**12)


def test_groups_may_overlap_but_none_lies_within_another():
    rng = np.random.default_rng(4)
    ladder = np.arange(5)[:, None] * 0.45 + rng.normal(size=(5, 25))
    groups = [set(group) for group in compare(tuple("abcde"), ladder).groups]
    assert len(groups) > 1
    assert not any(a < b for a in groups for b in groups)


def test_a_group_holds_no_pair_that_differs():
    alike = np.ones((3, 3))
    assert statistics._indistinct_neighbours(tuple("abc"), alike) == (("a", "b", "c"),)
    ends_differ = alike.copy()
    ends_differ[0, 2] = ends_differ[2, 0] = 0.01
    assert statistics._indistinct_neighbours(tuple("abc"), ends_differ) == (("a", "b"), ("b", "c"))


def test_a_run_without_success_is_worst():
    losses = separated()
    losses[0, :] = np.nan
    comparison = compare(("a", "b", "c", "d"), losses)
    assert comparison.methods[-1] == "a"
    assert comparison.ranks[-1] >= 3.5


def test_too_little_to_compare_is_refused():
    with refuses("too-few-to-compare", value=(3, 1)):
        compare(("a", "b", "c"), np.zeros((3, 1)))


def test_three_gains_of_three_by_hand():
    # Of eight ways to sign three ranks two are as far from the middle as all alike.
    assert wilcoxon_p(np.array([0.1, 0.2, 0.3])) == pytest.approx(2 / 8)


def test_signed_ranks_agree_with_scipy():
    for seed, tasks in ((0, 8), (1, 20), (2, 50)):
        differences = np.random.default_rng(seed).normal(0.3, size=tasks)
        expected = stats.wilcoxon(differences, method="exact").pvalue
        assert wilcoxon_p(differences) == pytest.approx(expected)


@given(arrays(np.int64, st.integers(1, 9), elements=st.integers(-4, 4)))
def test_ties_are_counted_as_all_signs_would(differences):
    ranks, signs = stats.rankdata(np.abs(differences)), np.sign(differences)
    coins = np.array(list(product((-1, 1), repeat=len(ranks)))) * (signs != 0)
    sums, seen = coins @ ranks, signs @ ranks
    expected = np.mean(np.abs(sums) >= abs(seen))
    assert wilcoxon_p(differences.astype(float)) == pytest.approx(expected)


def test_the_sum_over_many_tasks_is_treated_as_normal():
    rng = np.random.default_rng(0)
    rounded = np.round(rng.normal(0.2, size=150), 1)
    assert (rounded == 0).any()
    for differences in (rng.normal(0.1, size=150), rounded):
        expected = stats.wilcoxon(differences, zero_method="pratt", correction=True).pvalue
        assert wilcoxon_p(differences) == pytest.approx(expected)


def test_many_ties_do_not_hide_that_all_else_was_won():
    # Seven coins that all show heads, or all tails.
    for ties in (0, 43, 44, 93, 94, 500):
        differences = np.concatenate([np.zeros(ties), np.linspace(0.1, 1.0, 7)])
        assert wilcoxon_p(differences) == pytest.approx(2 / 2**7)


@pytest.mark.parametrize("decimals", [1, 5])
def test_exact_and_normal_chances_meet(monkeypatch, decimals):
    for seed in range(5):
        draws = np.random.default_rng(seed).normal(0.2, size=LARGEST_EXACT + 20)
        differences = np.append(np.round(draws, decimals), np.zeros(300))
        assert np.count_nonzero(differences) > LARGEST_EXACT
        normal = wilcoxon_p(differences)
        with monkeypatch.context() as patched:
            patched.setattr(statistics, "LARGEST_EXACT", len(differences))
            assert wilcoxon_p(differences) == pytest.approx(normal, rel=0.15)


def test_holm_by_hand():
    assert holm(np.array([0.01, 0.04, 0.03])).tolist() == pytest.approx([0.03, 0.06, 0.06])
    assert holm(np.array([0.6, 0.9])).tolist() == [1.0, 1.0]


@pytest.mark.parametrize(("methods", "tasks"), [(2, 2), (4, 2), (2, 3)])
def test_few_tasks_are_compared_without_complaint(methods, tasks):
    losses = np.random.default_rng(0).random((methods, tasks))
    compared = compare(tuple(f"m{number}" for number in range(methods)), losses)
    assert compared.p_values.shape == (methods, methods)
    assert np.isfinite(compared.p_values).all()
