"""The public names of a room, imported when they are first used.

A room lists them in its `__init__.pyi`, which type checkers and editors read too (SPEC 1 of
Scientific Python). `import foretune.run` then loads nothing of what the room holds.
"""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path


def export_lazily(
    room: str, init_file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a room, from the stub beside its file."""
    homes = read_homes(Path(init_file).with_suffix(".pyi"))

    def load_name(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module '{room}' has no attribute '{name}'")
        return getattr(import_module(homes[name]), name)

    return load_name, lambda: sorted(homes), sorted(homes)


def read_homes(stub: Path) -> dict[str, str]:
    """Return the module of each name that a stub imports."""
    imports = ast.parse(stub.read_text(encoding="utf-8")).body
    return {
        alias.name: node.module
        for node in imports
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
