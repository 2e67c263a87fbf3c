"""Fits the pipelines of a model to all rows, and checks each before it becomes a member."""

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
    LARGEST,
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
from foretune.tables import Table

ACTIVITY = "fitting the model"
NOT_SOUND = "worse than a guess on rows that it has learnt from"
NO_TIME = "no time was left for it"
MOST_LETTERS = 200
"""The most letters of an error that a message repeats."""
SLACK = 3.0
"""A pipeline may take this many times the CPU time that its trial predicts."""
LEAST_SECONDS = 60.0
"""A pipeline may always take this CPU time, because a short trial predicts little."""
LONG_SECONDS = 60.0
"""Progress tells the expected time if it is longer than this."""
MOST_SECONDS_HERE = 2.0
MOST_SHARE_HERE = 0.3
"""If fitting must end in time, this process fits only what takes at most these seconds or this
share of the remaining time, because it cannot stop a fit that has begun."""
WALL_SLACK = 10.0
"""The limit on the clock is this many times the CPU limit: other programs may use the machine, but
a pipeline that hangs must end."""

DroppedMember: TypeAlias = tuple[Trial, str]
"""A trial that cannot be part of the model, and the reason as a text: an error would keep its
pipeline in memory."""


@dataclass(frozen=True, slots=True)
class FitLimits:
    """The processes, time and space that fitting a model may use."""

    workers: FitWorkers | None = None
    """The processes that fit slow pipelines within limits; None to fit all in this process."""
    progress: Progress = SILENT
    is_saved: bool = False
    """Whether the model must fit into a file."""
    largest_file: float = LARGEST.whole
    """The most bytes of that file."""
    deadline: float = math.inf
    """The time at which the model should be ready, by `now`. Only the best trial may be later."""
    must_end: bool = False
    """Whether even the best trial must end by then, because there is another model to use."""
    fit: FitPipeline = refit
    """The function that fits a pipeline."""
    now: Callable[[], float] = time.monotonic
    """The clock."""

    @property
    def is_over(self) -> bool:
        """Whether no more pipelines may be fitted."""
        return self.must_end and self.now() >= self.deadline


NO_LIMITS = FitLimits()


@dataclass(frozen=True, slots=True)
class Check:
    """The check that a pipeline must pass to be part of a model."""

    plan: FitPlan
    table: Table
    guess: float | None
    """The score of a guess without any column; None if no pipeline has to be better."""

    def is_sound(self, member: Member, trial: Trial) -> bool:
        """Return whether a pipeline is about as good as its trial, on rows it has learnt from."""
        promised = trial.values[self.plan.metric.name]
        return self.guess is None or is_sound(
            member, self.table, self.plan.protocol, promised=promised, guessed=self.guess
        )


class MemberFitter:
    """Fits pipelines to all rows, each once; those that are ready can be part of the model.

    Trials have limits of time and memory, and may have seen fewer rows. If fitting should take
    many more rows or seconds, worker processes do it, within limits derived from the trials.
    """

    def __init__(self, check: Check, limits: FitLimits) -> None:
        self._check, self._limits = check, limits
        self._times = FitTimeModel.of(check.plan, rows=len(check.table))
        self._ready: dict[int, tuple[Member, Size]] = {}
        """The fitted pipelines, by the number of the trial."""
        self.dropped: list[DroppedMember] = []
        self.interrupted = False
        """Whether Ctrl-C ended the fitting; then some pipelines are neither ready nor dropped."""

    def fit(self, members: Sequence[ChosenMember]) -> None:
        """Fit the first member, the best, and as many of the others as there is time for.

        If the best one fails, fitting stops, because the next best may need other members.
        Pipelines that are ready are kept. Ctrl-C is passed on if none is ready.
        """
        best, *others = [each.trial for each in sort_by_weight(members)]
        todo = [trial for trial in (best, *others) if trial.number not in self._ready]
        if not todo:
            return
        if self._limits.is_over:
            self.dropped += [(trial, NO_TIME) for trial in todo]
            return
        progress = self._limits.progress
        progress.start(self._progress_text(todo), len(todo))
        try:
            with stopping.absorb_requests(), closing(self._fit_each(best, todo)) as results:
                for trial, result in results:
                    self._add(trial, result)
                    progress.step()
                    stopping.check()
                    if self._is_dropped(best):
                        return
        except KeyboardInterrupt:
            if not self._ready:
                raise
            self.interrupted = True
            return
        finally:
            progress.stop()
        late = [t for t in todo if t.number not in self._ready and not self._is_dropped(t)]
        self.dropped += [(trial, NO_TIME) for trial in late]

    def select_usable(self, trials: Sequence[Trial]) -> list[Trial]:
        """Return the trials whose pipelines are ready and fit into one file, in this order."""
        room, found = Room(self._limits.largest_file), []
        for trial in trials:
            if trial.number not in self._ready:
                continue
            try:
                room.take(self._ready[trial.number][1])
            except TooLargeError as error:
                del self._ready[trial.number]
                self.dropped.append((trial, str(error)))
            else:
                found.append(trial)
        return found

    def member(self, trial: Trial) -> Member:
        """Return the pipeline of a trial that is ready."""
        return self._ready[trial.number][0]

    def _progress_text(self, todo: Sequence[Trial]) -> str:
        """Return the activity, and its expected time if that is long."""
        workers = self._limits.workers
        seconds = self._times.total_seconds(todo, 1 if workers is None else workers.workers)
        return ACTIVITY if seconds < LONG_SECONDS else f"{ACTIVITY}, about {duration_text(seconds)}"

    def _add(self, trial: Trial, result: Member | str) -> None:
        """Keep a pipeline if it can be part of a model; otherwise keep the reason."""
        try:
            if isinstance(result, str):
                self.dropped.append((trial, result))
            elif not self._check.is_sound(result, trial):
                self.dropped.append((trial, NOT_SOUND))
            else:
                size = size_in_file(result.pipeline) if self._limits.is_saved else Size(0, 0)
                self._ready[trial.number] = result, size
        except Exception as error:
            self.dropped.append((trial, _reason(error)))

    def _is_dropped(self, trial: Trial) -> bool:
        return any(each is trial for each, _ in self.dropped)

    def _is_enough(self, best: Trial, more: float = 0.0) -> bool:
        """Return whether this many more seconds would be too late, and there is a model already.

        There is one if the best trial is ready, or if another model can be used instead.
        """
        has_model = self._limits.must_end or best.number in self._ready
        return has_model and self._limits.now() + more > self._limits.deadline

    def _fit_each(
        self, best: Trial, trials: Sequence[Trial]
    ) -> Generator[tuple[Trial, Member | str]]:
        """Yield each trial with its pipeline, or with the reason why there is none, when ready."""
        table, seed = self._check.table, self._check.plan.protocol.seed
        waiting = list(trials)
        workers = self._limits.workers
        if workers is not None and self._needs_workers(trials):
            results = workers.fit_each(
                [trial.config for trial in trials],
                table,
                seed=seed,
                limits=self._limits_of(workers, trials),
                is_enough=lambda: self._is_enough(best),
            )
            # If processes do not start or the disk is full, this process fits the rest.
            with suppress(ForetuneError, OSError), closing(results):
                for place, result in results:
                    waiting.remove(trials[place])
                    yield trials[place], result
        for trial in waiting:
            if self._is_enough(best, sum(self._times.finite_seconds([trial]))):
                continue
            try:
                yield trial, self._limits.fit(trial.config, table, seed=seed)
            except Exception as error:
                yield trial, _reason(error)

    def _needs_workers(self, trials: Sequence[Trial]) -> bool:
        """Return whether worker processes fit these pipelines; only they can be stopped in time."""
        if self._times.needs_workers(trials):
            return True
        left = self._limits.deadline - self._limits.now()
        most = max(MOST_SECONDS_HERE, MOST_SHARE_HERE * left)
        return self._limits.must_end and sum(self._times.finite_seconds(trials)) > most

    def _limits_of(self, workers: FitWorkers, trials: Sequence[Trial]) -> Limits:
        """Return the limits of one of these pipelines; more rows than a trial's allow more."""
        memory = workers.memory_bytes
        seconds = self._times.finite_seconds(trials)
        cpu = max(LEAST_SECONDS, SLACK * max(seconds)) if seconds else None
        return Limits(
            wall_seconds=None if cpu is None else WALL_SLACK * cpu,
            cpu_seconds=cpu,
            memory_bytes=None if memory is None else int(memory * max(1.0, self._times.growth)),
        )


def sort_by_weight(members: Sequence[ChosenMember]) -> list[ChosenMember]:
    """Return the first member, which is the best, and then the others by weight."""
    return [members[0], *sorted(members[1:], key=lambda each: -each.weight)]


def _reason(error: Exception) -> str:
    text = " ".join(str(error).split())[:MOST_LETTERS]
    if isinstance(error, TooLargeError | UnknownFormatError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
