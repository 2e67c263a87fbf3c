"""Journals of fits: what one is, and a line a trial, on the disk before the next begins."""

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
"""In the names of journals, and of files of experience, that could not be read."""
SPOILT = (
    ForetuneError,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    ArithmeticError,
    RecursionError,
)
"""What a journal that is not ours can raise."""


@dataclass(frozen=True, slots=True)
class FitDescription:
    """What a fit says about itself before its first trial."""

    space_name: str
    space: Space
    metrics: tuple[Metric, ...]
    task: str
    meta_features: Mapping[str, float]

    def to_json(self) -> str:
        """As the head of a journal."""
        return json.dumps(
            {
                "space": json.loads(self.space.to_json()),
                "metrics": {metric.name: metric.direction for metric in self.metrics},
                "task": self.task,
                "meta_features": {n: v for n, v in self.meta_features.items() if np.isfinite(v)},
            }
        )


class FitJournal:
    """The journal of one running fit: lines go in, and `close` makes them part of the memory."""

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
        """Write what came of one trial. It is on the disk when this returns."""
        self._journal.add(evaluation)

    def close(self) -> None:
        """End the recording and merge what it holds, now or when that is possible."""
        self._alive.close()
        try:
            self._settle(self._fit.space_name)
        except ExperienceError as error:
            # The journal stays, so that nothing is lost, least of all the fit.
            warnings.warn(
                ForetuneWarning(
                    f"the trials are written down, but not part of the memory yet ({error})",
                    rule="journal-not-merged",
                ),
                stacklevel=2,
            )


def read_journal(head: Path) -> Experience | None:
    """The trials of a journal; None where none of them succeeded."""
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
    """Remove all files of a journal, also where it could not be read."""
    for suffix in (".jsonl", ".alive", ".json", BROKEN):
        with suppress(FileNotFoundError):
            head.with_suffix(suffix).unlink()
