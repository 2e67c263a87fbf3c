"""`foretune experience`: show, export, extend or forget what your searches have tried."""

from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretune.automl.space_names import SHIPPED_SPACES
from foretune.cli.output_paths import check_experience_out
from foretune.errors import UsageError

if TYPE_CHECKING:
    from foretune.automl.knowledge.memory import Memory
    from foretune.experience import Experience

MOST_TASKS = 30

of_space = click.option(
    "--space", type=click.Choice(SHIPPED_SPACES), help="Default: the only space with experience."
)


@click.group("experience")
def experience_group() -> None:
    """Show, export, add to, or forget your own experience.

    Every search adds its trials: configurations, scores, times, the name of the file, and numbers
    that describe the table. Rows, columns and labels of tables are never kept. The environment
    variable FORETUNE_HOME sets the folder.
    """


@experience_group.command("show")
@click.option(
    "--space", type=click.Choice(SHIPPED_SPACES), help="Show everything about this space."
)
def show_command(space: str | None) -> None:
    """List the datasets that your searches have seen."""
    from foretune.automl.knowledge.memory import Memory
    from foretune.experience import summarise

    memory = Memory.of_user()
    names = memory.spaces()
    if space is not None:
        names = [name for name in names if name == space]
    if not names:
        click.echo(f"Nothing is remembered yet in {memory.folder}. Searches add to it.")
    for name in names:
        known = memory.recall(name)
        if known is not None:
            click.echo(summarise(known) if space else _overview(name, known))
    if names:
        click.echo(f"\nKept in {memory.folder}")


@experience_group.command("export")
@click.argument("file", type=click.Path(path_type=Path))
@of_space
def export_command(file: Path, space: str | None) -> None:
    """Write your experience to FILE (.parquet)."""
    from foretune.automl.knowledge.memory import Memory

    check_experience_out(file)
    memory = Memory.of_user()
    known = memory.export(_resolve_space_name(memory, space), file)
    click.echo(f"Saved {file}: {_sizes(known)}")


@experience_group.command("add")
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--space", type=click.Choice(SHIPPED_SPACES), required=True)
def add_command(file: Path, space: str) -> None:
    """Add the evaluations in FILE to your own.

    FILE was made by `foretune collect`, or exported by another user.

    \b
    Example:
      foretune collect --space pipeline-regression --datasets tables/ -o own.parquet
      foretune experience add own.parquet --space pipeline-regression
      foretune learn
    """
    from foretune.automl.knowledge.memory import Memory
    from foretune.automl.metrics import check_metric_directions
    from foretune.automl.spaces import load_shipped_space
    from foretune.experience import Experience
    from foretune.experience.alignment.restriction import restrict_experience

    experience = Experience.open(file)
    chosen = load_shipped_space(space)
    check_metric_directions(experience.metrics, chosen.task)
    added = restrict_experience(experience, chosen.build(), drop_unknown=True)
    memory = Memory.of_user()
    memory.add(space, added)
    known = memory.recall(space) or added
    click.echo(f"Added to '{space}': {_sizes(added)} in the file; {_sizes(known)} in all now")


@experience_group.command("forget")
@click.argument("task", required=False)
@of_space
@click.option("--all", "all_", is_flag=True, help="Forget everything, in all spaces or in --space.")
def forget_command(task: str | None, space: str | None, all_: bool) -> None:
    """Forget the dataset TASK, or --all of them.

    Priors that were learnt from them are removed too. Searches begin with the shipped priors until
    you run `foretune learn` again.
    """
    from foretune.automl.knowledge.knowledge import forget_lessons
    from foretune.automl.knowledge.memory import Memory
    from foretune.report.wording import count_text

    if (task is None) != all_:
        raise UsageError(
            "forget needs one dataset or --all, but got "
            f"{'both' if task else 'neither'}: name a dataset, or give --all"
        )
    memory = Memory.of_user()
    if space is not None:
        names = [space]
    else:
        names = memory.space_names() if task is None else [_holding(memory, task)]
    lost = 0
    for name in names:
        lost += memory.forget(name, task)
        forget_lessons(name)
    click.echo(f"Forgot {count_text(lost, 'evaluation')}")


def _holding(memory: "Memory", task: str) -> str:
    """Return the only space that has this dataset."""
    names = memory.holding(task)
    if not names:
        raise UsageError(
            f"a dataset to forget must be a remembered one, but there is no '{task}': see  "
            "foretune experience show"
        )
    if len(names) > 1:
        raise UsageError(
            f"a dataset must be in one space, but '{task}' is in {', '.join(names)}: choose one "
            "with --space"
        )
    return names[0]


def _resolve_space_name(memory: "Memory", space: str | None) -> str:
    names = memory.spaces()
    if space is None and len(names) == 1:
        return names[0]
    if space is None:
        found = f"there are {', '.join(names)}" if names else "nothing is remembered yet"
        raise UsageError(f"there must be experience of one space, but {found}: give --space")
    return space


def _overview(name: str, known: "Experience") -> str:
    lines = [f"{name}: {_sizes(known)}"]
    width = max(len(task) for task in known.tasks[:MOST_TASKS])
    for task in known.tasks[:MOST_TASKS]:
        lines.append(f"  {task:<{width}}  {_best(known, task)}")
    if len(known.tasks) > MOST_TASKS:
        lines.append(f"  ... and {len(known.tasks) - MOST_TASKS} more")
    return "\n".join(lines)


def _sizes(known: "Experience") -> str:
    from foretune.report.wording import count_text

    return f"{count_text(len(known.tasks), 'dataset')}, {count_text(len(known), 'evaluation')}"


def _best(known: "Experience", task: str) -> str:
    """Return the number of evaluations, and the best value of each metric.

    The memory does not hold which metric a search optimised.
    """
    import numpy as np

    records = known.task(task)
    best = [
        f"{metric.name} {np.nanmin(losses) * metric.sign:.5g}"
        for metric, losses in zip(known.metrics, records.losses.T, strict=True)
        if np.isfinite(losses).any()
    ]
    return f"{len(records):>5}, {'best ' + ', '.join(best) if best else 'none succeeded'}"
