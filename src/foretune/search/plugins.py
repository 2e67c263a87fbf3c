"""Methods of other installed packages: entry points of the group `foretune.methods`.

    [project.entry-points."foretune.methods"]
    mine = "my_package.search:MINE"    # a Method called "mine"

A method is imported when it is looked up by name, in every process.
"""

from importlib.metadata import EntryPoint, entry_points

from foretune.errors import MethodError
from foretune.search.method_entry import Method

GROUP = "foretune.methods"


def plugin_entry_points() -> dict[str, EntryPoint]:
    """Return the entry points of installed packages by name; of equal names only one is used."""
    return {entry.name: entry for entry in entry_points(group=GROUP)}


def load_plugin(entry: EntryPoint) -> Method:
    """Import the method that an entry point names, and check that it is one."""
    package = entry.dist.name if entry.dist is not None else entry.module
    try:
        found = entry.load()
    except Exception as error:
        raise MethodError(
            f"the method '{entry.name}' must lie where the package '{package}' says "
            f"({entry.value}), but importing it raised {type(error).__name__} ({error}): repair "
            "the package, or uninstall it",
            rule="plugin-imports",
            field=entry.name,
            value=entry.value,
        ) from error
    if not isinstance(found, Method) or found.name != entry.name:
        got = f"one called '{found.name}'" if isinstance(found, Method) else repr(found)
        raise MethodError(
            f"the package '{package}' must offer a foretune.Method called '{entry.name}' at "
            f"{entry.value}, but got {got}: correct its entry point",
            rule="plugin-is-method",
            field=entry.name,
            value=entry.value,
        )
    return found


def comes_with_foretune(name: str) -> bool:
    """Return whether the entry point of this name belongs to Foretune's own package."""
    entry = plugin_entry_points().get(name)
    return entry is not None and entry.dist is not None and entry.dist.name == "foretune"
