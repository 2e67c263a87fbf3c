import gzip
import json
import zipfile
from dataclasses import replace

import pandas as pd
import pytest

from foretune.errors import ForetuneWarning
from foretune.experience import Experience, Metric, Status
from foretune.space import Kind, Space
from foretune.stores import TableColumns
from foretune.stores.files import evaluation_table
from foretune.stores.files.dropped_rows import TOLD_IN_PART
from tests.refusals import refuses, warns

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
    experience = evaluation_table.read(path, columns=COLUMNS)
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
    experience = evaluation_table.read(path, columns=columns)
    assert experience.tasks == ("1",)
    assert experience.task("1").configs.dicts() == configs
    again = TableColumns(
        task="d", values={"y": "min"}, config_column="c", space=tmp_path / "space.json"
    )
    (tmp_path / "space.json").write_text(experience.space.to_json())
    assert evaluation_table.read(path, columns=again).task("1").configs.dicts() == configs


def test_a_given_space_decides_which_columns_are_hyperparameters(tmp_path):
    path = tmp_path / "runs.csv"
    pd.DataFrame({"t": ["a"], "x": [0.5], "note": ["hello"], "y": [1.0]}).to_csv(path, index=False)
    (tmp_path / "space.json").write_text(Space.of({"x": (0.0, 1.0)}).to_json())
    columns = TableColumns(task="t", values={"y": "min"}, space=tmp_path / "space.json")
    assert evaluation_table.read(path, columns=columns).task("a").configs.dicts() == [{"x": 0.5}]


def test_several_metrics_keep_their_directions(tmp_path):
    path = tmp_path / "runs.csv"
    pd.DataFrame({"t": ["a"], "x": [1], "y": [1.0], "z": [2.0]}).to_csv(path, index=False)
    columns = TableColumns(task="t", values={"y": "min", "z": "max"})
    assert evaluation_table.read(path, columns=columns).losses.tolist() == [[1.0, -2.0]]


@pytest.mark.parametrize(
    ("columns", "rule"),
    [
        (TableColumns(values={"accuracy": "max"}), "no-task-or-value-column"),
        (TableColumns(task="dataset"), "no-task-or-value-column"),
        (TableColumns(task="dataset", values={"accuracy": "up"}), "unknown-direction"),
        (TableColumns(task="dataset", values={"score": "max"}), "unknown-column"),
        (TableColumns(task="data", values={"accuracy": "max"}), "unknown-column"),
        (
            TableColumns(task="dataset", values={"accuracy": "max"}, config_column="kernel"),
            "not-json-object",
        ),
        (
            TableColumns(task="accuracy", values={"accuracy": "max"}),
            "column-of-two-meanings",
        ),
        (
            TableColumns(task="dataset", values={"accuracy": "max"}, seconds="accuracy"),
            "column-of-two-meanings",
        ),
    ],
)
def test_refuses_columns_that_do_not_fit(tmp_path, columns, rule):
    path = tmp_path / "runs.csv"
    FRAME.to_csv(path, index=False)
    with refuses(rule):
        evaluation_table.read(path, columns=columns)


@pytest.mark.parametrize(
    ("name", "content", "rule"),
    [
        ("runs.csv", b"", "unreadable-table"),
        ("runs.csv", b"dataset,accuracy\n", "empty-table"),
        ("runs.parquet", b"PAR1 no", "unreadable-table"),
        ("runs.csv.gz", b"not gzip", "unreadable-table"),
        ("runs.xlsx", b"x", "unknown-table-format"),
    ],
)
def test_refuses_files_that_are_no_tables(tmp_path, name, content, rule):
    (tmp_path / name).write_bytes(content)
    with refuses(rule):
        evaluation_table.read(tmp_path / name, columns=COLUMNS)


def test_refuses_a_column_of_lists(tmp_path):
    path = tmp_path / "runs.parquet"
    FRAME.assign(layers=[[1]] * len(FRAME)).to_parquet(path)
    with refuses("list-column", field="layers"):
        evaluation_table.read(path, columns=COLUMNS)


def test_refuses_a_missing_file(tmp_path):
    with refuses("missing-source"):
        evaluation_table.read(tmp_path / "runs.csv", columns=COLUMNS)


def test_refuses_a_hyperparameter_named_like_a_metric(tmp_path):
    path = tmp_path / "runs.csv"
    pd.DataFrame({"t": ["a"], "y": [1.0], "c": ['{"y": 1}']}).to_csv(path, index=False)
    columns = TableColumns(task="t", values={"y": "min"}, config_column="c")
    with refuses("name-of-another-column", field="y"):
        evaluation_table.read(path, columns=columns)


def written(tmp_path, *rows):
    path = tmp_path / "runs.csv"
    path.write_text("\n".join(rows) + "\n")
    return path


def test_a_space_may_be_written_in_short(tmp_path):
    """As `foretune tune` takes it: the same file serves both."""
    path = tmp_path / "runs.csv"
    path.write_text("t,lr,kind,y\na,0.01,svm,1\nb,0.1,tree,2\n")
    (tmp_path / "space.json").write_text(
        '{"lr": {"range": [0.0001, 0.1, "log"]}, "kind": {"ordinal": ["tree", "svm"]}}'
    )
    columns = TableColumns(task="t", values={"y": "min"}, space=tmp_path / "space.json")
    found = evaluation_table.read(path, columns=columns)
    assert found.space == Space.of(
        {"lr": (0.0001, 0.1, "log"), "kind": {"ordinal": ["tree", "svm"]}}
    )
    assert found.configs.dicts() == [{"kind": "svm", "lr": 0.01}, {"kind": "tree", "lr": 0.1}]


def read_twice(path, tmp_path, **meaning):
    """The configurations; with the space that was inferred they are the same again."""
    columns = TableColumns(task="t", values={"y": "min"}, **meaning)
    found = evaluation_table.read(path, columns=columns)
    (tmp_path / "space.json").write_text(found.space.to_json())
    again = evaluation_table.read(path, columns=replace(columns, space=tmp_path / "space.json"))
    configs = found.configs.dicts()
    assert again.configs.dicts() == configs
    found.save(tmp_path / "x.parquet")
    assert Experience.open(tmp_path / "x.parquet").configs.dicts() == configs
    return configs


@pytest.mark.filterwarnings("error")
def test_the_words_none_and_null_are_a_choice_where_nothing_else_explains_them(tmp_path):
    rows = ["a,p,None,3,0.1,1", "a,q,batch,None,0.2,2", "a,q,null,5,0.3,3"]
    path = written(tmp_path, "t,kind,norm,depth,lr,y", *rows)
    configs = read_twice(path, tmp_path)
    assert [config["norm"] for config in configs] == [None, "batch", None]
    assert [config["depth"] for config in configs] == [3, None, 5]


def test_a_given_space_says_what_texts_mean(tmp_path):
    path = tmp_path / "runs.parquet"
    rows = {"t": "a", "lr": ["1e-3", "0.1"], "share": ["0.5", "all"], "layers": ["(8, 8)", "(4,)"]}
    pd.DataFrame({**rows, "y": [1.0, 2.0]}).to_parquet(path)
    space = {"lr": (0.001, 1.0), "share": [0.5, "all"], "layers": [(8, 8), (4,)]}
    (tmp_path / "space.json").write_text(Space.of(space).to_json())
    columns = TableColumns(task="t", values={"y": "min"}, space=tmp_path / "space.json")
    assert evaluation_table.read(path, columns=columns).configs.dicts() == [
        {"lr": 0.001, "share": 0.5, "layers": (8, 8)},
        {"lr": 0.1, "share": "all", "layers": (4,)},
    ]


def test_a_condition_of_the_space_says_where_a_value_has_no_effect(tmp_path):
    path = written(tmp_path, "t,kernel,degree,y", "a,rbf,3,1", "a,poly,3,2", "a,rbf,,3")
    space = Space.of({"kernel": {"rbf": {}, "poly": {"degree": (2, 5)}}})
    text = space.to_json().replace("kernel:poly:degree", "degree")
    (tmp_path / "space.json").write_text(text)
    columns = TableColumns(task="t", values={"y": "min"}, space=tmp_path / "space.json")
    configs = [{"kernel": "rbf"}, {"kernel": "poly", "degree": 3}]
    assert evaluation_table.read(path, columns=columns).configs.dicts() == configs


def test_a_hyperparameter_of_the_name_of_a_metric_has_a_prefix(tmp_path):
    path = written(tmp_path, "t,config:y,y", "a,1,0.5", "a,2,0.25")
    (tmp_path / "space.json").write_text(Space.of({"y": (1, 2)}).to_json())
    columns = TableColumns(task="t", values={"y": "min"}, space=tmp_path / "space.json")
    found = evaluation_table.read(path, columns=columns)
    assert (found.configs.dicts(), found.losses.tolist()) == ([{"y": 1}, {"y": 2}], [[0.5], [0.25]])


def test_none_may_also_be_called_a_text_by_the_space(tmp_path):
    path = written(tmp_path, "t,norm,y", "a,None,1", "a,batch,2")
    (tmp_path / "space.json").write_text(Space.of({"norm": ["None", "batch"]}).to_json())
    columns = TableColumns(task="t", values={"y": "min"}, space=tmp_path / "space.json")
    assert [c["norm"] for c in evaluation_table.read(path, columns=columns).configs.dicts()] == [
        "None",
        "batch",
    ]


def test_none_and_null_are_gaps_where_another_column_explains_them(tmp_path):
    rows = ["t,kernel,shape,degree,y", "a,rbf,None,None,1", "a,poly,odd,3,2", "a,poly,even,2,3"]
    path = written(tmp_path, *rows)
    configs = [
        {"kernel": "rbf"},
        {"kernel": "poly", "shape": "odd", "degree": 3},
        {"kernel": "poly", "shape": "even", "degree": 2},
    ]
    columns = TableColumns(task="t", values={"y": "min"})
    experience = evaluation_table.read(path, columns=columns)
    assert experience.task("a").configs.dicts() == configs
    (tmp_path / "space.json").write_text(experience.space.to_json())
    again = TableColumns(task="t", values={"y": "min"}, space=tmp_path / "space.json")
    assert evaluation_table.read(path, columns=again).task("a").configs.dicts() == configs


def test_numbers_with_commas_beside_others_are_choices_and_a_warning_says_so(tmp_path):
    rows = ['a,"1,000",1', 'a,"2,000",2', "a,500,3"]
    path = written(tmp_path, "t,n,y", *rows)
    with warns("number-with-commas", value="n"):
        found = evaluation_table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
    assert found.space.parameters[0].kind is Kind.CATEGORICAL


@pytest.mark.parametrize("separator", [", ", ";  ", " , ", " ; "])
def test_spaces_around_separators_are_no_part_of_a_value(tmp_path, separator):
    rows = ["a,relu,None,1", "a,tanh,3,2", 'a,relu,"4",3']
    spaced = [row.replace(",", separator) for row in ("t,act,depth,y", *rows)]
    configs = read_twice(written(tmp_path, *spaced), tmp_path)
    assert [config["act"] for config in configs] == ["relu", "tanh", "relu"]
    assert [config["depth"] for config in configs] == [None, 3, 4]


def test_texts_with_spaces_behind_mean_what_they_mean_without(tmp_path):
    rows = [
        "t ,act,flag,rate,y",
        "007 ,relu ,True ,0.5,1",
        "NA,relu,False,NA ,2 ",
        "7,relu,True,None ,3",
    ]
    path = written(tmp_path, *rows)
    experience = evaluation_table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
    assert experience.tasks == ("007", "NA", "7")
    configs = read_twice(path, tmp_path)
    assert configs == read_twice(
        written(tmp_path, *(row.replace(" ", "") for row in rows)), tmp_path
    )
    assert configs[0] == {"act": "relu", "flag": True, "rate": 0.5}
    assert configs[1:] == [{"act": "relu", "flag": False}, {**configs[0], "rate": None}]


def test_fidelities_come_back_from_an_own_table(tmp_path):
    space = Space.of({"lr": (0.0, 1.0)})
    made = Experience.build(
        space,
        [Metric("loss")],
        ["a"],
        [0] * 4,
        space.encode([{"lr": 0.25}, {"lr": 0.5}]),
        [0, 1, 0, 1],
        [0.4, 0.3, 0.2, 0.1],
        fidelity=[1, 1, 9, 9],
    )
    made.to_frame().to_csv(path := tmp_path / "runs.csv", index=False)
    columns = TableColumns(
        task="task", values={"loss": "min"}, status="status", seconds="seconds", fidelity="fidelity"
    )
    back = evaluation_table.read(path, columns=columns)
    assert back.space.names == ("lr",)
    assert back.fidelity.tolist() == [1, 1, 9, 9]
    assert back.task("a").is_full_fidelity.tolist() == [False, False, True, True]
    with refuses("column-of-two-meanings", field="fidelity"):
        evaluation_table.read(path, columns=replace(columns, ignored=["fidelity"]))


def test_nullable_columns_of_parquet_fit_a_space(tmp_path):
    FRAME.convert_dtypes().to_parquet(path := tmp_path / "runs.parquet")
    inferred = evaluation_table.read(path, columns=COLUMNS)
    (tmp_path / "space.json").write_text(inferred.space.to_json())
    again = evaluation_table.read(path, columns=replace(COLUMNS, space=tmp_path / "space.json"))
    assert again.configs == inferred.configs


@pytest.mark.parametrize("gap", ["", "NA"])
@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_empty_cells_that_nothing_explains_are_none_and_a_warning_says_so(tmp_path, gap, ending):
    """As pandas writes None: scikit-learn's `max_depth`, `class_weight` or `max_features`."""
    rows = ["a,1,sqrt,,1", f"a,{gap},0.5,balanced,2", f"a,3,{gap},,3", "a,1,0.5,,4"]
    path = written(tmp_path, "t,depth,features,weight,y", *rows)
    if ending == "parquet":
        pd.read_csv(path).to_parquet(path := tmp_path / "runs.parquet")
    with warns("cells-without-value", value=("depth", "features", "weight")):
        configs = read_twice(path, tmp_path)
    assert [config["depth"] for config in configs] == [1, None, 3, 1]
    half = 0.5 if ending == "csv" else "0.5"
    assert [config["features"] for config in configs] == ["sqrt", half, None, half]
    assert [config["weight"] for config in configs] == [None, "balanced", None, None]


def test_many_numbers_beside_empty_cells_are_refused(tmp_path):
    path = written(tmp_path, "t,x,y", *(f"a,{x / 8 or ''},1" for x in range(12)))
    with refuses("range-with-gaps", field="x"):
        evaluation_table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
    columns = TableColumns(task="t", values={"y": "min"}, ignored=["x"])
    with refuses("no-hyperparameter"):
        evaluation_table.read(path, columns=columns)


def test_many_numbers_beside_the_word_none_are_choices_in_their_order(tmp_path):
    path = written(tmp_path, "t,x,y", *(f"a,{x / 8 or 'None'},1" for x in range(12)))
    found = evaluation_table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
    assert found.space.parameters[0].choices == (*[x / 8 for x in range(1, 12)], None)


def test_null_in_json_is_a_choice_where_nothing_else_explains_it(tmp_path):
    configs = [
        {"opt": "sgd", "momentum": None, "depth": 3, "layers": [8, 8], "seed": None},
        {"opt": "adam", "depth": None, "layers": [16], "seed": None},
        {"opt": "sgd", "momentum": 0.9, "depth": None, "layers": [16], "seed": None},
        {"opt": "adam", "depth": 5, "layers": [8, 8], "seed": None},
    ]
    path = tmp_path / "runs.parquet"
    texts = [json.dumps(config) for config in configs]
    pd.DataFrame({"t": "a", "y": range(4), "c": texts}).to_parquet(path)
    with warns("column-without-value", value=("seed",)):
        found = read_twice(path, tmp_path, config_column="c")
    assert [{**c, "layers": list(c["layers"]), "seed": None} for c in found] == configs


def test_dicts_as_python_prints_them_are_configurations(tmp_path):
    """As scikit-learn's `cv_results_` has them in its column `params`."""
    configs = [
        {"depth": None, "features": "sqrt", "layers": (50, 50), "bootstrap": True},
        {"depth": 3, "features": 0.5, "layers": (100,), "bootstrap": False},
        {"depth": None, "features": 0.5, "layers": (100,), "bootstrap": True},
        {"depth": 3, "features": "sqrt", "layers": (50, 50), "bootstrap": True},
    ]
    path = tmp_path / "runs.csv"
    pd.DataFrame({"t": "a", "y": range(4), "params": configs}).to_csv(path)
    assert read_twice(path, tmp_path, config_column="params") == configs


def test_numbers_of_numpy_in_dicts_are_numbers(tmp_path):
    """As scikit-learn's randomised searches draw them."""
    drawn = (
        "{{'C': np.float64({}), 'depth': np.int64({}), 'kernel': np.str_('{}'), 'fast': np.{}_}}"
    )
    cells = [drawn.format(*each) for each in [(0.5, 1, "rbf", True), (1.5, 2, "poly", False)]]
    path = tmp_path / "runs.csv"
    pd.DataFrame({"t": "a", "y": range(2), "params": cells}).to_csv(path)
    assert read_twice(path, tmp_path, config_column="params") == [
        {"C": 0.5, "depth": 1, "kernel": "rbf", "fast": True},
        {"C": 1.5, "depth": 2, "kernel": "poly", "fast": False},
    ]


def test_calls_in_dicts_are_refused(tmp_path):
    cells = ["{'x': list([1])}", "{'x': np.array([1], dtype=int).sum()}"]
    for cell in cells:
        path = written(tmp_path, "t;y;c", f"a;1;{cell}")
        columns = TableColumns(task="t", values={"y": "min"}, config_column="c")
        with refuses("not-json-object", field="c", value=0):
            evaluation_table.read(path, columns=columns)


def test_dicts_in_parquet_are_configurations(tmp_path):
    configs = [{"kernel": "rbf", "gamma": 0.5}, {"kernel": "linear"}, {"kernel": "rbf", "gamma": 2}]
    path = tmp_path / "runs.parquet"
    pd.DataFrame({"t": "a", "y": range(3), "params": configs}).to_parquet(path)
    assert read_twice(path, tmp_path, config_column="params") == configs


def test_a_name_that_json_lacks_must_be_explained(tmp_path):
    path = tmp_path / "runs.parquet"
    texts = ['{"x": 1, "z": 1}', '{"x": 1, "z": 2}', '{"x": 1}']
    pd.DataFrame({"t": "a", "y": range(3), "c": texts}).to_parquet(path)
    columns = TableColumns(task="t", values={"y": "min"}, config_column="c")
    with refuses("unexplained-gaps", field="z"):
        evaluation_table.read(path, columns=columns)
    found = evaluation_table.read(path, columns=replace(columns, ignored=["z"]))
    assert found.space.names == ("x",)


def test_values_without_an_effect_are_left_out_of_json_as_of_columns(tmp_path):
    configs = [{"s": "off", "s:on:n": 3}, {"s": "on", "s:on:n": 4}]
    (tmp_path / "space.json").write_text(
        Space.of({"s": {"on": {"n": (1, 9)}, "off": {}}}).to_json()
    )
    texts = [json.dumps(config) for config in configs]
    pd.DataFrame({"t": "a", "y": [1, 2], "c": texts}).to_csv(tmp_path / "json.csv")
    pd.DataFrame(configs).assign(t="a", y=[1, 2]).to_csv(tmp_path / "columns.csv")
    columns = TableColumns(task="t", values={"y": "min"}, space=tmp_path / "space.json")
    for file, config_column in (("json.csv", "c"), ("columns.csv", None)):
        chosen = replace(columns, config_column=config_column)
        found = evaluation_table.read(tmp_path / file, columns=chosen).configs.dicts()
        assert found == [{"s": "off"}, {"s": "on", "s:on:n": 4}]


def test_json_keys_outside_the_space_are_no_hyperparameters(tmp_path):
    path = tmp_path / "runs.parquet"
    pd.DataFrame({"t": ["a"], "y": [1], "c": ['{"x": 1, "seed": 7}']}).to_parquet(path)
    (tmp_path / "space.json").write_text(Space.of({"x": (1, 3)}).to_json())
    columns = TableColumns(
        task="t", values={"y": "min"}, config_column="c", space=tmp_path / "space.json"
    )
    assert evaluation_table.read(path, columns=columns).configs.dicts() == [{"x": 1}]


@pytest.mark.parametrize(
    ("cells", "meant"),
    [
        (["sqrt", "0.5", "1"], ["sqrt", 0.5, 1]),
        (["auto", "True", "False"], ["auto", True, False]),
        (["latest", "3.10", "3.9"], ["latest", "3.10", "3.9"]),
        (["auto", "True", "1"], ["auto", "True", "1"]),
        (["off", "inf", "1.0"], ["off", "inf", "1.0"]),
    ],
)
def test_numbers_beside_words_are_numbers_where_python_writes_them_so(tmp_path, cells, meant):
    path = written(tmp_path, "t,x,y", *(f"a,{cell},1" for cell in cells))
    assert [config["x"] for config in read_twice(path, tmp_path)] == meant


def test_ignored_columns_are_no_hyperparameters(tmp_path):
    path = written(tmp_path, "t,x,note,y", "a,1,hello,1", "a,2,there,2")
    columns = TableColumns(task="t", values={"y": "min"}, ignored=["note"])
    assert evaluation_table.read(path, columns=columns).space.names == ("x",)
    with refuses("unknown-ignored", value="nott"):
        evaluation_table.read(path, columns=replace(columns, ignored=["nott"]))
    with refuses("column-of-two-meanings", field="y"):
        evaluation_table.read(path, columns=replace(columns, ignored=["y"]))
    with refuses("ignored-beside-space", value="note"):
        replace(columns, space=tmp_path / "space.json")


def test_columns_without_a_value_are_left_out(tmp_path):
    path = written(tmp_path, "t,x,seed,same,y", "a,1,,None,1", "a,2,,None,2")
    with warns("column-without-value", value=("seed", "same")):
        assert read_twice(path, tmp_path) == [{"x": 1}, {"x": 2}]


def test_tasks_may_be_called_na(tmp_path):
    path = written(tmp_path, "t,x,y", "NA,1,1", "null,2,2", "nan,3,3")
    columns = TableColumns(task="t", values={"y": "min"})
    assert evaluation_table.read(path, columns=columns).tasks == ("NA", "null", "nan")
    empty = written(tmp_path, "t,x,y", "NA,1,1", ",2,2")
    with refuses("row-without-task", field="t"):
        evaluation_table.read(empty, columns=columns)


def test_numbers_with_gaps_are_whole_only_where_all_are(tmp_path):
    rows = ["a,p,1,1.0,1", "a,p,2,0.5,2", "a,p,4,2.5,3", "a,q,,,4"]
    path = written(tmp_path, "t,kind,n,rate,y", *rows)
    found = evaluation_table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
    kinds = {parameter.name: parameter.kind for parameter in found.space.parameters}
    assert (kinds["n"], kinds["rate"]) == (Kind.INT, Kind.FLOAT)
    numbers = [(c.get("n"), c.get("rate")) for c in found.task("a").configs.dicts()]
    assert numbers == [(1, 1.0), (2, 0.5), (4, 2.5), (None, None)]


def test_large_numbers_with_gaps_are_no_whole_numbers(tmp_path):
    path = written(tmp_path, "t,kind,c,y", "a,p,1e20,1", "a,p,2.0,2", "a,q,,3")
    found = evaluation_table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
    assert [c.get("c") for c in found.task("a").configs.dicts()] == [1e20, 2.0, None]


def test_row_numbers_and_empty_columns_without_a_name_are_no_hyperparameters(tmp_path):
    columns = TableColumns(task="t", values={"y": "min"})
    numbered = written(tmp_path, ",t,x,y", "0,a,1,1", "5,a,2,2")
    with warns("row-numbers"):
        assert evaluation_table.read(numbered, columns=columns).space.names == ("x",)
    empty = written(tmp_path, "t,x,y,", "a,1,1,", "a,2,2,")
    assert evaluation_table.read(empty, columns=columns).space.names == ("x",)
    meant = written(tmp_path, "t,x,y,", "a,1,1,3", "a,2,2,4")
    assert set(evaluation_table.read(meant, columns=columns).space.names) == {"x", "Unnamed: 3"}


@pytest.mark.parametrize("second", ['"y"', "y "])
def test_two_columns_of_one_name_are_refused(tmp_path, second):
    path = written(tmp_path, f'"t",x,y,{second},', "a,1,1,1,", "a,2,2,2,")
    with refuses("repeated-column", field="y"):
        evaluation_table.read(path, columns=TableColumns(task="t", values={"y": "min"}))


def test_extra_files_of_macos_in_a_zip_are_no_second_table(tmp_path):
    path = tmp_path / "runs.csv.zip"
    with zipfile.ZipFile(path, "w") as packed:
        packed.writestr("runs.csv", "t,x,y\na,1,1\na,2,2\n")
        packed.writestr("__MACOSX/._runs.csv", "not a table")
    assert (
        len(evaluation_table.read(path, columns=TableColumns(task="t", values={"y": "min"}))) == 2
    )


def test_columns_of_a_parquet_file_may_be_numbered(tmp_path):
    path = tmp_path / "numbered.parquet"
    pd.DataFrame({0: ["a", "a"], 1: [1, 2], 2: [0.1, 0.2]}).to_parquet(path)
    found = evaluation_table.read(path, columns=TableColumns(task="0", values={"2": "min"}))
    assert (found.tasks, found.space.names) == (("a",), ("1",))


def test_empty_cells_beside_none_stay_gaps(tmp_path):
    path = written(
        tmp_path, "t,kind,norm,y", "a,x,None,1", "a,x,batch,2", "a,x,batch,3", "a,z,,4", "a,z,,5"
    )
    experience = evaluation_table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
    assert experience.task("a").configs.dicts() == [
        {"kind": "x", "norm": None},
        *[{"kind": "x", "norm": "batch"}] * 2,
        *[{"kind": "z"}] * 2,
    ]


def test_tasks_keep_their_leading_zeros(tmp_path):
    path = written(tmp_path, "t,x,y", "007,1,1", "07,2,2", "7,3,3")
    experience = evaluation_table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
    assert experience.tasks == ("007", "07", "7")


@pytest.mark.parametrize(
    ("rows", "rates"),
    [
        (["t;x;act;y", "a;0,5;relu;1,25", "a;2;tanh;3"], [0.5, 2.0]),
        (["t;x;act;y", "a;0.5;relu,elu;1.25", "a;2;tanh;3"], [0.5, 2.0]),
        (["t;x;act;y", "a;0,5;sqrt;1,25", "a;2;0.5;3"], [0.5, 2.0]),
        (["t|x|act|y", "a|0.5|relu|1.25", "a|2|tanh|3"], [0.5, 2.0]),
        (["t,x,act,y", 'a,0.5,"relu;elu|elu;elu",1.25', "a,2,tanh,3"], [0.5, 2.0]),
    ],
)
def test_the_separator_and_the_decimal_mark_are_found_out(tmp_path, rows, rates):
    path = written(tmp_path, *rows)
    experience = evaluation_table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
    assert [config["x"] for config in experience.task("a").configs.dicts()] == rates
    assert experience.losses[:, 0].tolist() == [1.25, 3.0]


def test_most_columns_decide_on_the_decimal_mark(tmp_path):
    """As pandas writes texts such as 1e-3 into a table with decimal commas."""
    path = written(tmp_path, "t;x;lr;y", "a;0,5;1e-3;1,25", "a;2;0.01;3,5")
    assert [c["lr"] for c in read_twice(path, tmp_path)] == [0.001, 0.01]


def test_a_comma_of_thousands_is_no_decimal_mark(tmp_path):
    path = written(tmp_path, "t;x;y", "a;1;1,234", "a;2;2,345")
    with refuses("not-a-number", field="y", value="1,234"):
        evaluation_table.read(path, columns=TableColumns(task="t", values={"y": "min"}))


def test_a_name_that_no_file_can_hold_is_refused(tmp_path):
    path = tmp_path / "runs.csv"
    pd.DataFrame({"d": "a", "y": [0.5], "c": [r'{"caf\ud800": 1}']}).to_csv(path, index=False)
    columns = TableColumns(task="d", values={"y": "min"}, config_column="c")
    with refuses("half-character"):
        evaluation_table.read(path, columns=columns)


def test_a_table_in_another_encoding_is_told_what_to_do(tmp_path):
    (tmp_path / "runs.csv").write_bytes("t,x,y\ncafé,1,2\n".encode("latin-1"))
    columns = TableColumns(task="t", values={"y": "min"})
    with refuses("not-utf-8"):
        evaluation_table.read(tmp_path / "runs.csv", columns=columns)


EARLY = [
    "a,svm,0.1,,1.0,COMPLETE,",
    "a,svm,0.2,,2.0,COMPLETE,",
    "a,tree,,3,3.0,COMPLETE,",
    "a,tree,,4,,PRUNED,",
    "a,,,,,FAIL,out of memory",
    "b,svm,,,,FAIL,no such file",
    "b,svm,0.4,,,FAIL,diverged",
    "b,svm,0.3,,4.0,COMPLETE,",
]
"""As Optuna writes trials of which some failed before they had drawn all."""
TOLD = [
    {"model": "svm", "C": 0.1},
    {"model": "svm", "C": 0.2},
    {"model": "tree", "depth": 3},
    {"model": "tree", "depth": 4},
    {"model": "svm", "C": 0.4},
    {"model": "svm", "C": 0.3},
]


def test_rows_that_failed_without_all_hyperparameters_are_left_out(tmp_path):
    path = written(tmp_path, "t,model,C,depth,y,state,reason", *EARLY)
    columns = TableColumns(task="t", values={"y": "min"}, status="state")
    with pytest.warns(ForetuneWarning) as warned:
        found = evaluation_table.read(path, columns=columns)
    assert [str(each.message) for each in warned] == [
        "'reason': only rows that failed have a value, so it is left out",
        "rows that failed before all of their hyperparameters were recorded are left out: "
        "2 of 'a', 'b'",
    ]
    assert warned[1].filename == __file__
    assert found.configs.dicts() == TOLD
    assert found.status.tolist() == [0, 0, 0, 3, 1, 0]
    (tmp_path / "space.json").write_text(found.space.to_json())
    with warns("left-out", value=(TOLD_IN_PART, 2, ("a", "b"))):
        again = evaluation_table.read(path, columns=replace(columns, space=tmp_path / "space.json"))
    assert again.configs.dicts() == TOLD


@pytest.mark.parametrize("given", [False, True])
def test_configurations_that_failed_without_all_hyperparameters_are_left_out(tmp_path, given):
    told = [{"x": 0.1, "depth": None}, {"x": 0.2, "depth": 3}, {"x": 0.3, "depth": None}]
    configs = [*told, {"x": 0.4}]
    cells = [json.dumps(config) for config in configs]
    frame = pd.DataFrame({"t": "a", "y": [1.0, 2.0, None, None], "c": cells})
    frame.to_csv(path := tmp_path / "runs.csv", index=False)
    space = tmp_path / "space.json"
    space.write_text(Space.of({"x": (0.0, 1.0), "depth": [None, 3]}).to_json())
    columns = TableColumns(
        task="t", values={"y": "min"}, config_column="c", space=space if given else None
    )
    with warns("left-out", value=(TOLD_IN_PART, 1, ("a",))):
        assert evaluation_table.read(path, columns=columns).configs.dicts() == told


def test_a_failure_with_the_word_none_is_told_in_full(tmp_path):
    rows = ["a,1,balanced,1", "a,2,balanced,2", "a,1,None,", "a,3,None,"]
    path = written(tmp_path, "t,x,weight,y", *rows)
    found = evaluation_table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
    assert [config["weight"] for config in found.configs.dicts()] == [*["balanced"] * 2, None, None]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
def test_run_times_may_be_durations(tmp_path, ending):
    """As Optuna's `trials_dataframe` has them."""
    took = pd.to_timedelta(["90s", None, "1 day"])
    frame = pd.DataFrame({"t": "a", "x": [1, 2, 3], "y": [0.5] * 3, "took": took})
    path = tmp_path / f"runs.{ending}"
    frame.to_parquet(path) if ending == "parquet" else frame.to_csv(path, index=False)
    columns = TableColumns(task="t", values={"y": "min"}, seconds="took")
    seconds = evaluation_table.read(path, columns=columns).seconds
    assert seconds.tolist() == pytest.approx([90.0, float("nan"), 86400.0], nan_ok=True)


def test_run_times_that_are_none_are_named(tmp_path):
    path = written(tmp_path, "t,x,y,took", "a,1,1,00:00:30", "a,2,2,soon", "a,3,3,7")
    columns = TableColumns(task="t", values={"y": "min"}, seconds="took")
    with refuses("not-a-number", field="took", value="soon"):
        evaluation_table.read(path, columns=columns)


PREFIXED = ["a,7,0.1,None,1,FINISHED", "a,8,0.2,3,2,FINISHED", "a,9,0.15,,,FAILED"]
"""As MLflow's `search_runs` gives them."""


def test_columns_with_a_prefix_are_the_hyperparameters(tmp_path):
    path = written(tmp_path, "t,run_id,params.lr,params.depth,metrics.loss,status", *PREFIXED)
    columns = TableColumns(
        task="t", values={"metrics.loss": "min"}, status="status", config_prefix="params."
    )
    with warns("left-out", value=(TOLD_IN_PART, 1, ("a",))):
        found = evaluation_table.read(path, columns=columns)
    assert found.configs.dicts() == [{"lr": 0.1, "depth": None}, {"lr": 0.2, "depth": 3}]
    (tmp_path / "space.json").write_text(found.space.to_json())
    with warns("left-out", value=(TOLD_IN_PART, 1, ("a",))):
        again = evaluation_table.read(path, columns=replace(columns, space=tmp_path / "space.json"))
    assert again.configs == found.configs
    with refuses("no-column-with-prefix", value="config/"):
        evaluation_table.read(path, columns=replace(columns, config_prefix="config/"))
    with refuses("config-column-and-prefix", value="c"):
        replace(columns, config_column="c")


def test_removing_a_prefix_must_not_give_the_name_of_another_column(tmp_path):
    path = written(tmp_path, "t,params_t,y", "a,1,1")
    columns = TableColumns(task="t", values={"y": "min"}, config_prefix="params_")
    with refuses("name-of-another-column", field="t"):
        evaluation_table.read(path, columns=columns)


@pytest.mark.parametrize("ending", ["csv", "csv.gz"])
@pytest.mark.parametrize(
    "rows",
    [["007,0.1,3,1,", "7,0.2,4,2,"], ["1,007,0.1,3,1", "2,7,0.2,4,2"]],
    ids=["a separator at the end", "names of rows, as R writes them"],
)
def test_rows_with_one_value_more_than_there_are_names(tmp_path, rows, ending):
    path = tmp_path / f"runs.{ending}"
    text = "\n".join(["t,lr,depth,y", *rows]).encode()
    path.write_bytes(gzip.compress(text) if ending == "csv.gz" else text)
    found = evaluation_table.read(path, columns=TableColumns(task="t", values={"y": "min"}))
    assert found.tasks == ("007", "7")
    assert found.configs.dicts() == [{"lr": 0.1, "depth": 3}, {"lr": 0.2, "depth": 4}]
    assert found.values.tolist() == [[1], [2]]


def test_numbers_that_are_texts_in_parquet_are_said(tmp_path):
    """As the parameters of MLflow's `search_runs` are; CSV files know no such difference."""
    frame = pd.DataFrame({"t": "a", "lr": ["0.1", "None"], "kind": ["1", "b"], "y": [1.0, 2.0]})
    frame.to_parquet(path := tmp_path / "runs.parquet")
    columns = TableColumns(task="t", values={"y": "min"})
    with pytest.warns(ForetuneWarning) as warned:
        evaluation_table.read(path, columns=columns)
    [said] = [str(each.message) for each in warned]
    assert said.startswith("'lr' holds numbers as texts, such as '0.1', so they are choices")
