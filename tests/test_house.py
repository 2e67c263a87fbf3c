"""The structure of the code: cycles, and that the laboratory joins through the public doors."""

import ast
import subprocess
import sys
from importlib.metadata import entry_points
from pathlib import Path

import pytest
from tools import check_cycles

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def imports() -> check_cycles.Graph:
    folders = [ROOT / source for source in check_cycles.SOURCES]
    modules = {name: path for folder in folders for name, path in check_cycles.find_modules(folder)}
    return check_cycles.read_imports(modules)


def test_there_is_no_import_cycle(imports: check_cycles.Graph) -> None:
    assert check_cycles.find_cycles(imports) == []


def test_a_cycle_is_found_even_inside_a_function(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "one.py").write_text("def f():\n    from package import two\n")
    (package / "two.py").write_text("from package.one import f\n")
    (package / "three.py").write_text("from package.two import f\n")
    modules = dict(check_cycles.find_modules(package))
    cycles = check_cycles.find_cycles(check_cycles.read_imports(modules))
    assert cycles == [["package.one", "package.two"]]
    assert check_cycles.main([package]) == 1


@pytest.mark.parametrize(
    "group", ["foretune.methods", "foretune.importers", "foretune.commands", "foretune.spaces"]
)
def test_every_entry_point_loads(group: str) -> None:
    found = [entry for entry in entry_points(group=group) if "foretune" in entry.value]
    assert found
    for entry in found:
        assert entry.load() is not None


def test_the_core_starts_without_the_laboratory() -> None:
    code = "import sys, foretune.search, foretune.automl; print('foretune_lab' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert said.stdout.strip() == "False"


def test_the_final_model_has_three_public_modules(imports: check_cycles.Graph) -> None:
    """Modules outside of `automl/final_model` import only `fit`, `fold_models` and `model`."""
    room = "foretune.automl.final_model"
    imported = {
        target
        for source, targets in imports.items()
        if not source.startswith(room)
        for target in targets
        if target.startswith(room)
    }
    assert imported == {f"{room}.fit", f"{room}.fold_models", f"{room}.model"}


def test_no_class_name_is_used_twice() -> None:
    places: dict[str, list[str]] = {}
    for path in sorted((ROOT / "src" / "foretune").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(path.name)
    assert {name: files for name, files in places.items() if len(files) > 1} == {}
