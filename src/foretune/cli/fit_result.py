"""What `foretune fit` says and writes of its result."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from foretune.cli.fit_input import Given
from foretune.cli.names import config_label
from foretune.cli.typed_command import command_of, command_words, moment, with_trials

if TYPE_CHECKING:
    from foretune._base.time_budget import TimeBudget
    from foretune.automl.final_model.column_importance import ColumnImportance
    from foretune.automl.fit_story import ReportTexts
    from foretune.automl.job import FitFolder, FitResult, SearchResult

MOST_NAMED = 3
"""Columns that count most, of which the command tells."""
SHARE_TO_TELL = 0.1
"""Of the time: what may go, after the model is saved, into seeing which columns count."""
PLAIN = {"log_loss": ("accuracy", "balanced_accuracy")}
"""What says more to people than a metric itself."""


@dataclass(frozen=True)
class _Measured:
    """What is known of the model beside the trials."""

    worth: "list[ColumnImportance]"
    without_columns: float
    tested: Mapping[str, float]


def tell_result(found: "FitResult", given: Given, place: "FitFolder", clock: "TimeBudget") -> None:
    """Say what came of it and write the report; what is said does not depend on a full disk."""
    from foretune.automl.final_model.baseline import without_columns
    from foretune.automl.fit_story import story
    from foretune.automl.test_scores import scores_on
    from foretune.cli.first_model import predict_command
    from foretune.report.page import write_page

    metric, model = found.plan.metric, found.conclusion.model
    metrics = (metric.name, *PLAIN.get(metric.name, ()))
    weighting = found.plan.table.weighting
    measured = _Measured(
        _measure_column_importance(found, clock),
        without_columns(found.plan.table, found.plan.protocol),
        {} if given.test is None else scores_on(model, given.test, metrics, weighting=weighting),
    )
    predict = predict_command(place.model)
    words = words_for_report(found, given)
    told = replace(
        words,
        test_score=measured.tested.get(metric.name),
        without_columns=measured.without_columns,
        columns=measured.worth,
        next_steps=[("Predict", predict), *words.next_steps],
    )
    _say(found, measured)
    click.echo(f"Model   {place.model}\nPredict {predict}")
    write_page(story(found, given.training.table, told), place.report)
    click.echo(f"Report  {place.report}")


def words_for_report(found: "SearchResult", given: Given) -> "ReportTexts":
    """What every report says beside the result."""
    from foretune.automl.fit_story import ReportTexts

    typed = command_words()
    return ReportTexts(
        title=f"{given.training.table.name}: {given.training.target}",
        when=moment(),
        command=command_of(typed),
        assumptions=given.notes,
        next_steps=[("Go on", with_trials(typed, 2 * len(found.trials)))],
    )


def _say(found: "FitResult", measured: _Measured) -> None:
    """What came of it, in a few lines."""
    from foretune._base.names import quote_names
    from foretune.automl.final_model.baseline import describe_guess
    from foretune.automl.metrics import of_the_model
    from foretune.automl.trial_runs import rank_trials
    from foretune.report.wording import count_text

    metric, best, tested = found.plan.metric, found.conclusion.best, measured.tested
    ended = sum(trial.is_over for trial in found.trials)
    usable = "usable " if found.conclusion.stands_in else ""
    click.echo(
        f"Best {usable}of {count_text(ended, 'trial')}: {metric.name} "
        f"{best.values[metric.name]:.4g}"
        f"{_in_plain_words(metric.name, of_the_model(best.values, found.plan.shares))} "
        f"(trial {best.number}, {config_label(best.config)})"
    )
    guess, baseline = describe_guess(metric.name, found.plan.table.task), measured.without_columns
    leading = rank_trials(found.trials, found.plan)[0].values[metric.name]
    click.echo(
        f"Always predicting {guess}: {metric.name} {baseline:.4g}"
        + _no_better(metric.sign * (leading - baseline))
    )
    if found.conclusion.blended is not None:
        click.echo(
            f"The model blends {len(found.conclusion.members)} of them: {metric.name} "
            f"{found.conclusion.blended:.4g}, on the rows that chose them"
        )
    if found.conclusion.remark:
        click.echo(found.conclusion.remark)
    if counts := [each.column for each in measured.worth if each.is_sure][:MOST_NAMED]:
        click.echo(f"It goes most by {quote_names(counts)}")
    if tested:
        also = _in_plain_words(metric.name, tested)
        click.echo(f"On the test table: {metric.name} {tested[metric.name]:.4g}{also}")
    if found.conclusion.interrupted:
        click.echo("The same command makes it whole.")
    elif found.ending == "stopped":
        click.echo("Stopped; this is the best so far, and the same command goes on.")


def _in_plain_words(metric: str, values: Mapping[str, float]) -> str:
    """What a log loss means for people, where that is the metric."""
    said = [f"{name} {values[name]:.4g}" for name in PLAIN.get(metric, ()) if name in values]
    return f", {', '.join(said)}" if said else ""


def _no_better(more: float) -> str:
    """What to make of a best trial that loses more than a guess does."""
    if more < 0.0:
        return ""
    return ". No trial is better: the columns may say nothing about the target"


def _measure_column_importance(found: "FitResult", clock: "TimeBudget") -> "list[ColumnImportance]":
    """What columns are worth to the best pipeline; Ctrl-C does without, and so does a lack of time.

    It fits the pipeline of the best trial once more.
    """
    from foretune._base.terminal import TerminalProgress
    from foretune.automl.final_model.column_importance import MOST_SECONDS, column_worth
    from foretune.run import stopping

    plan = found.plan
    if found.ending == "stopped" or found.conclusion.interrupted:
        return []
    most = min(MOST_SECONDS, SHARE_TO_TELL * (found.wishes.seconds or math.inf))
    if clock.is_limited and clock.remaining() < found.conclusion.best.seconds + most:
        return []
    try:
        with stopping.absorb_requests():
            return column_worth(
                found.conclusion.best.config,
                plan.table,
                plan.protocol,
                seconds=most,
                progress=TerminalProgress(),
            )
    except KeyboardInterrupt:
        return []
