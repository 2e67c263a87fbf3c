import json

import numpy as np
import pytest

from foretune.experience import Status
from foretune_lab.archives import oboe, tensor_oboe
from tests.refusals import refuses

HEADER = (
    ",\"{'algorithm': 'AB', 'hyperparameters': {'n_estimators': 50, 'learning_rate': 1}}\""
    ",\"{'algorithm': 'AB', 'hyperparameters': {'n_estimators': 100, 'learning_rate': 1.5}}\""
    ",\"{'algorithm': 'GBT', 'hyperparameters': {'max_features': None}}\""
    ",\"{'algorithm': 'GBT', 'hyperparameters': {'max_features': 'log2'}}\""
    ",\"{'algorithm': 'GNB', 'hyperparameters': {}}\""
)


@pytest.fixture
def matrices(tmp_path):
    (tmp_path / "error_matrix.csv").write_text(
        f"{HEADER}\n00003,0.1,0.2,0.3,0.35,0.4\n01121,0.5,0.6,0.7,0.75,0.8\n"
    )
    (tmp_path / "runtime_matrix.csv").write_text(
        f"{HEADER}\n00003,1,2,3,3.5,4\n01121,5,6,7,7.5,8\n"
    )
    return tmp_path


def test_models_are_a_choice_of_algorithm_with_conditions(matrices):
    experience = oboe.read(matrices)
    assert experience.task("00003").configs.dicts() == [
        {
            "algorithm": "AB",
            "algorithm:AB:n_estimators": 50,
            "algorithm:AB:learning_rate": 1.0,
        },
        {
            "algorithm": "AB",
            "algorithm:AB:n_estimators": 100,
            "algorithm:AB:learning_rate": 1.5,
        },
        {"algorithm": "GBT", "algorithm:GBT:max_features": "None"},
        {"algorithm": "GBT", "algorithm:GBT:max_features": "log2"},
        {"algorithm": "GNB"},
    ]
    (stage,) = experience.space.structure.stages
    assert [algorithm.name for algorithm in stage.algorithms] == ["AB", "GBT", "GNB"]


def test_errors_are_minimised_and_run_times_kept(matrices):
    records = oboe.read(matrices).task("01121")
    assert records.losses[:, 0].tolist() == [0.5, 0.6, 0.7, 0.75, 0.8]
    assert records.seconds.tolist() == [5, 6, 7, 7.5, 8]


def test_sizes_become_meta_features(matrices):
    assert not oboe.read(matrices).meta_features
    (matrices / "dataset_sizes.csv").write_text(",0,1\n1121,294,14\n9,1,1\n")
    assert oboe.read(matrices).meta_features == {"01121": {"instances": 294.0, "features": 14.0}}


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        ("error_matrix.csv", f'{HEADER}\n00003,0.1,0.2,0.3,0.3"5,0.4\n', "not-a-matrix"),
        ("dataset_sizes.csv", ",0,1\n1121,29<,14\n", "not-a-matrix"),
        ("dataset_sizes.csv", ",0\n1121,294\n", "matrix-without-names"),
    ],
)
def test_refuses_cells_that_are_no_numbers(matrices, name, content, rule):
    (matrices / name).write_text(content)
    with refuses(rule):
        oboe.read(matrices)


@pytest.mark.parametrize(
    ("content", "rule"),
    [
        ("", "not-a-matrix"),
        (f"{HEADER}\n", "empty-matrix"),
        (f"{HEADER}\n00003,1,2,3,4,5\n", "matrices-differ"),
        (",os.system('x')\n00003,1\n", "matrices-differ"),
    ],
)
def test_refuses_other_matrices(matrices, content, rule):
    (matrices / "runtime_matrix.csv").write_text(content)
    with refuses(rule):
        oboe.read(matrices)


def test_a_column_name_is_data_not_code(matrices):
    for name in ("error_matrix.csv", "runtime_matrix.csv"):
        (matrices / name).write_text(",__import__('os').getcwd()\n00003,1\n")
    with refuses("pipeline-name"):
        oboe.read(matrices)


def test_refuses_a_folder_without_matrices(tmp_path):
    with refuses("missing-member", field="error_matrix.csv"):
        oboe.read(tmp_path)


SEARCH_SPACE = {
    "imputer": {
        "algorithms": ["SimpleImputer"],
        "hyperparameters": {"SimpleImputer": {"strategy": ["mean", "median"]}},
    },
    "encoder": {
        "algorithms": [None, "OneHotEncoder"],
        "hyperparameters": {"OneHotEncoder": {"handle_unknown": ["ignore"]}},
    },
    "standardizer": {"algorithms": [None], "hyperparameters": {}},
    "dim_reducer": {
        "algorithms": [None, "PCA"],
        "hyperparameters": {"PCA": {"n_components": ["25%", "50%"]}},
    },
    "estimator": {"algorithms": ["GNB"], "hyperparameters": {"GNB": {}}},
}
"""2 x 2 x 1 x 3 x 1 pipelines"""


@pytest.fixture
def tensors(tmp_path):
    folder = tmp_path / "TensorOboe"
    folder.mkdir()
    (folder / "classification.json").write_text(json.dumps(SEARCH_SPACE))
    errors = np.arange(24, dtype=np.float16).reshape(2, 2, 2, 1, 3, 1) / 32
    seconds = np.ones_like(errors)
    seconds[0, 0, 0, 0, 1, 0] = np.nan
    seconds[0, 0, 0, 0, 2, 0] = -1
    np.savez_compressed(folder / tensor_oboe.ERRORS, a=errors)
    np.savez_compressed(folder / tensor_oboe.SECONDS, a=seconds)
    return tmp_path


def test_pipelines_are_the_product_of_the_steps(tensors):
    configs = tensor_oboe.read(tensors).task("1").configs.dicts()
    assert len(configs) == 12
    assert configs[0] == {
        "imputer": "SimpleImputer",
        "imputer:SimpleImputer:strategy": "mean",
        "encoder": "none",
        "standardizer": "none",
        "dim_reducer": "none",
        "estimator": "GNB",
    }
    # 10 = 1 * 6 + 1 * 3 + 1: median, OneHotEncoder, the first PCA
    assert configs[10] == {
        "imputer": "SimpleImputer",
        "imputer:SimpleImputer:strategy": "median",
        "encoder": "OneHotEncoder",
        "encoder:OneHotEncoder:handle_unknown": "ignore",
        "standardizer": "none",
        "dim_reducer": "PCA",
        "dim_reducer:PCA:n_components": 0.25,
        "estimator": "GNB",
    }


def test_imputed_errors_are_missing_and_failures_are_failures(tensors):
    records = tensor_oboe.read(tensors).task("0")
    assert records.config_index.tolist() == [0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]
    assert records.status.tolist() == [Status.DONE, Status.FAILED] + [Status.DONE] * 9
    assert np.isnan(records.losses[1, 0])
    assert np.isnan(records.seconds[1])
    assert records.losses[2, 0] == 3 / 32


def test_a_dataset_on_which_nothing_was_run_is_left_out(tensors):
    seconds = np.full((2, 12), np.nan)
    seconds[1, :2] = -1, 2
    np.savez(tensors / "TensorOboe" / tensor_oboe.SECONDS, a=seconds)
    assert tensor_oboe.read(tensors).tasks == ("1",)


def test_every_step_is_a_stage(tensors):
    names = {stage.name for stage in tensor_oboe.read(tensors).space.structure.stages}
    assert names == set(tensor_oboe.STEPS)


def test_refuses_tensors_of_another_shape(tensors):
    np.savez(tensors / "TensorOboe" / tensor_oboe.ERRORS, a=np.ones((2, 5)))
    with refuses("pipeline-count", value=12):
        tensor_oboe.read(tensors)


@pytest.mark.parametrize("content", [b"", b"not an archive"])
def test_refuses_damaged_tensors(tensors, content):
    (tensors / "TensorOboe" / tensor_oboe.SECONDS).write_bytes(content)
    with refuses("no-array"):
        tensor_oboe.read(tensors)


def test_refuses_pickled_tensors(tensors):
    np.savez(tensors / "TensorOboe" / tensor_oboe.SECONDS, a=np.array([{}], dtype=object))
    with refuses("no-array"):
        tensor_oboe.read(tensors)


def test_refuses_tensors_that_are_packed_wrongly(tensors):
    path = tensors / "TensorOboe" / tensor_oboe.SECONDS
    content = bytearray(path.read_bytes())
    begin = content.index(b"a.npy") + len(b"a.npy")
    content[begin : begin + 24] = b"\xff" * 24
    path.write_bytes(content)
    with refuses("no-array"):
        tensor_oboe.read(tensors)


@pytest.mark.parametrize("content", ["{", "[]", "{}", '{"imputer": {"algorithms": [["a"]]}}'])
def test_refuses_another_search_space(tensors, content):
    (tensors / tensor_oboe.SEARCH_SPACE).write_text(content)
    with refuses("unreadable-algorithms"):
        tensor_oboe.read(tensors)
