"""Find import cycles among the modules of this repository.

    python tools/check_cycles.py [FOLDER...]

Every import counts: at the top of a module, inside a function, and for type hints only. The exit
code is 1 if there is a cycle.
"""

import ast
import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path

Graph = Mapping[str, set[str]]
"""The modules that each module imports."""

SOURCES = (Path("src/foretune"), Path("src/foretune_lab"))


def main(folders: Sequence[Path]) -> int:
    """Print every cycle, and return the exit code."""
    modules = {name: path for folder in folders for name, path in find_modules(folder)}
    cycles = find_cycles(read_imports(modules))
    for cycle in cycles:
        print("cycle:", " <-> ".join(cycle))
    print(f"{len(cycles)} cycles in {len(modules)} modules")
    return 1 if cycles else 0


def find_modules(folder: Path) -> Iterator[tuple[str, Path]]:
    """The dotted name and the file of every module of a package."""
    for path in sorted(folder.rglob("*.py")):
        parts = path.relative_to(folder.parent).with_suffix("").parts
        yield ".".join(parts[:-1] if parts[-1] == "__init__" else parts), path


def read_imports(modules: Mapping[str, Path]) -> dict[str, set[str]]:
    """The import graph, restricted to the given modules."""
    return {
        name: {target for target in _imported_modules(path, modules) if target != name}
        for name, path in modules.items()
    }


def find_cycles(graph: Graph) -> list[list[str]]:
    """The strongly connected groups of more than one module, by Tarjan's algorithm."""
    index: dict[str, int] = {}
    lowest: dict[str, int] = {}
    stack: list[str] = []
    cycles: list[list[str]] = []

    def visit(module: str) -> None:
        index[module] = lowest[module] = len(index)
        stack.append(module)
        for target in sorted(graph[module]):
            if target not in index:
                visit(target)
                lowest[module] = min(lowest[module], lowest[target])
            elif target in stack:
                lowest[module] = min(lowest[module], index[target])
        if lowest[module] == index[module]:
            place = stack.index(module)
            group, stack[place:] = stack[place:], []
            if len(group) > 1:
                cycles.append(sorted(group))

    sys.setrecursionlimit(10_000)
    for module in graph:
        if module not in index:
            visit(module)
    return cycles


def _imported_modules(path: Path, modules: Mapping[str, Path]) -> Iterator[str]:
    """Yield what a module imports. A name that a room exports lazily counts as its home."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in modules)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                if submodule in modules:
                    yield submodule
                elif node.module in modules:
                    yield _exported_names(modules[node.module]).get(alias.name, node.module)


@cache
def _exported_names(module: Path) -> dict[str, str]:
    """Return the home of each name in the stub of a room, or nothing if it has none."""
    stub = module.with_suffix(".pyi")
    if not stub.exists():
        return {}
    nodes = ast.parse(stub.read_text(encoding="utf-8")).body
    imports = [node for node in nodes if isinstance(node, ast.ImportFrom)]
    return {alias.name: str(node.module) for node in imports for alias in node.names}


if __name__ == "__main__":
    sys.exit(main([Path(given) for given in sys.argv[1:]] or list(SOURCES)))
