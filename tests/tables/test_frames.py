import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyarrow import parquet

from foretune.errors import UsageError
from foretune.tables.formats.arff import _cells
from foretune.tables.formats.reader import (
    TextLayout,
    form_notes,
    read_cells,
    read_frame,
    read_parts,
    read_parts_with_copies,
)
from foretune.tables.formats.text_form import LOOKED_AT
from foretune.tables.formats.title_lines import lines_of_title
from tests.refusals import refuses

KEEL = """@relation small
@attribute Size real [0.0, 9.5]
@attribute Code {1, 2, 3}
@attribute Colour{red, blue}
@inputs Size, Code, Colour
@outputs Class
@attribute Class {yes, no}
@data
0.5, 1, red, yes
?, 2, <null>, no
9.5, 3, blue, no
"""


def written(tmp_path, name, text, encoding="utf-8"):
    path = tmp_path / name
    path.write_text(text, encoding=encoding)
    return path


def test_keel_headers_say_what_is_nominal(tmp_path):
    frame = read_frame(written(tmp_path, "small.dat", KEEL))
    assert list(frame.columns) == ["Size", "Code", "Colour", "Class"]
    assert frame["Size"].tolist()[::2] == [0.5, 9.5]
    assert np.isnan(frame["Size"][1])
    assert isinstance(frame["Code"].dtype, pd.CategoricalDtype)
    assert frame["Code"].tolist() == ["1", "2", "3"]
    assert frame["Colour"].isna().tolist() == [False, True, False]


def test_arff_comments_and_quotes(tmp_path):
    header = "% about\n@relation r\n@attribute 'a b' numeric\n@attribute c {'x y',z}\n@data\n"
    frame = read_frame(written(tmp_path, "r.arff", header + "% rows\n1,'x y'\n2,z\n"))
    assert frame["a b"].tolist() == [1, 2]
    assert frame["c"].tolist() == ["x y", "z"]


@pytest.mark.parametrize("name", ["%fat", "@user", "@relations", "% of data"])
def test_a_name_may_begin_like_a_line_of_an_arff_file(tmp_path, name):
    frame = read_frame(written(tmp_path, "t.csv", f"{name},age,y\n1.5,3,a\n2.5,4,b\n"))
    assert list(frame.columns) == [name, "age", "y"]
    assert frame[name].tolist() == [1.5, 2.5]


def test_comments_may_be_longer_than_what_is_looked_at(tmp_path):
    text = "% about it\n" * LOOKED_AT + "@relation r\n@attribute a numeric\n@data\n1\n"
    assert read_frame(written(tmp_path, "t.arff", text))["a"].tolist() == [1]


def test_arff_values_in_quotes_may_hold_commas_and_quotes(tmp_path):
    header = "@relation r\n@attribute a string\n@attribute n numeric\n@data\n"
    rows = """'a, b', 1\n"say \\"hi, you\\"",2\no'neil , 3\n'it\\'s',4\n?,5\n"""
    frame = read_frame(written(tmp_path, "r.arff", header + rows))
    assert frame["a"].tolist()[:4] == ["a, b", 'say "hi, you"', "o'neil", "it's"]
    assert frame["a"].isna().tolist() == [False] * 4 + [True]
    assert frame["n"].tolist() == [1, 2, 3, 4, 5]


@pytest.mark.parametrize("separator", [",", ";", "\t", "|"])
def test_the_separator_is_found_out(tmp_path, separator):
    text = "\n".join(separator.join(row) for row in (["a", "b c"], ["1", "x"], ["?", "y"]))
    frame = read_frame(written(tmp_path, "t.csv", text))
    assert list(frame.columns) == ["a", "b c"]
    assert frame["b c"].tolist() == ["x", "y"]
    assert frame["a"].isna().tolist() == [False, True]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (
            '"Income, gross";"Tax, net, total";age\n1,5;2;3\n',
            ["Income, gross", "Tax, net, total", "age"],
        ),
        (
            '"Income, gross";"Tax, net, total";age\n1,5;2,5;3\n',
            ["Income, gross", "Tax, net, total", "age"],
        ),
        ("the thing, in full;y\nabc;1\n", ["the thing, in full", "y"]),
        ('"a;b;c;d",y\n"1;2;3;4",5\n', ["a;b;c;d", "y"]),
        ('"two\nlines; of; a; head",y\n"1\n2",5\n', ["two\nlines; of; a; head", "y"]),
        ("a;b\r0,5;1\r0,5;2,5\r", ["a", "b"]),
        ("\tb;c\td\n0\t1\t2\n", ["Unnamed: 0", "b;c", "d"]),
        ('a,b;c,d\n"x",2;2,3\n"y" ,2;2,3\n', ["a", "b;c", "d"]),
    ],
)
def test_a_separator_inside_values_divides_nothing(tmp_path, text, names):
    path = tmp_path / "t.csv"
    path.write_bytes(text.encode())
    assert list(read_frame(path).columns) == names


def test_the_separator_is_found_out_where_a_line_is_torn(tmp_path):
    header = ";".join(f"c{number}, x" for number in range(3000))
    rows = ";".join("0.5" for _ in range(3000)) + "\n"
    assert len(header) + 3 * len(rows) < LOOKED_AT < len(header) + 4 * len(rows)
    path = written(tmp_path, "t.csv", f"{header}\n{rows * 5}")
    assert read_frame(path).shape == (5, 3000)


def test_files_without_a_header_and_with_decimal_commas(tmp_path):
    spaced = read_frame(written(tmp_path, "t.txt", " 1  2\n 3  4\n"), TextLayout(" ", header=False))
    assert spaced.to_numpy().tolist() == [[1, 2], [3, 4]]
    assert list(spaced.columns) == ["c0", "c1"]
    comma = read_frame(written(tmp_path, "u.csv", "a;b\n0,5;x\n"), TextLayout(";", decimal=","))
    assert comma["a"].tolist() == [0.5]


def test_parquet_and_latin_text(tmp_path):
    pd.DataFrame({"a": [1, 2]}).to_parquet(tmp_path / "t.parquet")
    assert read_frame(tmp_path / "t.parquet")["a"].tolist() == [1, 2]
    path = written(tmp_path, "t.csv", "stadt,n\nKöln,1\n", encoding="latin-1")
    assert read_frame(path)["stadt"].tolist() == ["Köln"]


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("empty.csv", " \n"),
        ("ragged.csv", "a,b\n1,2\n1,2,3\n"),
        ("bad.parquet", "not parquet"),
        ("short.dat", "@relation r\n@attribute a real\n@attribute b real\n@data\n1\n"),
        ("nothing.dat", "@relation r\n@data\n1\n"),
    ],
)
def test_unreadable_files_give_one_sentence(tmp_path, name, text):
    with refuses("table-format" if text.strip() else "table-without-rows"):
        read_frame(written(tmp_path, name, text))


def test_a_missing_file(tmp_path):
    with refuses("table-file", value=str(tmp_path / "no.csv")):
        read_frame(tmp_path / "no.csv")


def test_a_separator_at_the_end_of_every_row(tmp_path):
    frame = read_frame(written(tmp_path, "t.csv", "a,b\n1,2,\n3,4,\n"))
    assert frame.to_dict("list") == {"a": [1, 3], "b": [2, 4]}


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.dat"])
def test_parts_are_the_whole(tmp_path, name):
    path = tmp_path / name
    if name == "t.dat":
        written(tmp_path, name, KEEL)
    else:
        frame = pd.DataFrame({"a": range(50), "b": ["x", None] * 25})
        frame.to_csv(path, index=False) if name == "t.csv" else frame.to_parquet(path)
    parts = list(read_parts(path, part_bytes=60))
    assert len(parts) > 1 or name == "t.dat"
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), read_frame(path))


@pytest.mark.parametrize("name", ["t.csv", "t.parquet"])
def test_a_table_without_rows_is_one_part(tmp_path, name):
    frame, path = pd.DataFrame({"a": [1], "b": ["x"]}).iloc[:0], tmp_path / name
    frame.to_csv(path, index=False) if name == "t.csv" else frame.to_parquet(path)
    [part] = read_parts(path)
    assert (len(part), list(part.columns)) == (0, ["a", "b"])


def test_columns_that_stay_as_written(tmp_path):
    path = written(tmp_path, "t.csv", "id,n\n007,1.50\n?,2\n")
    [part] = read_parts(path, texts={"id": ()})
    assert part["id"].tolist()[0] == "007"
    assert part["id"].isna().tolist() == [False, True]
    assert part["n"].tolist() == [1.5, 2]


@pytest.mark.parametrize("gap", ["#N/A", "n/a", "<NA>", "-nan", "#NA", "1.#QNAN"])
def test_gaps_of_spreadsheets_leave_numbers_as_they_are(tmp_path, gap):
    frame = read_frame(written(tmp_path, "t.csv", f"x,y\n1.5,a\n{gap},b\n2.5,c\n"))
    np.testing.assert_array_equal(frame["x"], [1.5, np.nan, 2.5])


def test_some_columns_stay_as_they_are_written(tmp_path):
    frame = read_frame(
        written(tmp_path, "t.csv", "c,d\n01,01\nNA,02\n"), texts={"c": (), "absent": ()}
    )
    assert frame["c"].iloc[0] == "01"
    assert frame["c"].isna().tolist() == [False, True]
    assert frame["d"].tolist() == [1, 2]


ARFF = """@relation typed
@attribute when date 'yyyy-MM-dd'
@attribute town STRING
@attribute a INTEGER
@attribute b real[0, 9]
@data
'2020-01-31','New York',1,?
?,?,NA,2.5
"""


def test_texts_and_dates_of_arff_files_keep_their_values(tmp_path):
    frame = read_frame(written(tmp_path, "t.arff", ARFF))
    assert frame["when"].iloc[0] == "2020-01-31"
    assert frame["town"].iloc[0] == "New York"
    assert frame.isna().to_numpy().tolist() == [[False, False, False, True], [True] * 3 + [False]]
    assert [frame[name].dtype.kind for name in "ab"] == ["f", "f"]


def arff(tmp_path, header, rows):
    return written(tmp_path, "t.arff", f"@relation r\n{header}\n@data\n{rows}\n")


def test_a_value_that_an_arff_file_declares_is_no_gap(tmp_path):
    header = "@attribute alley {None,'?',NA}\n@attribute note string"
    frame = read_frame(arff(tmp_path, header, "None,null\n'?','?'\nNA,n/a\n?,?\n<null>,<null>"))
    assert frame["alley"].tolist()[:3] == ["None", "?", "NA"]
    assert frame["note"].tolist()[:3] == ["null", "?", "n/a"]
    assert frame.isna().all(axis=1).tolist() == [False] * 3 + [True] * 2


def test_texts_in_a_numeric_attribute_are_kept(tmp_path):
    frame = read_frame(arff(tmp_path, "@attribute a real\n@attribute b real", "1,x\n2,2.5"))
    assert frame["a"].tolist() == [1, 2]
    assert frame["b"].tolist() == ["x", "2.5"]


def test_a_row_of_an_arff_file_may_end_in_a_comment(tmp_path):
    header = "@attribute a numeric\n@attribute b string"
    frame = read_frame(arff(tmp_path, header, "1,'5 % x' % one, two\n2,50%\t% three\n3,u"))
    assert frame["a"].tolist() == [1, 2, 3]
    assert frame["b"].tolist() == ["5 % x", "50%", "u"]


@given(st.lists(st.text("a5 ?.\t\u2003\\", max_size=5), min_size=2, max_size=6))
def test_quotes_and_comments_in_a_row_change_no_other_value(cells):
    """Rows without either are taken apart in a faster way."""
    row = ",".join(cells).strip()
    expected = [None if text in ("", "?") else text for text in map(str.strip, cells)]
    assert _cells(row) == expected
    assert _cells(f"{row},'it, is' % said") == [*expected, "it, is"]


def test_a_name_in_quotes_may_hold_quotes(tmp_path):
    header = """@attribute 'don\\'t' numeric\n@attribute "a \\"b\\"" {x}"""
    frame = read_frame(arff(tmp_path, header, "1.50,x"))
    assert list(frame.columns) == ["don't", 'a "b"']
    assert frame["don't"].tolist() == [1.5]


def test_attributes_of_the_same_name_are_refused(tmp_path):
    header = "@attribute a real\n@attribute 'a' real"
    with refuses("repeated-column-names", value=["a"]):
        read_frame(arff(tmp_path, header, "1,2"))


@pytest.mark.parametrize(
    "read", [read_frame, lambda path: next(iter(read_parts(path)))], ids=["whole", "parts"]
)
def test_numbered_columns_of_a_file_are_as_table(tmp_path, read):
    path = tmp_path / "t.parquet"
    pd.DataFrame([[1, 2], [3, 4]]).to_parquet(path)
    assert list(read(path).columns) == ["0", "1"]


INDICES = {
    "day": (pd.date_range("2024-01-01", periods=4, name="day"), ["day", "a"]),
    "two": (pd.MultiIndex.from_product([[7, 5], ["u", "v"]], names=["k", "l"]), ["k", "l", "a"]),
    "half": (pd.MultiIndex.from_product([[7, 5], [1, 2]], names=["k", None]), ["k", "a"]),
    "no name": (pd.Index(list("wxyz")), ["a"]),
    "rows": (pd.RangeIndex(4, name="row"), ["a"]),
    "the same name": (pd.Index(list("wxyz"), name="a"), ["a"]),
}


@pytest.mark.parametrize(("index", "names"), INDICES.values(), ids=INDICES)
def test_a_named_index_is_a_column(tmp_path, index, names):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"a": [1, 2, 3, 4]}, index).to_parquet(path)
    whole = read_frame(path)
    assert list(whole.columns) == names
    assert whole["a"].tolist() == [1, 2, 3, 4]
    if len(names) > 1:
        assert whole[names[0]].tolist() == index.get_level_values(0).tolist()
    parts, copies = zip(*read_parts_with_copies(path, names, part_bytes=1), strict=True)
    assert len(parts) == 4
    pd.testing.assert_frame_equal(pd.concat(parts, ignore_index=True), whole)
    assert pa.concat_tables(copies)[names[0]].to_pylist() == whole[names[0]].tolist()


PADDED = """x   ,k     ,y    ,n  ,"a name  "
 1.50 ,A     ,yes  ,1  ,"New  York "
 2.00 ,"B"   ,yes  ,NA ,Rome
      ,A,no,2  ,"  "
"""


def test_white_space_around_names_and_values_is_no_part_of_them(tmp_path):
    path = written(tmp_path, "t.csv", PADDED)
    names = ["x", "k", "y", "n", "a name"]
    whole, [part] = read_frame(path), read_parts(path)
    for frame in (whole, part):
        assert list(frame.columns) == names
        np.testing.assert_array_equal(frame["x"], [1.5, 2.0, np.nan])
        assert frame["k"].tolist() == ["A", "B", "A"]
        assert frame["y"].tolist() == ["yes", "yes", "no"]
        np.testing.assert_array_equal(frame["n"], [1.0, np.nan, 2.0])
        assert frame["a name"].tolist()[:2] == ["New  York", "Rome"]
        assert frame["a name"].isna().tolist() == [False, False, True]
    assert read_frame(path, texts={"n": ()})["n"].tolist()[::2] == ["1", "2"]
    [(_, copied)] = read_parts_with_copies(path, ["n", "a name"])
    expected = {"n": ["1", "NA", "2"], "a name": ["New  York", "Rome", None]}
    assert copied.to_pydict() == expected
    assert [cell for cells in read_cells(path, 3) for cell in cells] == ["1", "NA", "2"]


def test_a_column_may_be_called_self(tmp_path):
    path = written(tmp_path, "t.csv", "self,y\na ,1\nb,2\n")
    assert read_frame(path)["self"].tolist() == ["a", "b"]
    [(_, copied)] = read_parts_with_copies(path, ["self"])
    assert copied["self"].to_pylist() == ["a", "b"]


def test_whole_numbers_of_any_length_are_no_texts(tmp_path):
    (tmp_path / "long.csv").write_text(f"id,y\n{10**30},1\n{10**31},2\n")
    assert read_frame(tmp_path / "long.csv")["id"].tolist() == [10**30, 10**31]


def test_names_that_differ_only_by_white_space_are_the_same(tmp_path):
    with refuses("repeated-column-names", value=["a"]):
        read_frame(written(tmp_path, "t.csv", "a,a ,b\n1,2,3\n"))


def test_texts_of_a_database_may_be_padded(tmp_path):
    path = tmp_path / "t.parquet"
    pd.DataFrame({"k": ["A  ", "B  ", None, "A"], "n": [1, 2, 3, 4]}).to_parquet(path)
    whole, [part] = read_frame(path), read_parts(path)
    for frame in (whole, part):
        assert frame["k"].dropna().tolist() == ["A", "B", "A"]


@pytest.mark.parametrize("name", ["t.csv", "t.parquet", "t.dat"])
def test_copies_belong_to_their_parts_and_leave_them_as_they_are(tmp_path, name):
    path = tmp_path / name
    if name == "t.dat":
        written(tmp_path, name, KEEL.replace("Code", "id"))
    else:
        frame = pd.DataFrame({"id": [*range(49), None], "b": ["x", None] * 25}).astype(
            {"id": "Int64"}
        )
        frame.to_csv(path, index=False) if name == "t.csv" else frame.to_parquet(path)
    plain = list(read_parts(path, part_bytes=60))
    pairs = list(read_parts_with_copies(path, ("id", "absent", "id"), part_bytes=60))
    for part, (same, copied) in zip(plain, pairs, strict=True):
        pd.testing.assert_frame_equal(same, part)
        assert copied.column_names == ["id"]
        ids = [None if id_ is None else int(id_) for id_ in copied["id"].to_pylist()]
        assert ids == [None if pd.isna(id_) else int(id_) for id_ in part["id"]]


READERS = {"whole": read_frame, "parts": lambda path: pd.concat(read_parts(path, part_bytes=1))}


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_types_that_pandas_does_not_read_again(tmp_path, read):
    lists, counts = pd.ArrowDtype(pa.list_(pa.int64())), pd.ArrowDtype(pa.int64())
    columns = {"l": pd.array([[1, 2], None], lists), "n": pd.array([1, 2], counts)}
    pd.DataFrame(columns, pd.Index(["u", "v"], name="k")).to_parquet(tmp_path / "t.parquet")
    frame = read(tmp_path / "t.parquet")
    assert list(frame.columns) == ["k", "l", "n"]
    assert list(frame["l"].iloc[0]) == [1, 2]
    assert frame["n"].tolist() == [1, 2]


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
def test_columns_of_the_same_name_in_a_parquet_file_are_refused(tmp_path, read):
    parquet.write_table(pa.table([[1], [2]], names=["a", "a"]), tmp_path / "t.parquet")
    with refuses("repeated-column-names", value=["a"]):
        read(tmp_path / "t.parquet")


@pytest.mark.parametrize("read", READERS.values(), ids=READERS)
@pytest.mark.parametrize("type_", [pa.binary(), pa.large_binary(), pa.binary(2)], ids=str)
def test_bytes_of_texts_are_texts(tmp_path, read, type_):
    cells = pa.array([b"A ", b"\xc3\xa9", None], type_)
    columns = {"k": cells, "coded": cells.dictionary_encode(), "raw": [b"\xff", b"A", None]}
    parquet.write_table(pa.table(columns), tmp_path / "t.parquet")
    frame = read(tmp_path / "t.parquet")
    assert frame["k"].tolist()[:2] == ["A", "é"]
    assert frame["k"].isna().tolist() == [False, False, True]
    assert frame["coded"].tolist()[:2] == ["A", "é"]
    # As it is in a part of a file that has no other bytes.
    assert frame["raw"].tolist()[:2] == [r"\xff", "A"]


@pytest.mark.parametrize("ending", ["zip", "gz", "bz2", "xz", "zst", "tar"])
def test_a_text_is_read_whatever_its_name_says(tmp_path, ending):
    path = written(tmp_path, f"t.{ending}", "a,b\n1,x\n")
    for frame in (read_frame(path), *read_parts(path)):
        assert frame.to_dict("list") == {"a": [1], "b": ["x"]}


@pytest.mark.parametrize("ending", ["zip", "gz", "bz2", "xz", "tar"])
def test_a_file_that_is_compressed_is_refused(tmp_path, ending):
    path = tmp_path / f"t.csv.{ending}"
    pd.DataFrame({"a": range(50)}).to_csv(path, index=False)
    with pytest.raises(UsageError, match=r"a table must be a CSV.*: save it as a CSV file"):
        read_frame(path)


@pytest.mark.parametrize("odd", ['" yes"', '"\tyes"', "yes\t", "yes\u00a0"])
def test_white_space_of_any_kind_on_either_side_is_no_part_of_a_text(tmp_path, odd):
    path = written(tmp_path, "t.csv", f"k,n\nyes,1\n{odd},2\n")
    for frame in (read_frame(path), *read_parts(path)):
        assert frame["k"].tolist() == ["yes", "yes"]
    [(_, copied)] = read_parts_with_copies(path, ["k"])
    assert copied["k"].to_pylist() == ["yes", "yes"]


ONE_COLUMN = {
    "a blank line is a gap": ("x\n4100\n\n6200\n", [4100, None, 6200]),
    "none at the end": ("x\n4100\n \n6200\n\n  \n", [4100, None, 6200]),
    "none before the name": ("\n \nx\n\n6200", [None, 6200]),
    "quotes of programs": ('x\r\n""\r\n6200\r\n""\r\n', [None, 6200, None]),
    "texts of several lines": ('x\n"a\n\nb"\n\nc\n\n', ["a\n\nb", None, "c"]),
    "as of an old Macintosh": ("\r\rx\r1\r\r2\r", [1, None, 2]),
    "without rows": ("x\n\n", []),
}


@pytest.mark.parametrize(("text", "expected"), ONE_COLUMN.values(), ids=ONE_COLUMN)
@pytest.mark.parametrize("texts", [{}, {"x": ()}], ids=["", "texts"])
def test_every_line_of_a_table_of_one_column_is_a_row(tmp_path, text, expected, texts):
    (tmp_path / "t.csv").write_bytes(text.encode())
    parts, copies = zip(
        *read_parts_with_copies(tmp_path / "t.csv", ["x"], part_bytes=1, texts=texts), strict=True
    )
    for frame in (read_frame(tmp_path / "t.csv", texts=texts), pd.concat(parts)):
        assert list(frame.columns) == ["x"]
        assert frame["x"].isna().tolist() == [cell is None for cell in expected]
        present = [cell for cell in expected if cell is not None]
        assert frame["x"].dropna().tolist() == [str(cell) if texts else cell for cell in present]
    copied = [cell for part in copies for cell in part["x"].to_pylist()]
    assert copied == [None if cell is None else str(cell) for cell in expected]


def test_blank_lines_of_other_tables_are_no_rows(tmp_path):
    frame = read_frame(written(tmp_path, "t.csv", "\nx,y\n\n1,2\n \n3,4\n\n"))
    assert frame.to_dict("list") == {"x": [1, 3], "y": [2, 4]}


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@pytest.mark.parametrize("first", ["sep=;", '"sep=;"', "SEP=;\r"])
def test_a_first_line_for_excel_says_the_separator(tmp_path, first, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes(f"{first}\na, b;c\n1,5;x\n2,5;y\n".encode(encoding))
    for frame in (read_frame(path), *read_parts(path)):
        assert frame.to_dict("list") == {"a, b": ["1,5", "2,5"], "c": ["x", "y"]}
    tabs = written(tmp_path, "u.csv", "sep=\t\na\tb\n1\t2\n")
    assert read_frame(tabs).to_dict("list") == {"a": [1], "b": [2]}
    names = read_frame(written(tmp_path, "v.csv", "sep=,b;c\n1,2;3\n")).columns
    assert list(names) == ["sep=", "b;c"]


def test_a_table_of_a_separator_alone_is_refused(tmp_path):
    with refuses("table-format"):
        read_frame(written(tmp_path, "t.csv", "sep=;\n"))


@pytest.mark.parametrize("padding", ["", " "])
def test_known_values_are_not_missing(tmp_path, padding):
    rows = [f"DE{padding},NA", f"NA{padding},1", f"null{padding},2", ",3"]
    path = written(tmp_path, "t.csv", "\n".join(["country,n", *rows]))
    texts = {"country": ("", "DE", "NA")}
    for frame in (read_frame(path, texts=texts), *read_parts(path, texts=texts)):
        assert frame["country"].tolist()[:2] == ["DE", "NA"]
        assert frame["country"].isna().tolist() == [False, False, True, True]
        assert frame["n"].isna().tolist() == [True, False, False, False]


def test_a_table_of_one_column_may_hold_documents(tmp_path):
    path = written(tmp_path, "t.csv", "text\n" + "x" * 140_000 + "\n\nshort\n")
    assert read_frame(path)["text"].str.len().tolist()[::2] == [140_000, 5]


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
@pytest.mark.parametrize(
    "title",
    [
        "Sales é 2026\n",
        "Sales é 2026\r\n\r\n",
        "\nSales é 2026;;\nas of May\n;;\n",
        '"Sales é; 2026";;\n',
    ],
)
def test_a_title_above_the_names_is_no_part_of_the_table(tmp_path, title, encoding):
    path = tmp_path / "t.csv"
    path.write_bytes(f"{title}a;b, c;y\n1;2,5;x\n2;;\n3;;z\n".encode(encoding))
    for frame in (read_frame(path), *read_parts(path)):
        assert list(frame.columns) == ["a", "b, c", "y"]
        assert frame["a"].tolist() == [1, 2, 3]
    assert [part.tolist() for part in read_cells(path, 2)] == [["x", "", "z"]]
    [note] = [note for note in form_notes(path) if "title" in note]
    assert "'Sales é" in note


@pytest.mark.parametrize(
    "text",
    [
        "a\n1,2\n3,4\n",  # names that are too few, not a title: these would be numbers
        "name,,\nAnna,f,red\nBert,m,blue\n",  # names that are missing
        "x\n1\n2\n",
        "word\na, b\nc, d\n",
        "text\nhello world, x y\n5 apples, 3\n",
        "text\nhello, you\n5, apples\nand, 7\n3, or 4\n",
        "comment\nyes;no\n1;0\n",
        '"two\nlines",b\n1,2\n',
    ],
)
def test_possible_names_are_no_title(tmp_path, text):
    assert lines_of_title(text) == 0
    path = written(tmp_path, "t.csv", text)
    assert not any("title" in note for note in form_notes(path))


def test_a_title_of_a_large_table_needs_no_more_than_its_start():
    rows = "1,2\n" * 40_000
    assert lines_of_title(("Sales\n\na,b\n" + rows)[:LOOKED_AT]) == 2
    assert lines_of_title(("Sales\n" * 11 + "a,b\n" + rows)[:LOOKED_AT]) == 0
