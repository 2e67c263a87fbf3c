import json
import os
import pickle
import sys

import pytest

from foretune.errors import ExperienceError
from foretune.experience import Experience, Status
from foretune.space.parameters import Kind
from foretune.stores.files.dropped_rows import NOT_ENDED, TOLD_IN_PART
from foretune.stores.formats import TableColumns
from foretune.stores.ray import reader as importer
from tests.refusals import refuses, warns

ERROR = TableColumns(values={"error": "min"})


class Bomb:
    def __reduce__(self):
        return pytest.fail, ("a pickle was opened",)


def write_trial(folder, params, results=(), error=None):
    folder.mkdir(parents=True)
    (folder / "params.json").write_text(json.dumps(params))
    (folder / "params.pkl").write_bytes(pickle.dumps(Bomb()))
    lines = [json.dumps({**result, "config": params, "done": False}) for result in results]
    (folder / "result.json").write_text("\n".join(lines))
    if error:
        (folder / "error.txt").write_text(error)
        (folder / "error.pkl").write_bytes(pickle.dumps(Bomb()))


def test_the_last_report_of_each_trial_counts(tmp_path):
    write_trial(
        tmp_path / "one" / "t1",
        {"lr": 0.1, "net": {"width": 8}, "tags": ["x"]},
        [{"error": 0.9, "time_total_s": 1.0}, {"error": 0.5, "time_total_s": 2.0}],
    )
    write_trial(tmp_path / "one" / "t2", {"lr": 0.2, "net": {"width": 9}, "tags": ["x"]}, [], "no")
    write_trial(tmp_path / "one" / "t3", {"lr": 0.3, "net": {"width": 9}})
    write_trial(tmp_path / "two" / "t1", {"lr": 0.4, "net": {"width": 16}}, [{"error": 0.25}])
    (tmp_path / "one" / "experiment_state-1.json").write_text("{}")
    with warns("left-out", value=(NOT_ENDED, 1, ("one",))) as warned:
        experience = importer.read(tmp_path, columns=ERROR)
    assert [each.filename for each in warned] == [__file__]
    assert experience.tasks == ("one", "two")
    assert experience.configs.dicts() == [
        {"lr": 0.1, "net/width": 8},
        {"lr": 0.2, "net/width": 9},
        {"lr": 0.4, "net/width": 16},
    ]
    assert [Status(int(s)) for s in experience.status] == [
        Status.DONE,
        Status.FAILED,
        Status.DONE,
    ]
    assert experience.values[0, 0] == 0.5
    assert experience.seconds[0] == 2.0


def test_one_experiment_is_a_source_too(tmp_path):
    write_trial(tmp_path / "one" / "t1", {"lr": 0.1}, [{"scores": {"error": 0.5}}])
    columns = TableColumns(values={"scores/error": "max"})
    experience = importer.read(tmp_path / "one", columns=columns)
    assert experience.tasks == ("one",)
    assert experience.values.tolist() == [[0.5]]


def test_experiments_of_one_name_in_two_folders_are_two_tasks(tmp_path):
    for place in ("old/exp", "new/exp", "new/other"):
        write_trial(tmp_path / place / "t1", {"lr": 0.1}, [{"error": 0.5}])
    found = importer.read(tmp_path, columns=ERROR).tasks
    assert set(found) == {"old/exp", "new/exp", "other"}


@pytest.mark.skipif(sys.platform != "linux", reason="other systems have no such names")
def test_folders_that_are_named_in_another_encoding_are_tasks(tmp_path):
    for name in (b"caf\xe9", b"caf\xe8"):
        write_trial(tmp_path / os.fsdecode(name) / "t1", {"lr": 0.1}, [{"error": 0.5}])
    experience = importer.read(tmp_path, columns=ERROR)
    experience.save(tmp_path / "x.parquet")
    assert set(Experience.open(tmp_path / "x.parquet").tasks) == {r"caf\xe9", r"caf\xe8"}


def test_a_report_that_was_cut_off_is_not_one(tmp_path):
    write_trial(tmp_path / "one" / "t1", {"lr": 0.1}, [{"error": 0.5}])
    with (tmp_path / "one" / "t1" / "result.json").open("a") as stream:
        stream.write('\n{"error": 0.')
    assert importer.read(tmp_path, columns=ERROR).values.tolist() == [[0.5]]


@pytest.mark.parametrize("text", [b"[1]", b"{", b"\xff", b"[" * 100_000])
def test_files_that_are_not_what_they_should_be_are_named(tmp_path, text):
    write_trial(tmp_path / "one" / "t1", {"lr": 0.1})
    (tmp_path / "one" / "t1" / "params.json").write_bytes(text)
    with pytest.raises(ExperienceError, match=r"params\.json"):
        importer.read(tmp_path, columns=ERROR)


def test_a_folder_of_something_else_is_refused(tmp_path):
    with pytest.raises(ExperienceError, match=r"params\.json"):
        importer.read(tmp_path, columns=ERROR)


def test_none_is_a_choice_where_nothing_says_when(tmp_path):
    """As scikit-learn's `class_weight` and `max_depth` have it."""
    configs = [
        {"lr": 0.1, "class_weight": None, "max_depth": 5},
        {"lr": 0.2, "class_weight": "balanced", "max_depth": None},
        {"lr": 0.3, "class_weight": None, "max_depth": 10},
    ]
    for number, config in enumerate(configs):
        write_trial(tmp_path / "one" / f"t{number}", config, [{"error": 0.5}])
    experience = importer.read(tmp_path, columns=ERROR)
    assert experience.configs.dicts() == configs
    experience.save(tmp_path / "x.parquet")
    again = Experience.open(tmp_path / "x.parquet")
    assert again.configs.dicts() == configs
    assert again.space.to_json() == experience.space.to_json()


def test_none_is_a_gap_where_another_hyperparameter_says_when(tmp_path):
    configs = [
        {"kernel": "rbf", "gamma": 0.1},
        {"kernel": "linear", "gamma": None},
        {"kernel": "rbf", "gamma": 0.2},
    ]
    for number, config in enumerate(configs):
        write_trial(tmp_path / "one" / f"t{number}", config, [{"error": 0.5}])
    experience = importer.read(tmp_path, columns=ERROR)
    assert experience.configs.dicts() == [configs[0], {"kernel": "linear"}, configs[2]]


def test_what_depends_on_a_choice_of_none(tmp_path):
    configs = [{"reg": None}, {"reg": "l2", "alpha": 0.1}, {"reg": "l1", "alpha": 0.3}]
    for number, config in enumerate(configs):
        write_trial(tmp_path / "one" / f"t{number}", config, [{"error": 0.5}])
    assert importer.read(tmp_path, columns=ERROR).configs.dicts() == configs


def test_whole_numbers_and_none_are_in_order(tmp_path):
    """As scikit-learn's `max_depth` drawn from 2 to 30, or None: no limit."""
    configs = [{"depth": number or None} for number in [7, *range(7), *range(8, 13)]]
    for number, config in enumerate(configs):
        write_trial(tmp_path / "one" / f"t{number:02}", config, [{"error": 0.5}])
    experience = importer.read(tmp_path, columns=ERROR)
    assert experience.configs.dicts() == configs
    [depth] = experience.space.parameters
    assert depth.kind is Kind.ORDINAL
    assert depth.choices == (*range(1, 13), None)


def test_floats_and_none_are_in_order(tmp_path):
    """As a dropout that is drawn from a range, or left away; 1 stands among them."""
    configs = [{"dropout": number / 8 or None} for number in [7, *range(7), *range(9, 13)]]
    configs.append({"dropout": 1})  # as JSON may write 1.0
    assert read_configs(tmp_path, configs) == configs
    [dropout] = importer.read(tmp_path, columns=ERROR).space.parameters
    assert dropout.kind is Kind.ORDINAL
    assert dropout.choices == (*[number / 8 for number in range(1, 13)], None)


@pytest.mark.parametrize(
    ("numbers", "said"),
    [
        (range(102), r"None in 1 of 102 rows and has 101 different numbers: write a number"),
        ([n / 8 for n in range(102)], r"in 1 of 102 rows and has 101 different numbers: write"),
        ([*range(12), "sqrt"], r"in 1 of 13 rows and has 11 different numbers beside other values"),
    ],
)
def test_many_numbers_beside_none_are_no_choices(tmp_path, numbers, said):
    for number in numbers:
        config = {"lr": 0.1, "depth": number or None}
        write_trial(tmp_path / "one" / f"t{number}", config, [{"error": 0.5}])
    with pytest.raises(ExperienceError, match=said):
        importer.read(tmp_path, columns=ERROR)


def test_a_failed_trial_with_none_is_told_in_full(tmp_path):
    write_trial(tmp_path / "one" / "t1", {"lr": 0.1, "reg": "l1"}, [{"error": 0.5}])
    write_trial(tmp_path / "one" / "t2", {"lr": 0.2, "reg": None}, [], "no")
    write_trial(tmp_path / "one" / "t3", {"lr": 0.2}, [], "no")
    with warns("left-out", value=(TOLD_IN_PART, 1, ("one",))) as warned:
        experience = importer.read(tmp_path, columns=ERROR)
    assert [each.filename for each in warned] == [__file__]
    assert experience.configs.dicts() == [{"lr": 0.1, "reg": "l1"}, {"lr": 0.2, "reg": None}]


def read_configs(folder, configs):
    for number, config in enumerate(configs):
        write_trial(folder / "one" / f"t{number:02}", config, [{"error": 0.5}])
    experience = importer.read(folder, columns=ERROR)
    experience.save(folder / "x.parquet")
    assert Experience.open(folder / "x.parquet").configs.dicts() == experience.configs.dicts()
    return experience.configs.dicts()


def test_none_is_a_choice_of_a_conditional_hyperparameter(tmp_path):
    configs = [
        {"opt": "sgd", "momentum": None},
        {"opt": "sgd", "momentum": 0.9},
        {"opt": "adam"},
        {"opt": "sgd", "momentum": None},
    ]
    assert read_configs(tmp_path, configs) == [configs[0], configs[1], configs[2]]


def test_many_numbers_that_depend_on_a_none(tmp_path):
    configs = [
        {"reg": "l1" if number % 2 else None, "rate": None if number % 2 else number / 32}
        for number in range(30)
    ]
    said = [c if c["rate"] is not None else {"reg": "l1"} for c in configs]
    assert read_configs(tmp_path, configs) == [said[0], said[1], *said[2::2]]


def test_a_part_that_may_be_none_is_a_choice(tmp_path):
    """As tune.choice([None, {"name": "flip", "p": 0.5}, ...]) gives it."""
    configs = [
        {"lr": 0.1, "augment": None},
        {"lr": 0.2, "augment": {"name": "flip", "p": 0.5}},
        {"lr": 0.3, "augment": None},
        {"lr": 0.4, "augment": {"name": "crop"}},
        {"lr": 0.5, "augment": {"name": "flip", "p": 0.1}},
    ]
    assert read_configs(tmp_path, configs) == [
        {"lr": 0.1, "augment": None},
        {"lr": 0.2, "augment": "{...}", "augment/name": "flip", "augment/p": 0.5},
        {"lr": 0.3, "augment": None},
        {"lr": 0.4, "augment": "{...}", "augment/name": "crop"},
        {"lr": 0.5, "augment": "{...}", "augment/name": "flip", "augment/p": 0.1},
    ]


def test_a_part_that_is_always_there_is_no_choice(tmp_path):
    configs = [{"net": {"kind": "a", "size": 3}}, {"net": {"kind": "b"}}]
    found = [{"net/kind": "a", "net/size": 3}, {"net/kind": "b"}]
    assert read_configs(tmp_path, configs) == found


def test_what_depends_on_numbers_beside_none(tmp_path):
    configs = [
        {"share": None, "x": 0.1},
        {"share": 0.5, "x": 0.2},
        {"share": 0.25},
        {"share": 0.5, "x": 0.4},
    ]
    assert read_configs(tmp_path, configs) == configs


def test_lists_that_change_are_choices(tmp_path):
    configs = [
        {"layers": layers, "paths": ["a"], "shard": [number]}
        for number, layers in enumerate(20 * [[64, 64], None, [128]])
    ]
    with warns("too-many-lists", value=("shard",)):
        found = read_configs(tmp_path, configs)
    assert found == [{"layers": (64, 64)}, {"layers": None}, {"layers": (128,)}]


def test_nan_is_nothing(tmp_path):
    configs = [{"x": 1, "missing": float("nan")}, {"x": 2, "missing": float("nan")}]
    assert read_configs(tmp_path, configs) == [{"x": 1}, {"x": 2}]


def test_ignored_columns_are_no_hyperparameters(tmp_path):
    for number, config in enumerate([{"x": 1, "depth": None}, {"x": 2}]):
        write_trial(tmp_path / "one" / f"t{number}", config, [{"error": 0.5}])
    columns = TableColumns(values={"error": "min"}, ignored=["depth"])
    assert importer.read(tmp_path, columns=columns).configs.dicts() == [{"x": 1}, {"x": 2}]
    with refuses("unknown-ignored", value="deep"):
        importer.read(tmp_path, columns=TableColumns(values={"error": "min"}, ignored=["deep"]))


def test_all_reports_of_a_trial_are_its_learning_curve(tmp_path):
    reports = [
        {"error": 0.9, "training_iteration": 1, "time_total_s": 1.0},
        {"error": 0.7, "training_iteration": 2, "time_total_s": 2.0},
        # The trial was restored from its checkpoint at the first step.
        {"error": 0.6, "training_iteration": 2, "time_total_s": 2.5},
        {"other": 1.0, "training_iteration": 3, "time_total_s": 3.0},
        {"error": 0.5, "training_iteration": 4, "time_total_s": 4.0},
    ]
    write_trial(tmp_path / "one" / "t1", {"lr": 0.1}, reports)
    write_trial(tmp_path / "one" / "t2", {"lr": 0.2}, reports[:1])
    write_trial(tmp_path / "one" / "t3", {"lr": 0.3}, reports[:2], "no")
    experience = importer.read(tmp_path, columns=ERROR)
    assert experience.curves is not None
    assert experience.curves.lengths.tolist() == [3, 0, 2]
    assert experience.curves.steps.tolist() == [1, 2, 4, 1, 2]
    assert experience.curves.values[:, 0].tolist() == [0.9, 0.6, 0.5, 0.9, 0.7]
    assert experience.curves.seconds.tolist() == [1.0, 2.5, 4.0, 1.0, 2.0]
    assert experience.status.tolist() == [Status.DONE, Status.DONE, Status.FAILED]


def test_reports_in_csv_are_read_if_there_is_no_json(tmp_path):
    write_trial(tmp_path / "one" / "t1", {"lr": 0.1})
    (tmp_path / "one" / "t1" / "result.json").unlink()
    lines = ["error,done,training_iteration,date", "0.5,False,1,now", "0.25,True,2,now"]
    (tmp_path / "one" / "t1" / "progress.csv").write_text("\n".join(lines))
    experience = importer.read(tmp_path, columns=ERROR)
    assert experience.values.tolist() == [[0.25]]
    assert experience.curves is not None
    assert experience.curves.values[:, 0].tolist() == [0.5, 0.25]
