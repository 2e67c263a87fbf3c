"""Writes and reads journals of fits: a description, and one line for each trial.

A line is on disk before the next trial begins.
"""

import json
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO

import numpy as np

from foretune.errors import ExperienceError, ForetuneError, ForetuneWarning
from foretune.experience import Direction, Evaluation, Experience, Metric, Status
from foretune.experience.evaluation_rows import build_experience
from foretune.experience.journal import Journal
from foretune.space import Space

BROKEN = ".broken"
"""Part of the names of journals and of experience files that could not be read."""
READ_ERRORS = (
    ForetuneError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""The errors that a file can raise if it is not such a journal."""


@dataclass(frozen=True, slots=True)
class FitDescription:
    """The description of a fit before its first trial."""

    space_name: str
    space: Space
    metrics: tuple[Metric, ...]
    task: str
    meta_features: Mapping[str, float]

    def to_json(self) -> str:
        """Return the text of the head of a journal."""
        return json.dumps(
            {
                "space": json.loads(self.space.to_json()),
                "metrics": {metric.name: metric.direction for metric in self.metrics},
                "task": self.task,
                "meta_features": {n: v for n, v in self.meta_features.items() if np.isfinite(v)},
            }
        )


class FitJournal:
    """The journal of one running fit; `close` makes its lines part of the memory."""

    def __init__(
        self, fit: FitDescription, head: Path, alive: IO[bytes], *, settle: Callable[[str], None]
    ) -> None:
        self._fit, self._alive, self._settle = fit, alive, settle
        self._journal = Journal(head.with_suffix(".jsonl"))

    @property
    def task(self) -> str:
        """The task of the fit."""
        return self._fit.task

    def add(self, evaluation: Evaluation) -> None:
        """Write the evaluation of one trial. It is on disk when this returns."""
        self._journal.add(evaluation)

    def close(self) -> None:
        """End the journal and merge it into the memory, now or when that becomes possible."""
        self._alive.close()
        try:
            self._settle(self._fit.space_name)
        except ExperienceError as error:
            # The journal stays, so no trial is lost, and the fit goes on.
            warnings.warn(
                ForetuneWarning(
                    f"the trials are written down, but not part of the memory yet ({error})",
                    rule="journal-not-merged",
                ),
                stacklevel=2,
            )


def read_journal(head: Path) -> Experience | None:
    """Read the trials of a journal; None if none of them succeeded."""
    plain = json.loads(head.read_text(encoding="utf-8"))
    space = Space.from_json(json.dumps(plain["space"]))
    rows = Journal(head.with_suffix(".jsonl")).evaluations
    good = [row for row in rows if row.status is Status.DONE]
    names = {name for row in good for name, value in row.values.items() if np.isfinite(value)}
    metrics = [Metric(n, Direction(d)) for n, d in plain["metrics"].items() if n in names]
    if not metrics:
        return None
    task = plain["task"]
    own = [replace(row, task=task) for row in rows]
    return build_experience(space, metrics, own, meta_features={task: plain["meta_features"]})


def remove_journal(head: Path) -> None:
    """Remove all files of a journal, even if it could not be read."""
    for suffix in (".jsonl", ".alive", ".json", BROKEN):
        with suppress(FileNotFoundError):
            head.with_suffix(suffix).unlink()
