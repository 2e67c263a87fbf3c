"""`foretune tune`: the hyperparameters of any function or command line."""

import json
import sys
import time
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from foretune.cli.executors import executor_options
from foretune.cli.outputs import check_experience_out, check_out
from foretune.cli.past import Past, carried, check_not_replaced, naming
from foretune.cli.past import opened as opened_past
from foretune.cli.quantities import SEED, memory, seconds
from foretune.cli.typed import command_of, moment, typed_words, with_trials
from foretune.errors import UsageError

if TYPE_CHECKING:
    from foretune.experience import Experience, Metric
    from foretune.experience.carrying import Carried
    from foretune.experience.sources import Sourced
    from foretune.report.story import Source
    from foretune.run.study import Study, StudyTrial
    from foretune.run.tuning import Ending
    from foretune.search.optimizer import Optimizer
    from foretune.search.registry import Method
    from foretune.space import Space

FILE = click.Path(path_type=Path)
STORE = "foretune.db"
TRIALS = 50
RANGE = "range"
STOPPED = 130
"""The exit code after Ctrl-C, as shells have it, and whatever else stops the command."""
NOTHING_FOUND = 1
"""The exit code where no trial has succeeded, so that a script does not go on."""
LONGEST_NAME = 200


@click.command("tune")
@click.argument("function", required=False, metavar="[MODULE:FUNCTION]")
@click.option("--command", metavar="TEXT", help="A command line to run instead of a function.")
@click.option("--space", type=FILE, help="JSON file; the experience's space if not given.")
@click.option("--trials", type=click.IntRange(1), help="How many in all; 50 if no --time.")
@click.option("--time", "time_", type=seconds, metavar="TIME", help="For this run, e.g. 10m.")
@click.option("--experience", multiple=True, metavar="FILE|URL",
              help="Past runs to start from: a Parquet file, or a store; repeatable.")  # fmt: skip
@click.option("--assume", "assumed", multiple=True, metavar="NAME=VALUE",
              help="What past runs had of a hyperparameter that is new.")  # fmt: skip
@click.option("--method", default="auto", show_default=True, help="`foretune methods` lists them.")
@click.option("--metric", "metrics", multiple=True, metavar="NAME[:min|max]",
              help="What to optimise, where several numbers return; repeatable.")  # fmt: skip
@click.option("--direction", type=click.Choice(["min", "max"]), help="min if not given.")
@click.option("--store", metavar="URL", default=STORE, show_default=True,
              help="SQLite file, postgresql://... or mysql://...")  # fmt: skip
@click.option("--study", metavar="NAME", help="The function or the command if not given.")
@click.option("--jobs", type=click.IntRange(1), default=1, show_default=True,
              help="Trials at the same time.")  # fmt: skip
@executor_options
@click.option("--time-limit", type=seconds, metavar="TIME", help="Of one trial, on the clock.")
@click.option("--memory", "memory_", type=memory, metavar="SIZE", help="Of one trial, e.g. 2GB.")
@click.option("--seed", type=SEED, default=0, show_default=True)
@click.option("--mlflow", metavar="URI", help="Log trials there; else MLFLOW_TRACKING_URI.")
@click.option("-o", "--out", type=FILE, help="Parquet file of the trials, as an experience.")
@click.option("--report", type=FILE, help="HTML file that tells how the search went.")
def tune_command(
    function: str | None,
    command: str | None,
    space: Path | None,
    trials: int | None,
    time_: float | None,
    experience: tuple[str, ...],
    assumed: tuple[str, ...],
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
    seed: int,
    mlflow: str | None,
    out: Path | None,
    report: Path | None,
) -> None:
    """Tune the function MODULE:FUNCTION, or a --command, over a --space.

    The function gets a configuration as a dict and returns a number, or a dict of numbers with
    every --metric among them. Several are optimised at once: what is found are the trials that no
    other beats in all of them. Each trial runs in a process of its own: if it raises, hangs past
    --time-limit, dies, or takes more than --memory, it counts as failed, with its reason.

    In a command, {name} is replaced by the value of a hyperparameter; an argument whose
    hyperparameter is inactive is left out together with the option before it. What a choice brings
    along has the name of its place, {model:svm:C} in the space below. The last line of its output
    that is a JSON number or object is the result. FORETUNE_CONFIG holds the configuration.

    An --experience is a Parquet file, or a store, of which all other studies count as past tasks.
    Their spaces may have changed since: runs with values outside of the new one are left out, and
    what is not used is said. Of a hyperparameter that is new, past runs say nothing, unless
    --assume tells which value they had.

    The trials are an Optuna study: the same command goes on where it was stopped, other processes
    and machines join by running it too, and optuna-dashboard shows it. While none of its trials has
    succeeded, another --metric or --direction begins it anew.

    The best configuration, or a list of the unbeaten ones with what they reached, is all that
    standard output gets. The exit code is 0 if there is one, 1
    if no trial has succeeded, 2 after a mistake in the command, 130 after Ctrl-C or SIGTERM.

    \b
    A space is ConfigSpace's JSON, or in short:
      {"lr": {"range": [0.0001, 0.1, "log"]}, "layers": {"range": [1, 5]},
       "activation": ["relu", "tanh"], "batch": {"ordinal": [32, 64, 128]},
       "model": {"svm": {"C": {"range": [0.1, 10.0]}}, "naive": {}}}

    \b
    Examples:
      foretune tune train:run --space space.json --trials 50
      foretune tune train:run --experience past.parquet --trials 20 --jobs 4 --time-limit 5m
      foretune tune train:run --space new.json --experience past.parquet --assume dropout=0
      foretune tune train:run --space space.json --study march --experience foretune.db
      foretune tune train:run --space space.json --metric accuracy:max --metric seconds:min
      foretune tune --command "python train.py --lr {lr}" --space space.json --time 1h
      foretune tune train:run --space space.json --trials 500 --store postgresql://me@host/tuning
      foretune tune train:run --space space.json --jobs 64 --executor ray --address auto
    """
    from foretune.cli.display import display
    from foretune.integrations.mlflow_log import logged
    from foretune.run.executor import Limits
    from foretune.run.sites import Site
    from foretune.run.study import Study
    from foretune.run.tuning import Budget, tune
    from foretune.search.registry import method as registered

    site = Site(executor, address)
    if trials is None and time_ is None:
        trials = TRIALS
    outputs = _Outputs(out, report)
    if out is not None:
        check_not_replaced(out, experience)
    name = study or (function or command or "")[:LONGEST_NAME]
    past = _past(experience, assumed, store=store, study=name)
    searched = _space(space, past.told)
    wanted = _metrics(metrics, direction, past.told)
    known = carried(past, searched, wanted, assumed)
    evaluated = _objective(function, command, searched, memory_)
    chosen, began = registered(method), time.monotonic()
    optimizer = _optimizer(searched, wanted, known, chosen, seed)
    learning = time.monotonic() - began
    limits = Limits(time_limit, None, int(memory_) if memory_ and function else None)
    settings = {"objective": function or command}
    # MLflow comes first: where it is not within reach, no store is to be left behind.
    with (
        display(wanted, trials, time_) as shown,
        logged(shown, mlflow, name, wanted) as watch,
    ):
        opened = Study.open(store, name, space=searched, metrics=wanted, settings=settings)
        with opened as kept, site.pool(evaluated, workers=jobs, limits=limits) as pool:
            try:
                ending = tune(kept, optimizer, pool, Budget(trials, time_), watch=watch)
            except KeyboardInterrupt:
                ending = None
            all_trials = kept.trials()
    source = _source(experience, known)
    search = _Search(opened, chosen, source, learning, time.monotonic() - began - learning, seed)
    code = _concluded(search, all_trials, optimizer.explained(), ending, outputs)
    if code:
        sys.exit(code)


@dataclass(frozen=True, slots=True)
class _Outputs:
    """The files to write beside the store."""

    experience: Path | None
    report: Path | None

    def __post_init__(self) -> None:
        if self.experience is not None:
            check_experience_out(self.experience)
        if self.report is not None:
            check_out(self.report, ".html")


@dataclass(frozen=True, slots=True)
class _Search:
    """What was searched, how, and how long."""

    study: "Study"
    method: "Method"
    past: "Source | None"
    learning_seconds: float
    seconds: float
    seed: int


def _concluded(
    search: _Search,
    trials: "Sequence[StudyTrial]",
    relied_on: str,
    ending: "Ending | None",
    outputs: _Outputs,
) -> int:
    """Say and write what came of it, and return the exit code."""
    from foretune.experience import Status

    ended = [trial for trial in trials if trial.status is not None]
    succeeded = any(trial.status is Status.DONE for trial in ended)
    if outputs.experience is not None and succeeded:
        _experience(search.study, ended).save(outputs.experience)
        click.echo(f"Saved {outputs.experience}", err=True)
    _say(ended, search.study, relied_on)
    if outputs.report is not None:
        _write_report(search, trials, relied_on, outputs.report)
    if ending is None:
        click.echo("Stopped; the same command goes on from here.", err=True)
        return STOPPED
    if ending == "exhausted":
        click.echo("Stopped: no configuration of the space was found untried.", err=True)
    if not succeeded:
        _say_how_to_go_on(ending)
    return 0 if succeeded else NOTHING_FOUND


def _past(experience: Sequence[str], assumed: Sequence[str], *, store: str, study: str) -> Past:
    if assumed and not experience:
        raise UsageError(
            f"--assume tells what past runs had, but got '{assumed[0]}' without any: give an "
            "--experience"
        )
    return opened_past(experience, store=store, study=study)


def _space(path: Path | None, past: "Sourced | None") -> "Space":
    from foretune.space import Space

    if path is None:
        if past is None:
            raise UsageError("tune needs to know what may be tried, but got no --space: give one")
        return past.experience.space
    if not path.is_file():
        raise UsageError(
            f"a space must be a JSON file, but there is no file '{path}': write one, "
            "`foretune tune --help` shows how"
        )
    text = path.read_text(encoding="utf-8", errors="replace")
    try:
        document = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise UsageError(
            f"a space must be a JSON file, but '{path}' is not ({error}): correct it there"
        ) from None
    if not isinstance(document, dict):
        raise UsageError(
            f"a space must be a JSON object, but '{path}' holds something else: write "
            '{"name": {"range": [low, high]}, ...}'
        )
    full = isinstance(document.get("hyperparameters"), list)
    return Space.from_json(text) if full else Space.of(_notation(document))


def _notation(given: Any) -> Any:
    """The short notation, in which JSON cannot tell a range from a list of choices."""
    if _looks_like_range(given):
        raise UsageError(
            f"a list in a space holds choices, but {json.dumps(given)} looks like a range: write "
            f'{{"{RANGE}": {json.dumps(given)}}}'
        )
    if not isinstance(given, dict):
        return given
    if set(given) == {RANGE} and isinstance(given[RANGE], list):
        return tuple(given[RANGE])
    return {name: _notation(value) for name, value in given.items()}


def _looks_like_range(given: Any) -> bool:
    """Whether it is [0.001, 0.1, "log"]: nobody chooses among these."""
    if not isinstance(given, list) or len(given) != 3 or given[2] != "log":
        return False
    return all(isinstance(each, int | float) for each in given[:2])


def _metrics(given: Sequence[str], direction: str | None, past: "Sourced | None") -> "list[Metric]":
    """What is optimised: as it was given, or else what past runs measured first."""
    from foretune.experience import Direction, Metric

    asked = [_name_and_direction(text, direction) for text in given]
    if len(dict(asked)) < len(asked):
        raise UsageError(
            f"each --metric must be another one, but got {', '.join(given)}: name each once"
        )
    if past is None:
        asked = asked or [("loss", direction)]
        return [Metric(name, Direction(way or "min")) for name, way in asked]
    asked = asked or [(past.experience.metrics[0].name, direction)]
    with naming(past.source):
        found = past.experience.with_metrics([name for name, _ in asked]).metrics
    for metric, (_, way) in zip(found, asked, strict=True):
        if way is not None and Direction(way) is not metric.direction:
            raise UsageError(
                f"a direction must be the experience's, but there '{metric.name}' is "
                f"{metric.direction}: leave it out"
            )
    return list(found)


def _name_and_direction(text: str, usual: str | None) -> tuple[str, str | None]:
    """`NAME:min`, or a name alone, for which --direction holds."""
    before, colon, end = text.rpartition(":")
    has_way = colon and end.lower() in ("min", "max")
    name, way = (before, end.lower()) if has_way else (text, usual)
    if not name.strip():
        raise UsageError(
            f"a --metric must have a name, but got '{text}': write NAME, NAME:min or NAME:max"
        )
    return name, way


def _objective(
    function: str | None, command: str | None, space: "Space", memory_: float | None
) -> Any:
    from foretune.run.commands import Command
    from foretune.run.objectives import NamedFunction

    if (function is None) == (command is None):
        raise UsageError(
            "tune needs a function (module:function) or a --command, but got "
            f"{'neither' if function is None else 'both'}: give one"
        )
    if function is not None:
        return NamedFunction(function, Path.cwd())
    assert command is not None
    line = Command(command, int(memory_) if memory_ else None)
    line.check(space.names)
    return line


def _optimizer(
    space: "Space",
    metrics: "Sequence[Metric]",
    past: "Carried | None",
    chosen: "Method",
    seed: int,
) -> "Optimizer":
    from foretune.contracts import Target
    from foretune.search.optimizer import Optimizer
    from foretune.search.priors import learnt_prior
    from foretune.terminal import TerminalProgress

    known = None if past is None else past.experience
    prior = learnt_prior(chosen, known, seed=seed, progress=TerminalProgress())
    return Optimizer(Target(space, tuple(m.name for m in metrics)), chosen, prior, seed=seed)


def _experience(study: "Study", trials: "Sequence[StudyTrial]") -> "Experience":
    from foretune.experience import Experience

    names = [metric.name for metric in study.metrics]
    return Experience.build(
        study.space,
        study.metrics,
        [study.name],
        [0] * len(trials),
        study.space.encode([trial.config for trial in trials]),
        list(range(len(trials))),
        [[trial.values.get(name, float("nan")) for name in names] for trial in trials],
        status=[int(trial.status or 0) for trial in trials],
        seconds=[trial.seconds for trial in trials],
    )


def _source(given: Sequence[str], past: "Carried | None") -> "Source | None":
    """What the search started from, for the report."""
    from foretune.databases import shown
    from foretune.report.story import Source

    if past is None:
        return None
    known = past.experience
    note = "" if past.is_whole else past.told()
    return Source(", ".join(map(shown, given)), len(known.tasks), len(known), note)


def _write_report(
    search: _Search, trials: "Sequence[StudyTrial]", relied_on: str, path: Path
) -> None:
    from foretune.report.page import write_page
    from foretune.run.telling import Tuned, story

    typed = typed_words()
    tuned = Tuned(
        title=search.study.name,
        space=search.study.space,
        metrics=search.study.metrics,
        trials=trials,
        method=search.method,
        seed=search.seed,
        relied_on=relied_on,
        past=search.past,
        when=moment(),
        command=command_of(typed),
        timings=[("learning", search.learning_seconds), ("searching", search.seconds)],
        next_steps=[("Go on", with_trials(typed, 2 * len(trials)))],
    )
    write_page(story(tuned), path)
    click.echo(f"Report {path}", err=True)


def _say_how_to_go_on(ending: "Ending") -> None:
    """Failed trials are kept, so the same command may not try anything again."""
    anew = "begin anew with another --store or --study"
    if ending == "trials":
        anew = f"raise --trials, or {anew}"
    elif ending != "exhausted":
        return
    click.echo(f"Failed trials count: to try again, {anew}.", err=True)


def _say(trials: "Sequence[StudyTrial]", study: "Study", relied_on: str) -> None:
    """How it went; the best configuration alone on standard output."""
    from foretune.databases import shown
    from foretune.report.wording import counted
    from foretune.run.study import best_first

    done = best_first(trials, study.metrics[0])
    reasons = Counter(trial.reason for trial in trials if trial.reason)
    failed = len(trials) - len(done)
    click.echo(f"{counted(len(trials), 'trial')} ended, {failed} of them failed", err=True)
    for reason, times in reasons.most_common(3):
        click.echo(f"  {times} x {reason}", err=True)
    if relied_on:
        click.echo(relied_on, err=True)
    if done:
        _say_best(done, study.metrics)
    store = shown(study.url)
    click.echo(f"Study '{study.name}' in {store}: optuna-dashboard shows it", err=True)
    if done:
        click.echo(f"Another --study starts from it with --experience {store}", err=True)


def _say_best(done: "Sequence[StudyTrial]", metrics: "Sequence[Metric]") -> None:
    """The best of the trials that succeeded, or those that no other beats in all metrics."""
    from foretune.cli.display import Score
    from foretune.report.wording import listed

    names = [metric.name for metric in metrics]
    if len(names) == 1:
        best, [name] = done[0], names
        click.echo(f"Best {name}: {best.values[name]:.6g}, of trial {best.number}", err=True)
        click.echo(json.dumps(best.config, indent=2, default=str))
        return
    score = Score(metrics)
    for trial in done:
        score.take(trial)
    click.echo(f"{len(score.unbeaten)} unbeaten in {listed(names)}", err=True)
    found = [
        {
            "trial": trial.number,
            "values": {name: trial.values[name] for name in names},
            "config": trial.config,
        }
        for trial in score.unbeaten
    ]
    click.echo(json.dumps(found, indent=2, default=str))
