import warnings

import numpy as np
import pandas as pd
import pytest

from foretune.tables import useful_texts
from foretune.tables.columns import ColumnKind
from foretune.tables.reading import read_table
from foretune.tables.row_structure import RowStructure, RowStructureKind
from foretune.tables.table import Table
from foretune.tables.target import Task
from foretune.tables.useful_texts import select_useful_texts

N = 160


def given(seed=0):
    """A number, words that say something of the target beside it, and words that do not."""
    rng = np.random.default_rng(seed)
    number = rng.normal(size=N)
    words = rng.integers(0, 2, size=(N, 4)).astype(float)
    return np.column_stack([number, words]), number + 3 * words[:, 0]


TEXTS = {
    "says": np.array([False, True, True, False, False]),
    "tells nothing": np.array([False, False, False, True, True]),
}


@pytest.mark.parametrize("classification", [False, True])
def test_words_help_where_they_say_something_of_the_target(classification):
    x, y = given()
    y = (y > 1).astype(float) if classification else y
    found = select_useful_texts(x, y, TEXTS, classification=classification)
    assert found == {"says": True, "tells nothing": False}


def test_words_of_few_rows_may_help():
    x, _ = given()
    found = select_useful_texts(x[:36], x[:36, 1], TEXTS, classification=True)
    assert found == {"says": True, "tells nothing": False}


def test_enormous_numbers_are_compared():
    x, y = given()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = select_useful_texts(x * 1e300, y * 1e300, TEXTS, classification=False)
    assert found == {"says": True, "tells nothing": False}


def test_words_that_repeat_another_column_do_not_help():
    x, y = given()
    x[:, 0], y = x[:, 1], 3 * x[:, 1]
    assert not any(select_useful_texts(x, y, TEXTS, classification=False).values())


def test_without_other_columns_every_text_helps():
    x, y = given()
    texts = {"a": np.array([True, True, False, False]), "b": np.array([False, False, True, True])}
    assert select_useful_texts(x[:, 1:], 0 * y, texts, classification=False) == {
        "a": True,
        "b": True,
    }


def test_many_classes_are_judged_by_the_commonest():
    x, y = given()
    classes = (y > 1).astype(float)
    classes[:40] = 2 + np.arange(40)
    found = select_useful_texts(x, classes, TEXTS, classification=True)
    assert found == {"says": True, "tells nothing": False}


def test_words_of_a_month_do_not_help_in_the_next_ones():
    rng = np.random.default_rng(0)
    month = np.arange(600) // 25
    number, level = rng.normal(size=600), rng.normal(size=24)[month]
    x = np.column_stack([number, month[:, None] == np.arange(24)])
    y = (2 * number + level > 0).astype(float)
    texts = {"campaign": np.arange(25) > 0}
    at_random = select_useful_texts(x, y, texts, classification=True)
    days = RowStructure(RowStructureKind.IN_ORDER, "day", np.arange(600.0))
    in_order = select_useful_texts(x, y, texts, classification=True, arrangement=days)
    assert (at_random, in_order) == ({"campaign": True}, {"campaign": False})


def test_words_of_one_patient_do_not_help_with_others():
    rng = np.random.default_rng(0)
    patient = np.arange(300) // 10
    x = np.column_stack([rng.normal(size=300), patient[:, None] == np.arange(30)])
    y = (rng.random(30) < 0.5)[patient].astype(float)
    texts = {"name": np.arange(31) > 0}
    at_random = select_useful_texts(x, y, texts, classification=True)
    patients = RowStructure(RowStructureKind.TOGETHER, "patient", patient.astype(float))
    together = select_useful_texts(x, y, texts, classification=True, arrangement=patients)
    assert (at_random, together) == ({"name": True}, {"name": False})


@pytest.mark.parametrize(("kind", "lone"), [*zip(RowStructureKind, [1, N], strict=True)])
def test_texts_are_judged_beside_a_group_of_one_row_or_without_another(kind, lone):
    x, y = given()
    arrangement = RowStructure(kind, "by", (np.arange(N) >= lone).astype(float))
    found = select_useful_texts(x, y, TEXTS, classification=False, arrangement=arrangement)
    assert set(found) == set(TEXTS)


def test_gaps_empty_columns_and_classes_of_one_row_are_taken():
    x, y = given()
    x[::2, 1:] = np.nan
    x[:, 0] = np.nan
    classes = np.where(np.arange(N) == 5, 2.0, (y > 1).astype(float))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert set(select_useful_texts(x, classes, TEXTS, classification=True)) == set(TEXTS)
        assert not any(
            select_useful_texts(x, np.arange(N) == 7.0, TEXTS, classification=True).values()
        )


def test_a_table_uses_texts_that_help_and_says_which():
    rng = np.random.default_rng(1)
    number, kind, mood = rng.normal(size=N), rng.integers(0, 2, N), rng.integers(0, 2, N)
    frame = pd.DataFrame(
        {
            "review": [f"{('good', 'bad')[k]} item no{i}" for i, k in enumerate(kind)],
            "number": number,
            "note": [f"{('calm', 'loud')[m]} note no{i}" for i, m in enumerate(mood)],
            "y": number + 2 * kind,
        }
    )
    table = Table.of(frame, "y", task=Task.REGRESSION)
    kinds = {column.name: column.kind for column in table.schema.columns}
    assert kinds["review"] is ColumnKind.WORDS
    assert kinds["note"] is ColumnKind.TEXT
    assert table.schema.features == ("review (bad)", "review (good)", "number")
    np.testing.assert_array_equal(table.x, np.column_stack([kind, 1 - kind, number]))
    np.testing.assert_array_equal(table.schema.encode(frame), table.x)
    notes = read_table(frame, "y").notes
    assert "Not used, text that differs in most rows, without words that help: 'note'." in notes


def test_wide_tables_are_compared_by_the_columns_that_follow_the_target():
    """Two hundred columns of noise hide neither the number nor the text that says something."""
    x, y = given()
    noise = np.random.default_rng(1).normal(size=(N, 200))
    wide = np.column_stack([x, noise])
    texts = {name: np.append(of, np.zeros(200, dtype=bool)) for name, of in TEXTS.items()}
    kept = useful_texts._closest(np.column_stack([noise, x[:, 0]]), y, classification=False)
    assert len(kept) == useful_texts.MOST_OTHERS
    assert kept[-1] == 200
    assert select_useful_texts(wide, y, texts, classification=False)["says"]
