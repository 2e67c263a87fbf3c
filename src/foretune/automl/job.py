"""Describes and runs a fit: reads a table, searches, fits the final model, remembers the trials.

    job = Job(data=TableFile(Path("train.csv"), "label"), folder=FitFolder(Path("out")))
    result = job.run()

The command line, the scikit-learn estimators and `foretune suggest` describe a job and listen to
its events. Whatever ends the search (its budget, Ctrl-C), the best so far becomes the model, and
the same job in the same folder goes on where it was.
"""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING

from foretune._base.progress import report_every_second
from foretune._base.time_budget import TimeBudget
from foretune.automl.estimators.fitted_pipeline import FitPipeline, refit
from foretune.automl.evaluation import SPLIT_ONCE_FROM
from foretune.automl.first_model import FirstModelKeeper
from foretune.automl.fit_data import DataSource, FitData
from foretune.automl.fit_folder import FitFolder
from foretune.automl.job_listener import SILENT_LISTENER, JobListener
from foretune.automl.out_of_fold import evaluation_fingerprint
from foretune.automl.plan import FitOptions, FitPlan, make_plan, usual_search_rows
from foretune.automl.preflight import OtherTargetError, check_ready, check_same_target
from foretune.automl.worker_libraries import SEARCH_MODULES
from foretune.errors import UsageError
from foretune.experience.trial import best_first
from foretune.run.executor_choice import HERE, ExecutorChoice
from foretune.run.inline import InlineExecutor
from foretune.tables import Table, fingerprint, task_name

# The modules of the search and of the final model take seconds to load, so the methods below import
# them. A first model is saved before (decision 036).
if TYPE_CHECKING:
    from foretune.automl.final_model.fit import FinalModelRequest
    from foretune.automl.fit_result import FitResult, SearchResult
    from foretune.automl.past_suggestions import PastSuggestions
    from foretune.automl.trial_search import TrialExecutor
    from foretune.run.study import Study

LEAST_SEARCH_SECONDS = 3.0
"""Worker processes take this long to start, so with less time there would be no trial."""
NO_SEARCH = "reading the table and fitting a first model took nearly all of the time"
TOO_LITTLE_MEMORY = (
    "a model is put together and packed in memory, but there was too little of it: choose fewer "
    "pipelines with --ensemble 1, or a machine with more memory"
)


@dataclass(frozen=True, kw_only=True)
class Job:
    """The description of a fit: its data, its options and the files that it keeps."""

    data: DataSource
    options: FitOptions = field(default_factory=FitOptions)
    folder: FitFolder | None = None
    """The folder of the model, the trials and the study; None keeps no files."""
    store: str | None = None
    """The URL of an Optuna storage for the trials; a file in the folder if not given."""
    transfer: bool = True
    """Whether past datasets teach the search."""
    remember: bool = True
    """Whether the user's memory teaches the search, and the trials are added to it."""
    executor: ExecutorChoice | None = HERE
    """The kind of executor for trials; None runs them in this process, without limits."""
    began: float = field(default_factory=time.monotonic)
    """The start of the time, by the monotonic clock."""
    fit_pipeline: FitPipeline = refit
    """The function that fits the pipelines of the first and the final model."""

    @property
    def clock(self) -> TimeBudget:
        """The time that the job has."""
        return TimeBudget.of(self.options.seconds, self.began)

    def run(self, listener: JobListener = SILENT_LISTENER) -> "FitResult":
        """Search, fit and save the model; return it with its parts.

        Raises UsageError if the data or the options do not fit, or if no model can be made.
        """
        if self.folder is not None:
            return _JobRun(self, self.folder, listener).run()
        with TemporaryDirectory(prefix="foretune-") as made:
            return _JobRun(self, FitFolder(Path(made)), listener).run()

    def suggest(self, length: int, listener: JobListener = SILENT_LISTENER) -> "PastSuggestions":
        """Return the configurations that past datasets recommend, without running any."""
        from foretune.automl.past_suggestions import suggest_from_past
        from foretune.automl.trial_search import describe_fit, load_knowledge

        data = self.data.read(TimeBudget(), listener.progress, lambda _: None)
        plan = make_plan(data.table, self.options)
        about = describe_fit(plan, task_name(data.table))
        knowledge = load_knowledge(plan, about.task, own=self.remember)
        return suggest_from_past(data, plan, about, knowledge, length)


class _JobRun:
    """A single run of a job."""

    def __init__(self, job: Job, folder: FitFolder, listener: JobListener) -> None:
        self._job, self._options, self._listener = job, job.options, listener
        self._folder, self._clock = folder, job.clock
        self._is_saved = job.folder is not None
        path = folder.model if self._is_saved else None
        self._first = FirstModelKeeper(
            path, self._clock, listener.first_model_ready, job.fit_pipeline
        )
        self._timings: dict[str, float] = {}

    def run(self) -> "FitResult":
        data = self._job.data.read(self._clock, self._listener.progress, self._use_sample)
        plan = make_plan(data.table, self._options)
        self._check_ready(data)
        self._listener.on_start(plan, data)
        self._make_first_model(plan, data)
        if self._first.kept and self._clock.remaining_for_model() < LEAST_SEARCH_SECONDS:
            result = self._end_without_search(plan, data)
        else:
            self._listener.progress.start("preparing the search", None)
            try:
                found = self._search(plan, data)
            finally:
                self._listener.progress.stop()
            self._listener.search_ended(found)
            result = self._make_model(found, data)
        self._listener.on_finish(result)
        return result

    # Before the search

    def _check_ready(self, data: FitData) -> None:
        if self._is_saved:
            check_ready(self._options, self._folder, data, store=self._job.store)

    def _use_sample(self, sample: FitData) -> None:
        """Make a quick first model of a first sample of the table."""
        self._check_ready(sample)
        try:
            plan = make_plan(sample.table, self._options)
        except UsageError:
            return  # The whole table may suffice; if not, its own plan will say so.
        self._first.begin(plan, sample.target)

    def _make_first_model(self, plan: FitPlan, data: FitData) -> None:
        """Load the libraries of pipelines; fit and save a better first model if one is needed."""
        with report_every_second(self._listener.progress, "loading libraries"):
            for module in SEARCH_MODULES:
                import_module(module)
        with report_every_second(self._listener.progress, "fitting a first model"):
            self._first.make(plan, data.target, data.table)

    def _end_without_search(self, plan: FitPlan, data: FitData) -> "FitResult":
        """Return the result of a fit that has no time for a search."""
        from foretune.automl.fit_result import SearchResult
        from foretune.automl.trial_search import describe_fit

        about = describe_fit(plan, task_name(data.table))
        found = SearchResult(plan=plan, options=self._options, about=about)
        return self._stand_in(found, NO_SEARCH)

    # The search

    def _search(self, plan: FitPlan, data: FitData) -> "SearchResult":
        from foretune.automl.fit_result import SearchResult
        from foretune.automl.knowledge.memory import Memory
        from foretune.automl.search_budget import search_budget
        from foretune.automl.trial_events import TrialEvents
        from foretune.automl.trial_search import (
            describe_fit,
            let_families_compete,
            load_knowledge,
            load_start_knowledge,
            run_trials,
        )

        self._listener.search_began(plan, data)
        self._folder.folder.mkdir(parents=True, exist_ok=True)
        task = task_name(data.table)
        with self._executor(plan) as executor, self._study(plan, data.table, task) as study:
            with self._time_stage("describing the table"):
                about = describe_fit(plan, task)
            with self._time_stage("reading what past datasets taught"):
                knowledge = None
                if self._job.transfer:
                    knowledge = load_knowledge(plan, task, own=self._job.remember)
                known = load_start_knowledge(
                    self._options,
                    knowledge,
                    about.meta_features,
                    progress=self._listener.progress,
                )
                known = let_families_compete(known, plan, self._options, knowledge)
            budget = search_budget(
                plan,
                self._options,
                self._clock,
                rows=len(data.table),
                workers=self._fitters,
                must_end=self._first.kept is not None,
                averages=self._averages(plan),
            )
            journal = Memory.of_user().begin(about) if self._job.remember else None
            kept = self._predictions(plan) if self._averages(plan) else None
            events = TrialEvents(self._listener, plan.metric, journal, kept)
            self._listener.progress.stop()
            with self._time_stage("searching"):
                try:
                    ending, relied_on = run_trials(
                        plan, self._options, known, study, executor, budget, watch=events
                    )
                finally:
                    if journal is not None:
                        journal.close()
            trials = tuple(study.trials())
        return SearchResult(
            plan=plan,
            options=self._options,
            about=about,
            trials=trials,
            ending=ending,
            knowledge=knowledge,
            relied_on=relied_on,
            timings=tuple(self._timings.items()),
        )

    @contextmanager
    def _executor(self, plan: FitPlan) -> Iterator["TrialExecutor"]:
        """Open the executor that evaluates configurations, on a file or on the table in memory."""
        from foretune.automl.search_budget import fold_seconds
        from foretune.automl.trial_evaluator import InMemoryEvaluator, TableFileEvaluator

        choice, rows = self._job.executor, fingerprint(plan.table)
        predictions = self._predictions(plan)
        averages = self._averages(plan)
        kept = (plan.protocol, predictions, averages, fold_seconds(plan, self._options))
        in_memory = InMemoryEvaluator(plan.table, *kept)
        if choice is None:
            with InlineExecutor(in_memory) as here:
                yield here
            return
        evaluator: InMemoryEvaluator | TableFileEvaluator = in_memory
        if choice.is_here:
            plan.table.save(self._folder.table(rows))
            evaluator = TableFileEvaluator(self._folder.table(rows), *kept)
        options = self._options
        with choice.pool(evaluator, workers=options.jobs, limits=options.limits) as pool:
            # Workers import their libraries while this process gets ready itself.
            pool.start()
            yield pool

    def _predictions(self, plan: FitPlan) -> Path | None:
        """The folder of out-of-fold predictions; None if the model needs none."""
        if self._options.ensemble == 1 and not self._averages(plan):
            return None
        return self._folder.predictions(evaluation_fingerprint(plan.table, plan.protocol))

    def _averages(self, plan: FitPlan) -> bool:
        """Return whether the model averages the pipelines of folds, which workers here can keep."""
        choice = self._job.executor
        return plan.averages_folds and (choice is None or choice.is_here)

    def _study(self, plan: FitPlan, table: Table, task: str) -> "Study":
        from foretune.run.study_identity import OtherStudyError
        from foretune.stores.studies import open_study

        rows = len(plan.table)
        # If there is little time, trials have fewer rows or splits. Their study has its own name.
        fewer = "" if rows == usual_search_rows(table) else f" on {rows} rows"
        if plan.protocol.cross_validated_below == 0:
            fewer += " split once"
        elif plan.protocol.cross_validated_below > rows >= SPLIT_ONCE_FROM:
            fewer += f" in {plan.protocol.folds} folds"
        file = str(self._folder.study) if self._is_saved else None
        try:
            return open_study(
                self._job.store or file,
                f"{task} {plan.metric.name}{fewer}",
                space=plan.space,
                metrics=[plan.metric],
                settings={
                    "table": task,
                    "scored": [plan.protocol.folds, plan.protocol.seed, rows],
                    "seed": self._options.seed,
                },
            )
        except OtherStudyError as error:
            raise UsageError(
                "a search goes on with what it was begun with (--only, --space, --seed, the "
                f"installed packages), but of this table's search {error.difference}: give the "
                "same again, or choose another folder with -o (and another --store, if one is "
                "given)",
                rule="search-began-differently",
                value=error.difference,
            ) from error

    @property
    def _fitters(self) -> int:
        """The number of processes of this machine that fit the model."""
        is_here = self._job.executor is not None and self._job.executor.is_here
        return self._options.jobs if is_here else 1

    # The model

    def _make_model(self, found: "SearchResult", data: FitData) -> "FitResult":
        """Fit the final model and save it; the first model stands in for it if there is none."""
        try:
            return self._fit_and_save(found, data)
        except OtherTargetError:
            raise  # Another fit has saved its model in the folder meanwhile.
        except (UsageError, MemoryError) as error:
            reason = TOO_LITTLE_MEMORY if isinstance(error, MemoryError) else str(error)
            if self._first.kept is not None:
                return self._stand_in(found, reason)
            self._listener.on_failure(found, reason)
            if isinstance(error, MemoryError):
                raise UsageError(reason, rule="too-little-memory") from error
            raise
        except KeyboardInterrupt:
            self._listener.on_failure(found, "stopped before it was ready")
            raise

    def _fit_and_save(self, found: "SearchResult", data: FitData) -> "FitResult":
        from foretune.automl.final_model.fit import fit_final_model
        from foretune.automl.fit_result import FitResult

        model_file, metric = self._folder.model, found.plan.metric
        if self._is_saved:
            check_same_target(model_file, data.target)
            if best_first(found.trials, metric):  # An experience needs a success.
                found.experience().save(self._folder.trials)
        with self._time_stage("fitting the model"):
            final = fit_final_model(self._model_request(found, data))
        self._timings["all of it"] = time.monotonic() - self._job.began
        final = replace(final, model=replace(final.model, about={"task": found.about.task}))
        if self._first.kept is not None:
            final = self._first.kept.replace_worse(final, metric.name)
        known = vars(found) | {"timings": tuple(self._timings.items())}
        result = FitResult(**known, model=final.model, final=final)
        if self._is_saved:
            check_same_target(model_file, data.target)
            final.model.save(model_file)
            self._listener.model_saved(model_file)
        return result

    def _model_request(self, found: "SearchResult", data: FitData) -> "FinalModelRequest":
        from foretune.automl.final_model.fit import FinalModelRequest

        options, has_processes = self._options, self._job.executor is not None
        return FinalModelRequest(
            plan=found.plan,
            table=data.table,
            target=data.target,
            trials=found.trials,
            ensemble=options.most_refitted,
            averaged=options.most_members if self._averages(found.plan) else 0,
            predictions=self._predictions(found.plan),
            clock=self._clock,
            must_end=self._first.kept is not None,
            is_spent=self._is_saved and found.ending in ("trials", "exhausted"),
            is_saved=self._is_saved,
            processes=self._fitters if has_processes else None,
            folder=self._folder.folder,
            memory_bytes=options.trial_memory,
            progress=self._listener.progress,
            fit=self._job.fit_pipeline,
        )

    def _stand_in(self, found: "SearchResult", reason: str) -> "FitResult":
        """Leave the first model in the file, or that of an earlier fit of the same table."""
        from foretune.automl.fit_result import FitResult, StandIn

        model, is_earlier = self._first.settle(found.about.task)
        if self._first.kept is None:
            raise ValueError("there is no first model")
        stand_in = StandIn(self._first.kept, reason, is_earlier)
        return FitResult(**vars(found), model=model, stand_in=stand_in)

    @contextmanager
    def _time_stage(self, what: str) -> Iterator[None]:
        start = time.monotonic()
        try:
            yield
        finally:
            self._timings[what] = time.monotonic() - start
