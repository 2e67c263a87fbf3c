"""What a report tells: plain data that `fit` and `tune` fill, and `page.write_page` draws."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from foretune._base.arrays import Floats
from foretune.errors import UsageError
from foretune.experience import Metric
from foretune.experience.trial import Trial
from foretune.space import Space


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a pipeline: what was chosen there, and how it was set."""

    name: str
    algorithm: str
    """Empty where there was nothing to choose."""
    settings: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class StorySource:
    """Experience that the search started from."""

    name: str
    tasks: int
    evaluations: int
    note: str = ""


@dataclass(frozen=True, slots=True)
class MapPoint:
    """A pipeline on the map: near ones behave alike."""

    x: float
    y: float
    algorithm: str
    value: float | None = None
    """Of the first metric; None where it was not evaluated here."""
    trial: int | None = None
    """The number of the trial that tried it."""


@dataclass(frozen=True, slots=True)
class ColumnLoss:
    """What the best pipeline loses where the values of a column of the data change places."""

    column: str
    lost: float
    """Of the first metric; positive where the score gets worse."""
    is_sure: bool
    """Whether that is more than chance."""


@dataclass(frozen=True, slots=True)
class Story:
    """Everything a report says about one run. What is left empty is left out of the page."""

    title: str
    space: Space
    metrics: Sequence[Metric]
    """All that was measured; the first is what the search looked for."""
    trials: Sequence[Trial]
    """In the order in which they were begun; configurations lie in `space`, and values are those of
    `metrics`, where they are known."""
    objectives: int = 1
    """How many of the leading metrics were searched for at once."""
    when: str = ""
    command: str = ""
    facts: Sequence[tuple[str, str]] = ()
    """About the data: name and text."""
    assumptions: Sequence[str] = ()
    best: int | None = None
    """The number of the best trial; None where none has succeeded, or where several objectives
    leave no single best."""
    stands_in: bool = False
    """Whether a better trial than `best` succeeded, of which no model could be made."""
    choice: str | None = None
    """The hyperparameter that names a pipeline, say the one that chooses the estimator; where it
    is None, `main_choice` of the space."""
    pipeline: Sequence[Step] = ()
    """The best trial's, in the order of its steps."""
    test_score: float | None = None
    """The first metric on data that the search did not see."""
    ensemble: Sequence[tuple[float, int]] = ()
    """Weight and trial number of each member."""
    without_model: bool = False
    """Whether one was to be made of the trials and could not be."""
    blended: float | None = None
    """The first metric of the members together, on the rows that chose them."""
    without_columns: float | None = None
    """The first metric of a guess that knows no column of the data."""
    columns: Sequence[ColumnLoss] = ()
    """Of the data, the one that counts most first."""
    transferred: Sequence[StorySource] = ()
    advice: Sequence[str] = ()
    """What the method did and why, one sentence each."""
    expected_random: Sequence[float] | Floats | None = None
    """The best value that random search is expected to have found after 1, 2, 3, ... trials, as
    `curves.expected_best` gives it."""
    embedding: Sequence[MapPoint] | None = None
    timings: Sequence[tuple[str, float]] = ()
    """What took how many seconds."""
    versions: Mapping[str, str] = field(default_factory=dict)
    next_steps: Sequence[tuple[str, str]] = ()
    """What to do with the result, and the command that does it: predict, resume, ..."""

    def __post_init__(self) -> None:
        if not 1 <= self.objectives <= len(self.metrics):
            raise UsageError(
                f"a report needs at least one metric and one objective, but got "
                f"{len(self.metrics)} metrics of which {self.objectives} are objectives: name the "
                "metric that was searched for first",
                rule="report-objectives",
                field="objectives",
                value=self.objectives,
            )
        if self.best is not None and self.best_trial is None:
            raise UsageError(
                f"the best trial of a report must be one of its trials, but got number "
                f"{self.best}: pass its number, or None",
                rule="report-best",
                field="best",
                value=self.best,
            )

    @property
    def metric(self) -> Metric:
        """What the search looked for."""
        return self.metrics[0]

    @property
    def naming(self) -> int | None:
        """The index of the hyperparameter that names a pipeline; None where there is none."""
        if self.choice is None:
            return main_choice(self.space)
        return self.space.names.index(self.choice)

    @property
    def best_trial(self) -> Trial | None:
        """The trial with the number `best`."""
        return next((trial for trial in self.trials if trial.number == self.best), None)

    def label_of(self, number: int | None) -> str:
        """What the trial of this number chose; empty where that has no name."""
        config = next((trial.config for trial in self.trials if trial.number == number), {})
        chosen = None if self.naming is None else config.get(self.space.names[self.naming])
        return "" if chosen is None else str(chosen)

    @property
    def random_curve(self) -> list[float]:
        """The curve that is expected of random search, up to the first unknown value."""
        given = np.asarray(() if self.expected_random is None else self.expected_random, np.float64)
        unknown = np.flatnonzero(~np.isfinite(given))
        known: list[float] = given[: unknown[0] if len(unknown) else None].tolist()
        return known

    @property
    def superlative(self) -> str:
        """What to call the trial `best`."""
        return "best usable" if self.stands_in else "best"

    @property
    def best_value(self) -> float | None:
        """What the best trial reached."""
        best = self.best_trial
        return None if best is None else best.values.get(self.metric.name)


def steps_of(
    space: Space, config: Mapping[str, Any], order: Sequence[str] = ()
) -> tuple[Step, ...]:
    """A configuration as steps: one a stage of the space, and one for what is common to all.

    order: the names of the stages as data flows through them; others follow.
    """
    steps = []
    for stage in space.structure.stages:
        if stage.choice is None:
            used, algorithm = stage.algorithms[0], ""
        else:
            chosen = space.parameters[stage.choice]
            if chosen.name not in config:
                continue
            used = stage.algorithms[chosen.index_of(config[chosen.name]) or 0]
            algorithm = used.name
        names = (space.parameters[index].name for index in used.parameters)
        settings = {_short(known): config[known] for known in names if known in config}
        steps.append(Step(stage.name, algorithm, settings))
    places = {name: place for place, name in enumerate(order)}
    return tuple(sorted(steps, key=lambda step: places.get(step.name, len(places))))


def main_choice(space: Space) -> int | None:
    """The hyperparameter that probably says most: of the stage with most that can be set.

    A guess, for a space does not tell which of its stages is the model.
    """
    stages = [stage for stage in space.structure.stages if stage.choice is not None]
    if not stages:
        return None
    richest = max(stages, key=lambda stage: sum(1 + len(a.parameters) for a in stage.algorithms))
    return richest.choice


def _short(name: str) -> str:
    """A hyperparameter's name without its stage and algorithm, which the step says already."""
    return name.rpartition(":")[2]
