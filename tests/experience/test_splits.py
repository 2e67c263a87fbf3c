"""Which tasks teach and which are held out."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretune.experience import (
    Experience,
    Split,
    find_splits,
    for_learning,
    k_fold,
    learning_split,
    leave_one_out,
    recorded_split,
)
from tests.refusals import refuses

from .examples import one_metric, small


def tasks(n: int) -> Experience:
    return one_metric({f"t{i}": [float(i)] for i in range(n)})


def test_leave_one_out() -> None:
    assert list(leave_one_out(tasks(3))) == [
        Split("t0", ("t1", "t2"), (), ("t0",)),
        Split("t1", ("t0", "t2"), (), ("t1",)),
        Split("t2", ("t0", "t1"), (), ("t2",)),
    ]


@given(st.integers(2, 12), st.data())
def test_folds_are_a_partition(n: int, data: st.DataObject) -> None:
    experience = tasks(n)
    k = data.draw(st.integers(2, n))
    splits = list(k_fold(experience, k, seed=data.draw(st.integers(0, 9))))
    assert len(splits) == k
    tested = [name for split in splits for name in split.test]
    assert sorted(tested) == sorted(experience.tasks)
    for split in splits:
        assert split.test
        assert set(split.train) == set(experience.tasks) - set(split.test)


def test_the_folds_of_a_seed_stay_as_they_are() -> None:
    """Results on folds are only compared with others of the same folds."""
    assert [split.test for split in k_fold(tasks(5), 2, seed=0)] == [
        ("t1", "t2", "t3"),
        ("t0", "t4"),
    ]


def test_folds_are_of_equal_size_and_follow_the_seed() -> None:
    sizes = [len(split.test) for split in k_fold(tasks(10), 3, seed=0)]
    assert sorted(sizes) == [3, 3, 4]
    assert list(k_fold(tasks(10), 3, seed=1)) == list(k_fold(tasks(10), 3, seed=1))
    assert list(k_fold(tasks(10), 3, seed=1)) != list(k_fold(tasks(10), 3, seed=2))


@pytest.mark.parametrize("k", [0, 1, 4])
def test_an_impossible_number_of_folds_is_refused(k: int) -> None:
    with refuses("wrong-number-of-folds", value=k):
        list(k_fold(tasks(3), k, seed=0))


def test_named_splits() -> None:
    assert recorded_split(small(), "paper") == Split("paper", ("iris",), (), ("wine",))
    with refuses("unknown-split", value="papr"):
        recorded_split(small(), "papr")
    with refuses("unknown-split"):
        recorded_split(tasks(2), "paper")


def test_splits_are_called_by_what_they_are() -> None:
    experience = tasks(6)
    assert find_splits(experience, "leave-one-out") == list(leave_one_out(experience))
    assert find_splits(experience, "3-fold") == list(k_fold(experience, 3, seed=0))
    assert find_splits(experience, "3-fold:7") == list(k_fold(experience, 3, seed=7))
    assert find_splits(small(), "paper") == [recorded_split(small(), "paper")]
    with refuses("wrong-number-of-folds", value=7):
        find_splits(experience, "7-fold")
    with refuses("unknown-split", value="3-folds"):
        find_splits(experience, "3-folds")


def test_learning_separates_training_from_validation_tasks() -> None:
    past = for_learning(tasks(4), Split("s", ("t2", "t0"), ("t3",), ("t1",)))
    assert past.tasks == ("t0", "t2", "t3")
    assert learning_split(past).train == ("t2", "t0")
    assert learning_split(past).validation == ("t3",)
    assert learning_split(tasks(2)) == Split("learning", ("t0", "t1"), (), ())
