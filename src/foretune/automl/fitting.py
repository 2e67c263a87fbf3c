"""The pipelines of a model: fitted to all rows, and looked at before they are part of it."""

from collections.abc import Generator, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import TypeAlias

from foretune.automl.blending import Chosen
from foretune.automl.crew import Crew
from foretune.automl.models.members import Member, refit
from foretune.automl.models.model_file import Room, TooLargeError
from foretune.automl.models.soundness import is_sound
from foretune.automl.pace import Pace, is_worth_a_crew
from foretune.automl.plan import Plan
from foretune.automl.tables.datasets import Table
from foretune.errors import ForetuneError
from foretune.progress import SILENT, Progress, tracked
from foretune.run.study import StudyTrial

FITTING = "fitting the model"
NOT_SOUND = "worse than a guess on rows that it has learnt from"
MOST_LETTERS = 200
"""Of what an error says of itself."""

Lost: TypeAlias = tuple[StudyTrial, str]
"""A trial that can be no part of the model, and why; an error itself would keep its pipeline."""


@dataclass(frozen=True, slots=True)
class Means:
    """With what a model is made."""

    room: Room | None = None
    """Of the file that it has to fit into; None for no file."""
    crew: Crew | None = None
    """What fits slow pipelines; None to fit them here."""
    progress: Progress = SILENT


NO_MEANS = Means()


@dataclass(frozen=True, slots=True)
class Check:
    """What a pipeline must pass to be part of a model."""

    plan: Plan
    table: Table
    guess: float | None
    """What one scores without any column; None where no pipeline has to be better."""
    room: Room | None

    def passed(self, made: Member | str, trial: StudyTrial) -> Member | str:
        """The same, or why it can be no part."""
        if isinstance(made, str):
            return made
        try:
            if not self._is_sound(made, trial):
                return NOT_SOUND
            if self.room is not None:
                self.room.take(made.pipeline)
        except Exception as error:
            return _why(error)
        return made

    def _is_sound(self, made: Member, trial: StudyTrial) -> bool:
        promised = trial.values[self.plan.metric.name]
        return self.guess is None or is_sound(
            made, self.table, self.plan.protocol, promised=promised, guessed=self.guess
        )


def fitted_members(
    members: Sequence[Chosen], check: Check, means: Means
) -> tuple[dict[int, Member], list[Lost], bool]:
    """The members that could learn from all rows, by the number of their trial, and those that
    could not; whether Ctrl-C left out the rest.

    Trials have limits of time and memory, and may have seen fewer rows. The first is the best:
    without that one, none is fitted. Then those that count most.
    """
    fitted: dict[int, Member] = {}
    lost: list[Lost] = []
    ordered = [members[0], *sorted(members[1:], key=lambda each: -each.weight)]
    with closing(_pipelines(ordered, check.plan, check.table, means.crew)) as made:
        together = zip(ordered, made, strict=True)
        try:
            for chosen, member in tracked(together, means.progress, FITTING, len(ordered)):
                usable = check.passed(member, chosen.trial)
                if isinstance(usable, str):
                    lost.append((chosen.trial, usable))
                else:
                    fitted[chosen.trial.number] = replace(usable, weight=chosen.weight)
                if not fitted:
                    break
        except KeyboardInterrupt:
            if not fitted:
                raise
            return fitted, lost, True
    return fitted, lost, False


def _pipelines(
    members: Sequence[Chosen], plan: Plan, table: Table, crew: Crew | None
) -> Generator[Member | str]:
    """The pipeline of each member, fitted to all rows, or why there is none."""
    seed, configs = plan.protocol.seed, [chosen.trial.config for chosen in members]
    pace = Pace.of(plan, rows=len(table))
    made = 0
    if crew is not None and is_worth_a_crew(pace.seconds(each.trial) for each in members):
        try:
            for member in crew.fitted(configs, table, seed=seed):
                yield member
                made += 1
        except (ForetuneError, OSError):
            pass  # Processes that do not start, or a full disk: then here.
    for config in configs[made:]:
        try:
            yield refit(config, table, seed=seed)
        except Exception as error:
            yield _why(error)


def _why(error: Exception) -> str:
    said = " ".join(str(error).split())[:MOST_LETTERS]
    if isinstance(error, TooLargeError):
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
