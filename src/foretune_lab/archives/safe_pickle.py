"""Reading pickled plain data without running any of it.

A pickle is a program: its GLOBAL opcodes fetch any callable by name, and REDUCE calls it. Tables of
numbers need neither. Here every global is refused. What remains can only build numbers, strings,
bytes and the builtin containers.
"""

import pickle
from typing import IO, NoReturn

from foretune.errors import ExperienceError


class _PlainDataUnpickler(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for '{module}.{name}'")

    def persistent_load(self, pid: object) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for the outside object {pid!r}")


def load_plain(stream: IO[bytes], name: str) -> object:
    """Load the pickled numbers, strings and builtin containers in `stream`.

    `name` stands in the error message if something is refused.
    """
    try:
        return _PlainDataUnpickler(stream).load()
    # A malformed pickle can make the unpickler's stack machine fail in all of these ways.
    except (
        pickle.UnpicklingError,
        ArithmeticError,
        AttributeError,
        EOFError,
        ImportError,
        LookupError,
        MemoryError,
        TypeError,
        ValueError,
    ) as error:
        raise ExperienceError(
            f"a pickled table may hold only numbers, strings and containers, but '{name}' "
            f"cannot be read as such ({error}): get the file again from its publisher",
            rule="unsafe-pickle",
            value=name,
        ) from error
