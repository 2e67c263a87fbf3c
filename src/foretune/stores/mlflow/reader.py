"""Reading the runs that MLflow has tracked: each experiment is a task, each run an evaluation.

The history of a metric is the learning curve of its run.

MLflow keeps parameters as text. Numbers, truth values and None are read back from it.
"""

from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from foretune._base.databases import hide_passwords
from foretune._base.names import suggestion
from foretune._base.progress import SILENT, Progress, track
from foretune.errors import ExperienceError, explain_missing_extras
from foretune.experience import Experience
from foretune.stores.files.plain_values import Scalar, read_back
from foretune.stores.files.run_table import (
    LoggedRun,
    RunReports,
    build_run_experience,
    check_columns,
)
from foretune.stores.formats import NO_COLUMNS, TableColumns
from foretune.stores.mlflow.tracking_store import existing_uri, first_contact

if TYPE_CHECKING:
    from mlflow import MlflowClient
    from mlflow.entities import Experiment
    from mlflow.entities import Run as TrackedRun

PAGE = 1000
SUCCEEDED, FAILED = "FINISHED", ("FAILED", "KILLED")
"""How a run has ended. Any other status means that it still runs or waits."""


def read(
    source: Path | str,
    *,
    columns: TableColumns = NO_COLUMNS,
    studies: Sequence[str] = (),
    progress: Progress = SILENT,
) -> Experience:
    """Read the ended runs of the experiments at a tracking URI, or in an SQLite file.

    columns: `values` names the metrics that count. `task` is a tag or a parameter that names the
        task if an experiment holds several. `space` is the file of the space; without it, the space
        is inferred. Parameters that the space does not have are left out.
    studies: which experiments; all of them if none is named.
    """
    check_columns(columns, "mlflow", task=True)
    with explain_missing_extras("reading MLflow runs"):
        from mlflow import MlflowClient
        from mlflow.exceptions import MlflowException
    uri, named = existing_uri(str(source)), hide_passwords(str(source))
    try:
        with first_contact():
            client = MlflowClient(uri)
            experiments = _find_experiments(list(_experiments(client)), studies, named)
        found = track(experiments, progress, "reading experiments", len(experiments))
        tracked = [(one.name, run) for one in found for run in _runs(client, one)]
        reading = track(tracked, progress, "reading runs", len(tracked))
        runs = [
            _run(run, name, columns.task, _histories(client, run, columns.values))
            for name, run in reading
        ]
    except MlflowException as error:
        first = hide_passwords(str(error).strip().splitlines()[0])
        raise ExperienceError(
            f"'{named}' cannot be read as an MLflow store: {first}",
            rule="unreadable-mlflow-store",
            value=named,
        ) from error
    return build_run_experience(runs, columns, named)


def _experiments(client: "MlflowClient") -> "Iterator[Experiment]":
    token = None
    while True:
        page = client.search_experiments(page_token=token)
        yield from page
        token = page.token
        if not token:
            return


def _find_experiments(
    experiments: "list[Experiment]", wanted: Sequence[str], source: str
) -> "list[Experiment]":
    known = {experiment.name: experiment for experiment in experiments}
    for name in wanted:
        if name not in known:
            raise ExperienceError(
                f"an experiment must be one of those in '{source}', but got '{name}': "
                f"{suggestion(name, list(known))}",
                rule="unknown-experiment",
                value=name,
            )
    return [known[name] for name in wanted] or experiments


def _runs(client: "MlflowClient", experiment: "Experiment") -> "Iterator[TrackedRun]":
    """Yield the runs of an experiment, the earliest first."""
    token = None
    order = ["attributes.start_time ASC"]
    while True:
        page = client.search_runs(
            [experiment.experiment_id], max_results=PAGE, order_by=order, page_token=token
        )
        yield from page
        token = page.token
        if not token:
            return


def _histories(
    client: "MlflowClient", tracked_run: "TrackedRun", metrics: Collection[str]
) -> RunReports | None:
    """Return all values of the metrics at their steps.

    If the latest value of a metric is at step 0, it has no steps, and the store is not asked.
    """
    latest = tracked_run.data._metric_objs
    with_steps = [each.key for each in latest if each.key in metrics and each.step > 0]
    if not with_steps:
        return None
    values: dict[str, dict[float, float]] = {}
    seconds: dict[float, float] = {}
    began = tracked_run.info.start_time
    for name in with_steps:
        history = client.get_metric_history(tracked_run.info.run_id, name)
        history = sorted(history, key=lambda each: each.timestamp)
        values[name] = {float(each.step): each.value for each in history}
        # MLflow counts in milliseconds.
        seconds |= {float(each.step): max(each.timestamp - began, 0) / 1000 for each in history}
    return RunReports(values, seconds)


def _run(
    tracked_run: "TrackedRun",
    experiment: str,
    task: str | None,
    reports: RunReports | None = None,
) -> LoggedRun:
    info, data = tracked_run.info, tracked_run.data
    params = {name: read_back(text) for name, text in data.params.items()}
    name: Scalar = experiment
    if task is not None:
        name = params.pop(task, data.tags.get(task))
    if name is None:
        if info.status == SUCCEEDED:
            raise ExperienceError(
                f"each run must have the tag or parameter '{task}' that names its task, but "
                f"run {info.run_id} of '{experiment}' does not: add the tag, or name the "
                "experiments to read (--study)",
                rule="run-without-task",
                field=str(task),
                value=info.run_id,
            )
        # A result without a task teaches nothing, so the parameters do not matter.
        name, params = experiment, {}
    # MLflow counts in milliseconds.
    seconds = (info.end_time - info.start_time) / 1000 if info.end_time else float("nan")
    return LoggedRun.of(
        str(name),
        params,
        dict(data.metrics),
        failed=info.status != SUCCEEDED,
        seconds=seconds,
        ended=info.status in (SUCCEEDED, *FAILED),
        reports=reports,
    )
