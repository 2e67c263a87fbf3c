"""`foretune fit`: a strong model for a table in a few trials."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretune.cli.executor_options import executor_options
from foretune.cli.option_values import SEED, memory, names_in, seconds
from foretune.errors import UsageError

if TYPE_CHECKING:
    from foretune.automl.fit_data import DemoTable, TableFile
    from foretune.automl.job import Job
    from foretune.tables import ColumnRoles

FILE = click.Path(path_type=Path)
DEMO_TRIALS = 15
STOPPED = 130
"""The exit code after Ctrl-C, as shells have it."""


@click.command("fit")
@click.argument("data", type=FILE, required=False)
@click.option("--target", metavar="COLUMN", help="The column to predict.")
@click.option(
    "--trials",
    type=click.IntRange(1),
    help="Number of trials. Default: 50, or what fits in --time.",
)
@click.option(
    "--time",
    "time_",
    type=seconds,
    metavar="TIME",
    help="Time for the search and the model, such as 10m.",
)
@click.option("--metric", metavar="NAME", help="What to optimise: log_loss, accuracy, "
              "balanced_accuracy, auc, f1_macro, matthews, brier; r2, rmse, mae, "
              "median_absolute_error, mape. Default: log_loss or r2.")  # fmt: skip
@click.option("--test", type=FILE, help="A table to score the final model on.")
@click.option(
    "--task",
    type=click.Choice(["classification", "regression"]),
    help="Default: decided by the target.",
)
@click.option("--group", metavar="COLUMN", help="Rows with the same value, such as those of one "
              "customer, are scored by models that have seen none of them.")  # fmt: skip
@click.option("--order", metavar="COLUMN", help="Dates or numbers. Rows are scored by models of "
              "earlier rows.")  # fmt: skip
@click.option("--weight", metavar="COLUMN", help="How much rows count, in learning and in scores. "
              "Rows with 0 are left out.")  # fmt: skip
@click.option("--ignore", metavar="A,B", help="Columns to leave out. Put a name with a comma in "
              "double quotes.")  # fmt: skip
@click.option("--space", metavar="NAME", help="Search space; `foretune spaces` lists them.")
@click.option("--only", metavar="A,B", help="Use only these estimators, such as lightgbm,rf.")
@click.option(
    "--method",
    default="auto",
    show_default=True,
    help="Search method; `foretune methods` lists them.",
)
@click.option("--ensemble", type=click.IntRange(1), metavar="K",
              help="Blend at most K pipelines. 1 takes only the best. Default: 25, or 5 with "
              "--refit.")  # fmt: skip
@click.option("--refit", is_flag=True, help="Let the pipelines of the model learn from all rows "
              "once more. Default: average the pipelines of the folds.")  # fmt: skip
@click.option(
    "--jobs", type=click.IntRange(1), help="Worker processes. Default: one for each core."
)
@executor_options
@click.option("--time-limit", type=seconds, metavar="TIME", default="120s", show_default=True,
              help="Time limit of one trial.")  # fmt: skip
@click.option("--memory", "memory_", type=memory, metavar="SIZE", default="4GB", show_default=True,
              help="Memory limit of one worker process.")  # fmt: skip
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("--store", metavar="URL", help="Optuna storage. Default: a file in the folder.")
@click.option(
    "--mlflow", metavar="URI", help="Also log trials there. Default: MLFLOW_TRACKING_URI."
)
@click.option("--no-transfer", is_flag=True, help="Do not start from past experience.")
@click.option("--no-remember", is_flag=True, help="Do not add the trials to your experience.")
@click.option("-o", "--out", type=FILE, help="Folder for the model, the report and the trials.")
@click.option("--demo", is_flag=True, help="Use a table of credits that is included.")
def fit_command(
    data: Path | None,
    target: str | None,
    trials: int | None,
    time_: float | None,
    metric: str | None,
    test: Path | None,
    task: str | None,
    group: str | None,
    order: str | None,
    weight: str | None,
    ignore: str | None,
    space: str | None,
    only: str | None,
    method: str,
    ensemble: int | None,
    refit: bool,
    jobs: int | None,
    executor: str,
    address: str | None,
    time_limit: float,
    memory_: float,
    seed: int,
    store: str | None,
    mlflow: str | None,
    no_transfer: bool,
    no_remember: bool,
    out: Path | None,
    demo: bool,
) -> None:
    """Find, fit and save a strong model for the table DATA (CSV or Parquet).

    The search starts from what worked on other datasets, so a few trials are enough. After
    Ctrl-C, the model of the best trials so far is saved, and the same command goes on.

    \b
    Examples:
      foretune fit --demo
      foretune fit train.csv --target label
      foretune fit train.csv --target price --time 10m --jobs 4 -o price-model
      foretune fit train.csv --target label --test test.csv --metric auc --ensemble 1
      foretune fit visits.csv --target ill --group patient --ignore name,diagnosis
      foretune fit sales.csv --target revenue --order date
      foretune fit policies.csv --target claims --weight months
      foretune predict train-foretune/model.foretune new.csv -o predictions.csv
    """
    began = time.monotonic()
    from foretune._base.threads import cores
    from foretune.tables import ColumnRoles

    roles = ColumnRoles(group, order, names_in(ignore), weight)
    _check_source(data, target, test, roles, demo=demo)
    if executor == "processes" and cores() > 1:
        _load_beside()
    with _show_work("loading libraries"):
        from foretune.automl.fit_folder import FitFolder
        from foretune.automl.job import Job
        from foretune.automl.plan import FitOptions
        from foretune.run.executor_choice import ExecutorChoice

    options = FitOptions(
        trials=DEMO_TRIALS if demo and trials is None and time_ is None else trials,
        seconds=time_,
        metric=metric,
        space=space,
        only=names_in(only),
        method=method,
        jobs=jobs or cores(),
        ensemble=ensemble,
        refit=refit,
        seed=seed,
        trial_seconds=time_limit,
        trial_memory=int(memory_),
    )
    source = _source(data, target, test, task, roles)
    job = Job(
        data=source,
        options=options,
        folder=FitFolder(out or Path(f"{source.name}-foretune")),
        store=store,
        transfer=not no_transfer,
        remember=not no_remember,
        executor=ExecutorChoice(executor, address),
        began=began,
    )
    run_job(job, mlflow)


def _check_source(
    data: Path | None, target: str | None, test: Path | None, roles: "ColumnRoles", *, demo: bool
) -> None:
    """Refuse mistakes before libraries are loaded, which takes seconds."""
    if demo:
        if data is not None or target is not None or test is not None:
            raise UsageError(
                "--demo brings a table of its own, but got another one: leave one of them out",
                rule="demo-and-table",
            )
        return
    if data is None or target is None:
        missing = "no table" if data is None else "no --target"
        raise UsageError(
            f"fit needs a table and the column to predict, but got {missing}: say  foretune fit "
            "train.csv --target label,  or see it work with  foretune fit --demo",
            rule="fit-without-table",
            field="data" if data is None else "target",
        )
    from foretune.tables.column_roles import check_before_reading
    from foretune.tables.formats.first_look import check_is_file

    check_before_reading(data, target, roles)
    if test is not None:
        check_is_file(test)


def _load_beside() -> None:
    """Load the libraries of workers in their fork server, while this process loads its own."""
    from foretune.automl.worker_libraries import WORKER_MODULES
    from foretune.run.worker_start import start_worker

    start_worker.load(WORKER_MODULES)


def _source(
    data: Path | None, target: str | None, test: Path | None, task: str | None, roles: "ColumnRoles"
) -> "TableFile | DemoTable":
    """Return the table that the arguments name, which have been checked."""
    from foretune.automl.fit_data import DemoTable, TableFile

    if data is None or target is None:
        return DemoTable(roles)
    return TableFile(data, target, test, task, roles)


def run_job(job: "Job", mlflow: str | None = None) -> None:
    """Run a job, show its progress, and print its result. After Ctrl-C, end the program.

    mlflow: the URI under which trials are also logged.
    """
    from foretune.cli.fit_result import tell_result
    from foretune.cli.fit_screen import FitScreen
    from foretune.run.stopping import StoppedBeforeAnyTrial

    with FitScreen(job, mlflow) as screen:
        try:
            result = job.run(screen)
        except StoppedBeforeAnyTrial:
            click.echo("Stopped before a trial had ended; the same command goes on.", err=True)
            if screen.first_model is not None:
                click.echo(f"The first model is in {screen.first_model}.", err=True)
            sys.exit(STOPPED)
    tell_result(job, result, screen.data)
    if result.ending == "stopped" or (result.final is not None and result.final.interrupted):
        sys.exit(STOPPED)


@contextmanager
def _show_work(what: str) -> Iterator[None]:
    """Show that work goes on."""
    from foretune._base.progress import TerminalProgress

    progress = TerminalProgress()
    progress.start(what, None)
    try:
        yield
    finally:
        progress.stop()
