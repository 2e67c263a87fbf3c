"""Studies that Optuna has stored: one task a study.

The space is the union of the trials' distributions. A hyperparameter that some trials lack, as
define-by-run programs do it, is active where another one takes certain values; where no such rule
explains it, the gaps are filled with its default, and a warning says so. A trial that failed before
it had drawn all of its hyperparameters, or that has none, is left out, and studies that share none
are refused: defaults would be configurations that were never tried.

Studies that Foretune has begun tell their space themselves.
"""

import math
import warnings
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import reduce
from itertools import compress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from foretune._base.databases import hide_passwords
from foretune._base.names import quote_names
from foretune._base.progress import SILENT, Progress, track
from foretune.errors import (
    ExperienceError,
    ForetuneError,
    ForetuneWarning,
    MissingExtraError,
    SpaceError,
)
from foretune.experience import Direction, Experience, Metric, Status
from foretune.space import Encoded, Kind, Parameter, Space
from foretune.stores.files.dropped_rows import NOT_ENDED, TOLD_IN_PART, say_left_out
from foretune.stores.files.space_inference import add_conditions, explain_missing
from foretune.stores.optuna.constraints import infeasible
from foretune.stores.optuna.database import StudyTables
from foretune.stores.optuna.distribution_union import SeenDistribution, unite_distributions
from foretune.stores.optuna.distributions import from_distributions
from foretune.stores.optuna.labels import OWNER, SECONDS, STATUS, Labels, own_space
from foretune.stores.optuna.storage import open_storage

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.storages import BaseStorage
    from optuna.study._frozen import FrozenStudy

    from foretune.stores.optuna.database import AnyTrial

    _Trials = Callable[[int], tuple[AnyTrial, ...]]

METRIC_NAMES = "study:metric_names"
"""The attribute of a study in which Optuna keeps the names of its objectives."""


@dataclass(frozen=True)
class _Study:
    """A study and those of its trials that are read."""

    name: str
    metrics: tuple[Metric, ...]
    trials: "tuple[AnyTrial, ...]"
    space: Space | None = None
    """Of a study that Foretune has begun."""

    @property
    def names(self) -> set[str]:
        """The hyperparameters of the trials that tell of the space."""
        return {name for trial in _telling(self.trials) for name in trial.params}


def read(
    source: Path | str, *, studies: Sequence[str] = (), progress: Progress = SILENT
) -> Experience:
    """The ended trials of the studies in `source`, a storage URL or a journal or SQLite file.

    studies: which ones; all of them if none is named.
    Pruned trials, and those that broke a constraint, count as failed; trials that still run or wait
    are left out.
    """
    need_optuna()
    storage = open_storage(str(source))
    wanted = _choose_studies(storage, studies, str(source))
    with _reading(storage) as trials:
        found = [_study(each, trials) for each in track(wanted, progress, "reading", len(wanted))]
    return _experience(found, str(source))


def read_each(
    source: Path | str, *, besides: Sequence[str] = (), progress: Progress = SILENT
) -> dict[str, Experience | ExperienceError]:
    """Every study in `source` for itself, in a space of its own, or why it cannot be read.

    besides: studies that are not read.
    """
    need_optuna()
    storage = open_storage(str(source))
    wanted = [study for study in storage.get_all_studies() if study.study_name not in besides]
    found: dict[str, Experience | ExperienceError] = {}
    with _reading(storage) as trials:
        for study in track(wanted, progress, "reading past studies", len(wanted)):
            try:
                found[study.study_name] = _experience([_study(study, trials)], str(source))
            except ForetuneError as error:  # a space can be wrong as well
                found[study.study_name] = ExperienceError(str(error))
    return found


def _experience(studies: Sequence[_Study], source: str) -> Experience:
    ended = _drop_unfinished_trials(studies)
    if not ended:
        looked_at = quote_names([study.name for study in studies]) or "no study at all"
        raise ExperienceError(
            "an experience needs at least one ended trial, but there is none in "
            f"'{hide_passwords(source)}' "
            f"(looked at {looked_at}): read other studies"
        )
    metrics = _common_metrics(ended)
    ended = _with_hyperparameters(ended)
    _check_related(ended)
    if (own := _own_experience(ended, metrics)) is not None:
        return own
    space = _space(ended)
    ended = _drop_incomplete_trials(ended, space)
    trials = [trial for study in ended for trial in study.trials]
    return _build_experience(space, metrics, ended, _encode_trials(space, trials))


def _own_experience(studies: Sequence[_Study], metrics: Sequence[Metric]) -> Experience | None:
    """What Foretune's own studies say; None where one is another's, or no space holds all."""
    spaces = [study.space for study in studies if any(map(_is_own, study.trials)) and study.space]
    if len(spaces) < len(studies):
        return None
    try:
        space = reduce(Space.union, dict.fromkeys(spaces))
    except SpaceError:
        return None
    begun = _only(studies, _is_own, "were not begun by foretune")
    own = [_own_configs(*pair) for pair in zip(spaces, begun, strict=True)]
    configs = [space.adopt(each) for each in own]
    _say_defaults(spaces, configs)
    return _build_experience(space, metrics, begun, Encoded.concat(configs))


def _is_own(trial: "AnyTrial") -> bool:
    return OWNER in trial.system_attrs


def _own_configs(space: Space, study: _Study) -> Encoded:
    labels = Labels(space)
    return space.encode([labels.config(trial.params) for trial in study.trials])


def _say_defaults(spaces: Sequence[Space], configs: Sequence[Encoded]) -> None:
    """Warn of hyperparameters that some studies had not.

    configs: the trials of each study, in the space of all.
    """
    lacks = Counter[str]()
    for space, encoded in zip(spaces, configs, strict=True):
        active = zip(encoded.space.names, encoded.active.sum(axis=0).tolist(), strict=True)
        lacks.update({name: n for name, n in active if n and name not in space.names})
    total = sum(map(len, configs))
    for name, n in lacks.items():
        _warn_of_default(name, f"{n} of {total} trials, whose studies lack it", stacklevel=6)


def _build_experience(
    space: Space, metrics: Sequence[Metric], studies: Sequence[_Study], configs: Encoded
) -> Experience:
    """configs: of the trials of all studies, in their order."""
    trials = [trial for study in studies for trial in study.trials]
    return Experience.build(
        space,
        metrics,
        [study.name for study in studies],
        np.repeat(np.arange(len(studies)), [len(study.trials) for study in studies]),
        configs,
        np.arange(len(trials)),
        [_values(trial, len(metrics)) for trial in trials],
        status=[_status(trial) for trial in trials],
        seconds=[_seconds(trial) for trial in trials],
    )


def need_optuna() -> None:
    """Refuse to go on without Optuna."""
    try:
        import optuna  # noqa: F401
    except ImportError:
        raise MissingExtraError("optuna", "optuna", "reading Optuna studies") from None


def _choose_studies(
    storage: "BaseStorage", wanted: Sequence[str], source: str
) -> "Sequence[FrozenStudy]":
    """The studies that are wanted, in that order; all of them if none is named."""
    known = {study.study_name: study for study in storage.get_all_studies()}
    for name in wanted:
        if name not in known:
            raise ExperienceError(
                f"a study must be one of those in '{hide_passwords(source)}', but got '{name}': "
                "choose "
                f"among {', '.join(known) or 'none'}"
            )
    return [known[name] for name in wanted or known]


@contextmanager
def _reading(storage: "BaseStorage") -> "Iterator[_Trials]":
    """What reads the trials of a study, by its id."""
    from optuna.storages import RDBStorage

    if not isinstance(storage, RDBStorage):
        yield lambda study_id: tuple(storage.get_all_trials(study_id, deepcopy=False))
        return
    with storage.engine.connect() as connection:
        yield lambda study_id: StudyTables(connection, study_id).trials()


def _study(study: "FrozenStudy", trials: "_Trials") -> _Study:
    names = study.system_attrs.get(METRIC_NAMES) or default_metric_names(len(study.directions))
    directions = [
        Direction.MAX if direction.name == "MAXIMIZE" else Direction.MIN
        for direction in study.directions
    ]
    metrics = tuple(map(Metric, names, directions))
    found = trials(study._study_id)
    return _Study(study.study_name, metrics, found, own_space(study.user_attrs))


def default_metric_names(objectives: int) -> tuple[str, ...]:
    """What the objectives of a study are called that does not name them."""
    return ("value",) if objectives == 1 else tuple(f"value_{i}" for i in range(objectives))


def _common_metrics(studies: Sequence[_Study]) -> tuple[Metric, ...]:
    first = studies[0]
    for study in studies[1:]:
        if study.metrics != first.metrics:
            raise ExperienceError(
                "all studies must measure the same in the same direction, but "
                f"'{first.name}' has {_describe_metrics(first.metrics)} and '{study.name}' has "
                f"{_describe_metrics(study.metrics)}: read them apart (--study NAME)"
            )
    return first.metrics


def _describe_metrics(metrics: Iterable[Metric]) -> str:
    return ", ".join(f"{metric.name}:{metric.direction}" for metric in metrics)


# Configurations


def _telling(trials: "Sequence[AnyTrial]") -> "list[AnyTrial]":
    """Trials that show what the hyperparameters are.

    One that failed may have ended before it had drawn all of its own.
    """
    return [trial for trial in trials if _is_complete(trial)] or list(trials)


def _drop_unfinished_trials(studies: Sequence[_Study]) -> list[_Study]:
    """The studies without the trials that still run or wait."""
    return _only(studies, lambda trial: trial.state.is_finished(), NOT_ENDED)


def _with_hyperparameters(studies: Sequence[_Study]) -> list[_Study]:
    """The studies without the trials that have none of the space's hyperparameters."""
    telling = _telling([trial for study in studies for trial in study.trials])
    names = {name for trial in telling for name in trial.params}
    if not names:
        raise ExperienceError(
            "trials must have hyperparameters, but those of "
            f"{quote_names([study.name for study in studies])} have none: read other studies"
        )
    return _only(
        studies,
        lambda trial: not names.isdisjoint(trial.params),
        f"have none of the hyperparameters {quote_names(sorted(names))}",
    )


def _drop_incomplete_trials(studies: Sequence[_Study], space: Space) -> list[_Study]:
    """The studies without trials that failed before they had drawn what is active in them.

    Where trials that succeeded lack the same of the same active ones, there was no more to draw.
    """
    trials = [trial for study in studies for trial in study.trials]
    active = _encode_trials(space, trials).active
    drawn = np.array([[name in trial.params for name in space.names] for trial in trials])
    rows = np.hstack([drawn, active])
    told = {id(trial): row.tobytes() for trial, row in zip(trials, rows, strict=True)}
    whole = {told[id(trial)] for trial in _telling(trials)}
    lacks = (active & ~drawn).any(axis=1)
    early = {id(trial) for trial in compress(trials, lacks) if told[id(trial)] not in whole}
    return _only(
        studies,
        lambda trial: id(trial) not in early,
        TOLD_IN_PART,
    )


def _only(
    studies: Sequence[_Study], wanted: "Callable[[AnyTrial], bool]", others: str
) -> list[_Study]:
    """The studies with the wanted trials alone; a warning says what is with the others."""
    kept = [replace(study, trials=tuple(filter(wanted, study.trials))) for study in studies]
    lost = [study.name for study in studies for trial in study.trials if not wanted(trial)]
    say_left_out("trials", others, lost, stacklevel=6)
    return [study for study in kept if study.trials]


def _check_related(studies: Sequence[_Study]) -> None:
    """Refuse studies that have nothing to do with each other, not even through a third one."""
    first, *others = studies
    known = first.names
    while joined := [study for study in others if not known.isdisjoint(study.names)]:
        known = known.union(*(study.names for study in joined))
        others = [study for study in others if known.isdisjoint(study.names)]
    if others:
        other = others[0]
        raise ExperienceError(
            f"all studies must share hyperparameters, but '{first.name}' has "
            f"{quote_names(sorted(first.names))} and '{other.name}' has "
            f"{quote_names(sorted(other.names))}: "
            "read them apart (--study NAME)"
        )


def _space(studies: Sequence[_Study]) -> Space:
    """The space of all trials."""
    telling = _telling([trial for study in studies for trial in study.trials])
    names = dict.fromkeys(name for trial in telling for name in trial.params)
    distributions = unite_distributions(
        SeenDistribution(study.name, name, distribution)
        for study in studies
        for trial in study.trials
        for name, distribution in trial.distributions.items()
        if name in names
    )
    for name in names:
        _check_choices(name, distributions[name])
    config_space = from_distributions(
        {name: distributions[name] for name in names}, rounded_later=True
    )
    cells = {name: [trial.params.get(name) for trial in telling] for name in names}
    present = {name: np.array([name in trial.params for trial in telling]) for name in names}
    activities = explain_missing(cells, present)
    add_conditions(config_space, activities)
    space = Space.of(config_space)
    for name in names:
        if not present[name].all() and name not in activities:
            lacking = list(compress(telling, ~present[name]))
            lacks = f"{len(lacking)} of {len(telling)} trials ({_studies_of(lacking, studies)})"
            why = "for no reason that the other hyperparameters tell"
            _warn_of_default(name, f"{lacks} {why}", stacklevel=5)
    return space


def _studies_of(trials: "Sequence[AnyTrial]", studies: Sequence[_Study]) -> str:
    """The names of the studies that the trials are of."""
    wanted = {id(trial) for trial in trials}
    return quote_names([each.name for each in studies if wanted & {id(one) for one in each.trials}])


def _warn_of_default(name: str, lacks: str, *, stacklevel: int) -> None:
    """lacks: how many trials lack it, and why."""
    said = f"'{name}' is missing from {lacks}: its default stands there"
    warnings.warn(said, ForetuneWarning, stacklevel=stacklevel)


def _encode_trials(space: Space, trials: "Sequence[AnyTrial]") -> Encoded:
    """The configurations of the trials, with the defaults of what they lack."""
    columns = {
        parameter.name: [_fitting(parameter, trial.params) for trial in trials]
        for parameter in space.parameters
    }
    return space.from_columns(columns, len(trials), fill_defaults=True, drop_inactive=True)


def _check_choices(name: str, distribution: "BaseDistribution") -> None:
    """Refuse choices that Optuna takes, but that no space can hold or tell apart."""
    choices = getattr(distribution, "choices", ())
    try:
        distinct = len(set(choices)) == len(choices)
    except TypeError:
        distinct = False
    if not distinct or any(isinstance(each, float) and math.isnan(each) for each in choices):
        raise ExperienceError(
            "choices must be texts, numbers, truth values, lists of these or None, and differ "
            f"where True is 1, but those of '{name}' are {', '.join(map(repr, choices))}: read "
            "other studies, or import a table of the trials in which they are named otherwise"
        )


def _fitting(parameter: Parameter, params: Mapping[str, Any]) -> Any:
    """A trial's value as the space writes it: on the grid, and within bounds that were rounded.

    What it lacks is None, for the default to stand there; the default itself where None is a value.
    """
    if parameter.name not in params:
        return parameter.default if None in parameter.choices else None
    cell = params[parameter.name]
    if parameter.kind is Kind.ORDINAL:
        return min(parameter.choices, key=lambda choice: abs(choice - cell))
    if parameter.kind is Kind.FLOAT:
        return min(max(float(cell), parameter.low), parameter.high)
    return cell


# Results


def _is_complete(trial: "AnyTrial") -> bool:
    return trial.state.name == "COMPLETE"


def _is_success(trial: "AnyTrial") -> bool:
    return _is_complete(trial) and not infeasible(trial.system_attrs)


def _values(trial: "AnyTrial", objectives: int) -> list[float]:
    """A pruned trial may bear its last intermediate value, which is no result."""
    return list(trial.values or ()) if _is_success(trial) else [float("nan")] * objectives


def _status(trial: "AnyTrial") -> Status:
    if _is_success(trial):
        return Status.DONE
    ran_out_of_time = _is_own(trial) and trial.user_attrs.get(STATUS) == Status.TIMEOUT.name
    return Status.TIMEOUT if ran_out_of_time else Status.FAILED


def _seconds(trial: "AnyTrial") -> float:
    """How long a trial took; one of Foretune's may have waited for another process meanwhile."""
    if _is_own(trial) and (told := trial.user_attrs.get(SECONDS)) is not None:
        return float(told)
    return float("nan") if trial.duration is None else trial.duration.total_seconds()
