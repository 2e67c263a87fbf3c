"""`build_portfolio`: a portfolio from Python, by running configurations on many tasks."""

import json
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from foretune._base.databases import sqlite_url
from foretune._base.names import check_writable
from foretune._base.progress import SILENT, Progress
from foretune.automl.evaluation import Protocol
from foretune.automl.live_portfolio.evaluators import PairFunction, TablePairEvaluator
from foretune.automl.live_portfolio.pairs import PairSpace
from foretune.automl.live_portfolio.run import CANDIDATES, FinishedBuild, LiveBuild
from foretune.automl.live_portfolio.table_tasks import read_tasks
from foretune.automl.metrics import scorer
from foretune.automl.spaces import EXTRAS, ShippedSpace
from foretune.errors import MissingExtraError, UsageError
from foretune.experience import Direction, Experience, Metric
from foretune.methods.zero_shot.build import Recipe
from foretune.methods.zero_shot.builder import USUAL_CAPS, Caps
from foretune.run.commands import Command
from foretune.run.executor import Limits
from foretune.run.executor_choice import HERE, ExecutorChoice
from foretune.run.named_function import NamedFunction
from foretune.run.watch import SILENT_WATCH, Watch
from foretune.search.arguments import load_experience
from foretune.space import Space
from foretune.tables import Table

MOST_ROWS = 20_000
"""The number of rows that are drawn from larger tables."""


def build_portfolio(  # noqa: PLR0913 - one argument a choice of the user
    function: Callable[..., Any] | str,
    tasks: Mapping[str, Any] | Sequence[str],
    space: Any,
    *,
    size: int = 5,
    builder: str = "obo",
    budget: int | None = None,
    seconds: float | None = None,
    metric: str = "loss",
    direction: str = "min",
    experience: Experience | str | Path | None = None,
    journal: str | Path | None = None,
    jobs: int = 1,
    executor: str = "processes",
    time_limit: float | None = None,
    memory: int | None = None,
    aggregate: str = "mean",
    normalisation: str | None = None,
    candidates: int = CANDIDATES,
    caps: Caps = USUAL_CAPS,
    seed: int = 0,
    watch: Watch = SILENT_WATCH,
) -> FinishedBuild:
    """Build a portfolio by running a function on pairs of a configuration and a task.

    The same call with the same journal goes on where the last one ended. Several processes, on
    several machines, may share a journal on a server.

    Arguments:
        function: takes a configuration, a task, and perhaps a trial that reports steps, and returns
            the metric. It runs in other processes, so it must be importable, or a text
            `module:function`.
        tasks: names, or {name: what the function gets}.
        space: what may be tried, as `Space.of` takes it.
        size: the number of configurations.
        builder: `naive`, `surrogate`, `obo` or `mf`.
        budget: the number of evaluations, those of earlier runs included.
        seconds: how long this run may take. Without both, it takes 50 evaluations.
        experience: past runs; those of the same tasks cost nothing.
        journal: the path of an SQLite file, or the URL of a server. Default: memory.
        time_limit, memory: seconds and bytes that one evaluation may use.
        candidates: the number of random configurations that the builder chooses among.

    Example:
        >>> def error(config, task): ...
        >>> built = build_portfolio(error, ["a", "b"], {"x": (0.0, 1.0)}, budget=40)
        >>> built.portfolio.configs
    """
    named = dict(tasks) if isinstance(tasks, Mapping) else {name: name for name in tasks}
    pairs = pair_space(Space.of(space), list(named))
    called = NamedFunction(function, Path.cwd()) if isinstance(function, str) else function
    measured = Metric(metric, Direction(direction))
    past = load_experience(experience)
    if past is not None:
        past = past.in_space(pairs.space).with_metrics([metric])
    described = function if isinstance(function, str) else function.__qualname__
    build = LiveBuild(
        space=pairs,
        metric=measured,
        evaluator=PairFunction(called, named, pairs.task_name),
        recipe=Recipe(
            size,
            builder,
            usual_budget(budget, seconds),
            aggregate,
            normalisation,
            seed=seed,
            caps=caps,
        ),
        seconds=seconds,
        candidates=candidates,
        past=past,
        source=f"{described} on {len(named)} tasks",
        store=None if journal is None else journal_url(str(journal)),
        settings={"objective": described},
        workers=jobs,
        site=ExecutorChoice(executor),
        limits=Limits(time_limit, None, memory),
    )
    return build.run(watch)


BUDGET = 50


def usual_budget(budget: int | None, seconds: float | None) -> int | None:
    """Return the number of evaluations; 50 if neither it nor the time is limited."""
    return BUDGET if budget is None and seconds is None else budget


def journal_url(given: str) -> str:
    """Return the URL of a journal, which may also be the path of a file with any name."""
    if "://" in given:
        return given
    path = Path(given).absolute()
    check_writable("journal", path.name)
    if not path.parent.is_dir() or path.is_dir():
        raise UsageError(
            f"a journal must be a URL or a file in a folder that exists, but got '{given}': make "
            "its folder first, or name a file",
            rule="journal-path",
            field="journal",
            value=given,
        )
    return sqlite_url(path)


def pair_space(space: Space, tasks: Sequence[str]) -> PairSpace:
    """Return the space of pairs; refuse tasks that cannot be told apart."""
    names = [name if isinstance(name, str) else json.dumps(name) for name in tasks]
    if len(names) < 2 or len(set(names)) < len(names):
        raise UsageError(
            "a portfolio needs at least two tasks with different names, but got "
            f"{len(names)}, {len(set(names))} of them different: add tasks, or rename one",
            rule="at-least-two-tasks",
            field="tasks",
            value=len(names),
        )
    for name in names:
        check_writable("task", name)
    return PairSpace(space, names)


def table_build(  # noqa: PLR0913 - one argument a choice of the user
    shipped: ShippedSpace,
    folder: Path,
    target: str,
    *,
    only: Sequence[str] = (),
    metric: str | None = None,
    folds: int = 5,
    kept: Path,
    most_rows: int = MOST_ROWS,
    site: ExecutorChoice = HERE,
    recipe: Recipe,
    progress: Progress = SILENT,
) -> LiveBuild:
    """Describe a build on the tables of a folder. Its store and its limits are still to be set."""
    _check_packages(shipped, only)
    name = metric or shipped.metrics[0]
    measured = scorer(name, shipped.task).metric
    tables = read_tasks(
        folder,
        target,
        shipped.task,
        kept=kept,
        most_rows=most_rows,
        seed=recipe.seed,
        progress=progress,
    )
    pairs = pair_space(shipped.build(only), [each.name for each in tables])
    # Workers of a cluster may not see the files of this machine.
    opened = {t.name: Path(t.path) if site.is_here else Table.open(Path(t.path)) for t in tables}
    protocol = Protocol((name,), folds=folds, seed=recipe.seed)
    return LiveBuild(
        space=pairs,
        metric=measured,
        evaluator=TablePairEvaluator(opened, protocol, pairs.task_name),
        recipe=recipe,
        source=f"{shipped.name} on the {len(tables)} tables of {folder.name}",
        settings={
            "objective": shipped.name,
            "folds": folds,
            "seed": recipe.seed,
            "tables": {each.name: each.fingerprint for each in tables},
        },
        site=site,
        meta_features={each.name: each.meta_features for each in tables},
    )


def _check_packages(shipped: ShippedSpace, only: Sequence[str]) -> None:
    """Refuse a space whose models cannot be made here, before anything is read."""
    shipped.check(only)
    for name in only or shipped.algorithms():
        if name in EXTRAS and find_spec(name) is None:
            raise MissingExtraError(name, EXTRAS[name], f"the model '{name}'")


def function_build(
    called: NamedFunction | Command,
    described: str,
    tasks: Mapping[str, Any],
    space: Space,
    metric: Metric,
    recipe: Recipe,
) -> LiveBuild:
    """Describe a build on tasks that are no tables. Its store and limits are still to be set."""
    pairs = pair_space(space, list(tasks))
    if isinstance(called, Command):
        called.check(pairs.pairs)
        evaluator: Command | PairFunction = called
    else:
        evaluator = PairFunction(called, tasks, pairs.task_name)
    return LiveBuild(
        space=pairs,
        metric=metric,
        evaluator=evaluator,
        recipe=recipe,
        source=f"{described} on {len(tasks)} tasks",
        settings={"objective": described},
    )


def read_task_list(path: Path) -> dict[str, Any]:
    """Read the names of tasks from a JSON file, or {name: what the function gets}."""
    try:
        plain = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise UsageError(
            f"a list of tasks must be a JSON file, but '{path}' cannot be read as one ({error}): "
            "correct it, or its path",
            rule="tasks-not-json",
            field="tasks",
            value=str(path),
        ) from error
    if isinstance(plain, dict) and plain:
        return plain
    if isinstance(plain, list) and plain and all(isinstance(name, str) for name in plain):
        return {name: name for name in plain} if len(set(plain)) == len(plain) else _refuse(path)
    return _refuse(path)


def _refuse(path: Path) -> dict[str, Any]:
    raise UsageError(
        f"a list of tasks must be different names, or an object with names, but '{path}' holds "
        'something else: write ["first", "second"] or {"first": ..., "second": ...}',
        rule="tasks-not-names",
        field="tasks",
        value=str(path),
    )
