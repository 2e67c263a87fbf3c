"""`foretune fit`: a strong model for a table in a few trials."""

import math
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretune.cli.executor_options import executor_options
from foretune.cli.names import named, names_in
from foretune.cli.quantities import SEED, memory, seconds
from foretune.cli.typed_command import command_of, moment, typed_words, with_trials
from foretune.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

    from foretune._base.time_budget import TimeBudget
    from foretune.automl.final_model.column_importance import Worth
    from foretune.automl.first_model import FirstModel, FirstModelKeeper
    from foretune.automl.fit_story import Words
    from foretune.automl.job import Fit, Job, Place, Searched
    from foretune.tables.column_roles import Roles
    from foretune.tables.reading import Training

FILE = click.Path(path_type=Path)
DEMO_TRIALS = 15
STOPPED = 130
"""The exit code after Ctrl-C, as shells have it."""
MOST_NAMED = 3
"""Columns that count most, of which the command tells."""
SHARE_TO_TELL = 0.1
"""Of the time: what may go, after the model is saved, into seeing which columns count."""
PLAIN = {"log_loss": ("accuracy", "balanced_accuracy")}
"""What says more to people than a metric itself."""

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
    with _shown("loading libraries"):
        from foretune._base.terminal import TerminalProgress
        from foretune._base.threads import cores
        from foretune._base.time_budget import TimeBudget
        from foretune.automl.first_model import FirstModelKeeper
        from foretune.automl.job import Job, Place
        from foretune.automl.plan import DEFAULT_ENSEMBLE, Wishes, planned
        from foretune.automl.preflight import check_ready
        from foretune.automl.trial_runs import StoppedBeforeAnyTrial
        from foretune.cli.display import display
        from foretune.cli.first_model import is_too_late, make_first_model, sample_user
        from foretune.integrations.mlflow_log import logged
        from foretune.run.executor_choice import Site
        from foretune.tables.column_roles import Roles

    site = Site(executor, address)
    roles = Roles(group, order, names_in(ignore), weight)
    clock = TimeBudget.of(time_, began)
    wishes = Wishes(
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
    place = Place(out or Path(f"{_name(data)}-foretune"))
    keeper = FirstModelKeeper(place.model, target or "", clock)
    if demo:
        given = _demo(data, target, test, roles)
    else:
        use_sample = sample_user(keeper, wishes, place, store)
        given = _given(data, target, task, test, roles, clock, use_sample)
    table = given.training.table
    plan = planned(table, wishes)
    check_ready(wishes, place, table, given.test, given.training.target, store=store)
    for note in (*given.notes, *plan.notes):
        click.echo(note)
    if clock.is_limited:
        make_first_model(keeper, plan, given.training.target)
        if is_too_late(keeper, table):
            return
    with (
        display([plan.metric], wishes.most_trials, wishes.seconds) as shown,
        logged(shown, mlflow, f"{table.name} {plan.metric.name}", [plan.metric]) as watch,
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


def _end(job: "Job", searched: "Searched", given: "_Given", keeper: "FirstModelKeeper") -> None:
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
        _finish(found, given, job.place, keeper.clock)
        interrupted = found.conclusion.interrupted
    if searched.ending == "stopped" or interrupted:
        sys.exit(STOPPED)


@contextmanager
def _shown(what: str) -> Iterator[None]:
    """Show that work goes on."""
    from foretune._base.terminal import TerminalProgress

    progress = TerminalProgress()
    progress.start(what, None)
    try:
        yield
    finally:
        progress.stop()


@dataclass(frozen=True)
class _Given:
    """What the user brings."""

    training: "Training"
    test: "pd.DataFrame | None"
    notes: Sequence[str]
    """What was assumed about both, for people."""


def _name(data: Path | None) -> str:
    """The name of the table, which its folder is named after."""
    from foretune.automl.demo import NAME
    from foretune.tables.formats.reader import table_name

    return NAME if data is None else table_name(data)


def _demo(data: Path | None, target: str | None, test: Path | None, roles: "Roles") -> _Given:
    from foretune.automl.demo import NAME, TARGET, demo_frames
    from foretune.tables.reading import training_of

    if data is not None or target is not None or test is not None:
        raise UsageError(
            "--demo brings a table of its own, but got another one: leave one of them out"
        )
    learn, held = demo_frames()
    training = training_of(learn, TARGET, name=NAME, roles=roles)
    return _Given(training, held, training.notes)


def _given(
    data: Path | None,
    target: str | None,
    task: str | None,
    test: Path | None,
    roles: "Roles",
    clock: "TimeBudget",
    use_sample: "Callable[[Training], None]",
) -> _Given:
    from foretune._base.terminal import TerminalProgress
    from foretune.tables.reading import read_test
    from foretune.tables.timed_reading import read_training_in_time

    if data is None or target is None:
        lacking = "no table" if data is None else "no --target"
        raise UsageError(
            f"fit needs a table and the column to predict, but got {lacking}: say  foretune fit "
            "train.csv --target label,  or see it work with  foretune fit --demo"
        )
    training = read_training_in_time(
        data, target, clock, use_sample, task=task, roles=roles, progress=TerminalProgress()
    )
    if test is None:
        return _Given(training, None, training.notes)
    held, notes = read_test(test, training)
    return _Given(training, held, [*training.notes, *notes])


def _in_plain_words(metric: str, values: Mapping[str, float]) -> str:
    """What a log loss means for people, where that is the metric."""
    said = [f"{name} {values[name]:.4g}" for name in PLAIN.get(metric, ()) if name in values]
    return f", {', '.join(said)}" if said else ""


def _no_better(more: float) -> str:
    """What to make of a best trial that loses more than a guess does."""
    if more < 0.0:
        return ""
    return ". No trial is better: the columns may say nothing about the target"


def _worth(found: "Fit", clock: "TimeBudget") -> "list[Worth]":
    """What columns are worth to the best pipeline; Ctrl-C does without, and so does a lack of time.

    It fits the pipeline of the best trial once more.
    """
    from foretune._base.terminal import TerminalProgress
    from foretune.automl.final_model.column_importance import MOST_SECONDS, column_worth
    from foretune.run import stopping

    plan = found.plan
    if found.ending == "stopped" or found.conclusion.interrupted:
        return []
    most = min(MOST_SECONDS, SHARE_TO_TELL * (found.wishes.seconds or math.inf))
    if clock.is_limited and clock.left() < found.conclusion.best.seconds + most:
        return []
    try:
        with stopping.heeded():
            return column_worth(
                found.conclusion.best.config,
                plan.table,
                plan.protocol,
                seconds=most,
                progress=TerminalProgress(),
            )
    except KeyboardInterrupt:
        return []


@dataclass(frozen=True)
class _Measured:
    """What is known of the model beside the trials."""

    worth: "list[Worth]"
    without_columns: float
    tested: Mapping[str, float]


def _with_model(job: "Job", searched: "Searched", given: _Given) -> "Fit":
    """Fit the model and save it. The trials are kept and told of also where there can be none."""
    from foretune.automl.preflight import check_same_target
    from foretune.automl.trial_runs import ranked

    place, target = job.place, given.training.target
    check_same_target(place.model, target)
    if ranked(searched.trials, searched.plan):  # There is no experience without a success.
        searched.experience().save(place.trials)
    with _telling_why_there_is_none(job, searched, given):
        found = _or_first_model(job.conclude(searched), job.first)
    check_same_target(place.model, target)
    with _telling_why_there_is_none(job, searched, given):
        found.conclusion.model.save(place.model)
    return found


def _or_first_model(found: "Fit", first: "FirstModel | None") -> "Fit":
    """The same with the first model, where that is clearly better than the few trials there are."""
    made, metric = found.conclusion, found.plan.metric.name
    if first is None or not first.is_clearly_better(made.best.values[metric]):
        return found
    remark = f"{first.summary} is the model, because it is better than the best trial."
    remark = f"{remark} {made.remark}".strip()
    changed = replace(made, model=first.model, members=made.members[:1], blended=None)
    return replace(found, conclusion=replace(changed, remark=remark))


@contextmanager
def _telling_why_there_is_none(job: "Job", searched: "Searched", given: _Given) -> Iterator[None]:
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
    job: "Job", searched: "Searched", given: _Given, why: str, instead: str = ""
) -> None:
    """Write a report that says why the trials gave no model, and what there is instead."""
    from foretune.automl.fit_story import story
    from foretune.report.page import write_page

    words = _words(searched, given)
    said = [*words.assumptions, instead or f"No model was made: {why}."]
    if job.first is None and job.place.model.exists():
        said.append(EARLIER_MODEL)
        click.echo(EARLIER_MODEL, err=True)
    write_page(story(searched, job.table, replace(words, assumptions=said)), job.place.report)


def _finish(found: "Fit", given: _Given, place: "Place", clock: "TimeBudget") -> None:
    """Say what came of it and write the report; what is said does not depend on a full disk."""
    from foretune.automl.final_model.baseline import without_columns
    from foretune.automl.fit_story import story
    from foretune.automl.test_scores import scores_on
    from foretune.cli.first_model import predict_command
    from foretune.report.page import write_page

    metric, model = found.plan.metric, found.conclusion.model
    metrics = (metric.name, *PLAIN.get(metric.name, ()))
    weighting = found.plan.table.weighting
    measured = _Measured(
        _worth(found, clock),
        without_columns(found.plan.table, found.plan.protocol),
        {} if given.test is None else scores_on(model, given.test, metrics, weighting=weighting),
    )
    predict = predict_command(place.model)
    words = _words(found, given)
    told = replace(
        words,
        test_score=measured.tested.get(metric.name),
        without_columns=measured.without_columns,
        columns=measured.worth,
        next_steps=[("Predict", predict), *words.next_steps],
    )
    _say(found, measured)
    click.echo(f"Model   {place.model}\nPredict {predict}")
    write_page(story(found, given.training.table, told), place.report)
    click.echo(f"Report  {place.report}")


def _words(found: "Searched", given: _Given) -> "Words":
    """What every report says beside the result."""
    from foretune.automl.fit_story import Words

    typed = typed_words()
    return Words(
        title=f"{given.training.table.name}: {given.training.target}",
        when=moment(),
        command=command_of(typed),
        assumptions=given.notes,
        next_steps=[("Go on", with_trials(typed, 2 * len(found.trials)))],
    )


def _say(found: "Fit", measured: _Measured) -> None:
    """What came of it, in a few lines."""
    from foretune._base.names import listed
    from foretune.automl.final_model.baseline import guessed
    from foretune.automl.metrics import of_the_model
    from foretune.automl.trial_runs import ranked
    from foretune.report.wording import counted

    metric, best, tested = found.plan.metric, found.conclusion.best, measured.tested
    ended = sum(trial.status is not None for trial in found.trials)
    usable = "usable " if found.conclusion.stands_in else ""
    click.echo(
        f"Best {usable}of {counted(ended, 'trial')}: {metric.name} {best.values[metric.name]:.4g}"
        f"{_in_plain_words(metric.name, of_the_model(best.values, found.plan.shares))} "
        f"(trial {best.number}, {named(best.config)})"
    )
    guess, baseline = guessed(metric.name, found.plan.table.task), measured.without_columns
    leading = ranked(found.trials, found.plan)[0].values[metric.name]
    click.echo(
        f"Always predicting {guess}: {metric.name} {baseline:.4g}"
        + _no_better(metric.sign * (leading - baseline))
    )
    if found.conclusion.blended is not None:
        click.echo(
            f"The model blends {len(found.conclusion.members)} of them: {metric.name} "
            f"{found.conclusion.blended:.4g}, on the rows that chose them"
        )
    if found.conclusion.remark:
        click.echo(found.conclusion.remark)
    if counts := [each.column for each in measured.worth if each.is_sure][:MOST_NAMED]:
        click.echo(f"It goes most by {listed(counts)}")
    if tested:
        also = _in_plain_words(metric.name, tested)
        click.echo(f"On the test table: {metric.name} {tested[metric.name]:.4g}{also}")
    if found.conclusion.interrupted:
        click.echo("The same command makes it whole.")
    elif found.ending == "stopped":
        click.echo("Stopped; this is the best so far, and the same command goes on.")
