"""Lists of names as they are typed."""

import csv
import io

import pytest
from hypothesis import given
from hypothesis import strategies as st

from foretune.cli.option_values import names_in
from tests.refusals import refuses

NAMES = st.text(st.characters(blacklist_characters="\x00", blacklist_categories=("Cs",)))


@pytest.mark.parametrize(
    ("typed", "names"),
    [
        (None, ()),
        ("a", ("a",)),
        ("a,b", ("a", "b")),
        (" a , b c ,", ("a", "b c")),
        ('"name, first", age', ("name, first", "age")),
        ('a 3" pipe,b', ('a 3" pipe', "b")),
        ("a\rb\n", ("a", "b")),
        ('"say ""x"""', ('say "x"',)),
    ],
)
def test_names_stand_between_commas_or_in_quotes(typed: str | None, names: tuple[str, ...]) -> None:
    assert names_in(typed) == names


@pytest.mark.parametrize("typed", ["", " ", ",", ' , "" '])
def test_a_list_without_a_name_is_refused(typed: str) -> None:
    with refuses("empty-list", value=typed):
        names_in(typed)


@given(st.lists(NAMES.map(str.strip).filter(bool), min_size=1))
def test_names_are_read_back_as_from_a_csv_file(names: list[str]) -> None:
    line = io.StringIO()
    csv.writer(line, quoting=csv.QUOTE_ALL).writerow(names)
    assert names_in(line.getvalue()) == tuple(names)
