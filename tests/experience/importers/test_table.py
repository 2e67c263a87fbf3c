import json

import pandas as pd
import pytest

from foretune.errors import ExperienceError
from foretune.experience import Status
from foretune.experience.importers import TableColumns, table
from foretune.space import Space

FRAME = pd.DataFrame(
    {
        "dataset": ["iris", "iris", "wine"],
        "kernel": ["rbf", "poly", "poly"],
        "C": [0.001, 1.0, 10.0],
        "degree": [None, 2, 3],
        "accuracy": [0.9, 0.8, None],
        "time": [1.5, 2.5, 3.5],
        "outcome": ["DONE", "DONE", "FAILED"],
    }
)
COLUMNS = TableColumns(task="dataset", values={"accuracy": "max"}, seconds="time", status="outcome")


@pytest.mark.parametrize("ending", ["csv", "csv.gz", "csv.zip", "tsv", "parquet"])
def test_every_format_gives_the_same_experience(tmp_path, ending):
    path = tmp_path / f"runs.{ending}"
    if ending == "parquet":
        FRAME.to_parquet(path)
    else:
        FRAME.to_csv(path, index=False, sep="\t" if ending == "tsv" else ",")
    experience = table.read(path, columns=COLUMNS)
    assert experience.tasks == ("iris", "wine")
    assert experience.task("iris").losses[:, 0].tolist() == [-0.9, -0.8]
    assert experience.task("iris").configs.dicts() == [
        {"kernel": "rbf", "C": 0.001},
        {"kernel": "poly", "C": 1.0, "degree": 2},
    ]
    assert experience.status.tolist() == [Status.DONE, Status.DONE, Status.FAILED]
    assert experience.seconds.tolist() == [1.5, 2.5, 3.5]


def test_configurations_as_json_with_different_keys(tmp_path):
    path = tmp_path / "runs.csv"
    configs = [{"kernel": "rbf", "C": 1.0}, {"kernel": "poly", "C": 2.0, "degree": 3}]
    pd.DataFrame({"d": [1, 1], "y": [0.5, 0.25], "c": [json.dumps(c) for c in configs]}).to_csv(
        path, index=False
    )
    columns = TableColumns(task="d", values={"y": "min"}, config_column="c")
    experience = table.read(path, columns=columns)
    assert experience.tasks == ("1",)
    assert experience.task("1").configs.dicts() == configs
    again = TableColumns(
        task="d", values={"y": "min"}, config_column="c", space=tmp_path / "space.json"
    )
    (tmp_path / "space.json").write_text(experience.space.to_json())
    assert table.read(path, columns=again).task("1").configs.dicts() == configs


def test_a_given_space_decides_which_columns_are_hyperparameters(tmp_path):
    path = tmp_path / "runs.csv"
    pd.DataFrame({"t": ["a"], "x": [0.5], "note": ["hello"], "y": [1.0]}).to_csv(path, index=False)
    (tmp_path / "space.json").write_text(Space.of({"x": (0.0, 1.0)}).to_json())
    columns = TableColumns(task="t", values={"y": "min"}, space=tmp_path / "space.json")
    assert table.read(path, columns=columns).task("a").configs.dicts() == [{"x": 0.5}]


def test_several_metrics_keep_their_directions(tmp_path):
    path = tmp_path / "runs.csv"
    pd.DataFrame({"t": ["a"], "x": [1], "y": [1.0], "z": [2.0]}).to_csv(path, index=False)
    columns = TableColumns(task="t", values={"y": "min", "z": "max"})
    assert table.read(path, columns=columns).losses.tolist() == [[1.0, -2.0]]


@pytest.mark.parametrize(
    ("columns", "message"),
    [
        (TableColumns(values={"accuracy": "max"}), "no task column"),
        (TableColumns(task="dataset"), "no value column"),
        (TableColumns(task="dataset", values={"accuracy": "up"}), "write min or max"),
        (TableColumns(task="dataset", values={"score": "max"}), "column 'score'"),
        (TableColumns(task="data", values={"accuracy": "max"}), "column 'data'"),
        (
            TableColumns(task="dataset", values={"accuracy": "max"}, config_column="kernel"),
            "row 0 holds 'rbf'",
        ),
    ],
)
def test_refuses_columns_that_do_not_fit(tmp_path, columns, message):
    path = tmp_path / "runs.csv"
    FRAME.to_csv(path, index=False)
    with pytest.raises(ExperienceError, match=message):
        table.read(path, columns=columns)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("runs.csv", b"", "cannot be read as a table"),
        ("runs.csv", b"dataset,accuracy\n", "at least one row"),
        ("runs.parquet", b"PAR1 no", "cannot be read as a table"),
        ("runs.csv.gz", b"not gzip", "cannot be read as a table"),
        ("runs.xlsx", b"x", "CSV"),
    ],
)
def test_refuses_files_that_are_no_tables(tmp_path, name, content, message):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ExperienceError, match=message):
        table.read(tmp_path / name, columns=COLUMNS)


def test_refuses_a_missing_file(tmp_path):
    with pytest.raises(ExperienceError, match="there is no"):
        table.read(tmp_path / "runs.csv", columns=COLUMNS)


def test_refuses_a_hyperparameter_named_like_a_metric(tmp_path):
    path = tmp_path / "runs.csv"
    pd.DataFrame({"t": ["a"], "y": [1.0], "c": ['{"y": 1}']}).to_csv(path, index=False)
    columns = TableColumns(task="t", values={"y": "min"}, config_column="c")
    with pytest.raises(ExperienceError, match="'y' is both"):
        table.read(path, columns=columns)
