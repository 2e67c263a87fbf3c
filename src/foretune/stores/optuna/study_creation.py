"""Creating a study in an Optuna storage, or joining the same study."""

import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Literal

from foretune.errors import ForetuneWarning, UsageError
from foretune.experience import Metric
from foretune.run.heartbeat import Owner
from foretune.run.study_identity import check_same, differs_in_metrics_only
from foretune.stores.optuna.database import StudyTables
from foretune.stores.optuna.labels import IDENTITY, OWNER

if TYPE_CHECKING:
    from optuna import Study as OptunasStudy
    from optuna.storages import RDBStorage
    from optuna.trial import FrozenTrial

    from foretune.stores.optuna.database import AnyTrial


def owner_of(frozen: "AnyTrial") -> Owner:
    """Return who runs a trial, or ran it last."""
    return Owner(**frozen.system_attrs[OWNER])


def create_study(
    database: "RDBStorage", name: str, metrics: Sequence[Metric], wanted: dict[str, Any]
) -> None:
    """Create the study unless it exists; refuse a foreign or a different one.

    A study that differs only in its metric, and in which nothing has succeeded yet, is begun anew.
    Most likely the metric was misspelt, and the failures say nothing about the right one.
    """
    study = _create_or_load(database, name, metrics)
    stored = study.user_attrs.get(IDENTITY)
    anew = stored is not None and differs_in_metrics_only(stored, wanted)
    if anew and _came_to_nothing(database, study):
        warnings.warn(
            ForetuneWarning(
                f"no trial of the study '{name}' has succeeded, and its metric was another: it is "
                "begun anew",
                rule="study-begun-anew",
                value=name,
            ),
            stacklevel=2,
        )
        database.delete_study(study._study_id)
        study = _create_or_load(database, name, metrics)
        stored = None
    if stored is not None:
        check_same(name, stored, wanted)
        return
    if study.get_trials(deepcopy=False):
        raise UsageError(
            f"a study must have been begun by foretune, but '{name}' was begun by another program: "
            "choose another name (or another store)",
            rule="foreign-study",
            value=name,
        )
    _check_directions(study, metrics)
    _name_metrics(study, metrics)
    study.set_user_attr(IDENTITY, wanted)


def _check_directions(study: "OptunasStudy", metrics: Sequence[Metric]) -> None:
    """Refuse an empty study of another program that has other directions."""
    theirs = [direction.name.lower() for direction in study.directions]
    ours = _directions(metrics)
    if theirs != ours:
        raise UsageError(
            f"a study must optimise what is asked for ({', '.join(ours)}), but "
            f"'{study.study_name}' was created to {', '.join(theirs)}: choose another name, or "
            "another direction",
            rule="other-direction",
            value=(theirs, ours),
        )


def _directions(metrics: Sequence[Metric]) -> list[Literal["minimize", "maximize"]]:
    return ["minimize" if metric.sign > 0 else "maximize" for metric in metrics]


def _create_or_load(database: "RDBStorage", name: str, metrics: Sequence[Metric]) -> "OptunasStudy":
    import optuna

    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    try:
        return optuna.create_study(
            storage=database,
            study_name=name,
            directions=_directions(metrics),
            load_if_exists=True,
        )
    finally:
        optuna.logging.set_verbosity(verbosity)


def _came_to_nothing(database: "RDBStorage", study: "OptunasStudy") -> bool:
    """Return whether there are trials, none has succeeded, and none may be running."""
    with database.engine.connect() as connection:
        if "COMPLETE" in StudyTables(connection, (study._study_id,)).states().values():
            return False  # this can be known without reading the whole trials
    found = study.get_trials(deepcopy=False)
    return bool(found) and not any(
        frozen.state.name == "COMPLETE" or _may_be_running(frozen) for frozen in found
    )


def _may_be_running(frozen: "FrozenTrial") -> bool:
    if frozen.state.name != "RUNNING":
        return False
    if OWNER not in frozen.system_attrs:
        return True
    owner = owner_of(frozen)
    return not owner.is_here() or owner.is_running_here()


def _name_metrics(study: "OptunasStudy", metrics: Sequence[Metric]) -> None:
    from optuna.exceptions import ExperimentalWarning

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ExperimentalWarning)
        study.set_metric_names([metric.name for metric in metrics])
