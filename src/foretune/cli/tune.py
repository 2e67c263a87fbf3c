"""`foretune tune`: tune the hyperparameters of any function or command line."""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretune.cli.executor_options import executor_options
from foretune.cli.past_run_alignment import carry_over_past
from foretune.cli.past_run_names import rename
from foretune.cli.past_runs import PastRuns, check_out_is_not_source, open_past_runs
from foretune.cli.quantities import SEED, memory, seconds
from foretune.cli.tune_options import resolve_metrics, resolve_space
from foretune.cli.tune_output import FinishedSearch, Outputs, report_search
from foretune.errors import UsageError

if TYPE_CHECKING:
    from foretune.experience import Experience, Metric
    from foretune.experience.alignment.carry_over import CarriedExperience
    from foretune.report.story import StorySource
    from foretune.search.method_entry import Method
    from foretune.search.optimizer import Optimizer
    from foretune.space import Space

FILE = click.Path(path_type=Path)
STORE = "foretune.db"
TRIALS = 50
LONGEST_NAME = 200


@click.command("tune")
@click.argument("function", required=False, metavar="[MODULE:FUNCTION]")
@click.option("--command", metavar="TEXT", help="A command line to run instead of a function.")
@click.option("--space", type=FILE, help="JSON file. Default: the space of --experience.")
@click.option(
    "--trials",
    type=click.IntRange(1),
    help="Trials of the study in all. Default: 50, or no limit with --time.",
)
@click.option(
    "--time", "time_", type=seconds, metavar="TIME", help="Time limit of this run, e.g. 10m."
)
@click.option("--experience", multiple=True, metavar="FILE|URL",
              help="Past runs to learn from: a Parquet file, or a store. Repeatable.")  # fmt: skip
@click.option("--assume", "assumed", multiple=True, metavar="NAME=VALUE",
              help="The value that past runs used for a new hyperparameter.")  # fmt: skip
@click.option("--missing", type=click.Choice(["default", "marginalise", "drop"]),
              default="default", show_default=True,
              help="Past runs without a value get its default or a random one, or are left "
                   "out.")  # fmt: skip
@click.option("--rename", "renamed", multiple=True, metavar="OLD=NEW",
              help="The name in past runs, and the new one; NAME:OLD=NEW for choices.")  # fmt: skip
@click.option("--method", default="auto", show_default=True, help="`foretune methods` lists them.")
@click.option("--metric", "metrics", multiple=True, metavar="NAME[:min|max]",
              help="Which of the returned numbers to optimise. Repeatable.")  # fmt: skip
@click.option(
    "--direction", type=click.Choice(["min", "max"]), help="Which way is better. Default: min."
)
@click.option("--store", metavar="URL", default=STORE, show_default=True,
              help="SQLite file, postgresql://... or mysql://...")  # fmt: skip
@click.option(
    "--study", metavar="NAME", help="Name of the study. Default: the function or the command."
)
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True,
              help="Number of trials at the same time.")  # fmt: skip
@executor_options
@click.option(
    "--time-limit", type=seconds, metavar="TIME", help="Time limit of one trial, e.g. 5m."
)
@click.option(
    "--memory", "memory_", type=memory, metavar="SIZE", help="Memory limit of one trial, e.g. 2GB."
)
@click.option(
    "--grace",
    type=seconds,
    metavar="TIME",
    default="30s",
    show_default=True,
    help="Time that a --command has to end after SIGTERM.",
)
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option(
    "--mlflow",
    metavar="URI",
    help="MLflow server that logs the trials. Default: MLFLOW_TRACKING_URI, if set.",
)
@click.option("-o", "--out", type=FILE, help="Save the trials as an experience file (Parquet).")
@click.option("--report", type=FILE, help="Save a report of the search (HTML).")
def tune_command(
    function: str | None,
    command: str | None,
    space: Path | None,
    trials: int | None,
    time_: float | None,
    experience: tuple[str, ...],
    assumed: tuple[str, ...],
    missing: str,
    renamed: tuple[str, ...],
    method: str,
    metrics: tuple[str, ...],
    direction: str | None,
    store: str,
    study: str | None,
    jobs: int,
    executor: str,
    address: str | None,
    time_limit: float | None,
    memory_: float | None,
    grace: float,
    seed: int,
    mlflow: str | None,
    out: Path | None,
    report: Path | None,
) -> None:
    """Tune the function MODULE:FUNCTION, or a --command, over a --space.

    The function gets a configuration as a dict. It returns a number, or a dict of numbers with
    every --metric. Several metrics are optimised together; the result is the trials that no other
    trial beats in all of them. Each trial runs in a process of its own. A trial fails, with a
    reason, if it raises, dies, or goes over --time-limit or --memory.

    In a command, {name} is replaced by the value of a hyperparameter. An argument whose
    hyperparameter is inactive is left out, together with the option before it. A hyperparameter
    that belongs to a choice has the name of its place, such as {model:svm:C} in the space below.
    The result is the last line of output that is a JSON number or object. The environment variable
    FORETUNE_CONFIG holds the configuration. No shell ever runs a value: where one might, {name}
    must be a number, or the command is refused.

    A line of a command's output that is a JSON object with "step" is a report. FORETUNE_FOLDER
    holds the path of a folder for checkpoints, and FORETUNE_RESUMED_FROM the last reported step if
    the trial was paused. A command that is to stop gets SIGTERM; after --grace it is killed.

    An --experience is a Parquet file or a store. All other studies of a store count as past tasks.
    The space may have changed since: runs with values outside today's space are left out, and a
    message says so. Past runs have no value for a new hyperparameter: give the value they used with
    --assume, its old name with --rename, or say with --missing what to do without. Studies that do
    not name their metrics, like most of Optuna's, are taken to have measured what is tuned now.

    The trials are an Optuna study. The same command goes on where it was stopped. Other processes
    and machines join when they run it too. optuna-dashboard shows it. As long as no trial has
    succeeded, another --metric or --direction begins the study anew.

    Standard output gets only the best configuration, or with several metrics the list of unbeaten
    trials. The exit code is 0 if there is one, 1 if no trial has succeeded, 2 after a mistake in
    the command, 130 after Ctrl-C or SIGTERM.

    \b
    A space is ConfigSpace's JSON, or the short form:
      {"lr": {"range": [0.0001, 0.1, "log"]}, "layers": {"range": [1, 5]},
       "activation": ["relu", "tanh"], "batch": {"ordinal": [32, 64, 128]},
       "model": {"svm": {"C": {"range": [0.1, 10.0]}}, "naive": {}}}

    \b
    Examples:
      foretune tune train:run --space space.json --trials 50
      foretune tune train:run --experience past.parquet --trials 20 --jobs 4 --time-limit 5m
      foretune tune train:run --space new.json --experience past.parquet --assume dropout=0
      foretune tune train:run --space new.json --experience past.parquet --rename rate=lr
      foretune tune train:run --space new.json --experience past.parquet --rename opt:adam=Adam
      foretune tune train:run --space space.json --study march --experience foretune.db
      foretune tune train:run --space space.json --metric accuracy:max --metric seconds:min
      foretune tune --command "python train.py --lr {lr}" --space space.json --time 1h
      foretune tune train:run --space space.json --trials 500 --store postgresql://me@host/tuning
      foretune tune train:run --space space.json --jobs 64 --executor ray --address auto
    """
    from foretune.cli.display import display
    from foretune.integrations.mlflow_log import log_to_mlflow
    from foretune.run.budget import Budget
    from foretune.run.executor import Limits
    from foretune.run.executor_choice import ExecutorChoice
    from foretune.run.tuning_loop import tune
    from foretune.search.registry import method as registered
    from foretune.stores.optuna.study import check_store
    from foretune.stores.studies import open_study

    site = ExecutorChoice(executor, address)
    if trials is None and time_ is None:
        trials = TRIALS
    outputs = Outputs(out, report)
    if out is not None:
        check_out_is_not_source(out, experience)
    check_store(store)
    name = study or (function or command or "")[:LONGEST_NAME]
    past = _past(experience, assumed, renamed, store=store, study=name)
    searched = resolve_space(space, past.task_source)
    wanted = resolve_metrics(metrics, direction, past.task_source)
    known = carry_over_past(past, searched, wanted, assumed, missing)
    evaluated = _objective(function, command, searched, memory_, grace)
    chosen, began = registered(method), time.monotonic()
    optimizer = _optimizer(searched, wanted, known, chosen, seed)
    learning = time.monotonic() - began
    limits = Limits(time_limit, None, int(memory_) if memory_ and function else None)
    settings = {"objective": function or command}
    # MLflow comes first: if it is out of reach, no store is left behind.
    with (
        display(wanted, trials, time_) as shown,
        log_to_mlflow(shown, mlflow, name, wanted) as watch,
    ):
        opened = open_study(store, name, space=searched, metrics=wanted, settings=settings)
        with opened as kept, site.pool(evaluated, workers=jobs, limits=limits) as pool:
            try:
                ending = tune(kept, optimizer, pool, Budget(trials, time_), watch=watch)
            except KeyboardInterrupt:
                ending = None
            all_trials = kept.trials()
    source = _source(experience, known)
    search = FinishedSearch(
        opened, chosen, source, learning, time.monotonic() - began - learning, seed
    )
    code = report_search(search, all_trials, optimizer.explain(), ending, outputs)
    if code:
        sys.exit(code)


def _past(
    experience: Sequence[str],
    assumed: Sequence[str],
    renamed: Sequence[str],
    *,
    store: str,
    study: str,
) -> PastRuns:
    for option, texts in (("--assume", assumed), ("--rename", renamed)):
        if texts and not experience:
            raise UsageError(
                f"{option} describes past runs, but got '{texts[0]}' without any: give an "
                "--experience"
            )
    past = open_past_runs(experience, store=store, study=study)
    rename(past, renamed)
    return past


def _objective(
    function: str | None,
    command: str | None,
    space: "Space",
    memory_: float | None,
    grace: float,
) -> Any:
    from foretune.run.commands import Command, CommandLimits
    from foretune.run.named_function import NamedFunction

    if (function is None) == (command is None):
        raise UsageError(
            "tune needs a function (module:function) or a --command, but got "
            f"{'neither' if function is None else 'both'}: give one"
        )
    if function is not None:
        return NamedFunction(function, Path.cwd())
    assert command is not None
    line = Command(command, CommandLimits(int(memory_) if memory_ else None, grace))
    line.check(space)
    return line


def _optimizer(
    space: "Space",
    metrics: "Sequence[Metric]",
    past: "CarriedExperience[Experience] | None",
    chosen: "Method",
    seed: int,
) -> "Optimizer":
    from foretune._base.terminal import TerminalProgress
    from foretune.methods.contracts import Target
    from foretune.search.optimizer import Optimizer
    from foretune.search.prior_cache import prior_of

    known = None if past is None else past.experience
    prior = prior_of(chosen, known, seed=seed, progress=TerminalProgress())
    return Optimizer(Target(space, tuple(m.name for m in metrics)), chosen, prior, seed=seed)


def _source(
    given: Sequence[str], past: "CarriedExperience[Experience] | None"
) -> "StorySource | None":
    """Describe the past runs that the search started from, for the report."""
    from foretune._base.databases import hide_passwords
    from foretune.report.story import StorySource

    if past is None:
        return None
    known = past.experience
    note = "" if past.is_whole else past.describe()
    return StorySource(", ".join(map(hide_passwords, given)), len(known.tasks), len(known), note)
