"""Replacing a file in one step, and locking one."""

import errno
import os
from pathlib import Path

import pytest

from foretune._base.files import (
    check_folder_of,
    hold_lock,
    make_private_folder,
    replace_file,
    try_lock,
    write_text,
)
from tests.refusals import refuses


def test_an_output_needs_a_folder_that_exists(tmp_path: Path) -> None:
    check_folder_of(tmp_path / "a.txt")
    check_folder_of(Path("a.txt"))
    with refuses("missing-folder"):
        check_folder_of(tmp_path / "absent" / "a.txt")


def test_the_file_gets_the_new_content(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    replace_file(path, lambda temporary: temporary.write_text("new") and None)
    assert path.read_text() == "new"
    assert list(tmp_path.iterdir()) == [path]


def test_text_replaces_a_file_in_one_step(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")
    before = path.stat().st_ino
    write_text(path, "né")
    assert path.stat().st_ino != before
    assert path.read_text(encoding="utf-8") == "né"
    assert list(tmp_path.iterdir()) == [path]


def test_an_interruption_leaves_everything_as_it_was(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_text("old")

    def interrupted(temporary: Path) -> None:
        temporary.write_text("half")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        replace_file(path, interrupted)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("named", [False, True])
def test_a_full_disk_says_which_file_it_has_no_room_for(tmp_path: Path, named: bool) -> None:
    path = tmp_path / "a.txt"

    def full(temporary: Path) -> None:
        raise OSError(errno.ENOSPC, "No space left", *([str(temporary)] if named else []))

    with pytest.raises(OSError, match="No space left") as told:
        replace_file(path, full)
    assert told.value.filename == str(path)
    assert list(tmp_path.iterdir()) == []


def test_a_lock_is_held_by_one_at_a_time_and_let_go(tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    with hold_lock(path):
        assert try_lock(path) is None
    mine = try_lock(path)
    assert mine is not None
    assert try_lock(path) is None
    mine.close()
    with hold_lock(path):
        pass


@pytest.fixture
def no_umask():
    before = os.umask(0)
    yield
    os.umask(before)


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
@pytest.mark.usefixtures("no_umask")
@pytest.mark.parametrize(("is_private", "mode"), [(True, 0o600), (False, 0o666)])
def test_a_private_file_is_for_its_owner_only_from_the_first_moment(tmp_path, is_private, mode):
    seen = []

    def write(temporary: Path) -> None:
        seen.append(temporary.stat().st_mode & 0o777)
        temporary.write_text("x")

    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o666)
    replace_file(path, write, is_private=is_private)
    assert [*seen, path.stat().st_mode & 0o777] == [mode, mode]


@pytest.mark.skipif(os.name == "nt", reason="Windows has other permissions")
@pytest.mark.usefixtures("no_umask")
def test_a_private_folder_is_for_its_owner_only(tmp_path):
    old = tmp_path / "old"
    old.mkdir()
    for path in (old, tmp_path / "new"):
        make_private_folder(path)
        make_private_folder(path)
        assert path.stat().st_mode & 0o777 == 0o700
