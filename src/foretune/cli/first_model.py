"""What `foretune fit` says and does about its first model, which is used if no other is ready."""

import shlex
from collections.abc import Callable
from pathlib import Path

import click

from foretune._base.terminal import TerminalProgress
from foretune.automl.final_model.model_file import said_of_itself
from foretune.automl.first_model import FirstModelKeeper
from foretune.automl.job import FitFolder
from foretune.automl.plan import FitOptions, FitPlan, make_plan
from foretune.automl.preflight import check_ready
from foretune.errors import UsageError
from foretune.tables.identity import task_name
from foretune.tables.reading import TrainingTable
from foretune.tables.table import Table

LEAST_SEARCH_SECONDS = 3.0
"""Worker processes take so long to start: with less time there would be no trial."""
NO_SEARCH = "reading the table and fitting a first model took nearly all of the time"


def sample_user(
    keeper: FirstModelKeeper, wishes: FitOptions, place: FitFolder, store: str | None
) -> Callable[[TrainingTable], None]:
    """What makes the first model of a small sample of a large table."""

    def use(sample: TrainingTable) -> None:
        check_ready(wishes, place, sample.table, None, sample.target, store=store)
        try:
            plan = make_plan(sample.table, wishes)
        except UsageError:
            return  # What a sample lacks the table may have; if not, its own plan will say so.
        make_first_model(keeper, plan, sample.target)

    return use


def make_first_model(keeper: FirstModelKeeper, plan: FitPlan, target: str) -> None:
    """Fit and save a quick model, and say so, unless there is one already."""
    if keeper.kept is not None:
        return
    keeper.target = target
    progress = TerminalProgress()
    progress.start("fitting a first model", None)
    try:
        made = keeper.make(plan)
    finally:
        progress.stop()
    where = f"saved in {keeper.path}" if keeper.is_saved else "kept beside that of an earlier fit"
    click.echo(f"{made.summary} is ready after {keeper.seconds:.0f} s, {where}.")


def is_too_late(keeper: FirstModelKeeper, table: Table) -> bool:
    """Whether there is no time for a search; if so, say that the first model is all there is."""
    if keeper.kept is None or keeper.clock.remaining_for_model() >= LEAST_SEARCH_SECONDS:
        return False
    use_first_model(keeper, task_name(table), NO_SEARCH)
    return True


def use_first_model(keeper: FirstModelKeeper, task: str, why: str) -> str:
    """Leave the first model, or that of an earlier fit of the same table, and say so loudly."""
    if keeper.kept is None:
        raise ValueError("there is no first model")
    if not keeper.is_saved and not _is_model_of(keeper.path, task):
        keeper.save()
    what = keeper.kept.summary if keeper.is_saved else "The model of an earlier fit of this table"
    said = (
        f"WARNING: the search gave no model in time. {what} is what you have: it may be much worse "
        "than what a search finds. Give more --time."
    )
    if keeper.is_saved and keeper.kept.is_baseline:
        said = f"{said} A baseline model learns nothing from the columns."
    click.echo(f"{said}\nWhy: {why}")
    click.echo(f"Model   {keeper.path}\nPredict {predict_command(keeper.path)}")
    return said


def predict_command(model: Path) -> str:
    """How to predict with a model."""
    return f"foretune predict {shlex.quote(str(model))} new.csv -o predictions.csv"


def _is_model_of(path: Path, task: str) -> bool:
    """Whether a file holds a model of this table."""
    try:
        return bool(said_of_itself(path)["about"].get("task") == task)
    except (UsageError, LookupError, AttributeError, OSError):
        return False
