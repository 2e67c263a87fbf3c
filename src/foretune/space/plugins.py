"""Spaces in the notation of other tools, read through entry points of `foretune.spaces`.

    [project.entry-points."foretune.spaces"]
    optuna = "my_package.spaces:read_space"    # Mapping -> ConfigurationSpace

The name of an entry point is the top-level module that defines the values of the mapping. The entry
point is loaded only if such a value is found, because then the tool is installed.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ConfigSpace import ConfigurationSpace

GROUP = "foretune.spaces"


def space_reader(given: Mapping[str, Any]) -> Callable[[Any], ConfigurationSpace] | None:
    """Return the reader of a mapping if all its values are of one other tool, or None."""
    tools = [_modules_of(value) for value in given.values()]
    shared = set.intersection(*tools) if tools else set()
    entry = next((entry for name, entry in _entry_points().items() if name in shared), None)
    if entry is None:
        return None
    reader: Callable[[Any], ConfigurationSpace] = entry.load()
    return reader


def _modules_of(value: object) -> set[str]:
    """Return the top-level modules that define the value's class and its parents."""
    return {each.__module__.partition(".")[0] for each in type(value).__mro__}


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}
