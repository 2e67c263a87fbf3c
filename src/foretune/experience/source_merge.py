"""Past runs from several sources: each run once, and different tasks of one name kept apart."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

from foretune.experience.experience import Experience
from foretune.space.parameters import choice_key

Run: TypeAlias = tuple[tuple[Any, ...], tuple[float | None, ...]]


@dataclass(frozen=True, slots=True)
class SourcedExperience:
    """An experience and where it comes from."""

    source: str
    """The name of the source in messages."""
    experience: Experience
    is_file: bool = True
    """Whether the user named this file. A store is read completely, and parts of it may not fit."""
    is_nameless: bool = False
    """Whether its metrics had no names and got those of another source."""


def keep_distinct_tasks(parts: Sequence[SourcedExperience]) -> list[SourcedExperience]:
    """Return the tasks of all parts, each once, in any order of the parts.

    All parts have the same metrics. If all runs of a task are also runs of a task of the same name,
    it is left out. The remaining tasks of one name are different, and all but the first get the
    name of their source.
    """
    ordered = sorted(parts, key=lambda part: (part.source, part.experience.tasks))
    holders: dict[str, list[int]] = {}
    for number, part in enumerate(ordered):
        for name in part.experience.tasks:
            holders.setdefault(name, []).append(number)
    names: list[dict[str, str]] = [{} for _ in ordered]
    for name, numbers in holders.items():
        first, *others = _with_runs_of_their_own(name, ordered, numbers)
        names[first][name] = name
        for number in others:
            names[number][name] = f"{name} ({ordered[number].source})"
    kept = zip(ordered, names, strict=True)
    return [
        replace(part, experience=_rename_tasks(part.experience, own)) for part, own in kept if own
    ]


def _with_runs_of_their_own(
    name: str, parts: Sequence[SourcedExperience], numbers: Sequence[int]
) -> list[int]:
    """Return the parts whose task of this name has runs that no other part has."""
    if len(numbers) == 1:
        return list(numbers)
    tasks = {number: _SourceTask(parts[number].experience, name) for number in numbers}
    kept = list(numbers)
    for one in reversed(numbers):
        # One at a time, because each of several tasks may be contained in another one.
        if any(tasks[one].is_within(tasks[other]) for other in kept if other != one):
            kept.remove(one)
    return kept


class _SourceTask:
    """The configurations and losses of one task of a source."""

    def __init__(self, experience: Experience, name: str) -> None:
        records = experience.task(name)
        self._names = set(experience.space.names)
        self._configs = records.configs.dicts()
        self._losses = [
            tuple(None if math.isnan(loss) else loss for loss in row)  # NaN equals nothing
            for row in records.losses.tolist()
        ]

    def is_within(self, other: "_SourceTask") -> bool:
        """Return whether all runs are runs of the other too, by the hyperparameters of both."""
        if not set(self._losses) <= set(other._losses):
            return False
        common = sorted(self._names & other._names)
        return bool(common) and self._runs(common) <= other._runs(common)

    def _runs(self, names: Sequence[str]) -> set[Run]:
        return {
            (tuple(choice_key(config.get(name)) for name in names), losses)
            for config, losses in zip(self._configs, self._losses, strict=True)
        }


def _rename_tasks(experience: Experience, names: Mapping[str, str]) -> Experience:
    """Return the tasks that `names` holds, with their new names."""
    left = experience.only(names) if len(names) < len(experience.tasks) else experience
    return replace(
        left,
        tasks=tuple(names[name] for name in left.tasks),
        meta_features={names[name]: of for name, of in left.meta_features.items()},
        splits={
            split: {part: tuple(names[name] for name in of) for part, of in parts.items()}
            for split, parts in left.splits.items()
        },
        starts={names[name]: of for name, of in left.starts.items()},
    )
