import json
import zipfile

import pandas as pd
import pytest

from foretune.errors import ExperienceError, ForetuneWarning
from foretune.experience import Status
from foretune.experience.importers import TableColumns, table
from foretune.space import Kind, Space

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
        (
            TableColumns(task="accuracy", values={"accuracy": "max"}),
            "'accuracy' was named as the task and as a metric",
        ),
        (
            TableColumns(task="dataset", values={"accuracy": "max"}, seconds="accuracy"),
            "'accuracy' was named as a metric and as the run time",
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


def test_refuses_a_column_of_lists(tmp_path):
    path = tmp_path / "runs.parquet"
    FRAME.assign(layers=[[1]] * len(FRAME)).to_parquet(path)
    with pytest.raises(ExperienceError, match="'layers' has"):
        table.read(path, columns=COLUMNS)


def test_refuses_a_missing_file(tmp_path):
    with pytest.raises(ExperienceError, match="there is no"):
        table.read(tmp_path / "runs.csv", columns=COLUMNS)


def test_refuses_a_hyperparameter_named_like_a_metric(tmp_path):
    path = tmp_path / "runs.csv"
    pd.DataFrame({"t": ["a"], "y": [1.0], "c": ['{"y": 1}']}).to_csv(path, index=False)
    columns = TableColumns(task="t", values={"y": "min"}, config_column="c")
    with pytest.raises(ExperienceError, match="'y' is both"):
        table.read(path, columns=columns)


def written(tmp_path, *rows):
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_none_and_null_are_choices_in_a_column_of_texts(tmp_path):
    path = written(
        tmp_path,
        "t,kind,norm,same,lr,y",
        "a,p,None,None,0.1,1",
        "a,q,batch,None,0.2,2",
        "a,q,null,None,0.3,3",
    )
    columns = TableColumns(task="t", values={"y": "min"})
    experience = table.read(path, columns=columns)
    norms = [config["norm"] for config in experience.task("a").configs.dicts()]
    assert norms == ["None", "batch", "null"]
    assert {config["same"] for config in experience.task("a").configs.dicts()} == {"None"}
    (tmp_path / "space.json").write_text(experience.space.to_json())
    again = TableColumns(task="t", values={"y": "min"}, space=tmp_path / "space.json")
    assert table.read(path, columns=again).task("a").configs.dicts() == (
        experience.task("a").configs.dicts()
    )


def test_none_and_null_are_gaps_where_another_column_explains_them(tmp_path):
    rows = ["t,kernel,shape,degree,y", "a,rbf,None,None,1", "a,poly,odd,3,2", "a,poly,even,2,3"]
    path = written(tmp_path, *rows)
    configs = [
        {"kernel": "rbf"},
        {"kernel": "poly", "shape": "odd", "degree": 3},
        {"kernel": "poly", "shape": "even", "degree": 2},
    ]
    columns = TableColumns(task="t", values={"y": "min"})
    experience = table.read(path, columns=columns)
    assert experience.task("a").configs.dicts() == configs
    (tmp_path / "space.json").write_text(experience.space.to_json())
    again = TableColumns(task="t", values={"y": "min"}, space=tmp_path / "space.json")
    assert table.read(path, columns=again).task("a").configs.dicts() == configs


@pytest.mark.parametrize("gap", ["None", "", "NA"])
def test_gaps_among_numbers_are_never_choices(tmp_path, gap):
    path = written(tmp_path, "t,x,y", "a,1,1", f"a,{gap},2", "a,3,3", "a,1,4")
    with pytest.raises(ExperienceError, match="'x' is missing in 1 of 4 rows"):
        table.read(path, columns=TableColumns(task="t", values={"y": "min"}))


def test_numbers_with_gaps_are_whole_only_where_all_are(tmp_path):
    rows = ["a,p,1,1.0,1", "a,p,2,0.5,2", "a,p,4,2.5,3", "a,q,,,4"]
    path = written(tmp_path, "t,kind,n,rate,y", *rows)
    found = table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
    kinds = {parameter.name: parameter.kind for parameter in found.space.parameters}
    assert (kinds["n"], kinds["rate"]) == (Kind.INT, Kind.FLOAT)
    numbers = [(c.get("n"), c.get("rate")) for c in found.task("a").configs.dicts()]
    assert numbers == [(1, 1.0), (2, 0.5), (4, 2.5), (None, None)]


def test_large_numbers_with_gaps_are_no_whole_numbers(tmp_path):
    path = written(tmp_path, "t,kind,c,y", "a,p,1e20,1", "a,p,2.0,2", "a,q,,3")
    found = table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
    assert [c.get("c") for c in found.task("a").configs.dicts()] == [1e20, 2.0, None]


def test_row_numbers_and_empty_columns_without_a_name_are_no_hyperparameters(tmp_path):
    columns = TableColumns(task="t", values={"y": "min"})
    numbered = written(tmp_path, ",t,x,y", "0,a,1,1", "5,a,2,2")
    with pytest.warns(ForetuneWarning, match="taken for the numbers of the rows"):
        assert table.read(numbered, columns=columns).space.names == ("x",)
    empty = written(tmp_path, "t,x,y,", "a,1,1,", "a,2,2,")
    assert table.read(empty, columns=columns).space.names == ("x",)
    meant = written(tmp_path, "t,x,y,", "a,1,1,3", "a,2,2,4")
    assert set(table.read(meant, columns=columns).space.names) == {"x", "Unnamed: 3"}


def test_two_columns_of_one_name_are_refused(tmp_path):
    path = written(tmp_path, '"t",x,y,"y",', "a,1,1,1,", "a,2,2,2,")
    with pytest.raises(ExperienceError, match="has 'y' twice"):
        table.read(path, columns=TableColumns(task="t", values={"y": "min"}))


def test_what_macos_adds_to_a_zip_file_is_no_second_table(tmp_path):
    path = tmp_path / "runs.csv.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("runs.csv", "t,x,y\na,1,1\na,2,2\n")
        packed.writestr("__MACOSX/._runs.csv", "not a table")
    assert len(table.read(path, columns=TableColumns(task="t", values={"y": "min"}))) == 2


def test_columns_of_a_parquet_file_may_be_numbered(tmp_path):
    path = tmp_path / "numbered.parquet"
    pd.DataFrame({0: ["a", "a"], 1: [1, 2], 2: [0.1, 0.2]}).to_parquet(path)
    found = table.read(path, columns=TableColumns(task="0", values={"2": "min"}))
    assert (found.tasks, found.space.names) == (("a",), ("1",))


def test_empty_cells_beside_none_stay_gaps(tmp_path):
    path = written(
        tmp_path, "t,kind,norm,y", "a,x,None,1", "a,x,batch,2", "a,x,batch,3", "a,z,,4", "a,z,,5"
    )
    experience = table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
    assert experience.task("a").configs.dicts() == [
        {"kind": "x", "norm": "None"},
        *[{"kind": "x", "norm": "batch"}] * 2,
        *[{"kind": "z"}] * 2,
    ]


def test_tasks_keep_their_leading_zeros(tmp_path):
    path = written(tmp_path, "t,x,y", "007,1,1", "07,2,2", "7,3,3")
    experience = table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
    assert experience.tasks == ("007", "07", "7")


@pytest.mark.parametrize(
    ("rows", "rates"),
    [
        (["t;x;act;y", "a;0,5;relu;1,25", "a;2;tanh;3"], [0.5, 2.0]),
        (["t;x;act;y", "a;0.5;relu,elu;1.25", "a;2;tanh;3"], [0.5, 2.0]),
        (["t|x|act|y", "a|0.5|relu|1.25", "a|2|tanh|3"], [0.5, 2.0]),
        (["t,x,act,y", 'a,0.5,"relu;elu|elu;elu",1.25', "a,2,tanh,3"], [0.5, 2.0]),
    ],
)
def test_the_separator_and_the_decimal_mark_are_found_out(tmp_path, rows, rates):
    path = written(tmp_path, *rows)
    experience = table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
    assert [config["x"] for config in experience.task("a").configs.dicts()] == rates
    assert experience.losses[:, 0].tolist() == [1.25, 3.0]


def test_a_comma_of_thousands_is_no_decimal_mark(tmp_path):
    path = written(tmp_path, "t;x;y", "a;1;1,234", "a;2;2,345")
    with pytest.raises(ExperienceError, match="'y' must hold numbers, but got '1,234'"):
        table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
