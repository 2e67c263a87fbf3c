"""Methods that other packages bring."""

import contextlib
import os
import pickle
import subprocess
import sys

import pytest
from click.testing import CliRunner

from foretune.cli import foretune
from foretune.errors import MethodError
from foretune.search import METHODS, Optimizer, method
from foretune.search.prior_cache import _is_kept
from foretune.space import Space
from tests.refusals import refuses

CODE = """
from dataclasses import replace
from foretune import METHODS
MINE = replace(METHODS["random"], name="mine", summary="a method of mine")
OTHER = 3
"""


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """A package `mine` as pip would install it, whose entry points are given."""

    def install(**entries):
        (tmp_path / "mine.py").write_text(CODE)
        (info := tmp_path / "mine-1.0.dist-info").mkdir()
        (info / "METADATA").write_text("Metadata-Version: 2.1\nName: mine\nVersion: 1.0\n")
        lines = [f"{name} = {value}" for name, value in entries.items()]
        (info / "entry_points.txt").write_text("\n".join(["[foretune.methods]", *lines, ""]))
        monkeypatch.syspath_prepend(str(tmp_path))
        return tmp_path

    yield install
    sys.modules.pop("mine", None)
    with contextlib.suppress(KeyError):
        del METHODS["mine"]


def test_a_method_of_another_package_is_found_by_its_name(installed) -> None:
    installed(mine="mine:MINE")
    found = method("mine")
    assert (found.name, found.summary) == ("mine", "a method of mine")
    assert method("mine") is found
    [suggestion] = Optimizer.of(Space.of({"x": (0.0, 1.0)}), method="mine").ask()
    assert 0.0 <= suggestion.config["x"] <= 1.0


def test_it_travels_by_its_name_to_a_process_that_has_not_met_it(installed) -> None:
    place = installed(mine="mine:MINE")
    sent = pickle.dumps(method("mine"))
    code = "import pickle, sys; print(pickle.loads(sys.stdin.buffer.read()).summary)"
    paths = os.pathsep.join([str(place), *filter(None, sys.path)])
    got = subprocess.run(
        [sys.executable, "-c", code],
        input=sent,
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        check=True,
    )
    assert got.stdout.decode().strip() == "a method of mine"


def test_lessons_of_a_foreign_method_are_not_kept(installed) -> None:
    installed(mine="mine:MINE")
    assert _is_kept(method("random"))
    assert not _is_kept(method("mine"))


def test_shipped_files_keep_their_names(installed) -> None:
    installed(random="mine:MINE")
    assert method("random").summary == "uniform random search"


def test_methods_lists_what_others_bring(installed) -> None:
    installed(mine="mine:MINE", broken="mine:NOWHERE")
    shown = CliRunner().invoke(foretune, ["methods"])
    assert shown.exit_code == 0
    said = dict(line.split(maxsplit=1) for line in shown.output.splitlines())
    assert said["mine"] == "a method of mine"
    where = "the method 'broken' must lie where the package 'mine' says (mine:NOWHERE)"
    assert where in said["broken"]


@pytest.mark.parametrize(
    ("entries", "asked", "rule"),
    [
        ({"mine": "mine:NOWHERE"}, "mine", "plugin-imports"),
        ({"mine": "nowhere:MINE"}, "mine", "plugin-imports"),
        ({"mine": "mine:OTHER"}, "mine", "plugin-is-method"),
        ({"yours": "mine:MINE"}, "yours", "plugin-is-method"),
        ({"mine": "mine:MINE"}, "mime", "unknown-method"),
    ],
)
def test_mistakes_of_a_package_are_told(installed, entries, asked, rule) -> None:
    installed(**entries)
    with refuses(rule, kind=MethodError) as caught:
        method(asked)
    assert entries.get(asked, asked) == caught.value.value
