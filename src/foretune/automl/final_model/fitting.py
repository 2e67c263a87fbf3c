"""The pipelines of a model: fitted to all rows, and looked at before they are part of it."""

import math
import time
from collections.abc import Callable, Generator, Sequence
from contextlib import closing, suppress
from dataclasses import dataclass
from typing import TypeAlias

from foretune._base.progress import SILENT, Progress
from foretune.automl.estimators.fitted_pipeline import FitPipeline, Member, refit
from foretune.automl.final_model.member_selection import ChosenMember
from foretune.automl.final_model.model_file import (
    Room,
    Size,
    TooLargeError,
    UnknownFormatError,
    size_in_file,
)
from foretune.automl.final_model.sanity_check import is_sound
from foretune.automl.final_model.worker_pool import FitWorkers
from foretune.automl.fit_time_model import FitTimeModel
from foretune.automl.plan import FitPlan
from foretune.errors import ForetuneError
from foretune.experience.trial import Trial
from foretune.report.wording import duration_text
from foretune.run import stopping
from foretune.run.executor import Limits
from foretune.tables.table import Table

FITTING = "fitting the model"
NOT_SOUND = "worse than a guess on rows that it has learnt from"
NO_TIME = "no time was left for it"
MOST_LETTERS = 200
"""Of what an error says of itself."""
SLACK = 3.0
"""A pipeline may take so many times the CPU time that its trial lets expect."""
LEAST_SECONDS = 60.0
"""Or this, if that is more: of what takes little, the trial tells little."""
LONG_SECONDS = 60.0
"""What is expected to take longer is said beforehand."""
MOST_SECONDS_HERE = 2.0
MOST_SHARE_HERE = 0.3
"""Where the fitting must end in time, this process fits what takes no longer than these seconds, or
than this share of the time that is left: it cannot end a fit that has begun."""
BUSY = 10.0
"""And so many times this limit on the clock: others may use the machine, but what hangs must end.
"""

DroppedMember: TypeAlias = tuple[Trial, str]
"""A trial that can be no part of the model, and why; an error itself would keep its pipeline."""


@dataclass(frozen=True, slots=True)
class FitLimits:
    """What fitting a model may take."""

    workers: FitWorkers | None = None
    """What fits slow pipelines within limits; None to fit all of them here."""
    progress: Progress = SILENT
    is_saved: bool = False
    """Whether the model has to fit into a file."""
    largest_file: float | None = None
    """The size of that file at most; that of every model file if not given."""
    deadline: float = math.inf
    """When it should be ready, by the monotonic clock: what joins the best is not waited for."""
    must_end: bool = False
    """Whether not even the best is waited for then, because there is another model to use."""
    fit: FitPipeline = refit
    """How a pipeline is fitted."""
    now: Callable[[], float] = time.monotonic
    """The clock."""

    @property
    def is_over(self) -> bool:
        """Whether nothing more may be fitted."""
        return self.must_end and self.now() >= self.deadline


NO_LIMITS = FitLimits()


@dataclass(frozen=True, slots=True)
class Check:
    """What a pipeline must pass to be part of a model."""

    plan: FitPlan
    table: Table
    guess: float | None
    """What one scores without any column; None where no pipeline has to be better."""

    def is_sound(self, made: Member, trial: Trial) -> bool:
        """Whether it is what its trial promised, as far as rows that it has learnt from tell."""
        promised = trial.values[self.plan.metric.name]
        return self.guess is None or is_sound(
            made, self.table, self.plan.protocol, promised=promised, guessed=self.guess
        )


class Fitting:
    """Pipelines that learn from all rows, each once: what is ready can be part of the model.

    Trials have limits of time and memory, and may have seen fewer rows. Where many more rows or
    seconds are to be expected, a crew fits within limits that are derived from the trial's.
    """

    def __init__(self, check: Check, limits: FitLimits) -> None:
        self._check, self._limits = check, limits
        self._pace = FitTimeModel.of(check.plan, rows=len(check.table))
        self._ready: dict[int, tuple[Member, Size]] = {}
        """By the number of the trial."""
        self.lost: list[DroppedMember] = []
        self.interrupted = False
        """Whether Ctrl-C ended the fitting, so that some are neither ready nor lost."""

    def fit(self, members: Sequence[ChosenMember]) -> None:
        """Fit the first member, the best, and as many of the others as there is time for.

        Without the best, the others are not waited for: which do best with the next best is
        another question. What is ready stays so. Ctrl-C is passed on where nothing is.
        """
        best, *others = [each.trial for each in sort_by_weight(members)]
        todo = [trial for trial in (best, *others) if trial.number not in self._ready]
        if not todo:
            return
        if self._limits.is_over:
            self.lost += [(trial, NO_TIME) for trial in todo]
            return
        progress = self._limits.progress
        progress.start(self._progress_text(todo), len(todo))
        try:
            with stopping.absorb_requests(), closing(self._pipelines(best, todo)) as made:
                for trial, member in made:
                    self._take_in(trial, member)
                    progress.step()
                    stopping.check()
                    if self._is_lost(best):
                        return
        except KeyboardInterrupt:
            if not self._ready:
                raise
            self.interrupted = True
            return
        finally:
            progress.stop()
        late = [t for t in todo if t.number not in self._ready and not self._is_lost(t)]
        self.lost += [(trial, NO_TIME) for trial in late]

    def usable(self, trials: Sequence[Trial]) -> list[Trial]:
        """Those that are ready and have room beside the ones before them."""
        room, found = Room(self._limits.largest_file), []
        for trial in trials:
            if trial.number not in self._ready:
                continue
            try:
                room.take(self._ready[trial.number][1])
            except TooLargeError as error:
                del self._ready[trial.number]
                self.lost.append((trial, str(error)))
            else:
                found.append(trial)
        return found

    def member(self, trial: Trial) -> Member:
        """The pipeline of a trial that is ready."""
        return self._ready[trial.number][0]

    def _progress_text(self, todo: Sequence[Trial]) -> str:
        """What is being done, and for how long, where that is long."""
        crew = self._limits.workers
        seconds = self._pace.together(todo, 1 if crew is None else crew.workers)
        return FITTING if seconds < LONG_SECONDS else f"{FITTING}, about {duration_text(seconds)}"

    def _take_in(self, trial: Trial, made: Member | str) -> None:
        """Keep a pipeline if it can be part of a model; else why not."""
        try:
            if isinstance(made, str):
                self.lost.append((trial, made))
            elif not self._check.is_sound(made, trial):
                self.lost.append((trial, NOT_SOUND))
            else:
                size = size_in_file(made.pipeline) if self._limits.is_saved else Size(0, 0)
                self._ready[trial.number] = made, size
        except Exception as error:
            self.lost.append((trial, _why(error)))

    def _is_lost(self, trial: Trial) -> bool:
        return any(each is trial for each, _ in self.lost)

    def _is_enough(self, best: Trial, more: float = 0.0) -> bool:
        """Whether what takes so many seconds more would be too late, and there is a model.

        That is the best trial's, or another one where the fitting must end.
        """
        is_possible = self._limits.must_end or best.number in self._ready
        return is_possible and self._limits.now() + more > self._limits.deadline

    def _pipelines(
        self, best: Trial, trials: Sequence[Trial]
    ) -> Generator[tuple[Trial, Member | str]]:
        """The pipeline of each trial, or why there is none, as they get ready."""
        table, seed = self._check.table, self._check.plan.protocol.seed
        waiting = list(trials)
        crew = self._limits.workers
        if crew is not None and self._wants_crew(trials):
            by_crew = crew.fit_each(
                [trial.config for trial in trials],
                table,
                seed=seed,
                limits=self._limits_of(crew, trials),
                is_enough=lambda: self._is_enough(best),
            )
            # Processes that do not start, or a full disk: then here.
            with suppress(ForetuneError, OSError), closing(by_crew):
                for place, member in by_crew:
                    waiting.remove(trials[place])
                    yield trials[place], member
        for trial in waiting:
            if self._is_enough(best, sum(self._pace.measure_seconds([trial]))):
                continue
            try:
                yield trial, self._limits.fit(trial.config, table, seed=seed)
            except Exception as error:
                yield trial, _why(error)

    def _wants_crew(self, trials: Sequence[Trial]) -> bool:
        """Whether processes fit these pipelines: only what a process does can be ended in time."""
        if self._pace.wants_crew(trials):
            return True
        left = self._limits.deadline - self._limits.now()
        most = max(MOST_SECONDS_HERE, MOST_SHARE_HERE * left)
        return self._limits.must_end and sum(self._pace.measure_seconds(trials)) > most

    def _limits_of(self, crew: FitWorkers, trials: Sequence[Trial]) -> Limits:
        """What one of these pipelines may take: as much more than a trial as it has more rows."""
        memory = crew.memory_bytes
        known = self._pace.measure_seconds(trials)
        cpu = max(LEAST_SECONDS, SLACK * max(known)) if known else None
        return Limits(
            wall_seconds=None if cpu is None else BUSY * cpu,
            cpu_seconds=cpu,
            memory_bytes=None if memory is None else int(memory * max(1.0, self._pace.growth)),
        )


def sort_by_weight(members: Sequence[ChosenMember]) -> list[ChosenMember]:
    """The first, which is the best, then those that count most."""
    return [members[0], *sorted(members[1:], key=lambda each: -each.weight)]


def _why(error: Exception) -> str:
    said = " ".join(str(error).split())[:MOST_LETTERS]
    if isinstance(error, TooLargeError | UnknownFormatError):
        return said
    return f"{type(error).__name__}: {said}" if said else type(error).__name__
