"""`foretune portfolio build`: run configurations on many tasks, and pick a few of them."""

import re
import sys
from pathlib import Path
from typing import Any

import click

from foretune.cli.executor_options import executor_options
from foretune.cli.option_values import SEED, memory, seconds

FILE = click.Path(path_type=Path)
BUILDERS = ("naive", "surrogate", "obo", "mf")
"""The builders, written out so that `--help` is instant. A test compares them."""
NORMALISATIONS = ("none", "rank", "stddev", "min-max", "red", "normal")
"""The normalisations, written out, too."""
JOURNAL = "foretune-portfolio.db"


def evaluations_or_time(text: str) -> tuple[int | None, float | None]:
    """Read `40` as a number of evaluations, and `20m` as a time."""
    if re.fullmatch(r"\d+", text):
        if int(text) < 1:
            raise click.BadParameter(f"it must be at least one evaluation, but got '{text}'")
        return int(text), None
    return None, seconds(text)


@click.command("build")
@click.argument("function", required=False, metavar="[MODULE:FUNCTION]")
@click.option("--tasks", type=FILE, required=True, metavar="FOLDER|FILE.json",
              help="A folder of tables, or a JSON list of names.")  # fmt: skip
@click.option("--target", metavar="COLUMN|INDEX.csv",
              help="Of tables: the column, or a CSV file with name and target.")  # fmt: skip
@click.option("--space", required=True, metavar="NAME|FILE.json",
              help="A shipped space (foretune spaces), or a JSON file.")  # fmt: skip
@click.option("--only", metavar="NAMES", help="Only these models of a shipped space.")
@click.option("--command", metavar="TEXT", help="A command line to run instead of a function.")
@click.option("--size", type=click.IntRange(1), default=5, show_default=True,
              help="Number of configurations.")  # fmt: skip
@click.option("--builder", type=click.Choice(BUILDERS), default="obo", show_default=True)
@click.option("--budget", type=evaluations_or_time, metavar="N|TIME",
              help="Evaluations in all, such as 400, or the time of this run, such as 30m. "
                   "Default: 50.")  # fmt: skip
@click.option("--journal", metavar="FILE|URL", default=JOURNAL, show_default=True,
              help="Where every evaluation is kept: an SQLite file, postgresql://... or "
                   "mysql://...")  # fmt: skip
@click.option("--study", metavar="NAME", default="portfolio", show_default=True,
              help="Name of the build in the journal.")  # fmt: skip
@click.option("--experience", multiple=True, metavar="FILE|URL",
              help="Past runs to start from: a Parquet file, or a store. Repeatable.")  # fmt: skip
@click.option("--experience-out", type=FILE, metavar="FILE.parquet",
              help="Where the evaluations are saved as experience. Default: beside the "
                   "portfolio, or beside the journal.")  # fmt: skip
@click.option("--remember/--no-remember", default=True, show_default=True,
              help="Whether `foretune learn` gets the evaluations on tables.")  # fmt: skip
@click.option("--metric", metavar="NAME[:min|max]",
              help="Default: loss; of a shipped space, its first metric.")  # fmt: skip
@click.option("--aggregate", metavar="mean|median|p90", default="mean", show_default=True,
              help="How losses of tasks are combined.")  # fmt: skip
@click.option("--normalisation", type=click.Choice(NORMALISATIONS),
              help="How losses of tasks are made comparable. Default: red for errors, else "
                   "rank.")  # fmt: skip
@click.option("--candidates", type=click.IntRange(2), default=2000, show_default=True,
              help="Number of random configurations to choose among.")  # fmt: skip
@click.option("--most-candidates", type=click.IntRange(2), default=2000, show_default=True,
              help="The most that obo scores at a time.")  # fmt: skip
@click.option("--most-rows", type=click.IntRange(2), default=2000, show_default=True,
              help="The most evaluations that a forest of surrogate reads.")  # fmt: skip
@click.option("--folds", type=click.IntRange(2), default=5, show_default=True,
              help="Of the cross-validation of tables below 2,500 rows.")  # fmt: skip
@click.option("--max-rows", type=click.IntRange(50), default=20_000, show_default=True,
              help="Rows that are drawn from larger tables.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True,
              help="Number of evaluations at the same time.")  # fmt: skip
@executor_options
@click.option("--time-limit", type=seconds, metavar="TIME",
              help="Time limit of one evaluation, e.g. 5m.")  # fmt: skip
@click.option("--memory", "memory", type=memory, metavar="SIZE",
              help="Memory limit of one evaluation, e.g. 2GB.")  # fmt: skip
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("-o", "--out", type=FILE, help="Save the portfolio (JSON).")
def build_command(**options: Any) -> None:
    """Build a portfolio by running configurations on many tasks.

    Tasks are tables of a folder with a shipped --space, or names in a JSON file with a FUNCTION or
    a --command. The function gets a configuration and a task, and a trial if it takes three
    arguments; it returns the metric. In a command, {task} is the name of the task.

    Each evaluation runs in a process of its own. One that raises, dies, or goes over a limit is a
    failed evaluation, with its reason. All evaluations are in the --journal: the same command goes
    on where it was stopped or killed, and several machines may share a journal on a server.

    \b
    Builders:
      naive      few random configurations on all tasks
      surrogate  random configurations, others on each task, and a forest for each task
      obo        chooses each evaluation by a forest over all tasks
      mf         gives more tasks to configurations that do well on few

    \b
    Examples:
      foretune portfolio build --tasks tables/ --target label --space lightgbm \\
          --budget 400 --jobs 8 --time-limit 1m -o portfolio.json
      foretune portfolio build train:error --tasks tasks.json --space space.json --budget 2h
      foretune portfolio build --command "python train.py {task} --lr {lr}" \\
          --tasks tasks.json --space space.json --budget 100
    """
    from foretune.cli.portfolio_run import PortfolioRun

    count, time_ = options.pop("budget") or (None, None)
    sys.exit(PortfolioRun(budget=count, seconds=time_, **options).run())
