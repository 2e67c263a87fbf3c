import time

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretune.automl.estimators.fitted_pipeline import refit
from foretune.automl.final_model.model import Model
from foretune.automl.prediction_file import PredictionOptions, predict_file
from foretune.automl.spaces import load_shipped_space
from foretune.tables import columns
from foretune.tables import schema as schemas
from foretune.tables.columns import ColumnKind
from foretune.tables.reading import read_table
from foretune.tables.schema import Schema, infer_schema
from foretune.tables.table import Table
from foretune.tables.vocabulary import MOST_TEXTS, choose_words, mark_words, word_limit
from tests.refusals import refuses

TITLES = [f"{'Mr' if i % 2 else 'Miss'} {'Anna' if i % 5 else 'Bo'} no. {i}.25" for i in range(100)]


def only(frame):
    (column,) = infer_schema(frame).columns
    return column


def test_words_that_halve_the_rows_come_first():
    assert choose_words(pd.Series(TITLES), 10) == ("miss", "mr", "anna", "bo")
    assert choose_words(pd.Series(TITLES), 3) == ("miss", "mr", "anna")


def test_words_of_nearly_no_row_and_of_nearly_all_rows_tell_nothing():
    texts = pd.Series([f"always rare{i // 3} odd{i // 2}" for i in range(60)])
    texts.iloc[:2] = "without"
    found = choose_words(texts, 100)
    assert "always" not in found
    assert "odd3" not in found
    assert "rare3" in found


def test_large_and_small_letters_are_alike_and_digits_are_no_words():
    found = mark_words(pd.Series(["An E5500, 12.50", "an e5500", "AN", None]), ("an", "e5500"))
    np.testing.assert_array_equal(found, [[1, 1], [1, 1], [1, 0], [np.nan, np.nan]])


def test_marks_belong_to_the_words_of_scripts_with_spaces():
    hindi = pd.Series(["अच्छी किताब है।", "बुरी किताब है।"] * 3)
    assert choose_words(hindi, 9) == ("अच्छी", "बुरी")
    apart = pd.Series(["cafe\u0301", "CAFE\u0301s"])
    np.testing.assert_array_equal(mark_words(apart, ("café", "cafés")), np.eye(2))


def test_scripts_without_spaces_have_words_of_one_and_two_characters():
    found = mark_words(
        pd.Series(["很好的酒店, OK2", "好", "坏"]), ("很", "好", "很好", "的酒", "ok2")
    )
    np.testing.assert_array_equal(found, [[1, 1, 1, 1, 1], [0, 1, 0, 0, 0], [0, 0, 0, 0, 0]])
    # Nothing goes across a comma, a space or a letter.
    apart = mark_words(pd.Series(["好\uff0c的", "好 的", "好a的"]), ("好", "的", "好的"))
    np.testing.assert_array_equal(apart, [[1, 1, 0]] * 3)
    japanese = pd.Series(["とても良い本", "良くない本", "コーヒー"])
    np.testing.assert_array_equal(mark_words(japanese, ("良い", "ない", "ーヒ")), np.eye(3))
    thai = pd.Series(["ดีมาก", "ไม่ดี"])
    np.testing.assert_array_equal(mark_words(thai, ("มา", "ม่")), np.eye(2))
    korean = pd.Series(["정말 좋은 책", "나쁜 책"])
    np.testing.assert_array_equal(mark_words(korean, ("좋은", "나쁜")), np.eye(2))


def test_digits_without_end_take_no_time():
    began = time.process_time()
    assert mark_words(pd.Series(["1" * 100_000 + " fine"]), ("fine",)).all()
    assert time.process_time() - began < 5.0


def test_there_are_no_more_words_than_memory_allows():
    assert word_limit(1_000, 1) == 2000
    assert word_limit(1_000, 4) == 500
    assert word_limit(100_000, 1) == 100
    assert word_limit(1_000_000, 2) == 5


def test_only_some_rows_of_a_long_table_are_looked_at():
    texts = pd.Series([*["left", "right"] * 3, *["ahead"] * 200])
    assert choose_words(texts, 5) == ("ahead", "left", "right")
    assert choose_words(texts, 5, looked_at=10) == ()


def test_texts_become_a_column_a_word():
    frame = pd.DataFrame({"who": TITLES})
    column = only(frame)
    assert column.kind is ColumnKind.WORDS
    assert column.features == ("who (miss)", "who (mr)", "who (anna)", "who (bo)")
    matrix = infer_schema(frame).encode(pd.DataFrame({"who": ["Dear MISS Bo", 5.0, None]}))
    np.testing.assert_array_equal(matrix, [[1, 0, 0, 1], [0, 0, 0, 0], [np.nan] * 4])


def test_long_texts_are_no_words():
    found = choose_words(pd.Series(["x" * 50 + " a", "y" * 51, "b"] * 5), 9)
    assert found == ("x" * 50,)


def test_identifiers_are_still_left_out():
    assert only(pd.DataFrame({"id": [f"ID-{i:05}" for i in range(100)]})).kind is ColumnKind.TEXT
    assert only(pd.DataFrame({"p": [f"{i}.25 / {i}" for i in range(100)]})).kind is ColumnKind.TEXT


def test_columns_of_texts_share_the_words():
    many = [f"w{i % 80} v{i % 60} number{i}" for i in range(1000)]
    frame = pd.DataFrame({"a": many, "b": many, "n": np.linspace(0, 1, 1000) ** 2})
    a, b, _ = infer_schema(frame).columns
    assert len(a.words) == len(b.words) == 140
    wide = pd.DataFrame({f"c{i}": many for i in range(20)})
    assert {len(column.words) for column in infer_schema(wide).columns} == {2000 // 20}


@given(st.lists(st.one_of(st.none(), st.text(max_size=30)), min_size=1, max_size=40))
def test_a_matrix_of_words_is_of_zeros_ones_and_gaps(texts):
    given_texts = pd.Series(texts, dtype=object)
    found = mark_words(given_texts, ("ab", "ß", "ss", "été"))
    assert found.shape == (len(texts), 4)
    gaps = given_texts.isna().to_numpy()
    assert np.isnan(found[gaps]).all()
    assert np.isin(found[~gaps], [0.0, 1.0]).all()


def test_the_schema_survives_json():
    schema = infer_schema(pd.DataFrame({"who": TITLES, "n": np.arange(100) % 7}))
    assert Schema.from_list(schema.to_list()) == schema
    assert "words" not in schema.to_list()[1]


@pytest.mark.parametrize("spoilt", ["abcd", [1, 2, 3, 4], ["a", "a", "b", "c"], {"a": 1}, None])
def test_words_in_a_file_that_are_no_texts_are_refused(spoilt):
    plain = infer_schema(pd.DataFrame({"who": TITLES})).to_list()
    with refuses("schema-texts", field="words"):
        Schema.from_list([plain[0] | {"words": spoilt}])


def test_the_matrix_of_many_rows_comes_in_parts():
    frame = pd.DataFrame({"who": TITLES})
    schema = infer_schema(frame)
    parts = list(schema.in_parts(frame, most_cells=4 * 30))
    assert [len(part) for part, _ in parts] == [30, 30, 30, 10]
    np.testing.assert_array_equal(np.vstack([x for _, x in parts]), schema.encode(frame))
    [(none, x)] = schema.in_parts(frame[:0])
    assert none.empty
    assert x.shape == (0, 4)


def test_a_model_predicts_some_rows_at_a_time(tmp_path, monkeypatch):
    frame = pd.DataFrame({"who": TITLES, "y": ["man", "woman"] * 50})
    config = (
        load_shipped_space("pipeline-classification")
        .build(["naive_bayes"])
        .sample(1, seed=0)
        .dicts()[0]
    )
    table = Table.of(frame, "y")
    model = Model.of(table, [refit(config, table, seed=0)], target="y", metric="accuracy")
    whole, likely = model.predict(frame), model.predict_proba(frame)
    frame.to_csv(tmp_path / "new.csv", index=False)
    monkeypatch.setattr(schemas, "MOST_CELLS", 4 * 30)
    lengths = []
    read = columns.mark_words
    monkeypatch.setattr(
        columns,
        "mark_words",
        lambda given, words: (lengths.append(len(given)), read(given, words))[1],
    )
    np.testing.assert_array_equal(model.predict(frame), whole)
    np.testing.assert_allclose(model.predict_proba(frame), likely)
    predict_file(model, tmp_path / "new.csv", out := tmp_path / "p.csv", PredictionOptions())
    assert list(pd.read_csv(out)["y"]) == list(whole)
    assert max(lengths) == 30


def test_the_words_in_use_are_shown(tmp_path):
    path = tmp_path / "t.csv"
    frame = pd.DataFrame({"who": TITLES, "y": ["a", "b"] * 50})
    frame.to_csv(path, index=False)
    notes = read_table(path, "y").notes
    assert notes[0] == "100 rows; columns beside the target: 1 text."
    assert (
        "The texts of 'who' count by their words. 4 words repeat: "
        "'miss', 'mr', 'anna', 'bo'." in notes
    )


def test_a_saved_model_reads_words_in_parts_of_a_file_that_look_like_numbers(tmp_path):
    pytest.importorskip("skops")
    frame = pd.DataFrame({"who": TITLES, "y": ["man", "woman"] * 50})
    space = load_shipped_space("pipeline-classification").build(["naive_bayes"])
    config = space.sample(1, seed=0, how="sobol").dicts()[0]
    table = Table.of(frame, "y")
    model = Model.of(table, [refit(config, table, seed=0)], target="y", metric="accuracy")
    model.save(tmp_path / "m.foretune")
    new = pd.DataFrame({"who": ["Miss B", "mr c"] * 20 + ["1.50"] * 40})
    new.to_csv(tmp_path / "new.csv", index=False)
    predict_file(
        Model.open(tmp_path / "m.foretune"),
        tmp_path / "new.csv",
        out := tmp_path / "p.csv",
        PredictionOptions(part_bytes=100),
    )
    found = pd.read_csv(out)["y"]
    assert list(found) == list(model.predict(new))
    assert list(found[:2]) == ["man", "woman"]


def test_only_the_longest_of_many_texts_are_inspected():
    """Each costs a second before the first trial."""
    names = {f"name{i}": [f"Mr{row % 2} {row}th" for row in range(40)] for i in range(MOST_TEXTS)}
    keys = {"key": [f"{row:030x}" for row in range(40)]}
    reviews = {"review": [f"a {('good', 'bad')[row % 2]} item, no{row}" for row in range(40)]}
    frame = pd.DataFrame({**names, **keys, **reviews})
    found = {each.name for each in infer_schema(frame).columns if each.words}
    assert found == {*list(names)[:-1], "review"}
    notes = read_table(frame.assign(y=["a", "b"] * 20), "y").notes
    assert (
        "Of 22 columns of texts, only the 20 longest with words that repeat were looked at."
        in notes
    )
