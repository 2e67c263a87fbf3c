"""What is kept in the user's cache."""

import os
import shutil
from pathlib import Path
from typing import Any

from foretune._base.cache import forget, load_or_make


def made_of(made: list[str], key: str = "key", **settings: Any) -> str:
    """A thing that is remembered; `made` gets it as often as it is made."""

    def make() -> str:
        made.append("learnt")
        return made[-1]

    def save(what: str, path: Path) -> None:
        path.write_text(what)

    settings = {"load": Path.read_text, **settings}
    return load_or_make("things", key, make=make, save=save, **settings)


def kept_files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "things").iterdir())


def test_existing_objects_are_not_made_again():
    made: list[str] = []
    assert [made_of(made), made_of(made)] == ["learnt", "learnt"]
    assert len(made) == 1


def test_the_least_recently_used_make_room(tmp_path: Path):
    made: list[str] = []
    for age, key in enumerate(["used", "old"]):
        made_of(made, key, most_kept=2)
        os.utime(tmp_path / "cache" / "things" / f"{key}.safetensors", (age, age))
    for key in ("used", "new"):
        made_of(made, key, most_kept=2)
    assert [path.stem for path in kept_files(tmp_path)] == ["new", "used"]


def test_a_damaged_file_is_made_again(tmp_path: Path):
    made: list[str] = []
    made_of(made)
    [file] = kept_files(tmp_path)
    file.write_bytes(b"\xff")
    assert made_of(made) == "learnt"
    assert (len(made), file.read_text()) == (2, "learnt")


def test_a_folder_that_cannot_be_made_is_done_without(tmp_path: Path):
    (tmp_path / "cache").write_text("in the way")
    made: list[str] = []
    assert [made_of(made), made_of(made)] == ["learnt", "learnt"]
    assert len(made) == 2


def test_nothing_is_kept_of_none(tmp_path: Path):
    def not_to_be_saved(what: None, path: Path) -> None:
        raise AssertionError(what, path)

    assert (
        load_or_make("things", "key", load=Path.read_text, make=lambda: None, save=not_to_be_saved)
        is None
    )


def test_forgetting_one_kind_keeps_the_others(tmp_path: Path):
    made: list[str] = []
    made_of(made)
    forget("other things")
    assert len(kept_files(tmp_path)) == 1
    forget("things")
    assert kept_files(tmp_path) == []


def test_a_file_that_cannot_be_marked_as_used_is_used(tmp_path: Path):
    """As where the cache may only be read; here the file is gone when it has been read."""
    made: list[str] = []
    made_of(made)

    def load(path: Path) -> str:
        text = path.read_text()
        shutil.rmtree(path.parent)
        return text

    assert made_of(made, load=load) == "learnt"
    assert len(made) == 1
    assert not (tmp_path / "cache" / "things").exists()


def test_a_file_that_cannot_be_asked_for_is_done_without(tmp_path: Path):
    """As where the cache is another user's; here no file can have the name."""
    made: list[str] = []
    assert made_of(made, "x" * 300) == "learnt"
    assert len(made) == 1
    assert kept_files(tmp_path) == []
