"""Looking at an experience and taking parts of it."""

import numpy as np
import pytest

from foretune.errors import ExperienceError
from foretune.experience import Direction, Experience, Metric, Status, status_of
from foretune.experience.trial import FINAL_STATUSES
from foretune.space import Space
from tests.refusals import refuses

from .examples import ERROR, FLAT, NAN, one_metric, rows_of, small


def test_losses_are_minimised_and_nan_where_nothing_was_measured() -> None:
    losses = small().losses
    expected = [[0.3, -0.7], [NAN, NAN], [0.1, -0.9], [0.5, -0.6], [0.4, NAN]]
    np.testing.assert_array_equal(losses, expected)


def test_an_infinite_value_of_one_metric_is_no_loss() -> None:
    metrics = [Metric("error"), Metric("size")]
    configs = FLAT.encode([{"rate": 1e-3, "depth": d} for d in (1, 2)])
    made = Experience.build(FLAT, metrics, ["a"], [0, 0], configs, [0, 1], [[1, np.inf], [2, 3]])
    assert made.status.tolist() == [Status.DONE, Status.DONE]
    np.testing.assert_array_equal(made.losses, [[1.0, NAN], [2.0, 3.0]])


def test_a_task_is_its_rows_in_the_order_they_were_given() -> None:
    records = small().task("wine")
    assert len(records) == 2
    assert records.config_index.tolist() == [2, 0]
    assert [config["depth"] for config in records.configs.dicts()] == [3, 1]
    assert records.seconds.tolist() == [5.0, 4.0]
    np.testing.assert_array_equal(records.losses, [[0.5, -0.6], [0.4, NAN]])
    np.testing.assert_array_equal(records.values, [[0.5, 0.6], [0.4, NAN]])
    assert records.is_success.tolist() == [True, False]
    assert small().task("iris").status.tolist() == [Status.DONE, Status.FAILED, Status.DONE]


def test_an_unknown_task_is_refused_with_the_closest_name() -> None:
    with refuses("unknown-task", value="irs"):
        small().task("irs")


def test_columns_cannot_be_written() -> None:
    experience = small()
    for column in (experience.values, experience.status, experience.losses):
        with pytest.raises(ValueError, match="read-only"):
            column[0] = 0


def test_building_leaves_the_given_arrays_writable() -> None:
    given = np.array([0.5, 0.25])
    experience = small()
    Experience.build(
        experience.space, [Metric("m")], ["a"], [0, 0], experience.configs, [0, 1], given
    )
    given[0] = 1.0
    assert given.flags.writeable


def test_only_and_without_are_complements() -> None:
    experience = one_metric({"a": [1, 2], "b": [3], "c": [4, 5, 6]})
    kept, dropped = experience.only(["c", "a"]), experience.without(["b"])
    assert kept.tasks == dropped.tasks == ("a", "c")
    assert rows_of(kept) == rows_of(dropped)
    assert kept.configs is experience.configs
    assert [row[0] for row in rows_of(kept)] == ["a", "a", "c", "c", "c"]
    np.testing.assert_array_equal(kept.task("c").losses[:, 0], [4, 5, 6])


def test_a_selection_keeps_only_the_notes_of_its_tasks() -> None:
    wine = small().only(["wine"])
    assert wine.meta_features == {}
    assert wine.splits == {"paper": {"train": (), "validation": (), "test": ("wine",)}}
    assert wine.starts == small().starts
    assert small().with_splits({"mine": {"train": ["iris"]}}).only(["wine"]).splits == {}
    assert small().only(["iris"]).starts == {}


@pytest.mark.parametrize("select", [lambda e: e.only([]), lambda e: e.without(e.tasks)])
def test_an_empty_selection_is_refused(select) -> None:
    with refuses("empty-selection"):
        select(small())


def test_a_compact_part_has_the_configurations_of_its_rows_and_designs() -> None:
    configs = FLAT.encode([{"rate": 1e-3, "depth": d} for d in range(1, 6)])
    whole = Experience.build(
        FLAT,
        [ERROR],
        ["iris", "wine"],
        [0, 1, 1],
        configs,
        [0, 4, 2],
        [0.1, 0.2, 0.3],
        starts={"wine": {"first": [4, 3]}},
    )
    part = whole.only(["wine"])
    small = part.compact()
    assert [config["depth"] for config in small.configs.dicts()] == [3, 4, 5]
    assert rows_of(small) == rows_of(part)
    assert small.starts == {"wine": {"first": (2, 1)}}
    assert small.compact() is small


def test_selected_metrics_leave_out_rows_that_measured_none_of_them() -> None:
    chosen = small().with_metrics(["accuracy"])
    assert [metric.name for metric in chosen.metrics] == ["accuracy"]
    # The row of wine with an error but no accuracy goes; the failed row of iris stays.
    np.testing.assert_array_equal(chosen.values[:, 0], [0.7, NAN, 0.9, 0.6])
    assert chosen.task("wine").config_index.tolist() == [2]


def test_metrics_can_change_their_order() -> None:
    turned = small().with_metrics(["accuracy", "error"])
    np.testing.assert_array_equal(turned.values, small().values[:, ::-1])


def test_an_unknown_metric_is_refused() -> None:
    with refuses("unknown-metric", value="eror"):
        small().with_metrics(["eror"])


def test_notes_are_replaced_and_checked() -> None:
    changed = small().with_meta_features({"wine": {"rows": 3}}).with_splits({})
    assert changed.meta_features == {"wine": {"rows": 3.0}}
    assert changed.splits == {}
    assert changed.starts == small().starts
    with refuses("unknown-task", field="meta_features", value="whine"):
        small().with_meta_features({"whine": {}})
    with refuses("not-a-meta-feature", field="rows", value=np.inf):
        small().with_meta_features({"wine": {"rows": np.inf}})
    with refuses("not-a-meta-feature", field="rows", value="many"):
        small().with_meta_features({"wine": {"rows": "many"}})
    with refuses("unknown-split-part", field="s", value="trian"):
        small().with_splits({"s": {"trian": ["wine"]}})
    with refuses("repeated-task", field="s", value="wine"):
        small().with_splits({"s": {"train": ["wine"], "test": ["wine"]}})


def test_the_repr_names_the_sizes() -> None:
    assert repr(one_metric({"a": [1.0]}, Metric("auc", Direction.MAX))) == (
        "Experience(1 tasks, 1 configurations, 1 evaluations of auc:max)"
    )


def test_successes_count_at_the_highest_fidelity_of_their_configuration() -> None:
    """Configuration 0 failed at its highest, 1 knows no fidelity, 2 was measured there twice."""
    first = small()
    experience = Experience.build(
        first.space,
        [Metric("m")],
        ["a"],
        task_index=[0] * 7,
        configs=first.configs,
        config_index=[0, 0, 0, 1, 2, 2, 2],
        values=np.array([[1.0], [2.0], [NAN], [3.0], [4.0], [5.0], [6.0]]),
        fidelity=[1, 2, 3, NAN, 2, NAN, 2],
    )
    counted = experience.task("a").is_full_fidelity
    assert counted.tolist() == [False, True, False, True, True, False, True]
    assert first.task("iris").is_full_fidelity.tolist() == first.task("iris").is_success.tolist()


def test_a_direction_may_be_written_as_text() -> None:
    assert Metric("loss", "min") == Metric("loss", Direction.MIN)
    assert Metric("loss", "min").sign == 1.0
    assert Metric("accuracy", "max").sign == -1.0


@pytest.mark.parametrize("direction", ["maximize", "MIN", None, 1])
def test_an_unknown_direction_is_refused(direction: object) -> None:
    with refuses("unknown-direction", field="a", value=direction):
        Metric("a", direction)


def test_a_status_may_be_a_name_or_a_number() -> None:
    assert [status_of(given) for given in ("done", "Failed", " TIMEOUT ", "stopped")] == list(
        FINAL_STATUSES
    )
    assert [status_of(given) for given in (0, np.int8(1), Status.TIMEOUT, 3)] == list(
        FINAL_STATUSES
    )


@pytest.mark.parametrize("given", ["ok", None, 4, True, 0.5])
def test_invalid_statuses_are_refused(given: object) -> None:
    with refuses("unknown-status", value=given):
        status_of(given)


def test_renamed_hyperparameters_keep_their_values_and_the_runs_their_losses() -> None:
    space = Space.of({"a": (0.0, 1.0), "model": {"svm": {"C": (0.1, 10.0)}, "bayes": {}}})
    configs = space.sample(9, seed=0)
    losses = {"loss": np.random.default_rng(0).uniform(size=(2, 9))}
    known = Experience.from_matrix(space, configs, ["s", "t"], [Metric("loss")], losses)
    names = {"a": "zz", "model:svm:C": "C"}
    renamed = known.renamed(names)
    assert set(renamed.space.names) == {"zz", "model", "C"}
    for task in known.tasks:
        before, after = known.task(task), renamed.task(task)
        assert after.configs.dicts() == [
            {names.get(name, name): value for name, value in config.items()}
            for config in before.configs.dicts()
        ]
        np.testing.assert_array_equal(after.losses, before.losses)
    with pytest.raises(ExperienceError, match="has no 'lr': choose among"):
        known.renamed({"lr": "rate"})


def test_runs_keep_their_choices_under_other_names() -> None:
    space = Space.of({"a": (0.0, 1.0), "model": {"svm": {"C": (0.1, 10.0)}, "bayes": {}}})
    configs = space.sample(20, seed=0)
    losses = {"loss": np.arange(20.0)[None, :]}
    known = Experience.from_matrix(space, configs, ["t"], [Metric("loss")], losses)
    renamed = known.renamed({}, choices={"model": {"svm": "zz"}})
    expected = [
        {
            name.replace("svm", "zz"): "zz" if value == "svm" else value
            for name, value in config.items()
        }
        for config in known.task("t").configs.dicts()
    ]
    assert renamed.task("t").configs.dicts() == expected
    np.testing.assert_array_equal(renamed.losses, known.losses)
