"""`foretune collect`: experience from datasets."""

import sys
import time
from collections.abc import Callable
from datetime import timedelta
from functools import partial
from pathlib import Path

import click

from foretune.automl import SHIPPED_SPACES
from foretune.plugins import SEED, check_experience_out, executor_options, memory, names_in, seconds

"""The shipped spaces, written out so that `--help` need not import them; a test compares."""
LINE_SECONDS = 60.0


class LineProgress:
    """One line a minute, for logs."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._what, self._total, self._done = "", 0, 0
        self._began = self._said = clock()

    def start(self, what: str, total: int | None) -> None:
        """Begin a piece of work."""
        self._what, self._total, self._done = what, total or 0, 0
        self._began = self._said = self._clock()
        click.echo(f"{what}: {self._total:,} to do", err=True)

    def step(self, n: int = 1, note: str = "") -> None:
        """Count, and say how far it is from time to time."""
        self._done += n
        now = self._clock()
        if now - self._said < LINE_SECONDS:
            return
        self._said = now
        left = (now - self._began) / self._done * (self._total - self._done)
        click.echo(
            f"{self._what}: {self._done:,} of {self._total:,}, "
            f"{timedelta(seconds=round(left))} left ({note})",
            err=True,
        )

    def stop(self) -> None:
        """Nothing to take away."""


@click.command("collect")
@click.option("--space", type=click.Choice(SHIPPED_SPACES), required=True)
@click.option("--datasets", required=True, metavar="catalogue:GROUP|FOLDER")
@click.option("--target", metavar="COLUMN", help="In the files of a folder; else the last one.")
@click.option("--evaluations", type=click.IntRange(1), default=200, show_default=True)
@click.option(
    "--like",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    metavar="FILE",
    help="The configurations of an earlier collection instead, on every dataset.",
)
@click.option(
    "--refine",
    type=click.IntRange(0),
    default=0,
    show_default=True,
    help="So many more that the results of these speak for, proposed by all datasets in turn.",
)
@click.option(
    "--per-algorithm",
    type=click.Choice(["even", "sampled"]),
    default="even",
    show_default=True,
    help="Equally many configurations of each estimator, or as the space samples them.",
)
@click.option("--only", metavar="NAMES", help="Only these estimators, e.g. lightgbm,rf.")
@click.option("--metrics", metavar="NAMES", help="The first one is what methods optimise.")
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True)
@click.option(
    "--cv-below",
    type=click.IntRange(0),
    default=2500,
    show_default=True,
    help="Cross-validate tables with fewer rows; hold a third of larger ones out.",
)
@click.option("--max-rows", type=click.IntRange(50), default=20_000, show_default=True)
@click.option(
    "--time-limit",
    type=seconds,
    metavar="TIME",
    default="60s",
    show_default=True,
    help="CPU time of one evaluation.",
)
@click.option(
    "--memory",
    type=memory,
    metavar="SIZE",
    default="2GB",
    show_default=True,
    help="Of one worker process.",
)
@click.option("--jobs", type=click.IntRange(1), default=2, show_default=True)
@executor_options
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("-o", "--out", type=click.Path(path_type=Path), required=True, help="Parquet file.")
def collect_command(
    space: str,
    datasets: str,
    target: str | None,
    evaluations: int,
    like: Path | None,
    refine: int,
    per_algorithm: str,
    only: str | None,
    metrics: str | None,
    folds: int,
    cv_below: int,
    max_rows: int,
    time_limit: float,
    memory: float,
    jobs: int,
    executor: str,
    address: str | None,
    seed: int,
    out: Path,
) -> None:
    """Evaluate configurations of a shipped space on many datasets, as experience for methods.

    Every dataset gets the same configurations. The command can be stopped at any time: it goes
    on where it was, and the output holds what has been evaluated. Asked for more evaluations or
    datasets, it adds them.

    \b
    Datasets:
      catalogue:classification   100 public ones (downloaded once, 29 MB)
      catalogue:regression       31 public ones
      catalogue:bundled          5 that come with scikit-learn
      catalogue:classification-textbook, catalogue:regression-textbook
                                 15 each from textbooks (34 MB)
      catalogue:iris,wine        by name
      FOLDER                     every CSV, Parquet, KEEL or ARFF file in it

    \b
    Examples:
      foretune collect --space cash --datasets catalogue:classification --evaluations 300 \\
          --time-limit 20s -o cash.parquet
      foretune collect --space pipeline-regression --datasets tables/ --target price -o own.parquet
    """
    from foretune.automl import Protocol, load_shipped_space
    from foretune.experience import summarise
    from foretune.plugins import TerminalProgress
    from foretune.run import ExecutorChoice
    from foretune_lab.collect.collect import collect
    from foretune_lab.collect.recipe import CollectionRecipe
    from foretune_lab.collect.table_sources import sources

    check_experience_out(out)
    chosen = load_shipped_space(space)
    names = names_in(metrics) or chosen.metrics
    recipe = CollectionRecipe(
        space=space,
        protocol=Protocol(names, folds, cv_below, seed),
        evaluations=evaluations,
        like=like,
        refined=refine,
        only=names_in(only),
        even=per_algorithm == "even",
        most_rows=max_rows,
        cpu_seconds=time_limit,
        memory_bytes=int(memory),
        seed=seed,
    )
    start = partial(ExecutorChoice(executor, address).pool, workers=jobs, limits=recipe.limits)
    progress = TerminalProgress() if sys.stderr.isatty() else LineProgress()
    found = sources(datasets, chosen.task, target=target)
    click.echo(summarise(collect(recipe, found, out.absolute(), start=start, progress=progress)))
    click.echo(f"\nSaved {out}")
