"""Appending evaluations and merging experiences."""

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from foretune.errors import SpaceError
from foretune.experience import Direction, Evaluation, Experience, Metric, Status
from foretune.space import Space
from tests.refusals import refuses

from .examples import ACCURACY, CASH, ERROR, NAN, experiences, notes_of, one_metric, rows_of, small


def test_appended_rows_join_their_tasks() -> None:
    experience = one_metric({"a": [1.0, 2.0], "b": [3.0]})
    more = experience.append(
        [
            Evaluation("a", {"rate": 1e-3, "depth": 1}, {"error": 0.5}, seconds=7.0),
            Evaluation("c", {"rate": 1e-3, "depth": 9 - 1}, {}, Status.TIMEOUT, fidelity=3.0),
        ]
    )
    assert more.tasks == ("a", "b", "c")
    assert len(more.configs) == len(experience.configs) + 1
    np.testing.assert_array_equal(more.task("a").losses[:, 0], [1.0, 2.0, 0.5])
    assert more.task("a").config_index.tolist() == [0, 1, 0]
    assert more.task("a").seconds.tolist()[2] == 7.0
    assert more.task("c").status.tolist() == [Status.TIMEOUT]
    assert more.fidelity is not None
    np.testing.assert_array_equal(more.fidelity, [NAN, NAN, NAN, NAN, 3.0])
    assert len(experience) == 3


def test_appending_nothing_changes_nothing() -> None:
    experience = small()
    assert experience.append([]) is experience


def test_a_repeated_measurement_is_a_row_of_its_own() -> None:
    again = Evaluation("a", {"rate": 1e-3, "depth": 1}, {"error": 1.0})
    assert len(one_metric({"a": [1.0]}).append([again, again])) == 3


def test_bad_evaluations_are_refused() -> None:
    experience = one_metric({"a": [1.0]})
    good = {"rate": 1e-3, "depth": 1}
    with refuses("unknown-metric", value="eror"):
        experience.append([Evaluation("a", good, {"eror": 1.0})])
    with refuses("illegal-value", field="depth", value=99):
        experience.append([Evaluation("a", good | {"depth": 99}, {"error": 1.0})])
    with refuses("not-a-name", field="task", value=""):
        experience.append([Evaluation("", good, {"error": 1.0})])
    with refuses("not-a-number", field="error", value=None):
        experience.append([Evaluation("a", good, {"error": None})])
    with refuses("not-a-number", field="error", value=10**400):
        experience.append([Evaluation("a", good, {"error": 10**400})])
    with refuses("not-a-number", field="seconds", value="long"):
        experience.append([Evaluation("a", good, {"error": 1.0}, seconds="long")])
    with refuses("not-a-mapping", field="values", value=1.0):
        experience.append([Evaluation("a", good, 1.0)])
    with refuses("unknown-status", value="broken"):
        experience.append([Evaluation("a", good, {"error": 1.0}, status="broken")])
    for no_list in (Evaluation("a", good, {"error": 1.0}), [{"error": 1.0}]):
        with refuses("not-evaluations", value=no_list):
            experience.append(no_list)


def test_the_status_of_an_evaluation_may_be_a_name() -> None:
    good = {"rate": 1e-3, "depth": 1}
    more = one_metric({"a": [1.0]}).append([Evaluation("a", good, {"error": 2.0}, status="failed")])
    assert more.status.tolist() == [Status.DONE, Status.FAILED]


@settings(max_examples=40)
@given(experiences())
def test_merging_with_itself_changes_nothing(experience: Experience) -> None:
    same = experience.merge(experience)
    assert rows_of(same) == rows_of(experience)
    assert notes_of(same) == notes_of(experience)


@settings(max_examples=40)
@given(experiences(), experiences())
def test_a_merge_holds_the_rows_of_both(first: Experience, second: Experience) -> None:
    second = replace(second, meta_features={}, starts={})
    both = first.merge(second)
    # Seconds do not make an evaluation another one; a missing fidelity is an unknown one.
    ours, theirs, merged = ({_measured(row) for row in rows_of(e)} for e in (first, second, both))
    assert merged == ours | theirs
    known = [_measured(row) for row in rows_of(first)]
    new = [row for row in map(_measured, rows_of(second)) if row not in known]
    assert len(both) == len(known) + len(new)
    assert notes_of(both) == notes_of(first)
    for name in first.tasks:
        recorded = first.task(name)
        np.testing.assert_array_equal(both.task(name).values[: len(recorded)], recorded.values)


def _measured(row: tuple[str, ...]) -> tuple[str, ...]:
    task, config, values, status, _, fidelity = row
    return task, config, values.replace("-0.0", "0.0"), status, fidelity.replace("None", "nan")


def test_how_a_trial_ended_and_at_which_fidelity_makes_it_another_one() -> None:
    config = {"rate": 1e-3, "depth": 1}
    once = one_metric({"a": [0.0]})
    ended = [
        Evaluation("a", config, {"error": 2.0}, fidelity=1.0),
        Evaluation("a", config, {"error": 2.0}, fidelity=2.0),
        Evaluation("a", config, {}, Status.FAILED),
        Evaluation("a", config, {}, Status.TIMEOUT),
    ]
    parts = [once.append([each]) for each in ended]
    both = parts[0].merge(parts[1]).merge(parts[2]).merge(parts[3])
    assert len(both) == 1 + len(ended)


def test_numbers_that_are_equal_are_the_same_whatever_their_bits() -> None:
    config = {"rate": 1e-3, "depth": 2}
    first, second = (
        one_metric({"a": [zero]}).append([Evaluation("a", config, {"error": nan}, Status.FAILED)])
        for zero, nan in ((0.0, NAN), (-0.0, -NAN))
    )
    assert len(first.merge(second)) == 2


def test_shared_tasks_and_configurations_are_found() -> None:
    both = one_metric({"a": [1.0, 2.0], "b": [3.0]}).merge(
        one_metric({"b": [3.0, 4.0], "c": [5.0, 6.0, 7.0]})
    )
    assert both.tasks == ("a", "b", "c")
    assert len(both.configs) == 3
    assert [both.task(name).values[:, 0].tolist() for name in both.tasks] == [
        [1.0, 2.0],
        [3.0, 4.0],
        [5.0, 6.0, 7.0],
    ]


def test_metrics_are_matched_by_name() -> None:
    turned = small().with_metrics(["accuracy", "error"])
    assert rows_of(small().merge(turned)) == rows_of(small())


def test_metrics_and_directions_must_agree() -> None:
    first = one_metric({"a": [1.0]})
    with refuses("different-metrics"):
        first.merge(one_metric({"a": [1.0]}, ACCURACY))
    with refuses("different-directions", field="error"):
        first.merge(one_metric({"a": [1.0]}, Metric("error", Direction.MAX)))


def test_notes_of_both_are_kept() -> None:
    other = one_metric({"wine": [1.0], "rice": [2.0]})
    first = small().with_metrics(["error"])
    second = other.with_meta_features({"rice": {"rows": 9.0}, "wine": {"rows": 1.0}})
    second = second.with_splits({"mine": {"train": ["rice"]}})
    both = first.merge(second)
    assert both.meta_features["rice"] == {"rows": 9.0}
    assert both.meta_features["iris"]["rows"] == 150.0
    assert set(both.splits) == {"paper", "mine"}
    with refuses("different-splits", field="paper"):
        first.merge(second.with_splits({"paper": {"train": ["rice"]}}))


def test_notes_of_the_first_win_if_they_disagree() -> None:
    first, second = (
        replace(
            one_metric({"a": [1.0, 2.0]}).with_meta_features({"a": {"rows": rows, name: 1.0}}),
            starts={"a": {"start": design, name: (0,)}},
        )
        for rows, design, name in ((1.0, (0,), "one"), (2.0, (1,), "two"))
    )
    both = first.merge(second)
    assert both.meta_features == {"a": {"rows": 1.0, "one": 1.0, "two": 1.0}}
    assert both.starts == {"a": {"start": (0,), "one": (0,), "two": (0,)}}


def test_initial_designs_follow_their_configurations() -> None:
    experience = one_metric({"a": [1.0, 2.0, 3.0]})
    first = replace(experience, starts={"a": {"first": (2,)}})
    second = replace(
        one_metric({"b": [1.0]}).append(
            [Evaluation("b", {"rate": 1e-2, "depth": 5}, {"error": 1.0})]
        ),
        starts={"b": {"first": (1, 0)}},
    )
    both = second.merge(first)
    for task, design in (("a", [3]), ("b", [5, 1])):
        index = list(both.starts[task]["first"])
        assert [config["depth"] for config in both.configs.take(index).dicts()] == design


def test_a_space_that_gained_an_algorithm_and_a_hyperparameter() -> None:
    old = Space.of({"model": {"svm": {"C": (0.1, 10.0, "log")}, "tree": {"depth": (1, 8)}}})
    new = Space.of(
        {
            "model": {
                "svm": {"C": (0.1, 10.0, "log"), "kernel": ["linear", "rbf"]},
                "tree": {"depth": (1, 8)},
                "naive": {},
            }
        }
    )
    before = Experience.build(
        old, [ERROR], ["a"], [0], old.encode([{"model": "svm", "model:svm:C": 2.0}]), [0], [1.0]
    )
    after = Experience.build(new, [ERROR], ["a"], [0], new.encode([{"model": "naive"}]), [0], [2.0])
    for both in (before.merge(after), after.merge(before)):
        assert both.space.describe() == new.describe()
        assert sorted(both.configs.dicts(), key=str) == [
            {"model": "naive"},
            {"model": "svm", "model:svm:C": 2.0, "model:svm:kernel": "linear"},
        ]
        assert sorted(both.values[:, 0].tolist()) == [1.0, 2.0]


def test_spaces_that_contradict_each_other_are_refused() -> None:
    other = Space.of({"model": ["svm", "tree"], "model:svm:C": ["low", "high"]})
    one = Experience.build(CASH, [ERROR], ["a"], [0], CASH.sample(1, seed=0), [0], [1.0])
    two = Experience.build(other, [ERROR], ["a"], [0], other.sample(1, seed=0), [0], [1.0])
    with pytest.raises(SpaceError):
        one.merge(two)
