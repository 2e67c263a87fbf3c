"""The main job: search a table, fit what is best, and remember what was tried.

    FOLDER/table-ID.npz     the rows that trials are scored on, for the worker processes
    FOLDER/study.db         the trials, as an Optuna study (where no other store is given)
    FOLDER/predictions/ID/  out-of-fold predictions, where the model may be a blend
    FOLDER/model.foretune   what `predict` reads
    FOLDER/trials.parquet   the trials as an experience
    FOLDER/report.html      for people

An ID tells what a file was made from: several fits may use a folder, one after the other or at
once. Whatever ends the search (its budget, Ctrl-C), the best so far becomes the model; the same
call goes on where it was.
"""

import json
import math
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from hashlib import sha256
from pathlib import Path

from foretune._base.files import make_private_folder
from foretune._base.progress import SILENT, Progress
from foretune._base.time_budget import TimeBudget, contention
from foretune.automl.final_model.build import Conclusion, fit_final_model
from foretune.automl.final_model.fitting import FitMeans
from foretune.automl.final_model.member_selection import BlendOptions
from foretune.automl.final_model.time_model import MOST_GROWTH_HERE, SHARE_OF_MODEL, FitTimeModel
from foretune.automl.final_model.worker_pool import FitWorkers
from foretune.automl.first_model import FirstModel
from foretune.automl.knowledge.fit_journal import FitDescription, FitJournal
from foretune.automl.knowledge.knowledge import FitKnowledge
from foretune.automl.knowledge.memory import Memory
from foretune.automl.metrics import SCORERS
from foretune.automl.plan import FitOptions, FitPlan, usual_search_rows
from foretune.automl.trial_runs import (
    Ending,
    InMemoryEvaluator,
    Runs,
    TableFileEvaluator,
    load_start_knowledge,
    rank_trials,
    run_trials,
)
from foretune.errors import UsageError
from foretune.experience import Experience
from foretune.experience.evaluation_rows import build_experience
from foretune.experience.trial import Trial
from foretune.run.executor_choice import HERE, ExecutorChoice
from foretune.run.study import Study
from foretune.run.study_identity import OtherStudyError
from foretune.run.tuning_loop import SILENT_WATCH, Budget, Watch
from foretune.stores.studies import open_study
from foretune.tables.identity import fingerprint, task_name
from foretune.tables.table import Table
from foretune.tables.table_features import description

LEAST_SECONDS = 0.1
LEAST_RESERVE = 0.1
"""Of the time: what is left for the model at least, where another one is used if it is late."""
SHARE_FOR_SAFETY = 0.25
"""Of the time left for the model: what may go into one of the rows of the search, which is used if
one of all rows is not ready in time."""
SHARE_TO_USE = 0.7
"""Of the time left for the model, what it is expected to take where its rows are chosen by it."""


@dataclass(frozen=True, slots=True)
class FitFolder:
    """Where a fit keeps its files."""

    folder: Path

    def table(self, rows: str) -> Path:
        """The rows that trials are scored on, by their fingerprint."""
        return self.folder / f"table-{rows}.npz"

    @property
    def study(self) -> Path:
        """The trials."""
        return self.folder / "study.db"

    def predictions(self, scored: str) -> Path:
        """The folder of out-of-fold predictions, by the fingerprint of what decides them."""
        return self.folder / "predictions" / scored

    @property
    def model(self) -> Path:
        """The fitted model."""
        return self.folder / "model.foretune"

    @property
    def trials(self) -> Path:
        """The trials as an experience."""
        return self.folder / "trials.parquet"

    @property
    def report(self) -> Path:
        """The page for people."""
        return self.folder / "report.html"


@dataclass(frozen=True, kw_only=True)
class SearchResult:
    """A search that has ended, and what it rested on."""

    plan: FitPlan
    wishes: FitOptions
    about: FitDescription
    """The name under which the table is remembered, and its meta-features."""
    trials: tuple[Trial, ...]
    ending: Ending
    knowledge: FitKnowledge | None
    relied_on: str = ""
    """What the method relied on, in a sentence."""
    blending: BlendOptions | None = None
    timings: tuple[tuple[str, float], ...]

    def experience(self) -> Experience:
        """The trials as an experience of one task."""
        about = self.about
        return build_experience(
            self.plan.space,
            about.metrics,
            [trial.evaluation(about.task) for trial in self.trials if trial.is_over],
            meta_features={about.task: dict(about.meta_features)},
        )


@dataclass(frozen=True, kw_only=True)
class FitResult(SearchResult):
    """What came of the job."""

    conclusion: Conclusion


@dataclass
class Job:
    """One run of the main job on a table; `run` does it.

    target: the name of the column to predict. store: the URL of an Optuna storage; a file in the
    folder if not given. transfer: whether past datasets teach this search. remember: whether the
    user's own fits do, and whether this one teaches later ones. site: where trials run.
    first: what is used if no other model is ready in time; without it the model is waited for.
    """

    table: Table
    target: str
    wishes: FitOptions
    place: FitFolder
    store: str | None = None
    transfer: bool = True
    remember: bool = True
    progress: Progress = SILENT
    watch: Watch = SILENT_WATCH
    site: ExecutorChoice = HERE
    first: FirstModel | None = None
    began: float = field(default_factory=time.monotonic)
    timings: dict[str, float] = field(default_factory=dict)
    """What took how many seconds."""

    def run(self, plan: FitPlan) -> FitResult:
        """Search by a plan for this table, remember, conclude."""
        return self.conclude(self.search(plan))

    def search(self, plan: FitPlan) -> SearchResult:
        """Run the trials and remember them."""
        self.place.folder.mkdir(parents=True, exist_ok=True)
        task = task_name(self.table)
        trial = self._trial(plan)
        pool = self.site.pool(trial, workers=self.wishes.jobs, limits=self.wishes.limits)
        with pool as runs:
            # Workers import their libraries while this process gets ready itself.
            runs.start()
            with self._study(plan, task) as study:
                about, ending, knowledge, relied_on = self._search(plan, study, runs, task)
                trials = tuple(study.trials())
        kept = trial.predictions
        blending = None if kept is None else BlendOptions(self.wishes.ensemble, kept)
        return SearchResult(
            plan=plan,
            wishes=self.wishes,
            about=about,
            trials=trials,
            ending=ending,
            knowledge=knowledge,
            relied_on=relied_on,
            blending=blending,
            timings=tuple(self.timings.items()),
        )

    @property
    def clock(self) -> TimeBudget:
        """The time that the job has."""
        return TimeBudget.of(self.wishes.seconds, self.began)

    def conclude(self, found: SearchResult) -> FitResult:
        """Fit the model that the trials come to, so that it can be saved."""
        with self._time_stage("fitting the model"):
            conclusion = self._fit_final_model(found)
        self.timings["all of it"] = time.monotonic() - self.began
        ended = replace(found, timings=tuple(self.timings.items()))
        model = replace(conclusion.model, about={"task": found.about.task})
        return FitResult(**vars(ended), conclusion=replace(conclusion, model=model))

    def _fit_final_model(self, found: SearchResult) -> Conclusion:
        if self.first is None:
            until = model_deadline(self.wishes, since=self.began)
            return self._conclusion(found, self.table, self._means(until))
        means = replace(self._means(self.clock.model_end), must_end=True)
        safe = self._safe_conclusion(found, means)
        rows = self._rows_in_time(found)
        table = self.table if rows is None else self.table.sample(rows, seed=self.wishes.seed)
        try:
            made = self._conclusion(found, table, means)
        except (UsageError, KeyboardInterrupt) as error:
            if safe is None:
                raise
            stopped = isinstance(error, KeyboardInterrupt)
            return replace(_of_fewer_rows(safe, found.plan.table, self.table), interrupted=stopped)
        return made if rows is None else _of_fewer_rows(made, table, self.table)

    def _means(self, until: float) -> FitMeans:
        crew = FitWorkers(self._fitters, self.place.folder, self.wishes.trial_memory)
        return FitMeans(crew, self.progress, is_filed=True, until=until)

    def _conclusion(self, found: SearchResult, table: Table, means: FitMeans) -> Conclusion:
        return fit_final_model(
            found.plan,
            table,
            found.trials,
            target=self.target,
            blending=found.blending,
            means=means,
            spent=found.ending in ("trials", "exhausted"),
        )

    def _safe_conclusion(self, found: SearchResult, means: FitMeans) -> Conclusion | None:
        """The best trial fitted to the rows of the search, if all rows take much longer."""
        plan, rows = found.plan, len(found.plan.table)
        best = rank_trials(found.trials, plan)[:1]
        if not best or FitTimeModel.of(plan, rows=len(self.table)).growth <= MOST_GROWTH_HERE:
            return None
        expected = contention() * FitTimeModel.of(plan, rows=rows).seconds(best[0])
        if not expected <= SHARE_FOR_SAFETY * self.clock.remaining_for_model():
            return None
        try:
            return self._conclusion(replace(found, blending=None), plan.table, means)
        except UsageError:
            return None

    def _rows_in_time(self, found: SearchResult) -> int | None:
        """How many rows the best trial can learn from in time; None where a trial can from all."""
        plan, pace = found.plan, FitTimeModel.of(found.plan, rows=len(self.table))
        best, left = rank_trials(found.trials, plan), self.clock.remaining_for_model()
        slower = contention()
        times = [slower * pace.seconds(trial) for trial in best]
        if any(not seconds > left for seconds in times) or not best:
            return None
        share: float = (SHARE_TO_USE * left / times[0]) ** (1.0 / pace.power(best[0]))
        rows = max(int(share * len(self.table)), len(plan.table))
        return rows if rows < len(self.table) else None

    def _study(self, plan: FitPlan, task: str) -> Study:
        settings = {
            "table": task,
            "scored": [plan.protocol.folds, plan.protocol.seed, len(plan.table)],
            "seed": self.wishes.seed,
        }
        try:
            return open_study(
                self.store or str(self.place.study),
                f"{task} {plan.metric.name}{self._fewer_rows(plan)}",
                space=plan.space,
                metrics=[plan.metric],
                settings=settings,
            )
        except OtherStudyError as error:
            raise UsageError(
                "a search goes on with what it was begun with (--only, --space, --seed, the "
                f"installed packages), but of this table's search {error.difference}: give the "
                "same again, or choose another folder with -o (and another --store, if one is "
                "given)"
            ) from error

    def _fewer_rows(self, plan: FitPlan) -> str:
        """What tells a study apart whose trials have fewer rows because there is little time."""
        rows = len(plan.table)
        return "" if rows == usual_search_rows(self.table) else f" on {rows} rows"

    def _search(
        self, plan: FitPlan, study: Study, runs: Runs, task: str
    ) -> tuple[FitDescription, Ending, FitKnowledge | None, str]:
        with self._time_stage("describing the table"):
            about = describe_for_memory(plan, task)
        with self._time_stage("reading what past datasets taught"):
            knowledge = load_knowledge(plan, task, own=self.remember) if self.transfer else None
            known = load_start_knowledge(
                self.wishes, knowledge, about.meta_features, progress=self.progress
            )
        with self._time_stage("searching"), self._remembering(about) as watch:
            # The watch hears of earlier trials as well: a crash may have come between a trial's end
            # and its way into the memory, which keeps every trial once.
            ending, relied_on = run_trials(
                plan,
                self.wishes,
                known,
                study,
                runs,
                self._budget(plan),
                watch=watch,
            )
        return about, ending, knowledge, relied_on

    @property
    def _fitters(self) -> int:
        """How many processes of this machine fit the model: trials may run on others."""
        return self.wishes.jobs if self.site.is_here else 1

    def _budget(self, plan: FitPlan) -> Budget:
        rows, workers = len(self.table), self._fitters
        found = budget(plan, self.wishes, rows=rows, since=self.began, workers=workers)
        if self.first is None or found.seconds is None:
            return found
        seconds = max(self.clock.remaining_for_model(), LEAST_SECONDS)
        usual, least = found.reserve, LEAST_RESERVE * self.clock.seconds

        def reserve(trials: Sequence[Trial]) -> float:
            expected = 0.0 if usual is None else contention() * usual(trials)
            return (
                min(max(expected, least), SHARE_OF_MODEL * seconds)
                if rank_trials(trials, plan)
                else 0.0
            )

        return replace(found, seconds=seconds, reserve=reserve)

    def _trial(self, plan: FitPlan) -> TableFileEvaluator | InMemoryEvaluator:
        """What evaluates configurations: on a file, or where others run it, with the table."""
        rows = fingerprint(plan.table)
        predictions = None
        if self.wishes.ensemble > 1:
            predictions = self.place.predictions(_evaluation_fingerprint(plan, rows)).absolute()
            make_private_folder(predictions.parent)
            make_private_folder(predictions)
        if not self.site.is_here:
            return InMemoryEvaluator(plan.table, plan.protocol, predictions)
        file = self.place.table(rows)
        plan.table.save(file)
        return TableFileEvaluator(file, plan.protocol, predictions)

    @contextmanager
    def _remembering(self, about: FitDescription) -> Iterator[Watch]:
        """A watch that also writes every trial into the user's memory."""
        if not self.remember:
            yield self.watch
            return
        recording = Memory.of_user().begin(about)
        try:
            yield RecordingWatch(self.watch, recording)
        finally:
            recording.close()

    @contextmanager
    def _time_stage(self, what: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self.timings[what] = time.monotonic() - start


@dataclass(frozen=True, slots=True)
class RecordingWatch:
    """Passes on what it hears, and writes it into the user's memory."""

    shown: Watch
    recording: FitJournal

    def trial_began(self, trial: Trial) -> None:
        """Only passed on."""
        self.shown.trial_began(trial)

    def trial_ended(self, trial: Trial) -> None:
        """Written down first."""
        self.recording.add(trial.evaluation(self.recording.task))
        self.shown.trial_ended(trial)


def _of_fewer_rows(made: Conclusion, learnt: Table, table: Table) -> Conclusion:
    """The same, with a remark that there was no time to learn from all rows."""
    remark = (
        f"The model learns from {len(learnt):,} of {len(table):,} rows, because there was no time "
        "for more: give more --time for all of them."
    )
    return replace(made, remark=f"{remark} {made.remark}".strip())


def _evaluation_fingerprint(plan: FitPlan, rows: str) -> str:
    """A fingerprint of all that decides what a configuration predicts: the rows and their splits.

    The same configurations are tried on many tables, and for several targets of one.
    """
    protocol = plan.protocol
    splits = [protocol.folds, protocol.cross_validated_below, protocol.seed]
    return sha256(json.dumps([rows, *splits]).encode()).hexdigest()[:16]


def describe_for_memory(plan: FitPlan, task: str) -> FitDescription:
    """What later fits may know about this one."""
    metrics = tuple(SCORERS[name].metric for name in plan.protocol.metrics)
    return FitDescription(plan.shipped.name, plan.space, metrics, task, description(plan.table))


def load_knowledge(plan: FitPlan, task: str, *, own: bool) -> FitKnowledge | None:
    """What past datasets teach a search; None where there are none.

    task: that of the table itself, whose records teach nothing. own: whether the user's fits do.
    """
    found = FitKnowledge.for_space(
        plan.shipped.name, metric=plan.metric.name, own=own, without=task, space=plan.space
    )
    return found if found.sources else None


def budget(plan: FitPlan, wishes: FitOptions, *, rows: int, since: float, workers: int) -> Budget:
    """Of the search, in a job that began at this time of the monotonic clock.

    rows: all that the model learns from. That takes time as well, so the search ends earlier.
    workers: how many processes may share that.
    """
    if wishes.seconds is None:
        return Budget(wishes.most_trials)
    left = max(wishes.seconds - (time.monotonic() - since), LEAST_SECONDS)
    pace = FitTimeModel.of(plan, rows=rows)

    def reserve(trials: Sequence[Trial]) -> float:
        # What would take longer is passed over when the model is made.
        most = SHARE_OF_MODEL * left
        possible = pace.quick_enough(rank_trials(trials, plan), most)
        return min(pace.of_model(possible, members=wishes.ensemble, workers=workers), most)

    return Budget(wishes.most_trials, left, reserve)


def model_deadline(wishes: FitOptions, *, since: float) -> float:
    """When the model should be ready, by the monotonic clock, in a job that began at this time.

    It has at least the share of the time that the search leaves to it at the latest.
    """
    if wishes.seconds is None:
        return math.inf
    return max(since + wishes.seconds, time.monotonic() + SHARE_OF_MODEL * wishes.seconds)
