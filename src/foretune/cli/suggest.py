"""`foretune suggest`: the best configurations for a table by what past ones taught, none run."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretune.automl.space_names import SHIPPED_SPACES
from foretune.cli.names import names_in
from foretune.errors import UsageError

if TYPE_CHECKING:
    from foretune.automl.knowledge.fit_journal import FitDescription
    from foretune.automl.knowledge.knowledge import FitKnowledge
    from foretune.automl.knowledge.task_similarity import Recommendation


@click.command("suggest")
@click.argument("data", type=click.Path(path_type=Path))
@click.option("--target", required=True, metavar="COLUMN", help="What is to be predicted.")
@click.option("-k", "length", type=click.IntRange(1), default=5, show_default=True)
@click.option("--metric", metavar="NAME", help="Else as `foretune fit` chooses.")
@click.option("--space", type=click.Choice(SHIPPED_SPACES), help="Else the pipelines for the task.")
@click.option(
    "--task", type=click.Choice(["classification", "regression"]), help="Else by the target."
)
@click.option("--only", metavar="NAMES", help="Only these estimators, e.g. lightgbm,rf.")
@click.option("--group", metavar="COLUMN", help="As in `foretune fit`.")
@click.option("--order", metavar="COLUMN", help="As in `foretune fit`.")
@click.option("--weight", metavar="COLUMN", help="As in `foretune fit`.")
@click.option("--ignore", metavar="A,B", help="Columns that are not learnt from; "
              "one that has a comma in double quotes.")  # fmt: skip
@click.option("--json", "as_json", is_flag=True, help="For programs.")
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

    DATA is a CSV or Parquet table. Datasets that are like it count more. Where you have searched
    this very table before, the best that was found comes first.

    \b
    Examples:
      foretune suggest train.csv --target label
      foretune suggest train.csv --target price -k 10 --only lightgbm,rf --json
    """
    from foretune._base.terminal import TerminalProgress
    from foretune.automl.job import describe_for_memory, load_knowledge
    from foretune.automl.plan import FitOptions, make_plan
    from foretune.tables.column_roles import ColumnRoles
    from foretune.tables.identity import task_name
    from foretune.tables.reading import read_training

    roles = ColumnRoles(group, order, names_in(ignore), weight)
    training = read_training(data, target, task=task, roles=roles, progress=TerminalProgress())
    table = training.table
    plan = make_plan(table, FitOptions(metric=metric, space=space, only=names_in(only)))
    about = describe_for_memory(plan, task_name(table))
    knowledge = load_knowledge(plan, about.task, own=True)
    if knowledge is None:
        raise UsageError(
            f"suggestions need past datasets, but there are none of '{about.space_name}': collect "
            "some with 'foretune collect' and add them with 'foretune experience add'"
        )
    before = _before(knowledge, about)
    known = [each["config"] for each in before]
    found = [*before, *_now(knowledge, length, about, known)][:length]
    if as_json:
        said = {"table": table.name, "task": table.task, "metric": plan.metric.name}
        click.echo(json.dumps({**said, "suggestions": found}))
        return
    sources = f"Known: {'; '.join(map(str, knowledge.sources))}."
    noted = [f"{note[0].upper()}{note[1:]}." for note in knowledge.notes]
    for note in (*training.notes, *plan.notes, sources, *noted):
        click.echo(note)
    click.echo()
    steps = (*plan.shipped.stages, plan.shipped.choice)
    for number, each in enumerate(found, start=1):
        click.echo(f"{number}. {each['why']}\n   {_pipeline(each['config'], steps)}")


def _before(knowledge: "FitKnowledge", about: "FitDescription") -> list[dict[str, Any]]:
    """The best of the user's own trials on this very table, if there are any."""
    from foretune.automl.knowledge.memory import Memory
    from foretune.experience import Status

    name, sign = knowledge.metric.name, knowledge.metric.sign
    # In the space as it is asked for: estimators that are left out are not to come back.
    earlier = Memory.of_user().earlier(about.space_name, about.task, space=knowledge.space)
    done = [each for each in earlier if each.status is Status.DONE and name in each.values]
    if not done:
        return []
    best = min(done, key=lambda each: sign * each.values[name])
    why = f"the best of your {len(done)} trials on this table ({name} {best.values[name]:.5g})"
    return [{"config": dict(best.config), "why": why, "seconds": _finite_or_none(best.seconds)}]


def _now(
    knowledge: "FitKnowledge", length: int, about: "FitDescription", known: list[dict[str, Any]]
) -> list[dict[str, Any]]:
    """What like datasets recommend, without the configurations that are `known` already."""
    choice = knowledge.suggest(length, about.meta_features)
    twice = choice.configs.isin(knowledge.space.encode(known))
    return [
        {
            "config": config,
            "why": _why(row, choice),
            "better_pipelines": float(choice.places[row]),
            "better_than_all_so_far": float(choice.together[row]),
            "seconds": _finite_or_none(float(choice.seconds[row])),
        }
        for row, config in enumerate(choice.configs.dicts())
        if not twice[row]
    ]


def _why(row: int, choice: "Recommendation") -> str:
    alone, together = (_place(float(of[row])) for of in (choice.places, choice.together))
    said = f"in the {alone} of pipelines on like datasets"
    return said if row == 0 else f"{said}; the best of these {row + 1}, in the {together}"


def _place(share: float) -> str:
    return f"best {max(share, 0.01):.0%}"


def _finite_or_none(seconds: float | None) -> float | None:
    return None if seconds is None or math.isnan(seconds) else round(float(seconds), 3)


def _pipeline(config: dict[str, Any], steps: tuple[str, ...]) -> str:
    """The steps in their order, each with what it is set to."""
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
