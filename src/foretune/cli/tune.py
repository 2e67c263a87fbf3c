"""`foretune tune`: tune the hyperparameters of any function or command line."""

import sys
from pathlib import Path
from typing import Any

import click

from foretune.cli.executor_options import executor_options
from foretune.cli.option_values import SEED, memory, seconds

FILE = click.Path(path_type=Path)
STORE = "foretune.db"


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
    "--time", "seconds", type=seconds, metavar="TIME", help="Time limit of this run, e.g. 10m."
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
@click.option("--stop",
              type=click.Choice(["asha", "hyperband", "halving", "median", "model", "none"]),
              help="Which trials end early, by what they report; 'model' asks the method. "
                   "Default: none, but model for freeze-thaw and after past curves.")  # fmt: skip
@click.option("--first-step", type=click.FloatRange(0, min_open=True), metavar="STEP",
              help="No trial ends before it. Default: the first step reported.")  # fmt: skip
@click.option("--last-step", type=click.FloatRange(0, min_open=True), metavar="STEP",
              help="Last step of a trial. Default: that of the first complete one.")  # fmt: skip
@click.option("--reduction", type=click.FloatRange(1, min_open=True), metavar="N", default=3.0,
              show_default=True, help="One of N trials goes on from level to level.")  # fmt: skip
@click.option("--folder", type=FILE,
              help="Where trials keep checkpoints. Default: beside the store.")  # fmt: skip
@click.option("--checkpoint-limit", type=memory, metavar="SIZE",
              help="Most disk space for checkpoints of paused trials, e.g. 5GB.")  # fmt: skip
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True,
              help="Number of trials at the same time.")  # fmt: skip
@executor_options
@click.option(
    "--time-limit", type=seconds, metavar="TIME", help="Time limit of one trial, e.g. 5m."
)
@click.option(
    "--memory", "memory", type=memory, metavar="SIZE", help="Memory limit of one trial, e.g. 2GB."
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
def tune_command(**options: Any) -> None:
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

    With --stop, poor trials end early. A function of two arguments reports as it goes: it calls
    trial.report(step, value) and ends when trial.should_stop() is true. A generator yields step,
    value. The first --metric decides. asha and hyperband pause trials; those that prove good go on
    from the checkpoint in trial.folder, or anew if there is none. At least one trial is completed.

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
      foretune tune train:run --space space.json --stop asha --trials 100 --jobs 4
      foretune tune --command "python train.py --lr {lr}" --space space.json --time 1h
      foretune tune train:run --space space.json --trials 500 --store postgresql://me@host/tuning
      foretune tune train:run --space space.json --jobs 64 --executor ray --address auto
    """
    from foretune.cli.tuning_job import TuningJob

    code = TuningJob(**options).run()
    if code:
        sys.exit(code)
