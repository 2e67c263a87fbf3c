import pandas as pd
import pytest
from click.testing import CliRunner

from foretune.cli.import_and_show import import_command
from foretune.errors import SpaceError
from foretune.experience import Direction, Experience
from foretune.stores import TableColumns
from foretune_lab.archives import icml2020
from foretune_lab.archives.icml2020 import NAS_OPERATIONS
from tests.refusals import refuses

XGBOOST = {
    "hp_log2_min_child_weight": [1.0, -7.5],
    "hp_subsample": [0.5, 1.0],
    "hp_colsample_bytree": [0.3, 0.9],
    "hp_log2_gamma": [-19.5, 5.0],
    "hp_log2_lambda": [-9.0, 7.5],
    "hp_eta": [0.0001, 0.9],
    "hp_max_depth_index": [0, 12],
    "hp_log2_alpha": [-19.0, 7.5],
    "metric_error": [0.25, 0.5],
    "blackbox": ["XGBoost", "XGBoost"],
    "task": ["skin_nonskin", "heart"],
}
NAS = {
    **{f"hp_x{i}": [i % 5, 4] for i in range(6)},
    "arch_str": ["a", "b"],
    "metric_train_accuracy": [99.0, 98.0],
    "metric_error": [10.0, 12.5],
    "metric_latency": [0.01, 0.02],
    "task": ["cifar10", "cifar10"],
    "blackbox": ["NAS", "NAS"],
}


def written(columns, path):
    pd.DataFrame(columns).to_csv(path, index=False)
    return path


def test_xgboost_keeps_its_logarithms_and_has_no_split_that_teaches_nothing(tmp_path):
    experience = icml2020.read(written(XGBOOST, tmp_path / "XGBoost.csv.zip"))
    assert experience.tasks == ("skin_nonskin", "heart")
    assert experience.losses.tolist() == [[0.25], [0.5]]
    assert not experience.splits
    heart = experience.task("heart").configs
    assert heart.dicts()[0]["log2_gamma"] == 5.0
    assert heart.dicts()[0]["max_depth_index"] == 12
    # (5 - -20) / (6 - -20) on the scale of Table 3
    column = experience.space.names.index("log2_gamma")
    assert heart.x[0, column] == pytest.approx(25 / 26)


def test_nas_names_its_operations_and_measures_latency(tmp_path):
    experience = icml2020.read(written(NAS, tmp_path / "nas.csv"))
    assert [metric.name for metric in experience.metrics] == ["error", "latency"]
    assert experience.losses.tolist() == [[10.0, 0.01], [12.5, 0.02]]
    first, second = experience.task("cifar10").configs.dicts()
    assert [first[f"x{i}"] for i in range(6)] == [NAS_OPERATIONS[i % 5] for i in range(6)]
    assert set(second.values()) == {"avg_pool_3x3"}
    assert not experience.splits


def test_another_blackbox_gets_an_inferred_space(tmp_path):
    table = {
        "hp_layers": [1, 5],
        "hp_rate": [0.5, 0.25],
        "metric_error": [1.0, 2.0],
        "task": ["t", "t"],
        "blackbox": ["DeepAR", "DeepAR"],
    }
    experience = icml2020.read(written(table, tmp_path / "deepar.csv"))
    assert experience.task("t").configs.dicts() == [
        {"layers": 1, "rate": 0.5},
        {"layers": 5, "rate": 0.25},
    ]


@pytest.mark.parametrize(
    ("change", "rule"),
    [
        ({"blackbox": ["XGBoost", "NAS"]}, "several-blackboxes"),
        ({"task": None}, "unknown-column"),
        ({"metric_error": None}, "no-metric"),
        ({"metric_error": None, "metric_quality": [1.0, 2.0]}, "unknown-direction"),
        ({name: None for name in XGBOOST if name.startswith("hp_")}, "no-hyperparameter"),
    ],
)
def test_refuses_other_tables(tmp_path, change, rule):
    columns = {name: cells for name, cells in (XGBOOST | change).items() if cells is not None}
    with refuses(rule):
        icml2020.read(written(columns, tmp_path / "x.csv"))


def test_refuses_what_lies_outside_the_range(tmp_path):
    with pytest.raises(SpaceError, match="subsample"):
        icml2020.read(written(XGBOOST | {"hp_subsample": [0.4, 1.0]}, tmp_path / "x.csv"))


def test_refuses_an_unknown_operation(tmp_path):
    with refuses("unknown-operation"):
        icml2020.read(written(NAS | {"hp_x0": [5, 0]}, tmp_path / "x.csv"))


CRPS = {
    "hp_layers": [1, 5],
    "metric_CRPS": [0.5, 0.25],
    "metric_train_accuracy": [0.75, 0.5],
    "task": ["t", "t"],
    "blackbox": ["DeepAR", "DeepAR"],
}


def test_reads_metrics_of_other_names(tmp_path):
    experience = icml2020.read(written(CRPS, tmp_path / "deepar.csv"))
    named = {metric.name: metric.direction for metric in experience.metrics}
    assert named == {"CRPS": Direction.MIN, "train_accuracy": Direction.MAX}
    assert experience.losses.tolist() == [[0.5, -0.75], [0.25, -0.5]]


@pytest.mark.parametrize("name", ["CRPS", "metric_CRPS"])
def test_reads_the_metrics_that_are_asked_for(tmp_path, name):
    columns = TableColumns(values={name: "max"})
    experience = icml2020.read(written(CRPS, tmp_path / "deepar.csv"), columns=columns)
    assert [metric.name for metric in experience.metrics] == ["CRPS"]
    assert experience.losses.tolist() == [[-0.5], [-0.25]]


def test_refuses_a_metric_that_is_not_there_and_other_columns(tmp_path):
    path = written(CRPS, tmp_path / "deepar.csv")
    with refuses("unknown-column"):
        icml2020.read(path, columns=TableColumns(values={"rmse": "min"}))
    with refuses("foreign-option"):
        icml2020.read(path, columns=TableColumns(task="other"))


def test_the_command_takes_values(tmp_path):
    path, out = written(CRPS, tmp_path / "deepar.csv"), tmp_path / "deepar.parquet"
    arguments = ["icml2020", str(path), "--value", "CRPS:min", "-o", str(out)]
    assert CliRunner().invoke(import_command, arguments).exit_code == 0
    assert [metric.name for metric in Experience.open(out).metrics] == ["CRPS"]
