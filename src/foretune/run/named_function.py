"""Functions of the user's that are found by name."""

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from foretune.errors import UsageError
from foretune.run.call import one_line
from foretune.run.running_trial import RunningTrial, call_with_trial
from foretune.run.trial_results import plain
from foretune.run.worker_start import libraries_of


class NamedFunction:
    """The function of the user's that `module:function` names, found anew in each process.

    Modules of the folder it was named in are found as well.
    """

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self._folder = str(folder)
        self._function = _find_function(name, self._folder)

    @property
    def libraries(self) -> tuple[str, ...]:
        """The modules that a fork server may import for it."""
        return libraries_of(self._function)

    @property
    def function(self) -> Callable[..., Any]:
        """The function itself."""
        return self._function

    def __reduce__(self) -> tuple[Any, ...]:
        return NamedFunction, (self.name, Path(self._folder))

    def __call__(self, config: dict[str, Any], trial: RunningTrial) -> Any:
        """Return what the function makes of a configuration, in numbers and texts."""
        return plain(call_with_trial(self._function, config, trial))


def _find_function(name: str, folder: str) -> Callable[..., Any]:
    module_name, colon, path = name.partition(":")
    if not (module_name and colon and path):
        raise UsageError(
            f"a function must be written as module:function, but got '{name}': such as train:run "
            "for the function run in train.py",
            rule="function-notation",
            value=name,
        )
    if folder not in sys.path:
        sys.path.insert(0, folder)
    try:
        found: Any = importlib.import_module(module_name)
    except (Exception, SystemExit) as error:
        raise UsageError(
            f"the module of '{name}' must be one that can be imported from '{folder}', but: "
            f"{one_line(error)}; {_remedy(name, error)}",
            rule="module-import",
            value=name,
        ) from error
    for part in path.split("."):
        if not hasattr(found, part):
            raise UsageError(
                f"the function of '{name}' must exist, but there is no '{part}' in "
                f"{getattr(found, '__name__', found)}: check its name",
                rule="unknown-function",
                field=part,
                value=name,
            )
        found = getattr(found, part)
    if not callable(found):
        raise UsageError(
            f"'{name}' must be a function, but it is of type {type(found).__name__}: name "
            "something that can be called with a configuration",
            rule="not-callable",
            value=name,
        )
    function: Callable[..., Any] = found
    return function


def _remedy(name: str, error: BaseException) -> str:
    """Return the remedy for a module that cannot be imported."""
    if isinstance(error, SystemExit):
        return 'let what ends the program stand under  if __name__ == "__main__":'
    module, _, function = name.partition(":")
    dotted = module.removesuffix(".py").strip("./").replace("/", ".")
    return (
        "correct the name, or mend the module" if dotted == module else f"write {dotted}:{function}"
    )
