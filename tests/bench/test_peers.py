"""The objective that Foretune shares with its peers: the nearest recorded configuration."""

from pathlib import Path

import numpy as np
import pytest
from benchmarks.peers.objective import Parameter, Past, Problem
from benchmarks.peers.summary import Duel

NAN = float("nan")
RATE = Parameter("rate", "float", 1e-4, 1.0, log=True)
LAYERS = Parameter("layers", "int", 1.0, 5.0, log=False)
KIND = Parameter("kind", "categorical", 0.0, 2.0, log=False)
WIDTH = Parameter("width", "float", 0.0, 10.0, log=False, parents=((2, (1.0,)),))


def problem(rows: list[list[float]], losses: list[float]) -> Problem:
    past = {"other": Past(np.array(rows), np.array(losses) + 1.0)}
    return Problem(
        "mine", (RATE, LAYERS, KIND, WIDTH), np.array(rows), np.array(losses), past, "f", ("other",)
    )


TABLE = problem(
    [[1e-4, 1.0, 0.0, NAN], [1e-2, 3.0, 0.0, NAN], [1e-2, 3.0, 1.0, 2.0], [1e-2, 3.0, 1.0, 8.0]],
    [0.1, 0.2, 0.3, 0.4],
)


@pytest.mark.parametrize("row", range(4))
def test_a_recorded_configuration_has_its_own_loss(row: int) -> None:
    assert TABLE.loss(TABLE.values[row]) == TABLE.losses[row]


def test_distances_are_those_of_the_unit_cube() -> None:
    # 1e-3 is a quarter of the way on the logarithmic scale, 2 layers are a quarter as well.
    near_the_first = np.array([9e-4, 2.0, 0.0, NAN])
    near_the_second = np.array([1.1e-3, 2.0, 0.0, NAN])
    assert [TABLE.nearest(near_the_first), TABLE.nearest(near_the_second)] == [0, 1]


def test_choices_that_differ_are_one_apart() -> None:
    # Kind 2 is recorded nowhere: all kinds are equally far, so the numbers decide.
    assert TABLE.nearest(np.array([1e-2, 3.0, 2.0, NAN])) == 1
    # Kind 1 at the width 5: both widths are 0.3 away, and the first of equals is taken.
    assert TABLE.nearest(np.array([1e-2, 3.0, 1.0, 5.0])) == 2
    assert TABLE.nearest(np.array([1e-2, 3.0, 1.0, 5.1])) == 3


def test_inactive_parameters_are_ignored() -> None:
    assert np.isnan(TABLE.settled(np.array([1e-2, 3.0, 0.0, 8.0]))[3])
    assert TABLE.nearest(np.array([1e-2, 3.0, 0.0, 8.0])) == 1


def test_a_child_of_an_inactive_parent_is_inactive() -> None:
    child = Parameter("child", "int", 0.0, 3.0, log=False, parents=((3, (1.0,)),))
    deep = Problem("t", (*TABLE.parameters, child), np.empty((0, 5)), np.empty(0), {}, "", ())
    assert np.isnan(deep.settled(np.array([1e-2, 3.0, 0.0, 1.0, 2.0]))[3:]).all()
    assert deep.settled(np.array([1e-2, 3.0, 1.0, 1.0, 2.0]))[4] == 2.0


@pytest.mark.parametrize("parameter", [RATE, LAYERS, KIND, WIDTH])
def test_the_way_to_the_cube_and_back(parameter: Parameter) -> None:
    values = np.array([parameter.low, parameter.high])
    assert parameter.to_unit(values).tolist() == [0.0, 1.0]
    assert [parameter.from_unit(unit) for unit in (0.0, 1.0)] == pytest.approx(values.tolist())


def test_whole_numbers_stay_whole() -> None:
    assert LAYERS.from_unit(0.4) == 3.0
    assert RATE.from_unit(0.5) == pytest.approx(1e-2)


def test_a_problem_file_holds_all(tmp_path: Path) -> None:
    TABLE.save(tmp_path / "p.npz")
    again = Problem.load(tmp_path / "p.npz")
    assert again.parameters == TABLE.parameters
    assert (again.task, again.experience, again.learnt_from) == ("mine", "f", ("other",))
    np.testing.assert_array_equal(again.values, TABLE.values)
    np.testing.assert_array_equal(again.past["other"].losses, TABLE.losses + 1.0)


def test_some_rows_of_the_past_keep_their_losses() -> None:
    past = TABLE.past["other"].some(2, seed=0)
    for row, loss in zip(past.values, past.losses, strict=True):
        assert loss == TABLE.loss(row) + 1.0


def test_a_duel_counts_ties_half_and_the_trials_that_ours_needs() -> None:
    ours = np.array([[0.5, 0.3, 0.1], [0.5, 0.5, 0.5], [0.2, 0.2, 0.2]])
    theirs = np.array([[0.4, 0.3, 0.3], [0.5, 0.4, 0.4], [0.3, 0.2, 0.2]])
    duel = Duel(ours, theirs, seeds=1, seconds=0.1, different=3.0)
    assert [duel.ahead(n).tolist() for n in (1, 2, 3)] == [[0, 0.5, 1], [0.5, 0, 0.5], [1, 0, 0.5]]
    assert duel.needed().tolist() == [2.0, np.inf, 1.0]
