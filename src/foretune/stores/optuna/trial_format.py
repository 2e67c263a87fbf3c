"""Trials as Optuna stores them, with parameters and distributions that its tools show."""

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from foretune.experience import Metric, Status
from foretune.experience.curves import join_points
from foretune.experience.trial import Trial
from foretune.run.heartbeat import Owner
from foretune.space import Kind, Parameter, Space
from foretune.stores.optuna.labels import OWNER, SECONDS, STATUS, Labels
from foretune.stores.optuna.stored_curves import read_points

if TYPE_CHECKING:
    from optuna.distributions import BaseDistribution
    from optuna.trial import FrozenTrial

    from foretune.stores.optuna.database import StoredTrial

BEAT = "foretune:beat"
"""System attribute: a number that grows while the owner lives."""
ABANDONED = "abandoned"
"""User attribute: how many processes died while they ran the trial."""
REASON, CHOSEN_BY, NOTES, ALSO = "reason", "chosen_by", "notes", "also"
"""User attributes. `also` holds values of metrics that are not optimised."""
COMPLETE, FINISHED, WAITING = 1, (1, 2, 3), 4
"""The numbers of Optuna's states: a success, all ends (success, pruned, failure), and waiting."""
NAMED = (Status.TIMEOUT, Status.STOPPED, Status.PAUSED)
"""Statuses that an attribute names, because Optuna has no state for them or shares one."""
WITH_VALUES = (Status.DONE, Status.STOPPED)
NOT_ENDED: Mapping[str, Any] = {SECONDS: None, REASON: "", STATUS: None, NOTES: {}, ALSO: {}}
"""The user attributes of a trial that has not ended. An end replaces them."""


class Translation:
    """Translates trials between a space and Optuna."""

    def __init__(self, space: Space, metrics: Sequence[Metric]) -> None:
        self._names = tuple(metric.name for metric in metrics)
        self._labels = Labels(space)
        self._distributions = {
            p.name: _distribution(p, self._labels.of(p.name)) for p in space.parameters
        }

    def running(self, config: Mapping[str, Any], owner: Owner, chosen_by: str) -> "FrozenTrial":
        """Return a trial that is about to be stored as running."""
        from optuna.trial import TrialState, create_trial

        return create_trial(
            state=TrialState.RUNNING,
            params={name: self._labels.to_stored(name, value) for name, value in config.items()},
            distributions={name: self._distributions[name] for name in config},
            user_attrs={CHOSEN_BY: chosen_by} if chosen_by else {},
            system_attrs={OWNER: owner.record()},
        )

    def trial(self, frozen: "StoredTrial") -> Trial:
        """Return a stored trial as a `Trial`."""
        said = frozen.user_attrs
        status, seconds = _status(frozen), said.get(SECONDS)
        notes = dict(said[NOTES]) if NOTES in said else {}
        if ABANDONED in said:
            notes[ABANDONED] = said[ABANDONED]
        curve = join_points(read_points(frozen.points)) if frozen.points else None
        values = self._values(frozen, status)
        if status is Status.PAUSED and curve is not None:
            values = curve.last_values
        return Trial(
            frozen.number,
            self._labels.config(frozen.params),
            status,
            values,
            math.nan if seconds is None else float(seconds),
            str(said.get(REASON, "")),
            str(said.get(CHOSEN_BY, "")),
            notes,
            curve,
        )

    def outcome(
        self,
        status: Status,
        values: Mapping[str, float],
        seconds: float,
        reason: str,
        notes: Mapping[str, Any],
    ) -> tuple[list[float] | None, dict[str, Any]]:
        """Return Optuna's values and the user attributes of a trial that has ended."""
        # A stopped trial may have reported too little for Optuna's values.
        has_values = status in WITH_VALUES and all(name in values for name in self._names)
        names = self._names if has_values else ()
        attributes: dict[str, Any] = {
            SECONDS: None if math.isnan(seconds) else seconds,
            REASON: reason,
            STATUS: status.name if status in NAMED else None,
            NOTES: dict(notes),
            ALSO: {name: float(value) for name, value in values.items() if name not in names},
        }
        told = {key: value for key, value in attributes.items() if value != NOT_ENDED[key]}
        return [float(values[name]) for name in names] if has_values else None, told

    def _values(self, frozen: "StoredTrial", status: Status) -> dict[str, float]:
        also = frozen.user_attrs.get(ALSO, {})
        if status not in WITH_VALUES or not frozen.values:
            return dict(also)
        return {**dict(zip(self._names, frozen.values, strict=True)), **also}


def _status(frozen: "StoredTrial") -> Status:
    # The name of an enumeration's member is slow to read, and there may be 100,000 trials.
    state = int(frozen.state)
    if state == COMPLETE:
        return Status.DONE
    if state not in FINISHED:
        # A process may have died while it paused the trial: then it does not wait.
        is_paused = state == WAITING and frozen.user_attrs.get(STATUS) == Status.PAUSED.name
        return Status.PAUSED if is_paused else Status.RUNNING
    return Status[frozen.user_attrs.get(STATUS) or "FAILED"]


def _distribution(parameter: Parameter, labels: Sequence[Any]) -> "BaseDistribution":
    from optuna.distributions import (
        CategoricalDistribution,
        FloatDistribution,
        IntDistribution,
    )

    if parameter.kind is Kind.FLOAT:
        return FloatDistribution(parameter.low, parameter.high, log=parameter.log)
    if parameter.kind is Kind.INT:
        return IntDistribution(int(parameter.low), int(parameter.high), log=parameter.log)
    return CategoricalDistribution(labels)
