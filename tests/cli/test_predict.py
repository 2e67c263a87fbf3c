import datetime
import decimal

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from click.testing import CliRunner
from pyarrow import parquet

from foretune.automl import prediction_file
from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.final_model.model import Model
from foretune.automl.spaces import load_shipped_space
from foretune.cli.predict import predict_command
from foretune.tables.table import Table
from foretune.tables.target import Task
from tests.automl.samples import mixed_frame, mixed_table

pytest.importorskip("skops")


def predict(*words):
    return CliRunner().invoke(predict_command, [str(word) for word in words])


def fitted(task, space, algorithm):
    table = mixed_table(task, n=60)
    return of_table(table, space, algorithm, "class" if table.classes else "amount")


def of_table(table, space, algorithm, target):
    [config] = load_shipped_space(space).build([algorithm]).defaults().dicts()
    return Model.of(table, [refit(config, table, seed=0)], target=target, metric="accuracy")


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    path = tmp_path_factory.mktemp("model") / "model.foretune"
    fitted(Task.CLASSIFICATION, "pipeline-classification", "naive_bayes").save(path)
    return path


@pytest.fixture
def data(tmp_path):
    frame = mixed_frame(60).drop(columns=["class", "amount"])
    frame["id"] = [f"{i:03}" for i in range(60)]
    frame.to_csv(tmp_path / "new.csv", index=False)
    frame.to_parquet(tmp_path / "new.parquet")
    return frame


def test_columns_to_keep_are_listed_as_other_names_are(tmp_path, model, data):
    data.rename(columns={"id": "id, old"}).assign(k=1).to_csv(tmp_path / "odd.csv", index=False)
    out = tmp_path / "out.csv"
    ended = predict(model, tmp_path / "odd.csv", "-o", out, "--keep", '"id, old", letter, k')
    assert ended.exit_code == 0, ended.output + str(ended.exception)
    assert pd.read_csv(out).columns.tolist() == ["id, old", "letter", "k", "class"]


def test_an_empty_list_keeps_nothing(tmp_path, model, data):
    out = tmp_path / "out.csv"
    ended = predict(model, tmp_path / "new.csv", "-o", out, "--keep", "")
    assert ended.exit_code == 0, ended.output + str(ended.exception)
    assert pd.read_csv(out).columns.tolist() == ["class"]


@pytest.fixture
def small_parts(monkeypatch):
    """Files are read in parts of so many bytes."""
    monkeypatch.setattr(prediction_file, "PART_BYTES", 1000)


@pytest.mark.parametrize("given", ["new.csv", "new.parquet"])
@pytest.mark.parametrize("suffix", [".csv", ".tsv", ".parquet"])
def test_every_format_in_parts(tmp_path, model, data, given, suffix, small_parts):
    out = tmp_path / f"out{suffix}"
    ended = predict(model, tmp_path / given, "-o", out, "--probabilities", "--keep", "id,letter")
    assert ended.exit_code == 0, ended.output + str(ended.exception)
    assert "Predicted 'class' for 60 rows." in ended.stderr
    assert "ignored" not in ended.stderr
    if suffix == ".parquet":
        made = pd.read_parquet(out)
    else:
        made = pd.read_csv(out, sep="," if suffix == ".csv" else "\t", dtype={"id": str})
    opened = Model.open(model)
    classes = ["class=high", "class=low", "class=middle"]
    assert list(made.columns) == ["id", "letter", "class", *classes]
    assert made["id"].tolist() == data["id"].tolist()
    assert made["class"].tolist() == opened.predict(data).tolist()
    np.testing.assert_allclose(made[classes], opened.predict_proba(data), rtol=1e-9)
    assert not [path for path in tmp_path.iterdir() if path.name.startswith(".")]


@pytest.mark.parametrize("given", [".csv", ".parquet"])
@pytest.mark.parametrize(
    ("values", "kept"),
    [
        ([None] * 50 + ["late"] * 10, ["late"] * 10),
        ([None] * 50 + [datetime.date(2024, 5, 17)] * 10, None),
        ([None] * 60, []),
    ],
)
def test_a_kept_column_may_begin_empty(tmp_path, model, data, given, values, kept, small_parts):
    table, out = tmp_path / f"gaps{given}", tmp_path / "out.parquet"
    data = data.assign(comment=values)
    data.to_csv(table, index=False) if given == ".csv" else data.to_parquet(table)
    ended = predict(model, table, "-o", out, "--keep", "comment")
    assert ended.exit_code == 0, ended.output + str(ended.exception)
    made = pd.read_parquet(out)["comment"]
    if kept is None:
        kept = ["2024-05-17"] * 10 if given == ".csv" else values[50:]
    assert made.iloc[: 60 - len(kept)].isna().all()
    assert made.iloc[60 - len(kept) :].tolist() == kept


def test_a_class_column_can_be_kept_where_no_probabilities_are_written(tmp_path, model, data):
    data.assign(**{"class=low": 7}).to_csv(tmp_path / "known.csv", index=False)
    ended = predict(model, tmp_path / "known.csv", "--keep", "class=low")
    assert ended.stdout.splitlines()[0] == "class=low,class"
    assert ended.stdout.splitlines()[1].startswith("7,")


def test_standard_output_and_notes(tmp_path, model, data):
    days = data["day"].where(data.index == 7, "noon")
    data.assign(letter="new", other=1, day=days).to_csv(tmp_path / "odd.csv", index=False)
    ended = predict(model, tmp_path / "odd.csv")
    assert ended.exit_code == 0
    assert ended.stdout.splitlines()[0] == "class"
    assert len(ended.stdout.splitlines()) == 61
    assert "does not know, ignored: 'id', 'other'." in ended.stderr
    assert "taken as missing, in: 'letter (60)', 'day (59)'." in ended.stderr


def test_a_table_without_rows(tmp_path, model, data):
    data.iloc[:0].to_csv(tmp_path / "none.csv", index=False)
    ended = predict(model, tmp_path / "none.csv", "--probabilities")
    assert ended.stdout == "class,class=high,class=low,class=middle\n"
    data.iloc[:0].to_parquet(tmp_path / "none.parquet")
    ended = predict(model, tmp_path / "none.parquet", "-o", tmp_path / "out.parquet")
    assert pd.read_parquet(tmp_path / "out.parquet").shape == (0, 1)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["no.csv"], "there is none at"),
        (["few.csv"], "'number', 'gaps' are missing: add them"),
        (["new.csv", "-o", "out.xlsx"], "written to .csv, .tsv, .parquet, .pq"),
        (["new.csv", "-o", "no/out.csv"], "the folder of the output must exist"),
        (["new.csv", "-o", "new.csv"], "is the table itself"),
        (["new.csv", "-o", "out.csv", "--keep", "idd"], "did you mean 'id'"),
        (["known.csv", "-o", "out.csv", "--keep", "class"], "rename it in the table"),
        (
            ["known.csv", "-o", "out.csv", "--probabilities", "--keep", "class=low"],
            "the probability of a class is called 'class=low'",
        ),
    ],
)
def test_mistakes_write_nothing(tmp_path, model, data, words, said, monkeypatch):
    data.drop(columns=["number", "gaps"]).to_csv(tmp_path / "few.csv", index=False)
    known = data.assign(**{"class": "high", "class=low": 7})
    known.to_csv(tmp_path / "known.csv", index=False)
    monkeypatch.chdir(tmp_path)
    before = sorted(tmp_path.iterdir())
    ended = predict(model, *words)
    assert ended.exit_code != 0
    assert said in str(ended.exception)
    assert sorted(tmp_path.iterdir()) == before


def test_numbers_have_no_probabilities(tmp_path, data):
    path = tmp_path / "numbers.foretune"
    fitted(Task.REGRESSION, "pipeline-regression", "elastic_net").save(path)
    ended = predict(path, tmp_path / "new.csv", "--probabilities")
    assert "'amount' is a number: predict it" in str(ended.exception)
    ended = predict(path, tmp_path / "new.csv")
    made = [float(line) for line in ended.stdout.splitlines()[1:]]
    np.testing.assert_allclose(made, Model.open(path).predict(data), rtol=1e-9)


def test_a_broken_model(tmp_path, data):
    (tmp_path / "m.foretune").write_bytes(b"no")
    ended = predict(tmp_path / "m.foretune", tmp_path / "new.csv")
    assert "must be a file saved by Foretune" in str(ended.exception)


LARGE = [None, *(2**60 + i for i in range(1, 60))]


def test_kept_cells_that_look_like_gaps_are_copied(tmp_path, model, data):
    new = data.iloc[:4].assign(country=["NA", "null", "?", ""])
    new.to_csv(tmp_path / "c.csv", index=False)
    ended = predict(model, tmp_path / "c.csv", "-o", tmp_path / "out.csv", "--keep", "country")
    assert ended.exit_code == 0, ended.output
    written = pd.read_csv(tmp_path / "out.csv", keep_default_na=False)
    assert written["country"].tolist() == ["NA", "null", "?", ""]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_kept_whole_numbers_with_gaps_stay_whole(tmp_path, model, data, suffix, small_parts):
    table, out = pa.Table.from_pandas(data), tmp_path / f"out{suffix}"
    table = table.append_column("large", pa.array(LARGE, pa.int64()))
    table = table.append_column("late", pa.array([None] * 50 + [7] * 10, pa.uint8()))
    parquet.write_table(table, tmp_path / "ids.parquet")
    ended = predict(model, tmp_path / "ids.parquet", "-o", out, "--keep", "late,large")
    assert ended.exit_code == 0, ended.output + str(ended.exception)
    if suffix == ".csv":
        made = pd.read_csv(out, dtype=str)
        assert made["large"].iloc[1:].tolist() == [str(number) for number in LARGE[1:]]
        assert made["late"].iloc[50:].tolist() == ["7"] * 10
    else:
        made = parquet.read_table(out)
        assert made.schema.types[:2] == [pa.uint8(), pa.int64()]
        assert made["large"].to_pylist() == LARGE
        assert pd.read_parquet(out)["large"].iloc[1:].tolist() == LARGE[1:]


@pytest.mark.parametrize(
    "values",
    [
        pa.array([decimal.Decimal("1.23")] * 60, pa.decimal128(10, 2)),
        pa.array(["a", None, "b"] * 20).dictionary_encode(),
        pa.array([[2**60 + 1, None]] * 60),
        pa.array([[("k", 1)]] * 60, pa.map_(pa.string(), pa.int64())),
        pa.array([None, True] * 30),
        pa.array([None, 5] * 30, pa.duration("s")),
        pa.nulls(60),
    ],
    ids=lambda values: str(values.type),
)
def test_kept_columns_have_the_types_of_their_table(tmp_path, model, data, values):
    table, out = pa.Table.from_pandas(data), tmp_path / "out.parquet"
    parquet.write_table(table.append_column("more", values), tmp_path / "types.parquet")
    ended = predict(model, tmp_path / "types.parquet", "-o", out, "--keep", "more")
    assert ended.exit_code == 0, ended.output + str(ended.exception)
    made = parquet.read_table(out)
    assert made["more"].type == values.type
    assert made["more"].to_pylist() == values.to_pylist()
    assert pd.read_parquet(out).columns.tolist() == ["more", "class"]


def test_kept_columns_change_no_prediction(tmp_path, small_parts):
    """Of 1.234 in a table with decimal commas, a text does not say that it is no thousands."""
    rng = np.random.default_rng(0)
    size = rng.integers(1001, 8999, 60) / 1000
    share = [f"0,{digit}" for digit in rng.integers(1, 9, 60)]
    frame = pd.DataFrame({"size": size, "share": share, "y": np.where(size > 4.5, "hi", "lo")})
    path, out = tmp_path / "m.foretune", tmp_path / "out.csv"
    of_table(Table.of(frame, "y"), "pipeline-classification", "rf", "y").save(path)
    cells = frame.assign(size=frame["size"].map("{:.3f}".format))
    cells.drop(columns="y").to_csv(tmp_path / "new.csv", sep=";", index=False)
    ended = predict(path, tmp_path / "new.csv", "-o", out, "--keep", "share,size")
    assert "another decimal mark" not in ended.stderr
    made = pd.read_csv(out, dtype=str)
    assert made.columns.tolist() == ["share", "size", "y"]
    assert made["y"].tolist() == frame["y"].tolist()
    assert made[["size", "share"]].equals(pd.read_csv(tmp_path / "new.csv", sep=";", dtype=str))


def test_columns_that_are_numbered(tmp_path):
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)))
    frame[2] = np.where(frame[0] > 0, "a", "b")
    frame.to_parquet(tmp_path / "numbered.parquet")
    path = tmp_path / "m.foretune"
    of_table(Table.of(frame, "2"), "pipeline-classification", "rf", "2").save(path)
    ended = predict(path, tmp_path / "numbered.parquet", "--keep", "1")
    assert ended.exit_code == 0, ended.output + str(ended.exception)
    lines = ended.stdout.splitlines()
    assert lines[0] == "1,2"
    assert [line.split(",")[1] for line in lines[1:]] == frame[2].tolist()


def with_formulas(folder):
    """A table whose identities are formulas, numbers and plain texts."""
    frame = mixed_frame(4).drop(columns=["class", "amount"])
    frame["id"] = IDS
    frame.to_csv(folder / "odd.csv", index=False)
    return folder / "odd.csv"


IDS = ["=1+1", "-5", "@SUM(A1)", "plain"]
DISARMED = ["'=1+1", "-5", "'@SUM(A1)", "plain"]


@pytest.mark.parametrize(("name", "separator"), [("out.csv", ","), ("out.tsv", "\t"), (None, ",")])
def test_formulas_are_disarmed_in_every_text_that_is_written(name, separator, tmp_path, model):
    words = (model, with_formulas(tmp_path), "--keep", "id")
    ended = predict(*words, *(("-o", tmp_path / name) if name else ()))
    assert ended.exit_code == 0, ended.output + str(ended.exception)
    text = (tmp_path / name).read_text() if name else ended.stdout
    rows = [line.split(separator) for line in text.splitlines()]
    assert rows[0] == ["id", "class"]
    assert [row[0] for row in rows[1:5]] == DISARMED
    assert "2 texts" in ended.stderr
    assert "--raw" in ended.stderr


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", None])
def test_raw_writes_formulas_as_they_are(name, tmp_path, model):
    words = (model, with_formulas(tmp_path), "--keep", "id", "--raw")
    ended = predict(*words, *(("-o", tmp_path / name) if name else ()))
    assert ended.exit_code == 0, ended.output + str(ended.exception)
    text = (tmp_path / name).read_text() if name else ended.stdout
    firsts = [line.replace("\t", ",").split(",")[0] for line in text.splitlines()[1:5]]
    assert firsts == IDS
    assert "--raw" not in ended.stderr


def test_parquet_keeps_texts_as_they_are(tmp_path, model):
    out = tmp_path / "out.parquet"
    ended = predict(model, with_formulas(tmp_path), "-o", out, "--keep", "id")
    assert ended.exit_code == 0, ended.output + str(ended.exception)
    assert pd.read_parquet(out)["id"].tolist() == IDS
