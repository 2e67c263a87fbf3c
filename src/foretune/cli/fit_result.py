"""What `foretune fit` prints and writes about its result."""

import math
import shlex
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretune.cli.option_values import config_label
from foretune.cli.typed_command import command_of, command_words, moment, with_trials

if TYPE_CHECKING:
    from foretune._base.time_budget import TimeBudget
    from foretune.automl.column_importance import ColumnImportance
    from foretune.automl.final_model.fit import FinalModel
    from foretune.automl.fit_data import FitData
    from foretune.automl.fit_folder import FitFolder
    from foretune.automl.fit_result import FitResult, SearchResult, StandIn
    from foretune.automl.fit_story import ReportTexts
    from foretune.automl.job import Job

EARLIER_MODEL = "The model of an earlier run stays in its place."
MOST_NAMED = 3
"""How many of the most important columns the command names."""
SHARE_TO_TELL = 0.1
"""The share of the time that may go, after the model is saved, into column importance."""
SECONDS_TO_DRAW = 5.0
"""The map of the report takes so long at most; it is left out if the time is over."""
PLAIN = {"log_loss": ("accuracy", "balanced_accuracy")}
"""Measures that people understand better than the metric itself."""


@dataclass(frozen=True)
class _Measured:
    """What is known of the model beside the trials."""

    worth: "list[ColumnImportance]"
    without_columns: float
    tested: Mapping[str, float]


def tell_result(job: "Job", result: "FitResult", data: "FitData") -> None:
    """Print the result of a job and write its report."""
    if job.folder is None:
        raise ValueError("a command keeps its files in a folder")
    if result.final is not None:
        _tell_model(job.folder, result, result.final, data, job.clock)
    elif result.stand_in is not None:
        said = _tell_stand_in(result.stand_in, job.folder.model)
        if result.trials:
            _write_failure(job.folder, result, data, said)
            click.echo(f"Report  {job.folder.report}")


def _tell_model(
    folder: "FitFolder",
    found: "FitResult",
    final: "FinalModel",
    data: "FitData",
    clock: "TimeBudget",
) -> None:
    """Print facts about a final model. A full disk does not change what is printed."""
    from foretune.automl.baseline import without_columns
    from foretune.automl.fit_story import story
    from foretune.automl.model_scores import scores_on
    from foretune.report.page import write_page

    metric, model = found.plan.metric, found.model
    metrics = (metric.name, *PLAIN.get(metric.name, ()))
    weighting = found.plan.table.weighting
    measured = _Measured(
        _measure_column_importance(found, final, clock),
        without_columns(found.plan.table, found.plan.protocol),
        {} if data.test is None else scores_on(model, data.test, metrics, weighting=weighting),
    )
    words = _report_texts(found, data)
    told = replace(
        words,
        test_score=measured.tested.get(metric.name),
        without_columns=measured.without_columns,
        columns=measured.worth,
        next_steps=[("Predict", _predict_command(folder.model)), *words.next_steps],
    )
    _say(found, final, measured)
    click.echo(f"Model   {folder.model}\nPredict {_predict_command(folder.model)}")
    with_map = clock.remaining() > SECONDS_TO_DRAW
    write_page(story(found, data.table, told, with_map=with_map), folder.report)
    click.echo(f"Report  {folder.report}")


def report_failure(job: "Job", found: "SearchResult", data: "FitData", reason: str) -> None:
    """Write the report of trials that gave no model, and print which model there is instead."""
    if job.folder is None:
        return
    said = [f"No model was made: {reason}."]
    if job.folder.model.exists():
        said.append(EARLIER_MODEL)
        click.echo(EARLIER_MODEL, err=True)
    _write_failure(job.folder, found, data, *said)


def _write_failure(folder: "FitFolder", found: "SearchResult", data: "FitData", *said: str) -> None:
    from foretune.automl.fit_story import story
    from foretune.report.page import write_page

    words = _report_texts(found, data)
    told = replace(words, assumptions=[*words.assumptions, *said])
    write_page(story(found, data.table, told), folder.report)


def _tell_stand_in(stand_in: "StandIn", model: Path) -> str:
    """Say clearly that another model stands in for the final one."""
    what = (
        "The model of an earlier fit of this table"
        if stand_in.is_earlier_model
        else stand_in.first.summary
    )
    said = (
        f"WARNING: the search gave no model in time. {what} is what you have: it may be much worse "
        "than what a search finds. Give more --time."
    )
    if stand_in.first.is_baseline and not stand_in.is_earlier_model:
        said = f"{said} A baseline model learns nothing from the columns."
    click.echo(f"{said}\nWhy: {stand_in.reason}")
    click.echo(f"Model   {model}\nPredict {_predict_command(model)}")
    return said


def _predict_command(model: Path) -> str:
    """Return the command that predicts with a model."""
    return f"foretune predict {shlex.quote(str(model))} new.csv -o predictions.csv"


def _report_texts(found: "SearchResult", data: "FitData") -> "ReportTexts":
    """Return the texts beside the result that every report has."""
    from foretune.automl.fit_story import ReportTexts

    typed = command_words()
    return ReportTexts(
        title=f"{data.table.name}: {data.target}",
        when=moment(),
        command=command_of(typed),
        assumptions=data.notes,
        next_steps=[("Go on", with_trials(typed, 2 * len(found.trials)))],
    )


def _say(found: "FitResult", final: "FinalModel", measured: _Measured) -> None:
    """Print the result in a few lines."""
    from foretune._base.names import quote_names
    from foretune.automl.baseline import describe_guess
    from foretune.automl.metrics import of_the_model
    from foretune.experience.trial import best_first
    from foretune.report.wording import count_text

    metric, best, tested = found.plan.metric, final.best, measured.tested
    ended = sum(trial.is_over for trial in found.trials)
    usable = "usable " if final.stands_in else ""
    click.echo(
        f"Best {usable}of {count_text(ended, 'trial')}: {metric.name} "
        f"{best.values[metric.name]:.4g}"
        f"{_in_plain_words(metric.name, of_the_model(best.values, found.plan.shares))} "
        f"(trial {best.number}, {config_label(best.config)})"
    )
    guess, baseline = describe_guess(metric.name, found.plan.table.task), measured.without_columns
    leading = best_first(found.trials, found.plan.metric)[0].values[metric.name]
    click.echo(
        f"Always predicting {guess}: {metric.name} {baseline:.4g}"
        + _no_better(metric.sign * (leading - baseline))
    )
    if final.blended is not None:
        click.echo(
            f"The model blends {len(final.members)} of them: {metric.name} "
            f"{final.blended:.4g}, on the rows that chose them"
        )
    if final.remark:
        click.echo(final.remark)
    if counts := [each.column for each in measured.worth if each.is_sure][:MOST_NAMED]:
        click.echo(f"The most important columns are {quote_names(counts)}")
    if tested:
        also = _in_plain_words(metric.name, tested)
        click.echo(f"On the test table: {metric.name} {tested[metric.name]:.4g}{also}")
    if final.interrupted:
        click.echo("The same command completes it.")
    elif found.ending == "stopped":
        click.echo("Stopped; this is the best so far, and the same command goes on.")


def _in_plain_words(metric: str, values: Mapping[str, float]) -> str:
    """Explain a log loss to people, if that is the metric."""
    said = [f"{name} {values[name]:.4g}" for name in PLAIN.get(metric, ()) if name in values]
    return f", {', '.join(said)}" if said else ""


def _no_better(more: float) -> str:
    """Return advice for a best trial that loses more than a guess does."""
    if more < 0.0:
        return ""
    return ". No trial is better: the columns may say nothing about the target"


def _measure_column_importance(
    found: "FitResult", final: "FinalModel", clock: "TimeBudget"
) -> "list[ColumnImportance]":
    """Measure how much columns are worth to the best pipeline, if time and Ctrl-C allow.

    It fits the pipeline of the best trial once more.
    """
    from foretune._base.progress import TerminalProgress
    from foretune.automl.column_importance import MOST_SECONDS, column_worth
    from foretune.run import stopping

    plan = found.plan
    if found.ending == "stopped" or final.interrupted:
        return []
    most = min(MOST_SECONDS, SHARE_TO_TELL * (found.options.seconds or math.inf))
    if clock.is_limited and clock.remaining() < final.best.seconds + most:
        return []
    try:
        with stopping.absorb_requests():
            return column_worth(
                final.best.config,
                plan.table,
                plan.protocol,
                seconds=most,
                progress=TerminalProgress(),
            )
    except KeyboardInterrupt:
        return []
