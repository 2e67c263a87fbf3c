"""Foretune: hyperparameter tuning that starts from what past runs taught.

Example:
    >>> import foretune as ft
    >>> optimizer = ft.Optimizer.of({"lr": (1e-4, 1e-1, "log"), "depth": (2, 12)})
    >>> for _ in range(20):
    ...     [suggestion] = optimizer.ask()
    ...     optimizer.tell([ft.Told(train(**suggestion.config), id=suggestion.id)])
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foretune.automl.final_model.model import Model
    from foretune.automl.sklearn_api import ForetuneClassifier, ForetuneRegressor
    from foretune.errors import ForetuneError
    from foretune.experience import Direction, Evaluation, Experience, Metric, Status
    from foretune.integrations.search_cv import ForetuneSearchCV
    from foretune.methods.contracts import Target
    from foretune.methods.zero_shot.shipped import portfolio
    from foretune.search import METHODS, Method, Optimizer, Suggestion, Told, method
    from foretune.space import Encoded, Space

__version__: str

_HOMES = {
    "ForetuneClassifier": "foretune.automl.sklearn_api",
    "ForetuneRegressor": "foretune.automl.sklearn_api",
    "Model": "foretune.automl.final_model.model",
    "Target": "foretune.methods.contracts",
    "ForetuneError": "foretune.errors",
    "Direction": "foretune.experience",
    "Evaluation": "foretune.experience",
    "Experience": "foretune.experience",
    "Metric": "foretune.experience",
    "Status": "foretune.experience",
    "ForetuneSearchCV": "foretune.integrations.search_cv",
    "portfolio": "foretune.methods.zero_shot.shipped",
    "METHODS": "foretune.search",
    "Method": "foretune.search",
    "Optimizer": "foretune.search",
    "Suggestion": "foretune.search",
    "Told": "foretune.search",
    "method": "foretune.search",
    "Encoded": "foretune.space",
    "Space": "foretune.space",
}

__all__ = [
    "METHODS",
    "Direction",
    "Encoded",
    "Evaluation",
    "Experience",
    "ForetuneClassifier",
    "ForetuneError",
    "ForetuneRegressor",
    "ForetuneSearchCV",
    "Method",
    "Metric",
    "Model",
    "Optimizer",
    "Space",
    "Status",
    "Suggestion",
    "Target",
    "Told",
    "method",
    "portfolio",
]


def __getattr__(name: str) -> object:
    # Imported when first used, so that `foretune --help` does not wait for pandas.
    if name in _HOMES:
        return getattr(import_module(_HOMES[name]), name)
    if name == "__version__":
        return import_module("importlib.metadata").version("foretune")
    raise AttributeError(f"module 'foretune' has no attribute '{name}'")


def __dir__() -> list[str]:
    # What has not been imported yet would be missing where a shell completes names.
    return sorted([*__all__, "__version__"])
