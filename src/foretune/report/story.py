"""The content of a report: plain data that `fit` and `tune` fill in and `write_page` draws."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from foretune._base.arrays import Floats
from foretune.errors import UsageError
from foretune.experience import Metric
from foretune.experience.trial import Trial
from foretune.report.trial_curves import PastBand
from foretune.space import Space


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a pipeline: its algorithm and the values of its hyperparameters."""

    name: str
    algorithm: str
    """Empty if there was no choice."""
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
    """A pipeline on the map. Pipelines that lie close behave alike."""

    x: float
    y: float
    algorithm: str
    value: float | None = None
    """The first metric; None if the pipeline was not evaluated in this run."""
    trial: int | None = None
    """The number of the trial that tried it."""


@dataclass(frozen=True, slots=True)
class ColumnLoss:
    """What the best pipeline loses if the values of a column of the data are shuffled."""

    column: str
    lost: float
    """In the first metric; positive if the score gets worse."""
    is_sure: bool
    """Whether the loss is more than chance."""


@dataclass(frozen=True, slots=True)
class Story:
    """The content of a report about one run. Empty fields are left out of the page."""

    title: str
    space: Space
    metrics: Sequence[Metric]
    """All metrics. The search optimised the first one."""
    trials: Sequence[Trial]
    """In the order in which they began. Configurations lie in `space`, and values are those of
    `metrics`."""
    objectives: int = 1
    """How many of the first metrics were optimised together."""
    when: str = ""
    command: str = ""
    facts: Sequence[tuple[str, str]] = ()
    """Facts about the data: name and text."""
    assumptions: Sequence[str] = ()
    best: int | None = None
    """The number of the best trial; None if none succeeded, or if several objectives have no single
    best."""
    stands_in: bool = False
    """Whether a trial better than `best` succeeded, of which no model could be made."""
    choice: str | None = None
    """The hyperparameter that names a pipeline, such as the choice of the estimator. If it is None,
    `main_choice` finds one."""
    pipeline: Sequence[Step] = ()
    """The best trial's pipeline, in the order of its steps."""
    test_score: float | None = None
    """The first metric on data that the search did not see."""
    ensemble: Sequence[tuple[float, int]] = ()
    """Weight and trial number of each member."""
    without_model: bool = False
    """Whether a model was to be made of the trials and could not be."""
    blended: float | None = None
    """The first metric of the blend, on the rows that chose its members."""
    without_columns: float | None = None
    """The first metric of a guess that uses no column of the data."""
    columns: Sequence[ColumnLoss] = ()
    """Columns of the data, the most important one first."""
    transferred: Sequence[StorySource] = ()
    advice: Sequence[str] = ()
    """What the method did and why, one sentence each."""
    expected_random: Sequence[float] | Floats | None = None
    """The best value that random search is expected to find after 1, 2, 3, ... trials. See
    `curves.random_search_curve`."""
    embedding: Sequence[MapPoint] | None = None
    past_curves: PastBand | None = None
    """What past trials reported at each step."""
    timings: Sequence[tuple[str, float]] = ()
    """The seconds that each part took."""
    versions: Mapping[str, str] = field(default_factory=dict)
    next_steps: Sequence[tuple[str, str]] = ()
    """Next steps, each with its command: predict, resume and others."""

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
        """The metric that the search optimised."""
        return self.metrics[0]

    @property
    def naming(self) -> int | None:
        """The index of the hyperparameter that names a pipeline, or None."""
        if self.choice is None:
            return main_choice(self.space)
        return self.space.names.index(self.choice)

    @property
    def best_trial(self) -> Trial | None:
        """The trial with the number `best`."""
        return next((trial for trial in self.trials if trial.number == self.best), None)

    def label_of(self, number: int | None) -> str:
        """Return the algorithm that the trial of this number chose; empty if it has no name."""
        config = next((trial.config for trial in self.trials if trial.number == number), {})
        chosen = None if self.naming is None else config.get(self.space.names[self.naming])
        return "" if chosen is None else str(chosen)

    @property
    def random_curve(self) -> list[float]:
        """The expected curve of random search, up to the first unknown value."""
        given = np.asarray(() if self.expected_random is None else self.expected_random, np.float64)
        unknown = np.flatnonzero(~np.isfinite(given))
        known: list[float] = given[: unknown[0] if len(unknown) else None].tolist()
        return known

    @property
    def superlative(self) -> str:
        """How the page calls the trial `best`."""
        return "best usable" if self.stands_in else "best"

    @property
    def best_value(self) -> float | None:
        """The value of the best trial."""
        best = self.best_trial
        return None if best is None else best.values.get(self.metric.name)


def steps_of(
    space: Space, config: Mapping[str, Any], order: Sequence[str] = ()
) -> tuple[Step, ...]:
    """Return a configuration as steps: one for each stage, and one for what is common to all.

    order: the names of the stages in the order of the data flow. Others follow.
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
    """Return the choice of the stage with the most hyperparameters, or None.

    This is a guess, because a space does not tell which of its stages is the model.
    """
    stages = [stage for stage in space.structure.stages if stage.choice is not None]
    if not stages:
        return None
    richest = max(stages, key=lambda stage: sum(1 + len(a.parameters) for a in stage.algorithms))
    return richest.choice


def _short(name: str) -> str:
    """Return a hyperparameter's name without the stage and algorithm that the step shows."""
    return name.rpartition(":")[2]
