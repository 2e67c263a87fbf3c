"""Foretune: hyperparameter tuning that starts from what past runs taught.

Example:
    >>> import foretune as ft
    >>> optimizer = ft.Optimizer.of({"lr": (1e-4, 1e-1, "log"), "depth": (2, 12)})
    >>> for _ in range(20):
    ...     [suggestion] = optimizer.ask()
    ...     optimizer.tell([ft.Told(train(**suggestion.config), id=suggestion.id)])
"""

from foretune._base.lazy_exports import export_lazily

_load_name, _, __all__ = export_lazily(__name__, __file__)


def __getattr__(name: str) -> object:
    if name == "__version__":
        from importlib.metadata import version

        return version("foretune")
    return _load_name(name)


def __dir__() -> list[str]:
    return sorted([*__all__, "__version__"])
