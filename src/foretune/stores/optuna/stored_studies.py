"""The one reader of studies in Optuna storages.

`foretune import optuna`, `foretune tune --experience STORE` and the sampler read past studies here.
A database is read by a few queries for many studies at once, other storages through Optuna's
interface.
"""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from foretune._base.progress import SILENT, Progress, track
from foretune.errors import MissingExtraError
from foretune.experience import Direction, Metric
from foretune.space import Space
from foretune.stores.optuna.database import StoredTrial, StudyTables
from foretune.stores.optuna.labels import own_space

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.storages import BaseStorage, RDBStorage
    from optuna.study._frozen import FrozenStudy

METRIC_NAMES = "study:metric_names"
"""The attribute of a study in which Optuna keeps the names of its objectives."""
STUDIES_AT_ONCE = 100
"""How many studies one query reads; databases limit how many values a query may name."""


@dataclass(frozen=True)
class StoredStudy:
    """A study and those of its trials that count."""

    id: int
    name: str
    metrics: tuple[Metric, ...]
    trials: tuple[StoredTrial, ...]
    space: Space | None = None
    """The space of a study that Foretune has begun."""

    @cached_property
    def names(self) -> frozenset[str]:
        """The hyperparameters of the study."""
        return frozenset[str]().union(*(trial.params for trial in showing_space(self.trials)))

    @cached_property
    def distributions(self) -> "tuple[tuple[str, BaseDistribution], ...]":
        """Each hyperparameter with each of its distributions."""
        found: dict[tuple[str, int], tuple[str, BaseDistribution]] = {}
        for trial in self.trials:
            for pair in trial.distributions.items():
                found[pair[0], id(pair[1])] = pair
        return tuple(found.values())

    @cached_property
    def kinds(self) -> dict[str, bool]:
        """Whether each hyperparameter is a choice."""
        from optuna.distributions import CategoricalDistribution

        return {
            name: isinstance(distribution, CategoricalDistribution)
            for name, distribution in self.distributions
        }

    def without(self, names: Collection[str]) -> "StoredStudy":
        """Return the study without these hyperparameters."""
        trials = tuple(
            trial._replace(
                params={n: v for n, v in trial.params.items() if n not in names},
                distributions={n: d for n, d in trial.distributions.items() if n not in names},
            )
            for trial in self.trials
        )
        return replace(self, trials=trials)

    def with_losses(self) -> "StoredStudy":
        """Return the study with losses as values and with default names of metrics."""
        signs = [metric.sign for metric in self.metrics]
        metrics = tuple(map(Metric, default_metric_names(len(signs))))
        trials = tuple(
            trial._replace(
                values=trial.values and [s * v for s, v in zip(signs, trial.values, strict=False)],
                reports={step: signs[0] * value for step, value in trial.reports.items()},
                # They have the names and directions of the metrics.
                points={},
            )
            if trial.values or trial.reports
            else trial
            for trial in self.trials
        )
        return replace(self, metrics=metrics, trials=trials)


def read_studies(
    storage: "BaseStorage", wanted: "Sequence[FrozenStudy]", progress: Progress = SILENT
) -> list[StoredStudy]:
    """Read these studies with all their trials, in this order."""
    found: list[StoredStudy] = []
    parts = [
        wanted[first : first + STUDIES_AT_ONCE] for first in range(0, len(wanted), STUDIES_AT_ONCE)
    ]
    database = database_of(storage)
    for part in track(parts, progress, "reading studies", len(parts)):
        if database is None:
            read = [storage.get_all_trials(study._study_id, deepcopy=False) for study in part]
            trials = [tuple(map(StoredTrial.of, each)) for each in read]
        else:
            with database.engine.connect() as connection:
                ids = tuple(study._study_id for study in part)
                by_study = StudyTables(connection, ids).trials_by_study()
            trials = [by_study[study] for study in ids]
        found += map(_study, part, trials)
    return found


def _study(study: "FrozenStudy", trials: tuple[StoredTrial, ...]) -> StoredStudy:
    names = study.system_attrs.get(METRIC_NAMES) or default_metric_names(len(study.directions))
    directions = [
        Direction.MAX if direction.name == "MAXIMIZE" else Direction.MIN
        for direction in study.directions
    ]
    metrics = tuple(map(Metric, names, directions))
    space = own_space(study.user_attrs)
    return StoredStudy(study._study_id, study.study_name, metrics, trials, space)


def default_metric_names(objectives: int) -> tuple[str, ...]:
    """Return the names for the objectives of a study that does not name them."""
    return ("value",) if objectives == 1 else tuple(f"value_{i}" for i in range(objectives))


def is_complete(trial: StoredTrial) -> bool:
    """Whether a trial has a result."""
    return trial.state.name == "COMPLETE"


def showing_space(trials: Iterable[StoredTrial]) -> list[StoredTrial]:
    """Return the trials that show which hyperparameters there are: the complete ones, if any.

    A trial that failed may have ended before it had drawn all its hyperparameters.
    """
    known = list(trials)
    return [trial for trial in known if is_complete(trial)] or known


def database_of(storage: "BaseStorage") -> "RDBStorage | None":
    """Return the database of a storage; None for storages of other kinds."""
    from optuna.storages import RDBStorage

    # A study wraps its database in a cache of trials.
    inner = getattr(storage, "_backend", storage)
    return inner if isinstance(inner, RDBStorage) else None


def same_storage(one: "BaseStorage", other: "BaseStorage") -> bool:
    """Whether two storages are the same object, or open the same database."""
    first, second = database_of(one), database_of(other)
    if first is None or second is None:
        return one is other
    return _place(first) == _place(second)


def _place(database: "RDBStorage") -> object:
    """Return the address of a database. One file may have several spellings."""
    url = database.engine.url
    if url.get_backend_name() == "sqlite" and url.database:
        return Path(url.database).resolve()
    return url


def need_optuna() -> None:
    """Refuse to go on without Optuna."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingExtraError("optuna", "optuna", "reading Optuna studies") from None
