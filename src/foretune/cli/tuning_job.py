"""One run of `foretune tune`, described by its options, and carried out."""

import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from foretune.cli.past_run_alignment import carry_over_past
from foretune.cli.past_run_names import rename
from foretune.cli.past_runs import PastRuns, check_out_is_not_source, open_past_runs
from foretune.cli.tune_options import resolve_metrics, resolve_space
from foretune.cli.tune_output import FinishedSearch, Outputs, report_search
from foretune.errors import UsageError

if TYPE_CHECKING:
    from foretune.experience import Experience, Metric
    from foretune.experience.alignment.carry_over import CarriedExperience
    from foretune.experience.trial import Trial
    from foretune.methods.stopping.policy import StoppingPolicy
    from foretune.report.story import StorySource
    from foretune.report.trial_curves import PastBand
    from foretune.run.budget import Budget, Ending
    from foretune.run.executor_choice import ExecutorChoice
    from foretune.run.study import Study
    from foretune.run.trial_folders import TrialFolders
    from foretune.search.optimizer import Optimizer
    from foretune.space import Space

TRIALS = 50
LONGEST_NAME = 200


@dataclass(frozen=True, kw_only=True)
class TuningJob:
    """What is tuned, with what, and what is kept of it: the options of the command."""

    # What is tuned
    function: str | None
    command: str | None
    space: Path | None
    metrics: tuple[str, ...]
    direction: str | None
    # Past runs
    experience: tuple[str, ...]
    assumed: tuple[str, ...]
    missing: str
    renamed: tuple[str, ...]
    # How it is searched
    trials: int | None
    seconds: float | None
    method: str
    seed: int
    stop: str | None
    first_step: float | None
    last_step: float | None
    reduction: float
    # Where it runs
    jobs: int
    executor: str
    address: str | None
    time_limit: float | None
    memory: float | None
    grace: float
    # What is kept
    store: str
    study: str | None
    folder: Path | None
    checkpoint_limit: float | None
    mlflow: str | None
    out: Path | None
    report: Path | None

    def run(self) -> int:
        """Tune, print and save the results, and return the exit code."""
        site, outputs = self._check()
        past = self._past_runs()
        space = resolve_space(self.space, past.task_source)
        metrics = resolve_metrics(self.metrics, self.direction, past.task_source)
        known = carry_over_past(past, space, metrics, self.assumed, self.missing)
        objective = self._objective(space)
        began = time.monotonic()
        optimizer = self._optimizer(space, metrics, known)
        learning = time.monotonic() - began
        study, trials, folders, ending = self._search(optimizer, objective, site, metrics)
        search = FinishedSearch(
            study,
            optimizer.method,
            self._source(known),
            self._past_curves(known, metrics[0]),
            learning,
            time.monotonic() - began - learning,
            self.seed,
            folders,
        )
        return report_search(search, trials, optimizer.explain(), ending, outputs)

    @cached_property
    def name(self) -> str:
        """The name of the study."""
        return self.study or (self.function or self.command or "")[:LONGEST_NAME]

    @cached_property
    def budget(self) -> "Budget":
        """How many trials there are, and how long they may take."""
        from foretune.run.budget import Budget

        unlimited = self.trials is None and self.seconds is None
        return Budget(TRIALS if unlimited else self.trials, self.seconds)

    def _check(self) -> "tuple[ExecutorChoice, Outputs]":
        """Refuse what cannot work, before anything is read or written."""
        from foretune.run.executor_choice import ExecutorChoice
        from foretune.stores.optuna.study import check_store

        site = ExecutorChoice(self.executor, self.address)
        self._policy(self.stop or "none")
        outputs = Outputs(self.out, self.report)
        if self.out is not None:
            check_out_is_not_source(self.out, self.experience)
        check_store(self.store)
        return site, outputs

    def _past_runs(self) -> PastRuns:
        for option, texts in (("--assume", self.assumed), ("--rename", self.renamed)):
            if texts and not self.experience:
                raise UsageError(
                    f"{option} describes past runs, but got '{texts[0]}' without any: give an "
                    "--experience"
                )
        past = open_past_runs(self.experience, store=self.store, study=self.name)
        rename(past, self.renamed)
        return past

    def _objective(self, space: "Space") -> Any:
        from foretune.run.commands import Command, CommandLimits
        from foretune.run.named_function import NamedFunction

        if (self.function is None) == (self.command is None):
            raise UsageError(
                "tune needs a function (module:function) or a --command, but got "
                f"{'neither' if self.function is None else 'both'}: give one"
            )
        if self.function is not None:
            return NamedFunction(self.function, Path.cwd())
        assert self.command is not None
        most = int(self.memory) if self.memory else None
        line = Command(self.command, CommandLimits(most, self.grace))
        line.check(space)
        return line

    def _optimizer(
        self,
        space: "Space",
        metrics: "Sequence[Metric]",
        past: "CarriedExperience[Experience] | None",
    ) -> "Optimizer":
        from foretune._base.progress import TerminalProgress
        from foretune.methods.contracts import Target
        from foretune.search.optimizer import Optimizer
        from foretune.search.prior_cache import prior_of
        from foretune.search.registry import method

        chosen, known = method(self.method), None if past is None else past.experience
        prior = prior_of(chosen, known, seed=self.seed, progress=TerminalProgress())
        names = tuple(metric.name for metric in metrics)
        stop = self.stop or ("model" if chosen.decides_steps(known) else "none")
        policy = self._policy(stop, metrics[0].sign)
        target = Target(space, names, budget=self.budget.trials)
        return Optimizer(target, chosen, prior, seed=self.seed, policy=policy)

    def _policy(self, stop: str, sign: float = 1.0) -> "StoppingPolicy":
        from foretune.methods.stopping.policies import learn_steps

        return learn_steps(
            stop,
            first=self.first_step,
            last=self.last_step,
            eta=self.reduction,
            trials=self.budget.trials,
            sign=sign,
        )

    def _search(
        self,
        optimizer: "Optimizer",
        objective: Any,
        site: "ExecutorChoice",
        metrics: "Sequence[Metric]",
    ) -> "tuple[Study, list[Trial], TrialFolders, Ending | None]":
        """Run trials until the budget is used up or somebody stops them."""
        from foretune.cli.display import display
        from foretune.integrations.mlflow_log import log_to_mlflow
        from foretune.run.executor import Limits
        from foretune.run.tuning_loop import tune
        from foretune.stores.studies import open_study

        own_memory = int(self.memory) if self.memory and self.function else None
        limits, budget = Limits(self.time_limit, None, own_memory), self.budget
        settings = {"objective": self.function or self.command}
        space, ending = optimizer.target.space, None
        # MLflow comes first: if it is out of reach, no store is left behind.
        with (
            display(metrics, budget.trials, budget.seconds) as shown,
            log_to_mlflow(shown, self.mlflow, self.name, metrics) as watch,
        ):
            study = open_study(
                self.store, self.name, space=space, metrics=metrics, settings=settings
            )
            with study, site.pool(objective, workers=self.jobs, limits=limits) as pool:
                folders = self._folders(study)
                with suppress(KeyboardInterrupt):
                    ending = tune(study, optimizer, pool, budget, folders=folders, watch=watch)
                return study, study.trials(), folders, ending

    def _folders(self, study: "Study") -> "TrialFolders":
        from foretune.run.trial_folders import TrialFolders, folder_name

        place = study.folder if self.folder is None else self.folder / folder_name(self.name)
        assert place is not None, "a stored study has a place for folders"
        limit = self.checkpoint_limit
        return TrialFolders(place, None if limit is None else int(limit))

    def _past_curves(
        self, past: "CarriedExperience[Experience] | None", metric: "Metric"
    ) -> "PastBand | None":
        """Return what past trials reported, for the report."""
        if past is None or self.report is None:
            return None
        from foretune.report.trial_curves import summarise_past

        return summarise_past(past.experience, metric)

    def _source(self, past: "CarriedExperience[Experience] | None") -> "StorySource | None":
        """Describe the past runs that the search started from, for the report."""
        from foretune._base.databases import hide_passwords
        from foretune.report.story import StorySource

        if past is None:
            return None
        known, note = past.experience, "" if past.is_whole else past.describe()
        given = ", ".join(map(hide_passwords, self.experience))
        return StorySource(given, len(known.tasks), len(known), note)
