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
    tools = {type(value).__module__.partition(".")[0] for value in given.values()}
    entry = _entry_points().get(tools.pop()) if len(tools) == 1 else None
    if entry is None:
        return None
    reader: Callable[[Any], ConfigurationSpace] = entry.load()
    return reader


@cache
def _entry_points() -> dict[str, EntryPoint]:
    return {entry.name: entry for entry in entry_points(group=GROUP)}
