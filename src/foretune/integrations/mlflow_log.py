"""Logs trials to MLflow: one experiment for each study, one run for each trial.

Writing happens in a thread of its own, so that a slow server holds up no trial; a server that
fails costs a warning and never the search, for the study has all trials anyway.
"""

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

from foretune._base.databases import hide_passwords
from foretune.errors import ForetuneWarning, UsageError, explain_missing_extras
from foretune.experience import Metric, Status
from foretune.experience.trial import Trial
from foretune.run.call import one_line
from foretune.run.watch import Watch
from foretune.stores.mlflow.tracking_store import first_contact, tracking_uri

if TYPE_CHECKING:
    from mlflow import MlflowClient

URI_VARIABLE, NAME_VARIABLE = "MLFLOW_TRACKING_URI", "MLFLOW_EXPERIMENT_NAME"
LONGEST_PARAMETER = 500
STUDY, TRIAL = "foretune.study", "foretune.trial"
CHOSEN_BY, REASON, METRIC = "foretune.chosen_by", "foretune.reason", "foretune.metric"


@contextmanager
def log_to_mlflow(
    watch: Watch, uri: str | None, study: str, metrics: Sequence[Metric]
) -> Iterator[Watch]:
    """Yield a watch that also logs to MLflow, if a tracking URI is given or in the environment.

    Trials that this process begins are logged, so that processes of one study add up.
    """
    address = uri or os.environ.get(URI_VARIABLE)
    if not address:
        yield watch
        return
    if uri is None and find_spec("mlflow") is None:
        said = f"{URI_VARIABLE} is set, but trials are not logged: MLflow is not installed"
        warnings.warn(ForetuneWarning(said, rule="mlflow-not-installed"), stacklevel=3)
        yield watch
        return
    runs = _Runs.open(address, study, metrics)
    logging = MlflowWatch(watch, runs)
    try:
        yield logging
    finally:
        logging.close()


class MlflowWatch(Watch):
    """Passes on the events of trials, and logs them to MLflow."""

    def __init__(self, watch: Watch, runs: "_Runs") -> None:
        self._watch, self._runs = watch, runs
        self._writer = ThreadPoolExecutor(max_workers=1, thread_name_prefix="mlflow")
        self._begun: set[int] = set()
        self._warned = False

    def trial_began(self, trial: Trial) -> None:
        """Create a run."""
        self._begun.add(trial.number)
        self._writer.submit(self._write, self._runs.begin, trial)
        self._watch.trial_began(trial)

    def trial_ended(self, trial: Trial) -> None:
        """Log the outcome of a trial that was begun here."""
        if trial.number in self._begun:
            self._begun.remove(trial.number)
            self._writer.submit(self._write, self._runs.end, trial)
        self._watch.trial_ended(trial)

    def trial_reported(self, number: int, step: float) -> None:
        """Pass it on."""
        self._watch.trial_reported(number, step)

    def trial_paused(self, trial: Trial) -> None:
        """Pass it on."""
        self._watch.trial_paused(trial)

    def close(self) -> None:
        """Log what is left, and mark runs that have not ended as killed."""
        self._writer.submit(self._write, self._runs.close)
        self._writer.shutdown(wait=True)

    def _write(self, how: Callable[..., None], *what: Trial) -> None:
        try:
            how(*what)
        except Exception as error:  # whatever the server, its driver or the network makes of it
            if not self._warned:
                self._warned = True
                said = f"not all trials reach MLflow: {hide_passwords(one_line(error))}"
                warnings.warn(ForetuneWarning(said, rule="mlflow-incomplete"), stacklevel=2)


class _Runs:
    """The runs of one study."""

    def __init__(
        self, client: "MlflowClient", experiment: str, study: str, metrics: Sequence[Metric]
    ) -> None:
        self._client, self._experiment = client, experiment
        self._study, self._metrics = study, tuple(metrics)
        self._open: dict[int, str] = {}
        """{number of a trial: id of its run}"""

    @classmethod
    def open(cls, uri: str, study: str, metrics: Sequence[Metric]) -> "_Runs":
        """Find the study's experiment at a tracking URI, or create it."""
        with explain_missing_extras("logging to MLflow"):
            from mlflow import MlflowClient
            from mlflow.exceptions import MlflowException
        name = os.environ.get(NAME_VARIABLE) or study
        try:
            with first_contact():
                client = MlflowClient(tracking_uri(uri))
                number = _experiment(client, name)
        except MlflowException as error:
            raise UsageError(
                f"MLflow must answer at its tracking URI, but '{hide_passwords(uri)}' does not "
                f"({hide_passwords(one_line(error))}): start its server, correct the address, or "
                "leave it "
                "out",
                rule="mlflow-away",
                value=hide_passwords(one_line(error)),
            ) from error
        return cls(client, number, study, metrics)

    def begin(self, trial: Trial) -> None:
        """Create the run of a trial, with its configuration."""
        from mlflow.entities import Param

        tags = {
            STUDY: self._study,
            TRIAL: str(trial.number),
            CHOSEN_BY: trial.chosen_by,
            METRIC: ", ".join(f"{each.name}:{each.direction}" for each in self._metrics),
        }
        run = self._client.create_run(
            self._experiment, run_name=f"trial {trial.number}", tags=tags
        ).info.run_id
        self._open[trial.number] = run
        params = [Param(name, _text(value)) for name, value in trial.config.items()]
        self._client.log_batch(run, params=params)

    def end(self, trial: Trial) -> None:
        """Log the outcome of a trial."""
        run = self._open.pop(trial.number)
        for name, value in trial.values.items():
            self._client.log_metric(run, name, value)
        if trial.reason:
            self._client.set_tag(run, REASON, trial.reason)
        good = trial.status is Status.DONE
        self._client.set_terminated(run, "FINISHED" if good else "FAILED")

    def close(self) -> None:
        """Mark runs as killed. Whoever continues the study begins their trials as new runs."""
        for run in self._open.values():
            self._client.set_terminated(run, "KILLED")
        self._open.clear()


def _experiment(client: "MlflowClient", name: str) -> str:
    """Return the id of an experiment; create it if there is none."""
    from mlflow.exceptions import MlflowException

    known = client.get_experiment_by_name(name)
    if known is None:
        try:
            return str(client.create_experiment(name))
        except MlflowException:
            # Another process of the study may have created it meanwhile.
            known = client.get_experiment_by_name(name)
            if known is None:
                raise
    return str(known.experiment_id)


def _text(value: Any) -> str:
    return str(value)[:LONGEST_PARAMETER]
