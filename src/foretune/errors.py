"""Every exception a user can meet.

A message states the rule, what was received and the remedy. The command line shows it as one
sentence with exit code 2 and changes nothing on disk.
"""

from collections.abc import Iterator
from contextlib import contextmanager

__all__ = [
    "ArtifactError",
    "DamagedError",
    "ExhaustedError",
    "ExperienceError",
    "ForetuneError",
    "ForetuneWarning",
    "MethodError",
    "MissingExtraError",
    "SpaceError",
    "UsageError",
    "explain_missing_extras",
]

EXTRAS = {
    "jax": "neural",
    "optax": "neural",
    "lightgbm": "automl",
    "skops": "automl",
    "optuna": "optuna",
    "ray": "ray",
    "mlflow": "mlflow",
    "matplotlib": "bench",
}
"""Optional packages, and the extra that brings each."""


class ForetuneError(Exception):
    """A mistake that the user can mend: shown without a traceback.

    A message is for people and may be reworded. Code and tests read the data beside it:

    rule: a short, stable name of the rule that was broken, such as `"unknown-column"`.
    field: the argument, option, column or hyperparameter that broke it.
    value: what was received.
    """

    def __init__(
        self, message: str = "", *, rule: str = "", field: str = "", value: object = None
    ) -> None:
        super().__init__(message)
        self.rule = rule
        self.field = field
        self.value = value


class SpaceError(ForetuneError):
    """A search space, or a configuration that does not lie in it."""


class ExperienceError(ForetuneError):
    """A table of evaluations that cannot be read, merged or used as asked."""


class DamagedError(ExperienceError):
    """An experience file that is not whole any more."""


class ArtifactError(ForetuneError):
    """A saved prior that is corrupt, hostile, or of another version."""


class MethodError(ForetuneError):
    """A method that does not exist, or that lacks something it needs."""


class MissingExtraError(ForetuneError):
    """An optional dependency is not installed."""

    def __init__(self, package: str, extra: str, purpose: str) -> None:
        super().__init__(
            f"{purpose} needs the package '{package}', which is not installed: "
            f"run  pip install 'foretune[{extra}]'",
            rule="missing-extra",
            field=extra,
            value=package,
        )

    def __reduce__(self) -> tuple[object, ...]:
        return _rebuild, (type(self), str(self), self.__dict__)


class UsageError(ForetuneError, ValueError):
    """Arguments, or data, that do not fit: of a command, or of a call."""


class ExhaustedError(ForetuneError):
    """Every configuration that could be suggested has been tried or is being tried."""


class ForetuneWarning(UserWarning):
    """What the user should hear, though it stops nothing: shown as one sentence.

    It carries the same data as a `ForetuneError`.
    """

    def __init__(
        self, message: str = "", *, rule: str = "", field: str = "", value: object = None
    ) -> None:
        super().__init__(message)
        self.rule = rule
        self.field = field
        self.value = value


def _rebuild(kind: type[ForetuneError], message: str, data: dict[str, object]) -> ForetuneError:
    """Make an error anew on the other side of a process border, whatever its arguments were."""
    error = kind.__new__(kind, message)
    Exception.__init__(error, message)
    error.__dict__.update(data)
    return error


@contextmanager
def explain_missing_extras(purpose: str) -> Iterator[None]:
    """Turn the failed import of an optional package into what the user can do about it."""
    try:
        yield
    except ModuleNotFoundError as missing:
        package = (missing.name or "").partition(".")[0]
        if package not in EXTRAS:
            raise
        raise MissingExtraError(package, EXTRAS[package], purpose) from missing
