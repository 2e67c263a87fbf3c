"""Past studies of different spaces, and their experience in the space of a new study."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from foretune._base.arrays import Bools
from foretune.errors import ExperienceError, ForetuneError
from foretune.experience import Experience
from foretune.experience.alignment.carry_over import carry_over, join_carried
from foretune.experience.alignment.missing_policy import USUAL_POLICY
from foretune.space import Kind, Space
from foretune.stores.optuna.database import pause_collector
from foretune.stores.optuna.stored_studies import StoredStudy, is_complete, read_studies
from foretune.stores.optuna.study_experience import make_experience
from foretune.stores.optuna.values import has_plain_values

if TYPE_CHECKING:
    from optuna.storages import BaseStorage

LEAST_OVERLAP = 0.5
"""A past study counts if it had at least this share of the new study's hyperparameters."""
LEAST_SHARE = 0.5
"""A space is usual if at least this share of the past studies had its hyperparameters."""
LEAST_TRIALS = 3
"""A past study counts if at least this many successful trials lie in the new study's space."""


@dataclass(frozen=True)
class PastStudies:
    """Past studies, in parts: the studies of one part share a space."""

    parts: tuple[Experience, ...]
    """Experiences whose configurations may have gaps (see `carry_over`). A task is in one part
    only."""
    studies: tuple[StoredStudy, ...] = ()
    """The studies as they were stored, if they come from a storage."""
    missing: str = USUAL_POLICY
    """What to do with trials that lack a value, as for `Experience.in_space`."""

    @property
    def objectives(self) -> int:
        """How many objectives the studies have."""
        return len(self.parts[0].metrics)

    @cached_property
    def usual_space(self) -> Space | None:
        """The space that at least half of the past studies had; None if they differ."""
        if not self.studies:
            return self.parts[0].space
        counts = Counter(study.names for study in self.studies)
        names, n = counts.most_common(1)[0]
        if n < LEAST_SHARE * len(self.studies):
            return None
        try:
            made = make_experience([each for each in self.studies if each.names == names], "")
        except ForetuneError:  # the studies mean different things by the same names
            return None
        return made.experience.space

    @cached_property
    def typical_best(self) -> dict[str, Any]:
        """The best value of each hyperparameter in past studies: its median, or most frequent."""
        values: dict[tuple[str, bool], list[Any]] = {}
        for part in self.parts:
            choices = {p.name for p in part.space.parameters if p.kind is Kind.CATEGORICAL}
            for name, value in (pair for best in _best_configs(part) for pair in best.items()):
                values.setdefault((name, name in choices), []).append(value)
        typical: dict[str, Any] = {}
        studies = Counter[str]()
        for (name, is_choice), found in values.items():
            if len(found) > studies[name]:
                middle = _commonest(found) if is_choice else float(np.median(found))
                typical[name], studies[name] = middle, len(found)
        return typical

    def experience_in(self, space: Space) -> Experience | None:
        """Return the past in `space`; None if no study fits.

        An experience in the same space is returned as it is.
        """
        found = []
        for part in self.parts:
            if not self.studies and part.space == space:
                return part
            tasks = _overlapping_tasks(part, space)
            if tasks:
                with suppress(ExperienceError):
                    found.append(carry_over(part.only(tasks), space, missing=self.missing))
        if not found:
            return None
        known = join_carried(found).experience
        kept = [task for task in known.tasks if known.task(task).is_success.sum() >= LEAST_TRIALS]
        return known.only(kept) if kept else None


def past_studies(
    storage: "BaseStorage", objectives: int, *, but: int | None, missing: str = USUAL_POLICY
) -> PastStudies | None:
    """Read all studies with this many objectives, except the one whose id is `but`.

    Return None if there are none. If the metrics differ, values become losses.
    """
    wanted = [
        study
        for study in storage.get_all_studies()
        if study._study_id != but and len(study.directions) == objectives
    ]
    with pause_collector():
        return _make_past(read_studies(storage, wanted), missing)


def _make_past(stored: Iterable[StoredStudy], missing: str) -> PastStudies | None:
    read = [_with_plain_values(each) for each in stored if any(map(is_complete, each.trials))]
    if len({study.metrics for study in read}) > 1:
        read = [study.with_losses() for study in read]
    made = [pair for group in _alike(read) for pair in _make_parts(group)]
    if not made:
        return None
    known = {name for part in made for name in part.tasks}
    studies = tuple(study for study in read if study.name in known)
    return PastStudies(tuple(made), studies, missing)


def _with_plain_values(study: StoredStudy) -> StoredStudy:
    """Return the study without hyperparameters whose choices no space can hold."""
    odd = {name for name, each in study.distributions if not has_plain_values(each)}
    return study.without(odd) if odd else study


def _alike(studies: Iterable[StoredStudy]) -> Iterator[list[StoredStudy]]:
    """Divide studies into groups in which each name is either a number or a choice."""
    groups: list[tuple[dict[str, bool], list[StoredStudy]]] = []
    for study in studies:
        kinds = study.kinds
        for known, members in groups:
            if all(known.get(name, kind) == kind for name, kind in kinds.items()):
                known.update(kinds)
                members.append(study)
                break
        else:
            groups.append((dict(kinds), [study]))
    yield from (members for _, members in groups)


def _make_parts(group: Sequence[StoredStudy]) -> Iterator[Experience]:
    """Yield one experience of all studies; if they do not fit, that of each readable study."""
    for studies in (group, *([each] for each in group)):
        with suppress(ForetuneError):
            yield make_experience(studies, "", related=False).experience
            if studies is group:
                return


def _overlapping_tasks(part: Experience, space: Space) -> list[str]:
    """Return the tasks that have recorded enough of the hyperparameters of `space`."""
    known = np.zeros((len(part.tasks), len(part.space)), dtype=bool)
    recorded: Bools = ~np.isnan(part.configs.values)
    np.logical_or.at(known, part.task_index, recorded[part.config_index])
    shared = [number for number, name in enumerate(part.space.names) if name in space.names]
    enough = known[:, shared].sum(axis=1) >= LEAST_OVERLAP * len(space)
    return [task for task, kept in zip(part.tasks, enough, strict=True) if kept]


def _best_configs(part: Experience) -> Iterator[dict[str, Any]]:
    """Yield the best configuration of each task that has a success."""
    for task in part.tasks:
        records = part.task(task)
        rows = np.flatnonzero(records.is_full_fidelity)
        if len(rows):
            ranks = records.losses[rows].argsort(axis=0, kind="stable").argsort(axis=0)
            best = rows[ranks.sum(axis=1).argmin()]
            yield part.configs.take([records.config_index[best]]).dicts()[0]


def _commonest(values: Sequence[Any]) -> Any:
    return Counter((type(value), value) for value in values).most_common(1)[0][0][1]
