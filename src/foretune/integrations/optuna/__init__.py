"""Foretune's methods as a sampler of Optuna studies."""

from foretune.errors import MissingExtraError

try:
    import optuna  # noqa: F401
except ImportError:
    raise MissingExtraError("optuna", "optuna", "Foretune inside Optuna") from None

from foretune.integrations.optuna.sampler import ForetuneSampler

__all__ = ["ForetuneSampler"]
