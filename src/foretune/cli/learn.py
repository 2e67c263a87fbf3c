"""`foretune learn`: learn priors and portfolios from experience, within a time limit."""

from collections.abc import Mapping
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretune.automl.space_names import SHIPPED_SPACES, ZERO_SHOT_SPACES
from foretune.cli.executor_options import executor_options
from foretune.cli.option_values import SEED, seconds
from foretune.errors import UsageError

if TYPE_CHECKING:
    from foretune.automl.knowledge.learn_bundle import LearningPlan, LearningReport
    from foretune.experience import Experience

METHODS = ("auto", "gcp-prior")
"""The default methods, written out so that `--help` is instant. A test compares them."""


@click.command("learn")
@click.option(
    "--space",
    "spaces",
    type=click.Choice((*SHIPPED_SPACES, *ZERO_SHOT_SPACES)),
    multiple=True,
    help="Learn for this space only. Repeatable.",
)
@click.option(
    "--method", "methods", multiple=True, help=f"Repeatable. Default: {', '.join(METHODS)}."
)
@click.option("--metric", "metrics", multiple=True, help="Repeatable. Default: all metrics.")
@click.option(
    "--time",
    "time_",
    type=seconds,
    metavar="TIME",
    default="60s",
    show_default=True,
    help="Time limit. Priors not finished by then are left unchanged.",
)
@click.option(
    "--experience",
    "file",
    type=click.Path(path_type=Path),
    help="Learn from this file only, and write to --out.",
)
@click.option("--out", type=click.Path(path_type=Path), help="Folder to write, with --experience.")
@click.option(
    "--jobs",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Number of priors to learn at the same time.",
)
@executor_options
@click.option("--seed", type=SEED, default=0, show_default=True)
def learn_command(
    spaces: tuple[str, ...],
    methods: tuple[str, ...],
    metrics: tuple[str, ...],
    time_: float,
    file: Path | None,
    out: Path | None,
    jobs: int,
    executor: str,
    address: str | None,
    seed: int,
) -> None:
    """Learn anew what searches begin with, from shipped experience and your own.

    Every search adds to your own experience. This command learns priors and portfolios from it, for
    each space that has some. Later searches begin with them.

    With --experience and --out it writes a separate folder of knowledge. The shipped one was made
    in this way.

    \b
    Examples:
      foretune learn
      foretune learn --space pipeline-regression --time 10m
      foretune learn --space pipeline-regression --experience runs.parquet --out knowledge/
      foretune learn --time 30m --jobs 8 --executor ray --address auto
    """
    from foretune.automl.knowledge.learn_bundle import LearningPlan
    from foretune.run.executor_choice import ExecutorChoice

    if (file is None) != (out is None) or (file is not None and len(spaces) != 1):
        raise UsageError(
            "a file is learnt from with --space NAME --experience FILE --out FOLDER, but some of "
            "these are missing: give all three"
        )
    chosen = methods or _by_default(executor, alone=file is not None)
    _check(chosen)
    site = ExecutorChoice(executor, address)
    plan = partial(LearningPlan, methods=chosen, seed=seed, site=site, jobs=jobs)
    if file is not None and out is not None:
        _from_file(plan(spaces[0], seconds=time_), metrics, file, out)
    else:
        _from_all(plan, spaces, metrics, time_)


def _by_default(executor: str, *, alone: bool) -> tuple[str, ...]:
    """Return the methods to learn if the user names none.

    alone: whether the folder must work without the shipped knowledge.
    """
    if alone or executor != "processes" or find_spec("jax") is not None:
        return METHODS
    click.echo(
        "Learning the default priors needs the package 'jax', which is not installed: the shipped "
        "priors stay in use, and portfolios are learnt. To learn all: pip install "
        "'foretune[neural]'"
    )
    return ()


def _check(methods: tuple[str, ...]) -> None:
    from foretune.search.registry import method

    for name in methods:
        method(name)


def _from_file(plan: "LearningPlan", metrics: tuple[str, ...], file: Path, out: Path) -> None:
    from foretune._base.progress import TerminalProgress
    from foretune.automl.knowledge.bundle import Bundle
    from foretune.automl.knowledge.learn_bundle import learn_bundle
    from foretune.automl.knowledge.relevant_experience import by_metric
    from foretune.automl.metrics import check_metric_directions, scorer
    from foretune.automl.spaces import load_shipped_space
    from foretune.experience import Experience

    experience = Experience.open(file, progress=TerminalProgress())
    task = load_shipped_space(plan.name).task
    names = metrics or tuple(metric.name for metric in experience.metrics)
    check_metric_directions([metric for metric in experience.metrics if metric.name in names], task)
    views = {name: by_metric(experience, scorer(name, task).metric) for name in names}
    click.echo(f"{plan.name}: {len(experience.tasks)} datasets, {len(experience):,} evaluations")
    _, done = learn_bundle(
        views,
        plan,
        Bundle.open(out),
        ships=experience,
        about=_read_collection_note(file),
        progress=TerminalProgress(),
    )
    _say(done)
    click.echo(f"Saved {out}")


def _from_all(
    plan: "partial[LearningPlan]", spaces: tuple[str, ...], metrics: tuple[str, ...], time_: float
) -> None:
    """Learn for each space in turn, within one time limit for all."""
    import time

    from foretune._base.progress import TerminalProgress
    from foretune.automl.knowledge.bundle import Bundle
    from foretune.automl.knowledge.knowledge import own_bundle
    from foretune.automl.knowledge.learn_bundle import learn_bundle
    from foretune.automl.knowledge.memory import Memory

    end = time.monotonic() + time_
    memory = Memory.of_user()
    own = memory.spaces()
    todo = [name for name in spaces or own if name in own]
    if not todo:
        click.echo("Nothing to learn: there is no experience of your own yet. Searches add to it.")
        return
    bundle = Bundle.open(own_bundle())
    for name in todo:
        known = memory.recall(name)
        measured = () if known is None else tuple(metric.name for metric in known.metrics)
        views = _views(name, metrics or measured)
        planned = plan(name, seconds=max(end - time.monotonic(), 0.0))
        bundle, done = learn_bundle(views, planned, bundle, progress=TerminalProgress())
        _say(done)
    click.echo(f"Saved {bundle.folder}")


def _views(name: str, metrics: tuple[str, ...]) -> dict[str, "Experience"]:
    """Return all experience of a space, once for each metric."""
    from foretune.automl.knowledge.knowledge import FitKnowledge

    views: dict[str, Experience] = {}
    for metric in metrics:
        knowledge = FitKnowledge.for_space(name, metric=metric)
        if not views:
            click.echo(f"{name}: {'; '.join(str(source) for source in knowledge.sources)}")
        if knowledge.whole is not None:
            views[metric] = knowledge.whole
    return views


def _read_collection_note(file: Path) -> Mapping[str, Any]:
    """Read how a collection was made, if a note beside it says so."""
    import json

    note = file.with_suffix(".collect.json")
    if not note.exists():
        return {}
    try:
        plain = json.loads(note.read_text(encoding="utf-8"))
        return {"recipe": plain["recipe"]}
    except (ValueError, KeyError) as error:
        raise UsageError(
            f"the note of a collection must be whole, but '{note}' is not ({error}): remove it"
        ) from error


def _say(done: list["LearningReport"]) -> None:
    from foretune.automl.knowledge.learning_processes import TIME_IS_OVER

    for each in done:
        how = each.note or (f"learnt in {each.seconds:.1f} s" if each.seconds else "learnt")
        click.echo(f"  {each.what:<12} {each.metric:<18} {how}")
    if any(each.note == TIME_IS_OVER for each in done):
        click.echo("  Some priors are unchanged: give more time for them, such as --time 10m")
