"""What a terminal or a log shows while `foretune fit` works."""

from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

import click

from foretune._base.progress import TerminalProgress
from foretune.automl.first_model import FirstModel
from foretune.automl.fit_data import FitData
from foretune.automl.job_listener import JobListener
from foretune.automl.plan import FitPlan
from foretune.cli.display import display
from foretune.cli.fit_result import report_failure
from foretune.experience.trial import Trial
from foretune.integrations.mlflow_log import log_to_mlflow
from foretune.run.watch import SILENT_WATCH, Watch

if TYPE_CHECKING:
    from foretune.automl.fit_result import SearchResult
    from foretune.automl.job import Job


class FitScreen(JobListener):
    """Shows the events of a fit. At the end of its `with` statement, the display is removed.

    mlflow: the URI under which trials are also logged.
    """

    def __init__(self, job: "Job", mlflow: str | None) -> None:
        self.progress = TerminalProgress()
        self._data: FitData | None = None
        self.first_model: Path | None = None
        """The file of the first model, once it is saved."""
        self._job, self._mlflow = job, mlflow
        self._watch: Watch = SILENT_WATCH
        self._shown = ExitStack()

    def __enter__(self) -> "FitScreen":
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._shown.__exit__(kind, error, trace)

    @property
    def data(self) -> FitData:
        """The table of the fit, once it is read."""
        if self._data is None:
            raise ValueError("the table has not been read yet")
        return self._data

    def on_start(self, plan: FitPlan, data: FitData) -> None:
        """Show what is assumed about the table, and how it will be searched."""
        self._data = data
        for note in (*data.notes, *plan.notes):
            click.echo(note)

    def first_model_ready(self, first: FirstModel, seconds: float, path: Path | None) -> None:
        """Show what the first model is and where it lies."""
        self.first_model = path
        where = f"saved in {path}" if path else "kept beside that of an earlier fit"
        click.echo(f"{first.summary} is ready after {seconds:.0f} s, {where}.")

    def search_began(self, plan: FitPlan, data: FitData) -> None:
        """Show a bar, or lines in a log, from the first trial on."""
        metrics, options = [plan.metric], self._job.options
        shown = self._shown.enter_context(display(metrics, options.most_trials, options.seconds))
        name = f"{data.table.name} {plan.metric.name}"
        self._watch = self._shown.enter_context(log_to_mlflow(shown, self._mlflow, name, metrics))

    def trial_began(self, trial: Trial) -> None:
        """Show which trials run."""
        self._watch.trial_began(trial)

    def trial_ended(self, trial: Trial) -> None:
        """Show the best so far."""
        self._watch.trial_ended(trial)

    def search_ended(self, found: "SearchResult") -> None:  # noqa: ARG002
        """Remove the bar, and wait until MLflow has all trials."""
        self._shown.close()

    def on_failure(self, found: "SearchResult", reason: str) -> None:
        """Write the report of the trials, although they gave no model."""
        report_failure(self._job, found, self.data, reason)
