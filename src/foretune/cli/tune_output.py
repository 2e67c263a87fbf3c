"""What `foretune tune` prints and writes at its end."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from foretune.cli.output_paths import check_experience_out, check_out
from foretune.cli.typed_command import command_of, command_words, moment, with_trials

if TYPE_CHECKING:
    from foretune.experience import Metric
    from foretune.experience.trial import Trial
    from foretune.report.story import StorySource
    from foretune.report.trial_curves import PastBand
    from foretune.run.budget import Ending
    from foretune.run.study import Study
    from foretune.run.trial_folders import TrialFolders
    from foretune.search.method_entry import Method

STOPPED = 130
"""The exit code after Ctrl-C or another request to stop."""
NOTHING_FOUND = 1
"""The exit code if no trial has succeeded, so that a script does not go on."""


@dataclass(frozen=True, slots=True)
class Outputs:
    """The files to write beside the store."""

    experience: Path | None
    report: Path | None

    def __post_init__(self) -> None:
        if self.experience is not None:
            check_experience_out(self.experience)
        if self.report is not None:
            check_out(self.report, ".html")


@dataclass(frozen=True, slots=True)
class FinishedSearch:
    """A search that has ended, for its report."""

    study: "Study"
    method: "Method"
    past: "StorySource | None"
    past_curves: "PastBand | None"
    learning_seconds: float
    seconds: float
    seed: int
    folders: "TrialFolders"


def report_search(
    search: FinishedSearch,
    trials: "Sequence[Trial]",
    relied_on: str,
    ending: "Ending | None",
    outputs: Outputs,
) -> int:
    """Print and write the results, and return the exit code."""
    from foretune.experience import Status
    from foretune.experience.evaluation_rows import build_experience

    ended = [trial for trial in trials if trial.is_over]
    kept = [trial for trial in trials if trial.is_over or trial.status is Status.PAUSED]
    succeeded = any(trial.status is Status.DONE for trial in ended)
    if outputs.experience is not None and succeeded:
        study = search.study
        rows = [trial.evaluation(study.name) for trial in kept]
        build_experience(study.space, study.metrics, rows).save(outputs.experience)
        click.echo(f"Saved {outputs.experience}", err=True)
    _say(kept, search, relied_on)
    if outputs.report is not None:
        _write_report(search, trials, relied_on, outputs.report)
    if ending is None:
        click.echo("Stopped; the same command goes on from here.", err=True)
        return STOPPED
    if ending == "exhausted":
        click.echo(
            "Stopped: all configurations that were found in the space have been tried.", err=True
        )
    if not succeeded:
        _say_how_to_go_on(ending)
    return 0 if succeeded else NOTHING_FOUND


def _write_report(
    search: FinishedSearch, trials: "Sequence[Trial]", relied_on: str, path: Path
) -> None:
    from foretune.report.page import write_page
    from foretune.run.study_story import StudySummary, story

    typed = command_words()
    tuned = StudySummary(
        title=search.study.name,
        space=search.study.space,
        metrics=search.study.metrics,
        trials=trials,
        method=search.method,
        seed=search.seed,
        relied_on=relied_on,
        past=search.past,
        past_curves=search.past_curves,
        when=moment(),
        command=command_of(typed),
        timings=[("learning", search.learning_seconds), ("searching", search.seconds)],
        next_steps=[("Go on", with_trials(typed, 2 * len(trials)))],
    )
    write_page(story(tuned), path)
    click.echo(f"Report {path}", err=True)


def _say_how_to_go_on(ending: "Ending") -> None:
    """Say how to try again: failed trials count, so the same command may do nothing."""
    anew = "begin anew with another --store or --study"
    if ending == "trials":
        anew = f"raise --trials, or {anew}"
    elif ending != "exhausted":
        return
    click.echo(f"Failed trials count: to try again, {anew}.", err=True)


def _say(trials: "Sequence[Trial]", search: FinishedSearch, relied_on: str) -> None:
    """Print a summary. Standard output gets the best configuration only.

    trials: those that have ended, and those that are paused.
    """
    from foretune._base.databases import hide_passwords
    from foretune.experience import Status
    from foretune.experience.trial import best_first
    from foretune.report.wording import count_text

    study = search.study
    done = best_first(trials, study.metrics[0])
    early = [trial for trial in trials if trial.status in (Status.STOPPED, Status.PAUSED)]
    failed = len(trials) - len(done) - len(early)
    reasons = Counter(trial.reason for trial in trials if trial.reason and trial not in early)
    ended = sum(trial.is_over for trial in trials)
    click.echo(f"{count_text(ended, 'trial')} ended, {failed} of them failed", err=True)
    for reason, times in reasons.most_common(3):
        click.echo(f"  {times} x {reason}", err=True)
    if early:
        _say_early_ends(trials, search.folders)
    if relied_on:
        click.echo(relied_on, err=True)
    if done:
        _say_best(done, study.metrics)
    store = hide_passwords(study.url)
    click.echo(f"Study '{study.name}' in {store}: optuna-dashboard shows it", err=True)
    if done:
        click.echo(f"Another --study starts from it with --experience {store}", err=True)


def _say_early_ends(trials: "Sequence[Trial]", folders: "TrialFolders") -> None:
    """Print how many trials ended early, what that saved, and what checkpoints take."""
    from foretune.experience import Status

    count = Counter(trial.status for trial in trials)
    steps = [trial.last_step or 0.0 for trial in trials]
    complete = [s for s, t in zip(steps, trials, strict=True) if t.status is Status.DONE]
    saved = ""
    if complete and max(complete) > 0:
        share = sum(steps) / (max(complete) * len(steps))
        saved = f": {sum(steps):,g} steps, {share:.0%} of what all complete would take"
    click.echo(
        f"{count[Status.DONE]} complete, {count[Status.STOPPED]} stopped early, "
        f"{count[Status.PAUSED]} paused (more --trials may resume them){saved}",
        err=True,
    )
    repeated = sum(trial.notes.get("repeated_seconds", 0.0) for trial in trials)
    if repeated:
        click.echo(
            f"{repeated:.3g} s of CPU time went into steps that were taken before a pause: "
            "keep checkpoints in trial.folder",
            err=True,
        )
    if folders.peak:
        gone = f", {folders.dropped} removed over the limit" if folders.dropped else ""
        click.echo(
            f"Checkpoints: {_size_text(folders.used_bytes)} in {folders.root} "
            f"(at most {_size_text(folders.peak)}{gone})",
            err=True,
        )


def _size_text(size: int) -> str:
    """Return a size on disk in a unit that fits it."""
    for unit, factor in (("GB", 2**30), ("MB", 2**20), ("kB", 2**10)):
        if size >= factor:
            return f"{size / factor:.3g} {unit}"
    return f"{size} bytes"


def _say_best(done: "Sequence[Trial]", metrics: "Sequence[Metric]") -> None:
    """Print the best trial, or with several metrics the unbeaten ones."""
    from foretune.cli.display import BestSoFar
    from foretune.report.wording import list_text

    names = [metric.name for metric in metrics]
    if len(names) == 1:
        best, [name] = done[0], names
        click.echo(f"Best {name}: {best.values[name]:.6g}, of trial {best.number}", err=True)
        click.echo(json.dumps(best.config, indent=2, default=str))
        return
    score = BestSoFar(metrics)
    for trial in done:
        score.take(trial)
    click.echo(f"{len(score.unbeaten)} unbeaten in {list_text(names)}", err=True)
    found = [
        {
            "trial": trial.number,
            "values": {name: trial.values[name] for name in names},
            "config": trial.config,
        }
        for trial in score.unbeaten
    ]
    click.echo(json.dumps(found, indent=2, default=str))
