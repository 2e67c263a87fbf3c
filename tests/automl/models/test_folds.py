"""Rows that belong together stay so, and what comes later is never learnt from."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretune.automl.evaluation import Protocol
from foretune.automl.folds import cross_validation, dealt_together, hold_out
from foretune.tables.row_structure import RowStructure, RowStructureKind, split_later_rows
from foretune.tables.schema import Schema
from foretune.tables.table import Table
from foretune.tables.target import Task
from tests.refusals import refuses

groups_of_rows = st.lists(st.integers(0, 9), min_size=2, max_size=60).filter(
    lambda given: len(set(given)) > 1
)


def arranged(kind, values, y=None):
    values = np.asarray(values, dtype=np.float64)
    y = np.arange(len(values), dtype=np.float64) if y is None else np.asarray(y, dtype=np.float64)
    arrangement = RowStructure(kind, "by", values)
    x = np.empty((len(values), 0))
    return Table("t", Task.REGRESSION, Schema(()), x, y, arrangement=arrangement)


@given(values=groups_of_rows, folds=st.integers(2, 5), seed=st.integers(0, 99))
def test_no_group_is_both_learnt_from_and_scored(values, folds, seed):
    table = arranged(RowStructureKind.TOGETHER, np.repeat(values, 2))
    groups = table.arrangement.values
    for splits in (cross_validation(table, folds, seed), hold_out(table, seed)):
        for learn, held in splits:
            assert len(learn) * len(held)
            assert not set(groups[learn]) & set(groups[held])
            assert sorted([*learn, *held]) == list(range(len(table)))


@given(values=groups_of_rows, folds=st.integers(2, 5))
def test_each_row_of_a_group_is_scored_once(values, folds):
    table = arranged(RowStructureKind.TOGETHER, np.repeat(values, 2))
    held = np.concatenate([held for _, held in cross_validation(table, folds, 0)])
    assert sorted(held) == list(range(len(table)))


@given(values=groups_of_rows, parts=st.integers(1, 5), first=st.floats(0.1, 0.9))
def test_later_and_simultaneous_rows_are_not_learnt_from(values, parts, first):
    order = np.array(values, dtype=np.float64)
    splits = split_later_rows(order, first=first, parts=parts)
    assert splits
    for learn, held in splits:
        assert len(learn) * len(held)
        assert order[learn].max() < order[held].min()
    scored = np.concatenate([held for _, held in splits])
    assert len(set(scored)) == len(scored)
    assert order[scored].max() == order.max()
    # All that comes before is learnt from, and what is scored last follows without a gap.
    assert all(len(learn) == (order < order[held].min()).sum() for learn, held in splits)


def test_the_later_half_in_parts():
    splits = split_later_rows(np.arange(12.0)[::-1], first=0.5, parts=3)
    # Row 0 comes last of the twelve.
    assert [sorted(held) for _, held in splits] == [[4, 5], [2, 3], [0, 1]]
    assert [len(learn) for learn, _ in splits] == [6, 8, 10]


def test_the_last_third_is_rounded():
    [(learn, held)] = split_later_rows(np.arange(10.0), first=2 / 3, parts=1)
    assert (len(learn), len(held)) == (7, 3)


def test_months_stay_whole():
    months = np.repeat(np.arange(4.0), 5)
    [(learn, held)] = split_later_rows(months, first=2 / 3, parts=1)
    assert set(months[learn]) == {0.0, 1.0, 2.0}
    assert set(months[held]) == {3.0}


def test_the_last_of_two_points_in_time_however_much_it_holds():
    order = np.array([0.0] * 3 + [1.0] * 7)
    [(learn, held)] = split_later_rows(order, first=0.5, parts=3)
    assert list(learn) == [0, 1, 2]
    assert list(held) == list(range(3, 10))


def test_parts_are_even_in_size_and_in_target():
    rng = np.random.default_rng(0)
    groups = np.repeat(np.arange(60), np.tile([4, 5, 6, 7], 15))
    y = rng.normal(size=60)[groups]
    part = dealt_together(groups, y, 5, np.random.default_rng(1))
    assert np.ptp(np.bincount(part)) < 7
    means = np.array([y[part == each].mean() for each in range(5)])
    # At random it would be 0.29.
    assert means.std() < 0.15


def test_one_large_group_is_a_part_of_its_own():
    groups = np.array([0] * 50 + list(range(1, 51)))
    part = dealt_together(groups, np.zeros(100), 2, np.random.default_rng(0))
    assert set(part[:50]) != set(part[50:])
    assert np.bincount(part).tolist() == [50, 50]


def test_a_third_is_held_out_even_beside_a_large_group():
    groups = [0] * 60 + [1] * 30 + [2] * 10
    [(learn, held)] = hold_out(arranged(RowStructureKind.TOGETHER, groups), seed=0)
    assert (len(learn), len(held)) == (70, 30)


def test_another_seed_deals_other_groups():
    table = arranged(RowStructureKind.TOGETHER, np.repeat(np.arange(30), 3), y=np.arange(90) % 3)
    first, second = (hold_out(table, seed)[0][1] for seed in (0, 1))
    assert set(first) != set(second)
    assert set(first) == set(hold_out(table, 0)[0][1])


@pytest.mark.parametrize(("groups", "splits"), [(99, 5), (100, 1)])
def test_few_groups_are_cross_validated_however_many_rows_they_have(groups, splits):
    table = arranged(RowStructureKind.TOGETHER, np.arange(3000) % groups)
    assert len(Protocol(("r2",)).splits(table)) == splits


def test_many_rows_in_order_are_held_out_once():
    table = arranged(RowStructureKind.IN_ORDER, np.arange(3000))
    [(learn, held)] = Protocol(("r2",)).splits(table)
    assert learn.max() < held.min()
    assert len(held) == 1000


def test_early_rows_that_are_all_alike_are_not_learnt_from_alone():
    y = np.r_[np.zeros(35), np.arange(25)]
    splits = cross_validation(arranged(RowStructureKind.IN_ORDER, np.arange(60), y), 3, seed=0)
    # The first of three parts would be scored by a model of the first 30 rows.
    assert [(len(learn), held[0]) for learn, held in splits] == [(40, 40), (50, 50)]


def test_groups_beside_which_all_rows_are_alike_are_not_scored():
    groups = np.repeat(np.arange(3), 20)
    y = np.where(groups == 1, np.arange(60), 0)
    splits = cross_validation(arranged(RowStructureKind.TOGETHER, groups, y), 3, seed=0)
    assert {*np.concatenate([groups[held] for _, held in splits])} == {0, 2}


@pytest.mark.parametrize(
    ("kind", "rows", "those"),
    [
        (RowStructureKind.IN_ORDER, 60, "that come first"),
        (RowStructureKind.IN_ORDER, 3000, "that come first"),
        (RowStructureKind.TOGETHER, 60, "of other groups"),
    ],
)
def test_rows_to_learn_from_must_differ(kind, rows, those):
    later = np.arange(rows) >= rows - 1
    with refuses("one-target", field="by", value=those):
        Protocol(("rmse",)).splits(arranged(kind, later, y=later))


def test_a_part_of_a_table_without_an_arrangement_may_be_all_alike():
    table = arranged(RowStructureKind.TOGETHER, np.arange(10), y=np.arange(10) == 0)
    assert len(cross_validation(replace(table, arrangement=None), 2, seed=0)) == 2


def said_of(kind, values, y=None):
    return Protocol(("r2",)).describe(arranged(kind, values, y))


def test_the_scheme_of_folds_is_described():
    together, in_order = RowStructureKind.TOGETHER, RowStructureKind.IN_ORDER
    assert said_of(together, np.arange(60)) == (
        "5-fold cross-validation on 60 rows, all of one 'by' together (60 of them)"
    )
    assert said_of(together, np.arange(3000)) == (
        "1,000 of 3,000 rows held out, all of one 'by' together (3,000 of them)"
    )
    assert said_of(together, np.repeat(range(3), 20), y=[*[0] * 20, *range(20), *[0] * 20]) == (
        "40 of 60 rows held out, in 2 parts, all of one 'by' together (3 of them)"
    )
    assert said_of(in_order, np.arange(60)) == (
        "the last 30 of 60 rows by 'by', in 5 parts, learning from all that comes before each"
    )
    assert said_of(in_order, np.arange(3000)) == (
        "the last 1,000 of 3,000 rows by 'by', learning from what comes before"
    )
    assert said_of(in_order, np.arange(60) >= 50) == (
        "the last 10 of 60 rows by 'by', learning from what comes before"
    )


@pytest.mark.parametrize("kind", RowStructureKind)
def test_a_target_that_never_changes_is_not_blamed_on_groups_or_order(kind):
    with refuses("one-target"):
        cross_validation(arranged(kind, np.arange(20) // 2, np.ones(20)), 5, 0)
