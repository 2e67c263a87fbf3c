"""`foretune suggest`: configurations that past tables recommend for a table, without running
any.
"""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretune.automl.space_names import SHIPPED_SPACES
from foretune.cli.option_values import names_in

if TYPE_CHECKING:
    from foretune.automl.past_suggestions import PastSuggestion, PastSuggestions


@click.command("suggest")
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--target", required=True, metavar="COLUMN", help="The column to predict.")
@click.option("-k", "length", type=click.IntRange(1), default=5, show_default=True,
              help="Number of configurations.")  # fmt: skip
@click.option("--metric", metavar="NAME", help="Default: that of `foretune fit`.")
@click.option("--space", type=click.Choice(SHIPPED_SPACES), help="Default: pipelines for the task.")
@click.option(
    "--task",
    type=click.Choice(["classification", "regression"]),
    help="Default: decided by the target.",
)
@click.option("--only", metavar="NAMES", help="Use only these estimators, such as lightgbm,rf.")
@click.option("--group", metavar="COLUMN", help="As in `foretune fit`.")
@click.option("--order", metavar="COLUMN", help="As in `foretune fit`.")
@click.option("--weight", metavar="COLUMN", help="As in `foretune fit`.")
@click.option("--ignore", metavar="A,B", help="Columns to leave out. Put a name with a comma in "
              "double quotes.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="Print JSON for programs.")
def suggest_command(
    data: Path,
    target: str,
    length: int,
    metric: str | None,
    space: str | None,
    task: str | None,
    only: str | None,
    group: str | None,
    order: str | None,
    weight: str | None,
    ignore: str | None,
    as_json: bool,
) -> None:
    """Print the configurations that past datasets recommend for DATA, without running any.

    DATA is a CSV or Parquet table. Similar datasets count more. If you have already
    searched this table, its best configuration comes first.

    \b
    Examples:
      foretune suggest train.csv --target label
      foretune suggest train.csv --target price -k 10 --only lightgbm,rf --json
    """
    from foretune._base.progress import TerminalProgress
    from foretune.automl.fit_data import TableFile
    from foretune.automl.job import Job
    from foretune.automl.job_listener import JobListener
    from foretune.automl.plan import FitOptions
    from foretune.tables import ColumnRoles

    roles = ColumnRoles(group, order, names_in(ignore), weight)
    options = FitOptions(metric=metric, space=space, only=names_in(only))
    listener = JobListener()
    listener.progress = TerminalProgress()
    job = Job(data=TableFile(data, target, task=task, roles=roles), options=options)
    found = job.suggest(length, listener)
    if as_json:
        click.echo(json.dumps(_as_json(found)))
    else:
        _show(found)


def _as_json(found: "PastSuggestions") -> dict[str, Any]:
    return {
        "table": found.data.table.name,
        "task": found.data.table.task,
        "metric": found.plan.metric.name,
        "suggestions": [_suggestion_as_json(each) for each in found.suggestions],
    }


def _suggestion_as_json(each: "PastSuggestion") -> dict[str, Any]:
    made: dict[str, Any] = {"config": each.config, "why": each.reason}
    if each.better_pipelines is not None:
        made["better_pipelines"] = each.better_pipelines
        made["better_than_all_so_far"] = each.better_than_all_so_far
    return {**made, "seconds": _finite_or_none(each.seconds)}


def _show(found: "PastSuggestions") -> None:
    knowledge = found.knowledge
    sources = f"Known: {'; '.join(map(str, knowledge.sources))}."
    notes = [f"{note[0].upper()}{note[1:]}." for note in knowledge.notes]
    for note in (*found.data.notes, *found.plan.notes, sources, *notes):
        click.echo(note)
    click.echo()
    steps = (*found.plan.shipped.stages, found.plan.shipped.choice)
    for number, each in enumerate(found.suggestions, start=1):
        click.echo(f"{number}. {each.reason}\n   {_pipeline(each.config, steps)}")


def _finite_or_none(seconds: float | None) -> float | None:
    return None if seconds is None or math.isnan(seconds) else round(float(seconds), 3)


def _pipeline(config: dict[str, Any], steps: tuple[str, ...]) -> str:
    """Return the steps in their order, each with its settings."""
    shown = []
    for step in steps:
        chosen = config[step]
        settings = [
            f"{name.rpartition(':')[2]}={_value(value)}"
            for name, value in config.items()
            if name.startswith(f"{step}:{chosen}:")
        ]
        if chosen != "none":
            shown.append(f"{chosen}({', '.join(settings)})" if settings else str(chosen))
    return " > ".join(shown)


def _value(value: object) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
