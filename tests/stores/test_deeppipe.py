"""The three meta-datasets in the real format, with a few pipelines each."""

import json

import numpy as np
import pytest

from foretune_lab.archives import deeppipe
from foretune_lab.archives.deeppipe_layouts import LAYOUTS, PMF, TENSOR_OBOE, ZAP
from tests.refusals import refuses


def columns_of(layout):
    """{(stage, algorithm, column name): position}"""
    names = [
        (stage, algorithm, name)
        for stage, encoders in layout.stages.items()
        for encoder in encoders
        for algorithm, columns in encoder.items()
        for name in columns.split()
    ]
    return {name: position for position, name in enumerate(names)}


def dataset(layout, cells, selector, error, **more):
    """`cells`: for each pipeline what is not zero, {(stage, algorithm, column): value}."""
    position = columns_of(layout)
    table = np.zeros((len(cells), len(position)))
    for row, filled in enumerate(cells):
        for name, value in filled.items():
            table[row, position[name]] = value
    encoders = [len(of) for of in layout.stages.values()]
    return {
        "pipelines": table.tolist(),
        "list_for_selector": selector,
        "list_for_concatenator": [[0] * n for n in encoders],
        "algorithm_domain": [0, *np.cumsum(layout.widths).tolist()],
        "error": error,
        **more,
    }


def est(algorithm, **cells):
    return {("estimator", algorithm, name.replace("__", "=")): v for name, v in cells.items()}


def pre(algorithm, **cells):
    return {("preprocessor", algorithm, name): v for name, v in cells.items()}


@pytest.fixture
def pmf():
    cells = [
        pre("pca", keep_variance=0.75, whiten=1) | est("qda", reg_param=0.5),
        pre("pca", keep_variance=0.5) | {("estimator", "gaussian_nb", "@"): 1},
        pre("polynomial", degree=1, include_bias=1)
        | est("bernoulli_nb", alpha=0.25)
        | est("extra_trees", max_depth=1),
        pre("polynomial", degree=0.5) | est("knn", p=0.5, n_neighbors=0.01, weights__uniform=1),
        pre("pca", keep_variance=0.6) | est("knn", p=1, n_neighbors=0.5, weights__distance=1),
        pre("pca", keep_variance=0.6) | est("qda", reg_param=0.25),
    ]
    selector = [[1, 7], [1, 7], [0, 7], [0, 3], [1, 3], [1, 7]]
    error = [[0.5, np.nan, 0.25, 0.125, -1.0, 0.0], [1.0] * 6, [0.5] * 6]
    return dataset(
        PMF,
        cells,
        selector,
        error,
        tasks_index=[[0], [1], [2]],
        init_ids=[[], {"1": [3, 0]}, []],
        original_dataset_id=["1562", "970", "450"],
    )


def read(data, tmp_path):
    path = tmp_path / "meta_dataset.json"
    path.write_text(json.dumps(data))
    return deeppipe.read(path)


def test_pmf_splits_shared_encoders_into_their_algorithms(pmf, tmp_path):
    experience = read(pmf, tmp_path)
    assert experience.task("970").configs.dicts() == [
        {
            "preprocessor": "pca",
            "preprocessor:pca:keep_variance": 0.75,
            "preprocessor:pca:whiten": 1,
            "estimator": "qda",
            "estimator:qda:reg_param": 0.5,
        },
        {
            "preprocessor": "pca",
            "preprocessor:pca:keep_variance": 0.5,
            "preprocessor:pca:whiten": 0,
            "estimator": "gaussian_nb",
        },
        {
            "preprocessor": "polynomial",
            "preprocessor:polynomial:degree": 1.0,
            "preprocessor:polynomial:include_bias": 1,
            "estimator": "bernoulli_nb",
        },
        {
            "preprocessor": "polynomial",
            "preprocessor:polynomial:degree": 0.5,
            "preprocessor:polynomial:include_bias": 0,
            "estimator": "knn",
            "estimator:knn:p": 0.5,
            "estimator:knn:n_neighbors": 0.01,
            "estimator:knn:weights": "uniform",
        },
        {
            "preprocessor": "pca",
            "preprocessor:pca:keep_variance": 0.6,
            "preprocessor:pca:whiten": 0,
            "estimator": "knn",
            "estimator:knn:p": 1.0,
            "estimator:knn:n_neighbors": 0.5,
            "estimator:knn:weights": "distance",
        },
        {
            "preprocessor": "pca",
            "preprocessor:pca:keep_variance": 0.6,
            "preprocessor:pca:whiten": 0,
            "estimator": "qda",
            "estimator:qda:reg_param": 0.25,
        },
    ]


def test_errors_are_minimised_and_gaps_left_out(pmf, tmp_path):
    experience = read(pmf, tmp_path)
    records = experience.task("1562")
    assert records.losses[:, 0].tolist() == [0.5, 0.25, 0.125, 0.0]
    assert records.config_index.tolist() == [0, 2, 3, 5]


def test_pmf_has_the_split_and_the_starts_of_the_paper(pmf, tmp_path):
    experience = read(pmf, tmp_path)
    split = {"validation": ("1562",), "test": ("970",), "train": ("450",)}
    assert dict(experience.splits["paper"]) == split
    assert dict(experience.splits["0"]) == split
    assert set(experience.splits) == {"paper", "0"}
    assert {task: dict(of) for task, of in experience.starts.items()} == {"970": {"paper": (3, 0)}}


def test_tasks_without_a_record_are_left_out(pmf, tmp_path):
    pmf["error"][0] = [float("nan")] * 6
    experience = read(pmf, tmp_path)
    assert experience.tasks == ("970", "450")
    assert not experience.splits["paper"]["validation"]


def test_starts_that_were_not_run_are_left_out(pmf, tmp_path):
    pmf["init_ids"] = [{"0": [1, 2]}, {"1": [3]}, []]
    assert read(pmf, tmp_path).starts["1562"]["paper"] == (2,)


@pytest.fixture
def tensor_oboe():
    mean, median = ({("imputer", "simple", f"strategy={s}"): 1} for s in ("mean", "median"))
    cells = [
        mean
        | {("encoder", "one_hot", "@"): 1, ("dim_reducer", "pca", "n_components"): 0.333}
        | est("linear_svm", C=0.5),
        median | {("estimator", "perceptron", "@"): 1},
        mean
        | {("scaler", "standard", "@"): 1, ("dim_reducer", "variance", "@"): 1}
        | est("linear_svm", C=1),
        mean | {("dim_reducer", "pca", "n_components"): 1} | est("linear_svm", C=0.25),
    ]
    selector = [[0, 0, 0, 0, 5], [0, 0, 0, 2, 9], [0, 0, 0, 2, 5], [0, 0, 0, 0, 5]]
    return dataset(
        TENSOR_OBOE,
        cells,
        selector,
        [[0.1, 0.2, 0.3, 0.4]] * 3,
        tasks_index=[[2], [0], [1]],
        init_ids=[{"2": [0]}, {"0": [1]}, {"1": [2]}],
    )


def test_tensor_oboe_knows_steps_that_are_left_out(tensor_oboe, tmp_path):
    first, second, third, _ = read(tensor_oboe, tmp_path).task("0").configs.dicts()
    assert first == {
        "imputer": "simple",
        "imputer:simple:strategy": "mean",
        "encoder": "one_hot",
        "scaler": "none",
        "dim_reducer": "pca",
        "dim_reducer:pca:n_components": 0.333,
        "estimator": "linear_svm",
        "estimator:linear_svm:C": 0.5,
    }
    assert (second["dim_reducer"], second["estimator"]) == ("none", "perceptron")
    assert (third["dim_reducer"], third["scaler"]) == ("variance", "standard")


def test_every_step_is_a_stage(tensor_oboe, tmp_path):
    structure = read(tensor_oboe, tmp_path).space.structure
    assert structure.fits
    assert {stage.name for stage in structure.stages} == set(TENSOR_OBOE.stages)


def test_splits_go_round_where_all_groups_have_starts(tensor_oboe, tmp_path):
    splits = read(tensor_oboe, tmp_path).splits
    assert {name: tuple(of["test"]) for name, of in splits.items()} == {
        "paper": ("0",),
        "0": ("0",),
        "1": ("1",),
        "2": ("2",),
    }
    assert dict(splits["2"]) == {"validation": ("1",), "test": ("2",), "train": ("0",)}


def test_zap_has_common_hyperparameters_and_its_own_task_names(tmp_path):
    def zap(optimizer, architecture, simple, **cells):
        common = {("", "", name): value for name, value in cells.items()}
        return common | {
            ("", "", f"simple_model={simple}"): 1,
            ("", "", "scheduler=cosine"): 1,
            ("optimizer", optimizer, "@"): 1,
            ("architecture", architecture, "@"): 1,
        }

    cells = [
        zap("SGD", "ResNet18", "LR", lr=0.1, wd=1.0000002, nesterov=1),
        zap("Adam", "EfficientNet-B2", "RF", lr=0.2, wd=0.0),
    ]
    data = dataset(
        ZAP,
        cells,
        [[0, 2, 0], [0, 0, 3]],
        [[0.1, 0.2], [0.3, 0.4]],
        tasks_index=[[0], [1]],
        init_ids=[{"0": [0]}, {"1": [1]}],
        pipelines_names=["0-cars", "0-cifar"],
        variable_names=[],
    )
    assert read(data, tmp_path).task("0-cifar").configs.dicts() == [
        {
            "optimizer": "SGD",
            "architecture": "ResNet18",
            "simple_model": "LR",
            "lr": 0.1,
            "wd": 1,
            "nesterov": 1,
        },
        {
            "optimizer": "Adam",
            "architecture": "EfficientNet-B2",
            "simple_model": "RF",
            "lr": 0.2,
            "wd": 0,
            "nesterov": 0,
        },
    ]


def test_layouts_are_told_apart_by_their_widths():
    assert len({layout.widths for layout in LAYOUTS}) == len(LAYOUTS)
    assert [sum(layout.widths) for layout in LAYOUTS] == [72, 37, 35]


def test_refuses_other_columns(pmf, tmp_path):
    pmf["algorithm_domain"] = [0, 1, 2]
    with refuses("unknown-layout"):
        read(pmf, tmp_path)


def test_refuses_a_damaged_one_hot_group(pmf, tmp_path):
    column = columns_of(PMF)["estimator", "knn", "weights=uniform"]
    pmf["pipelines"][3][column] = 0.5
    with refuses("damaged-one-hot", field="weights"):
        read(pmf, tmp_path)


def test_refuses_too_few_names(pmf, tmp_path):
    pmf["original_dataset_id"] = ["1"]
    with refuses("task-names", value=1):
        read(pmf, tmp_path)


@pytest.mark.parametrize(
    ("entry", "content"), [("pipelines", [["x"]]), ("error", [[1], []]), ("init_ids", 5)]
)
def test_refuses_entries_that_are_no_tables(pmf, tmp_path, entry, content):
    pmf[entry] = content
    with refuses("not-published-tables"):
        read(pmf, tmp_path)


@pytest.mark.parametrize(
    ("content", "rule"), [("{", "not-json"), ("[]", "missing-entry"), ("{}", "missing-entry")]
)
def test_refuses_other_files(tmp_path, content, rule):
    (tmp_path / "x.json").write_text(content)
    with refuses(rule):
        deeppipe.read(tmp_path / "x.json")


def test_refuses_a_missing_file(tmp_path):
    with refuses("missing-source"):
        deeppipe.read(tmp_path / "x.json")
