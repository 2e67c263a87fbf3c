"""The trials of a study as one process has seen them, and the order in which they changed.

A follower of a study reads what has changed since its last look. So a look costs as much as there
is news, however many trials the study has.
"""

from dataclasses import dataclass

from foretune.experience.trial import Trial


@dataclass(frozen=True, slots=True)
class Changes:
    """Trials that began or ended since an earlier look."""

    trials: list[Trial]
    """Their present states, by number."""
    seen: int
    """Pass this to the next look."""


class TrialLog:
    """Trials by number, and the numbers in the order of their changes."""

    def __init__(self) -> None:
        self._trials: dict[int, Trial] = {}
        self._changed: list[int] = []

    def __len__(self) -> int:
        return len(self._trials)

    def __getitem__(self, number: int) -> Trial:
        return self._trials[number]

    def put(self, trial: Trial) -> None:
        """Add a trial, or replace it by its new state."""
        self._trials[trial.number] = trial
        self._changed.append(trial.number)

    def trials(self) -> list[Trial]:
        """Return all trials, by number."""
        return [self._trials[number] for number in sorted(self._trials)]

    def changes(self, seen: int) -> Changes:
        """Return what was put here since an earlier look; all trials if `seen` is 0."""
        numbers = sorted(set(self._changed[seen:]))
        return Changes([self._trials[number] for number in numbers], len(self._changed))
