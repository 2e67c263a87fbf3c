import zipfile

import pytest

from foretune.stores.files.archive import Archive
from tests.refusals import refuses


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "data" / "inner").mkdir(parents=True)
    (tmp_path / "data" / "inner" / "a.csv").write_bytes(b"a")
    (tmp_path / "data" / "b.csv").write_bytes(b"b")
    return tmp_path / "data"


@pytest.fixture
def wheel(folder, tmp_path):
    path = tmp_path / "package-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as zipped:
        for file in folder.rglob("*.csv"):
            zipped.write(file, f"package/{file.relative_to(folder)}")
    return path


def content(archive, ending):
    with archive.open(archive.need(ending)) as stream:
        return stream.read()


def test_a_folder_and_a_wheel_look_alike(folder, wheel):
    for source in (folder, wheel):
        archive = Archive.at(source)
        assert content(archive, "inner/a.csv") == b"a"
        assert content(archive, "b.csv") == b"b"


def test_a_single_file_holds_itself(folder):
    archive = Archive.at(folder / "b.csv")
    assert archive.members == ("b.csv",)
    assert content(archive, "b.csv") == b"b"


def test_a_member_that_is_damaged_is_refused(wheel):
    wheel.write_bytes(wheel.read_bytes().replace(b"b.csvb", b"b.csvx", 1))  # its name, its content
    with refuses("damaged-archive"):
        content(Archive.at(wheel), "b.csv")


def test_whole_parts_of_a_path_must_match(folder):
    assert Archive.at(folder).find("r/a.csv") is None


def test_the_outermost_of_several_is_found(folder):
    (folder / "inner" / "deep").mkdir()
    (folder / "inner" / "deep" / "b.csv").write_bytes(b"deep")
    assert content(Archive.at(folder), "b.csv") == b"b"


def test_a_missing_member_is_named(folder):
    with refuses("missing-member", field="c.csv"):
        Archive.at(folder).need("c.csv")


def test_a_missing_source_is_named(tmp_path):
    with refuses("missing-source"):
        Archive.at(tmp_path / "nowhere")
