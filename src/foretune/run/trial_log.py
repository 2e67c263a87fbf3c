"""The trials of a study as one process has seen them, and in which order they changed.

Whoever follows a study reads what has changed since the last look, so a look costs as much as there
is news, however many trials the study has.
"""

from dataclasses import dataclass

from foretune.experience.trial import Trial


@dataclass(frozen=True, slots=True)
class Changes:
    """Trials that began or ended since an earlier look."""

    trials: list[Trial]
    """As they are now, by number."""
    seen: int
    """What to pass to the next look."""


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
        """Add a trial, or take in what has become of it."""
        self._trials[trial.number] = trial
        self._changed.append(trial.number)

    def trials(self) -> list[Trial]:
        """All of them, by number."""
        return [self._trials[number] for number in sorted(self._trials)]

    def changes(self, seen: int) -> Changes:
        """What was put here since an earlier look; all trials if `seen` is 0."""
        numbers = sorted(set(self._changed[seen:]))
        return Changes([self._trials[number] for number in numbers], len(self._changed))
