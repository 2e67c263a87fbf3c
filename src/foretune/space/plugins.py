"""Spaces in the notation of other tools, read by entry points of the group `foretune.spaces`.

    [project.entry-points."foretune.spaces"]
    optuna = "my_package.spaces:read_space"    # Mapping -> ConfigurationSpace

An entry point is called after the top-level module that defines the values of such a mapping. It is
loaded only if a value of that module is met, because then the tool is installed.
"""

from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

from ConfigSpace import ConfigurationSpace

GROUP = "foretune.spaces"


def space_reader(given: Mapping[str, Any]) -> Callable[[Any], ConfigurationSpace] | None:
    """The function that reads a mapping whose values are all of one other tool; else None."""
    tools = [_modules_of(value) for value in given.values()]
    shared = set.intersection(*tools) if tools else set()
    entry = next((entry for name, entry in _entry_points().items() if name in shared), None)
    if entry is None:
        return None
    reader: Callable[[Any], ConfigurationSpace] = entry.load()
    return reader


def _modules_of(value: object) -> set[str]:
    """The top-level modules that define the value's class and its parents."""
    return {each.__module__.partition(".")[0] for each in type(value).__mro__}


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}
