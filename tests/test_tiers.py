"""The fast tier covers every room, and its list of slow tests comes from measured times."""

from pathlib import Path

import pytest
from tools import list_slow_tests

from tests import tiers

SHARED = {"_base", "testing"}
"""Rooms whose tests lie elsewhere: in `tests/` itself, and with the methods that are tested."""
ROOMS = sorted(
    folder.name
    for folder in (tiers.ROOT / "src" / "foretune").iterdir()
    if (folder / "__init__.py").exists() and folder.name not in SHARED
)


@pytest.mark.parametrize("room", [*ROOMS, "lab", "."])
def test_every_room_has_fast_tests(room: str) -> None:
    folder = tiers.ROOT / "tests" / room
    files = folder.glob("test_*.py") if room == "." else folder.rglob("test_*.py")
    tests = [
        tiers.is_slow(file.relative_to(tiers.ROOT).as_posix(), test)
        for file in files
        for test in list_slow_tests.test_functions(file)
    ]
    assert tests.count(False) >= 20


def test_slow_tests_are_found_in_what_pytest_measured() -> None:
    log = """
    0.15s call     tests/a.py::test_small[1]
    0.15s setup    tests/a.py::test_small[1]
    0.19s call     tests/a.py::TestGroup::test_quick[x y]
    0.19s call     tests/b.py::test_many[1]
    0.19s call     tests/b.py::test_many[2]
    0.19s call     tests/b.py::test_many[3]
    0.19s call     tests/b.py::test_many[4]
    0.19s call     tests/b.py::test_many[5]
    0.19s call     tests/b.py::test_many[6]
    1.20s setup    tests/c.py::test_shared
    """
    assert list_slow_tests.find_slow_tests(log.splitlines()) == {
        "tests/a.py": {"test_small"},
        "tests/b.py": {"test_many"},
        "tests/c.py": {"", "test_shared"},
    }


def test_a_file_of_mostly_slow_tests_is_listed_whole(tmp_path: Path) -> None:
    file = tmp_path / "test_one.py"
    file.write_text("".join(f"def test_{name}(): ...\n" for name in "abc"))
    assert list_slow_tests.list_file(file, {"test_a"}) == [f"{file.as_posix()}::test_a"]
    assert list_slow_tests.list_file(file, {"test_a", "test_b"}) == [file.as_posix()]
    assert list_slow_tests.list_file(file, {""}) == [file.as_posix()]
    assert list_slow_tests.list_file(tmp_path / "gone.py", {"test_a"}) == []
