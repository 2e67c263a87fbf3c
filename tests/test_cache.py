"""What is kept in the user's cache."""

import os
from pathlib import Path

import pytest

from foretune._base.cache import forget, load_or_make


def made_of(made: list[str], key: str = "key") -> str:
    """A thing that is remembered; `made` gets it as often as it is made."""

    def make() -> str:
        made.append("learnt")
        return made[-1]

    def save(what: str, path: Path) -> None:
        path.write_text(what)

    return load_or_make("things", key, load=Path.read_text, make=make, save=save)


def kept_files(tmp_path: Path) -> list[Path]:
    return sorted((tmp_path / "cache" / "things").iterdir())


def test_what_was_made_is_not_made_again():
    made: list[str] = []
    assert [made_of(made), made_of(made)] == ["learnt", "learnt"]
    assert len(made) == 1


def test_the_least_recently_used_make_room(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("foretune._base.cache.MOST_KEPT", 2)
    made: list[str] = []
    for age, key in enumerate(["used", "old"]):
        made_of(made, key)
        os.utime(tmp_path / "cache" / "things" / f"{key}.safetensors", (age, age))
    made_of(made, "used")
    made_of(made, "new")
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


def test_what_is_forgotten_is_made_again(tmp_path: Path):
    made: list[str] = []
    made_of(made)
    forget("other things")
    assert len(kept_files(tmp_path)) == 1
    forget("things")
    assert kept_files(tmp_path) == []


def test_a_cache_that_may_only_be_read_is_used(monkeypatch: pytest.MonkeyPatch):
    made: list[str] = []
    made_of(made)

    def refuse(path: Path) -> None:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "touch", refuse)
    assert made_of(made) == "learnt"
    assert len(made) == 1


def test_a_cache_of_another_user_is_done_without(monkeypatch: pytest.MonkeyPatch):
    """Not even whether a file is there can be asked."""
    stat = Path.stat

    def refuse(path: Path, **how: bool) -> os.stat_result:
        if "things" in path.parts:
            raise PermissionError(13, "Permission denied", str(path))
        return stat(path, **how)

    monkeypatch.setattr(Path, "stat", refuse)
    made: list[str] = []
    assert made_of(made) == "learnt"
    assert len(made) == 1
