"""The public names: listed in the stubs of the rooms, importable, described, and few."""

import ast
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

from foretune._base.lazy_exports import read_homes

SOURCE = Path(__file__).parents[1] / "src"
MOST_NAMES = 300
LAZY = {
    ".".join(stub.relative_to(SOURCE).with_suffix("").parts).removesuffix(".__init__"): stub
    for stub in sorted((SOURCE / "foretune").rglob("*.pyi"))
}
EAGER = ["foretune.errors", "foretune.cli", "foretune.integrations.optuna"]
FACADES = {"foretune", "foretune.plugins"}
"""They repeat names of rooms."""
HEAVY = ["numpy", "pandas", "pyarrow", "scipy", "sklearn", "jax", "ConfigSpace"]


def test_the_core_has_few_public_names() -> None:
    assert sum(len(import_module(room).__all__) for room in [*LAZY, *EAGER]) <= MOST_NAMES


@pytest.mark.parametrize("room", [*LAZY, *EAGER])
def test_every_public_name_is_found_and_described(room: str) -> None:
    module = import_module(room)
    assert module.__doc__
    assert set(module.__all__) <= set(dir(module))
    for name in module.__all__:
        found = getattr(module, name)
        if callable(found) and getattr(found, "__module__", "").startswith("foretune"):
            assert found.__doc__, f"{room}.{name} has no docstring"


@pytest.mark.parametrize("room", sorted(set(LAZY) - FACADES))
def test_a_room_exports_what_it_holds(room: str) -> None:
    homes = read_homes(LAZY[room].read_text(encoding="utf-8"))
    assert all(home.startswith((f"{room}.", "foretune._base.")) for home in homes.values())


@pytest.mark.parametrize("room", LAZY)
def test_no_public_name_hides_a_module(room: str) -> None:
    folder = LAZY[room].parent
    modules = {path.stem for path in folder.iterdir()} if LAZY[room].stem == "__init__" else set()
    assert not modules & set(import_module(room).__all__)


@pytest.mark.parametrize("room", LAZY)
def test_a_stub_is_read_as_python_reads_it(room: str) -> None:
    text = LAZY[room].read_text(encoding="utf-8")
    nodes = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom)]
    assert read_homes(text) == {alias.name: node.module for node in nodes for alias in node.names}


def test_importing_rooms_imports_nothing_heavy() -> None:
    code = f"import sys, {', '.join(LAZY)}; print([m for m in {HEAVY!r} if m in sys.modules])"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "[]"


def test_a_name_that_is_not_public_is_no_attribute() -> None:
    with pytest.raises(AttributeError) as caught:
        _ = import_module("foretune.space").nonsense
    assert "nonsense" in str(caught.value)


def _imports_from_the_core(file: Path) -> list[tuple[str, str]]:
    """The module and the name of each import from Foretune; no name for `import foretune.x`."""
    found = []
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            found += [(node.module, alias.name) for alias in node.names]
        elif isinstance(node, ast.Import):
            found += [(alias.name, "") for alias in node.names if "." in alias.name]
    return [(module, name) for module, name in found if module.split(".")[0] == "foretune"]


@pytest.mark.parametrize(
    "file",
    sorted((SOURCE / "foretune_lab").rglob("*.py")),
    ids=lambda file: file.stem,
)
def test_the_laboratory_uses_public_names_only(file: Path) -> None:
    for room, name in _imports_from_the_core(file):
        assert room in LAZY or room in EAGER, f"{room} is no room"
        assert name in import_module(room).__all__, f"{name} is no public name of {room}"
