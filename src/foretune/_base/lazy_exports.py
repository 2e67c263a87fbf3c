"""The public names of a room, imported when they are first used.

A room lists them in the stub `__init__.pyi`, which type checkers and editors also read (SPEC 1 of
Scientific Python). So `import foretune.run` loads no module of the room.
"""

import re
from collections.abc import Callable
from importlib import import_module

_IMPORT = re.compile(r"^from ([\w.]+) import ([^(\n]+|\([^)]+\))", re.MULTILINE)
_NAME = re.compile(r"(\w+) as \1\b")


def export_lazily(
    room: str, init_file: str
) -> tuple[Callable[[str], object], Callable[[], list[str]], list[str]]:
    """Return `__getattr__`, `__dir__` and `__all__` of a room, from the stub beside its file."""
    with open(init_file.removesuffix("c") + "i", encoding="utf-8") as stub:
        homes = read_homes(stub.read())

    def load_name(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module '{room}' has no attribute '{name}'")
        return getattr(import_module(homes[name]), name)

    return load_name, lambda: sorted(homes), sorted(homes)


def read_homes(stub: str) -> dict[str, str]:
    """Return the module of each name that the text of a stub exports."""
    return {
        name: module for module, names in _IMPORT.findall(stub) for name in _NAME.findall(names)
    }
