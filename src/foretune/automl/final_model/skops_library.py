"""Imports skops, the library that writes and reads fitted pipelines, as quickly as possible."""

import sys
from types import ModuleType
from typing import Any

from foretune._base.own_process import is_own_process
from foretune.errors import MissingExtraError

TRUSTED = "skops.io._trusted_types"
"""The module in which skops lists what it trusts by default. Making the list takes nearly a second,
because it imports all of scikit-learn and looks for the module of each ufunc."""


def load_skops() -> Any:
    """Return `skops.io`. In a process of Foretune's own it trusts only what it is told to trust."""
    if is_own_process() and "skops.io" not in sys.modules:
        sys.modules[TRUSTED] = _FewTypes(TRUSTED)
        try:
            import skops.io
        except ImportError:  # This version of skops needs more of that module.
            for name in [each for each in sys.modules if each.partition(".")[0] == "skops"]:
                del sys.modules[name]
        else:
            return skops.io
    try:
        import skops.io
    except ImportError as error:
        raise MissingExtraError("skops", "automl", "a model file") from error
    return skops.io


class _FewTypes(ModuleType):
    """A module with the same lists of types as the one it replaces; nearly all are empty."""

    def __getattr__(self, name: str) -> list[str]:
        if name == "NUMPY_RANDOM_BIT_GENERATOR_TYPE_NAMES":
            return _bit_generators()
        if name.endswith("_TYPE_NAMES"):
            return []
        raise AttributeError(name)


def _bit_generators() -> list[str]:
    """Return the only types that skops may make for a generator of random numbers."""
    import numpy as np

    found = {name: getattr(np.random, name) for name in dir(np.random)}
    kinds = {name: each for name, each in found.items() if isinstance(each, type)}
    base = np.random.BitGenerator
    return sorted(
        f"numpy.random.{name}"
        for name, each in kinds.items()
        if issubclass(each, base) and each is not base
    )
