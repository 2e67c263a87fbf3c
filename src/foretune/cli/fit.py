"""`foretune fit`: a strong model for a table in a few trials."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretune.cli.executor_options import executor_options
from foretune.cli.fit_input import Given, read_demo, read_given, table_name_of
from foretune.cli.fit_result import tell_result, words_for_report
from foretune.cli.names import names_in
from foretune.cli.quantities import SEED, memory, seconds
from foretune.errors import UsageError

if TYPE_CHECKING:
    from foretune.automl.first_model import FirstModel, FirstModelKeeper
    from foretune.automl.job import FitResult, Job, SearchResult

FILE = click.Path(path_type=Path)
DEMO_TRIALS = 15
STOPPED = 130
"""The exit code after Ctrl-C, as shells have it."""

EARLIER_MODEL = "The model of an earlier run stays in its place."
TOO_LITTLE_MEMORY = (
    "a model is put together and packed in memory, but there was too little of it: choose fewer "
    "pipelines with --ensemble 1, or a machine with more memory"
)


@click.command("fit")
@click.argument("data", type=FILE, required=False)
@click.option("--target", metavar="COLUMN", help="The column to predict.")
@click.option("--trials", type=click.IntRange(1), help="How many; 50 if no --time is given.")
@click.option(
    "--time", "time_", type=seconds, metavar="TIME", help="For search and model, e.g. 10m."
)
@click.option("--metric", metavar="NAME", help="What to optimise: log_loss, accuracy, "
              "balanced_accuracy, auc, f1_macro, matthews, brier; r2, rmse, mae, "
              "median_absolute_error, mape. The first of each if not given.")  # fmt: skip
@click.option("--test", type=FILE, help="A table to score the final model on.")
@click.option(
    "--task", type=click.Choice(["classification", "regression"]), help="Else by the target."
)
@click.option("--group", metavar="COLUMN", help="Rows of one value, such as those of a customer, "
              "are scored by models that have seen none of them.")  # fmt: skip
@click.option("--order", metavar="COLUMN", help="Dates or numbers: rows are scored by models of "
              "earlier ones.")  # fmt: skip
@click.option("--weight", metavar="COLUMN", help="How much rows count, in learning and in scores; "
              "0 leaves one out.")  # fmt: skip
@click.option("--ignore", metavar="A,B", help="Columns that are not learnt from; "
              "one that has a comma in double quotes.")  # fmt: skip
@click.option("--space", metavar="NAME", help="`foretune spaces` lists them.")
@click.option("--only", metavar="A,B", help="Only these estimators, e.g. lightgbm,rf.")
@click.option("--method", default="auto", show_default=True, help="`foretune methods` lists them.")
@click.option("--ensemble", type=click.IntRange(1), metavar="K",
              help="Blend at most K pipelines; 5 if not given, 1 is the best alone.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), help="Worker processes; one a core if not given.")
@executor_options
@click.option("--time-limit", type=seconds, metavar="TIME", default="120s", show_default=True,
              help="Of one trial.")  # fmt: skip
@click.option("--memory", "memory_", type=memory, metavar="SIZE", default="4GB", show_default=True,
              help="Of one worker process.")  # fmt: skip
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("--store", metavar="URL", help="An Optuna storage; else a file in the folder.")
@click.option("--mlflow", metavar="URI", help="Log trials there; else MLFLOW_TRACKING_URI.")
@click.option("--no-transfer", is_flag=True, help="Start from nothing.")
@click.option("--no-remember", is_flag=True, help="Add nothing to your experience.")
@click.option("-o", "--out", type=FILE, help="Folder of model, report and trials.")
@click.option("--demo", is_flag=True, help="On a table of credits that comes along.")
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

    It starts from what worked on other datasets, so a few trials go far. Ctrl-C at any time
    leaves the model of the best so far; the same command goes on from there.

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
    with _show_work("loading libraries"):
        from foretune._base.terminal import TerminalProgress
        from foretune._base.threads import cores
        from foretune._base.time_budget import TimeBudget
        from foretune.automl.first_model import FirstModelKeeper
        from foretune.automl.job import FitFolder, Job
        from foretune.automl.plan import DEFAULT_ENSEMBLE, FitOptions, make_plan
        from foretune.automl.preflight import check_ready
        from foretune.automl.trial_runs import StoppedBeforeAnyTrial
        from foretune.cli.display import display
        from foretune.cli.first_model import is_too_late, make_first_model, sample_user
        from foretune.integrations.mlflow_log import log_to_mlflow
        from foretune.run.executor_choice import ExecutorChoice
        from foretune.tables.column_roles import ColumnRoles

    site = ExecutorChoice(executor, address)
    roles = ColumnRoles(group, order, names_in(ignore), weight)
    clock = TimeBudget.of(time_, began)
    wishes = FitOptions(
        trials=DEMO_TRIALS if demo and trials is None and time_ is None else trials,
        seconds=time_,
        metric=metric,
        space=space,
        only=names_in(only),
        method=method,
        jobs=jobs or cores(),
        ensemble=ensemble or DEFAULT_ENSEMBLE,
        seed=seed,
        trial_seconds=time_limit,
        trial_memory=int(memory_),
    )
    place = FitFolder(out or Path(f"{table_name_of(data)}-foretune"))
    keeper = FirstModelKeeper(place.model, target or "", clock)
    if demo:
        given = read_demo(data, target, test, roles)
    else:
        use_sample = sample_user(keeper, wishes, place, store)
        given = read_given(data, target, task, test, roles, clock, use_sample)
    table = given.training.table
    plan = make_plan(table, wishes)
    check_ready(wishes, place, table, given.test, given.training.target, store=store)
    for note in (*given.notes, *plan.notes):
        click.echo(note)
    if clock.is_limited:
        make_first_model(keeper, plan, given.training.target)
        if is_too_late(keeper, table):
            return
    with (
        display([plan.metric], wishes.most_trials, wishes.seconds) as shown,
        log_to_mlflow(shown, mlflow, f"{table.name} {plan.metric.name}", [plan.metric]) as watch,
    ):
        job = Job(
            table,
            given.training.target,
            wishes,
            place,
            store,
            transfer=not no_transfer,
            remember=not no_remember,
            progress=TerminalProgress(),
            watch=watch,
            site=site,
            first=keeper.kept,
            began=began,
        )
        try:
            searched = job.search(plan)
        except StoppedBeforeAnyTrial:
            click.echo("Stopped before a trial had ended; the same command goes on.", err=True)
            if keeper.is_saved:
                click.echo(f"The first model is in {place.model}.", err=True)
            sys.exit(STOPPED)
    _end(job, searched, given, keeper)


def _end(job: "Job", searched: "SearchResult", given: "Given", keeper: "FirstModelKeeper") -> None:
    """Fit and save the model, and say what came of it; the first model stands in for it."""
    from foretune.cli.first_model import use_first_model

    try:
        found = _with_model(job, searched, given)
    except UsageError as error:
        if keeper.kept is None:
            raise
        said = use_first_model(keeper, searched.about.task, str(error))
        _tell_of_none(job, searched, given, str(error), said)
        click.echo(f"Report  {job.place.report}")
        interrupted = False
    else:
        tell_result(found, given, job.place, keeper.clock)
        interrupted = found.conclusion.interrupted
    if searched.ending == "stopped" or interrupted:
        sys.exit(STOPPED)


@contextmanager
def _show_work(what: str) -> Iterator[None]:
    """Show that work goes on."""
    from foretune._base.terminal import TerminalProgress

    progress = TerminalProgress()
    progress.start(what, None)
    try:
        yield
    finally:
        progress.stop()


def _with_model(job: "Job", searched: "SearchResult", given: Given) -> "FitResult":
    """Fit the model and save it. The trials are kept and told of also where there can be none."""
    from foretune.automl.preflight import check_same_target
    from foretune.automl.trial_runs import rank_trials

    place, target = job.place, given.training.target
    check_same_target(place.model, target)
    if rank_trials(searched.trials, searched.plan):  # There is no experience without a success.
        searched.experience().save(place.trials)
    with _telling_why_there_is_none(job, searched, given):
        found = _or_first_model(job.conclude(searched), job.first)
    check_same_target(place.model, target)
    with _telling_why_there_is_none(job, searched, given):
        found.conclusion.model.save(place.model)
    return found


def _or_first_model(found: "FitResult", first: "FirstModel | None") -> "FitResult":
    """The same with the first model, where that is clearly better than the few trials there are."""
    made, metric = found.conclusion, found.plan.metric.name
    if first is None or not first.is_clearly_better(made.best.values[metric]):
        return found
    remark = f"{first.summary} is the model, because it is better than the best trial."
    remark = f"{remark} {made.remark}".strip()
    changed = replace(made, model=first.model, members=made.members[:1], blended=None)
    return replace(found, conclusion=replace(changed, remark=remark))


@contextmanager
def _telling_why_there_is_none(
    job: "Job", searched: "SearchResult", given: Given
) -> Iterator[None]:
    """Write the report of the trials also where no model comes of them."""
    try:
        yield
    except MemoryError as error:
        if job.first is None:
            _tell_of_none(job, searched, given, TOO_LITTLE_MEMORY)
        raise UsageError(TOO_LITTLE_MEMORY) from error
    except UsageError as error:
        if job.first is None:
            _tell_of_none(job, searched, given, str(error))
        raise
    except KeyboardInterrupt:
        _tell_of_none(job, searched, given, "stopped before it was ready")
        raise


def _tell_of_none(
    job: "Job", searched: "SearchResult", given: Given, why: str, instead: str = ""
) -> None:
    """Write a report that says why the trials gave no model, and what there is instead."""
    from foretune.automl.fit_story import story
    from foretune.report.page import write_page

    words = words_for_report(searched, given)
    said = [*words.assumptions, instead or f"No model was made: {why}."]
    if job.first is None and job.place.model.exists():
        said.append(EARLIER_MODEL)
        click.echo(EARLIER_MODEL, err=True)
    write_page(story(searched, job.table, replace(words, assumptions=said)), job.place.report)
