"""Foretune inside Optuna: its methods as a sampler, its stopping policies as a pruner."""

from foretune.errors import MissingExtraError

try:
    import optuna  # noqa: F401
except ImportError:
    raise MissingExtraError("optuna", "optuna", "Foretune inside Optuna") from None

from foretune.integrations.optuna.pruner import ForetunePruner
from foretune.integrations.optuna.sampler import ForetuneSampler

__all__ = ["ForetunePruner", "ForetuneSampler"]
