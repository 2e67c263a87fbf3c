"""Stored studies as one experience, one task for each study.

The space is the union of the trials' distributions. If some trials lack a hyperparameter, it is
active where another one takes certain values. If no such rule explains it, the value is missing:
the configuration has a gap, which `alignment.carry_over` closes by the policy that the user names.

A trial that failed before it had drawn all of its hyperparameters, or that has none, is left out.
Studies that share no hyperparameter are refused.

Studies that Foretune has begun store their space.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from itertools import chain, compress
from typing import TYPE_CHECKING, Any

import numpy as np

from foretune._base.arrays import Bools, Floats
from foretune._base.databases import hide_passwords
from foretune._base.names import quote_names
from foretune.errors import ExperienceError, ForetuneWarning, SpaceError
from foretune.experience import Experience, Metric, Status
from foretune.experience.alignment.missing_policy import MissingPolicy
from foretune.experience.alignment.translation import translate_legally
from foretune.space import Encoded, Kind, Parameter, Space
from foretune.stores.files.dropped_rows import NOT_ENDED, TOLD_IN_PART, left_out_warning
from foretune.stores.files.plain_values import as_choice
from foretune.stores.optuna.constraints import infeasible
from foretune.stores.optuna.database import StoredTrial
from foretune.stores.optuna.distribution_union import SeenDistribution, unite_distributions
from foretune.stores.optuna.labels import OWNER, SECONDS, STATUS, Labels
from foretune.stores.optuna.space_of_trials import infer_space
from foretune.stores.optuna.stored_studies import StoredStudy, is_complete, showing_space
from foretune.stores.optuna.trial_curves import last_values, stack_trial_curves

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution


WITH_VALUES = (Status.DONE, Status.STOPPED)
"""A pruned trial has its last intermediate value."""
NAMED_STATUSES = (Status.TIMEOUT.name, Status.STOPPED.name)
"""Statuses that Optuna does not know. Foretune's trials keep them in an attribute."""


@dataclass
class StudyExperience:
    """The experience of some studies, and the warnings for the user."""

    experience: Experience
    """Its configurations may have gaps."""
    warnings: list[ForetuneWarning] = field(default_factory=list)


def make_experience(
    studies: Sequence[StoredStudy], source: str, *, related: bool = True
) -> StudyExperience:
    """Return all ended trials of the studies in one space.

    Trials that broke a constraint count as failed, pruned ones as stopped; trials that still run or
    wait are left out. Intermediate values are learning curves.

    source: where the studies lie, for messages.
    related: refuse studies that share no hyperparameter.
    """
    made = _Maker(list(studies))
    made.keep(lambda trial: trial.state.is_finished() or _is_paused(trial), NOT_ENDED)
    if not made.studies:
        raise ExperienceError(
            "an experience needs at least one ended trial, but there is none in "
            f"'{hide_passwords(source)}' (looked at "
            f"{quote_names([study.name for study in studies]) or 'no study at all'}): "
            "read other studies",
            rule="no-ended-trial",
            value=[study.name for study in studies],
        )
    metrics = _common_metrics(made.studies)
    made.keep_with_hyperparameters()
    if related:
        _check_related(made.studies)
    configs = made.own_configs() or made.inferred_configs()
    return StudyExperience(_build_experience(configs, metrics, made.studies), made.warnings)


@dataclass
class _Maker:
    """The studies with the trials that are left, and the warnings so far."""

    studies: list[StoredStudy]
    warnings: list[ForetuneWarning] = field(default_factory=list)

    @property
    def trials(self) -> list[StoredTrial]:
        return [trial for study in self.studies for trial in study.trials]

    def keep(self, wanted: Callable[[StoredTrial], bool], why: str) -> None:
        """Keep the wanted trials only, and studies that have any.

        why: what the others did, to be read after "trials that".
        """
        kept, lost = [], []
        for study in self.studies:
            trials = tuple(filter(wanted, study.trials))
            lost += [study.name] * (len(study.trials) - len(trials))
            if trials:
                whole = len(trials) == len(study.trials)
                kept.append(study if whole else replace(study, trials=trials))
        self.studies = kept
        if lost:
            self.warnings.append(left_out_warning("trials", why, lost))

    def keep_with_hyperparameters(self) -> None:
        """Keep trials that have any of the space's hyperparameters."""
        names = set[str]().union(*(trial.params for trial in showing_space(self.trials)))
        if not names:
            of = [study.name for study in self.studies]
            raise ExperienceError(
                f"trials must have hyperparameters, but those of {quote_names(of)} have none: read "
                "other studies",
                rule="no-hyperparameters",
                value=of,
            )
        said = f"have none of the hyperparameters {quote_names(sorted(names))}"
        self.keep(lambda trial: not names.isdisjoint(trial.params), said)

    # The space is known

    def own_configs(self) -> Encoded | None:
        """Return the configurations of Foretune's studies; None if one is foreign or misfits."""
        spaces = [s.space for s in self.studies if any(map(_is_own, s.trials)) and s.space]
        if len(spaces) < len(self.studies):
            return None
        try:
            space = reduce(Space.union, dict.fromkeys(spaces))
        except SpaceError:
            return None
        self.keep(_is_own, "were not begun by foretune")
        configs, lacks = [], Counter[str]()
        for own, study in zip(spaces, self.studies, strict=True):
            labels = Labels(own)
            told = own.encode([labels.config(trial.params) for trial in study.trials])
            found = translate_legally(told, space, {}, MissingPolicy.DROP)
            lacking = zip(space.names, found.unrecorded.sum(axis=0).tolist(), strict=True)
            lacks.update({name: n for name, n in lacking if n})
            configs.append(found.values)
        for name, n in lacks.items():
            self._warn_of_gaps(name, n, f"{len(self.trials)} trials, whose studies lack it")
        return Encoded(space, np.vstack(configs))

    # The space is inferred

    def inferred_configs(self) -> Encoded:
        """Return the configurations in the union of the trials' distributions."""
        trials = self.trials
        showing = _shows_space(trials)
        space, unexplained = self._infer_space([t.params for t in compress(trials, showing)])
        values = _values_in(space, trials)
        recorded, active = ~np.isnan(values), _active_in(space, values)
        early = _ended_early(showing, recorded, active)
        if early.any():
            lost = {id(trial) for trial in compress(trials, early)}
            self.keep(lambda trial: id(trial) not in lost, TOLD_IN_PART)
        studies = [study.name for study in self.studies for _ in study.trials]
        values, active, showing = values[~early], active[~early], showing[~early]
        for name in unexplained:
            lacks = showing & np.isnan(values[:, space.names.index(name)])
            of = quote_names(list(dict.fromkeys(compress(studies, lacks))))
            said = (
                f"{showing.sum()} trials ({of}) for no reason that the other hyperparameters tell"
            )
            self._warn_of_gaps(name, int(lacks.sum()), said)
        return Encoded(space, np.where(active, values, np.nan))

    def _infer_space(self, configs: Sequence[Mapping[str, Any]]) -> tuple[Space, list[str]]:
        """Return the space, and the hyperparameters that some trials lack without a reason."""
        names = list(dict.fromkeys(chain.from_iterable(configs)))
        wanted = set(names)
        distributions = unite_distributions(
            SeenDistribution(study.name, name, distribution)
            for study in self.studies
            for name, distribution in study.distributions
            if name in wanted
        )
        for name in names:
            _check_choices(name, distributions[name])
        return infer_space({name: distributions[name] for name in names}, configs)

    def _warn_of_gaps(self, name: str, n: int, of: str) -> None:
        self.warnings.append(
            ForetuneWarning(
                f"'{name}' is missing from {n} of {of}: what `missing` names stands there (the "
                "default value, if it is not given)",
                rule="missing-values",
                field=name,
                value=n,
            )
        )


def _is_own(trial: StoredTrial) -> bool:
    return OWNER in trial.system_attrs


def _is_paused(trial: StoredTrial) -> bool:
    """Return True for a trial of Foretune's that waits to be resumed: its curve ends early."""
    said = trial.user_attrs.get(STATUS) == Status.PAUSED.name
    return said and trial.state.name == "WAITING" and _is_own(trial)


def _common_metrics(studies: Sequence[StoredStudy]) -> tuple[Metric, ...]:
    first = studies[0]
    for study in studies[1:]:
        if study.metrics != first.metrics:
            raise ExperienceError(
                "all studies must measure the same in the same direction, but "
                f"'{first.name}' has {_describe_metrics(first.metrics)} and '{study.name}' has "
                f"{_describe_metrics(study.metrics)}: read them apart (--study NAME)",
                rule="different-metrics",
                field=study.name,
                value=study.metrics,
            )
    return first.metrics


def _describe_metrics(metrics: Iterable[Metric]) -> str:
    return ", ".join(f"{metric.name}:{metric.direction}" for metric in metrics)


def _check_related(studies: Sequence[StoredStudy]) -> None:
    """Refuse studies that share no hyperparameter, not even through a third study."""
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
            f"{quote_names(sorted(other.names))}: read them apart (--study NAME)",
            rule="no-shared-hyperparameter",
            field=other.name,
            value=sorted(other.names),
        )


def _check_choices(name: str, distribution: "BaseDistribution") -> None:
    """Refuse choices that Optuna accepts but a space cannot hold or tell apart."""
    choices = getattr(distribution, "choices", ())
    try:
        distinct = len(set(choices)) == len(choices)
    except TypeError:
        distinct = False
    if not distinct or any(isinstance(each, float) and math.isnan(each) for each in choices):
        raise ExperienceError(
            "choices must be texts, numbers, truth values, lists of these or None, and differ "
            f"where True is 1, but those of '{name}' are {', '.join(map(repr, choices))}: read "
            "other studies, or import a table of the trials in which they are named otherwise",
            rule="bad-choices",
            field=name,
            value=choices,
        )


# Configurations


def _values_in(space: Space, trials: Sequence[StoredTrial]) -> Floats:
    """Return (n, H), the values that the trials have drawn; NaN for anything else."""
    params = [trial.params for trial in trials]
    return np.column_stack([_column_of(parameter, params) for parameter in space.parameters])


def _column_of(parameter: Parameter, params: Sequence[Mapping[str, Any]]) -> Floats:
    """Return (n,), the values of one hyperparameter, moved to the grid and into rounded bounds."""
    if parameter.is_number:
        numbers = np.array([each.get(parameter.name, np.nan) for each in params], dtype=float)
        within: Floats = np.clip(numbers, parameter.low, parameter.high)
        return within
    number_of = _nearest_number if parameter.kind is Kind.ORDINAL else _number_of_choice
    return np.array(
        [
            number_of(parameter, each[parameter.name]) if parameter.name in each else np.nan
            for each in params
        ]
    )


def _number_of_choice(parameter: Parameter, cell: Any) -> float:
    return parameter.number_of(as_choice(cell))


def _nearest_number(parameter: Parameter, cell: float) -> float:
    nearest = np.abs(np.array(parameter.choices, dtype=float) - cell).argmin()
    return float(nearest)


def _active_in(space: Space, values: Floats) -> Bools:
    """Return (n, H), what is active in each trial if gaps have their defaults."""
    defaults = np.array([each.number_of(each.default) for each in space.parameters])
    filled = np.where(np.isnan(values), defaults, values)
    active: Bools = ~np.isnan(space.rules.settle(filled))
    return active


def _shows_space(trials: Sequence[StoredTrial]) -> Bools:
    """Return (n,), True for the trials of `showing_space`."""
    complete = np.array([is_complete(trial) for trial in trials])
    return complete if complete.any() else np.ones(len(trials), dtype=bool)


def _ended_early(showing: Bools, recorded: Bools, active: Bools) -> Bools:
    """Return (n,), True for a trial that failed before it had drawn all that is active in it.

    A trial that lacks the same names as a trial that shows the space had no more to draw.
    """
    early: Bools = (active & ~recorded).any(axis=1) & ~showing
    if early.any():
        kinds = np.hstack([recorded, active])
        whole = {row.tobytes() for row in np.unique(kinds[showing], axis=0)}
        early[early] = [row.tobytes() not in whole for row in kinds[early]]
    return early


# Results


def _build_experience(
    configs: Encoded, metrics: Sequence[Metric], studies: Sequence[StoredStudy]
) -> Experience:
    """Join configurations and results.

    configs: those of the trials of all studies, in their order.
    """
    trials = [trial for study in studies for trial in study.trials]
    status = list(map(_status, trials))
    nothing = [math.nan] * len(metrics)
    return Experience.build(
        configs.space,
        metrics,
        [study.name for study in studies],
        np.repeat(np.arange(len(studies)), [len(study.trials) for study in studies]),
        configs,
        np.arange(len(trials)),
        [
            (trial.values or last_values(trial, metrics)) if each in WITH_VALUES else nothing
            for trial, each in zip(trials, status, strict=True)
        ],
        status=status,
        seconds=list(map(_seconds, trials)),
        curves=stack_trial_curves(trials, [metric.name for metric in metrics]),
    )


def _status(trial: StoredTrial) -> Status:
    if infeasible(trial.system_attrs):
        return Status.FAILED
    if is_complete(trial):
        return Status.DONE
    if trial.state.name == "PRUNED" or _is_paused(trial):
        return Status.STOPPED
    told = trial.user_attrs.get(STATUS) if _is_own(trial) else None
    return Status[told] if told in NAMED_STATUSES else Status.FAILED


def _seconds(trial: StoredTrial) -> float:
    """Return how long a trial took. One of Foretune's may have waited for another process."""
    if _is_own(trial) and (told := trial.user_attrs.get(SECONDS)) is not None:
        return float(told)
    return math.nan if trial.duration is None else trial.duration.total_seconds()
