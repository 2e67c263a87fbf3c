"""Replaying optimisers on recorded tables, resumable at every run."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd

from foretune.errors import MethodError, UsageError
from foretune.experience import LEAVE_ONE_OUT, Experience, fingerprint_of_evaluations
from foretune.plugins import SILENT, Progress
from foretune_lab.bench.curve_settings import CurveSettings
from foretune_lab.bench.curve_stage import CurveStage
from foretune_lab.bench.entrants import Entrant, find_entrant
from foretune_lab.bench.parts import Parts
from foretune_lab.bench.plan import HeldOut, groups_of, plan_held_out
from foretune_lab.bench.pools import facts_of, pool_of
from foretune_lab.bench.results import (
    ReplaySettings,
    Results,
    read,
    save,
)
from foretune_lab.bench.shared_grid import RUN, list_finished_runs
from foretune_lab.bench.starts import NONE, Start
from foretune_lab.bench.workers import play_all


def replay(  # noqa: PLR0913 - one argument a choice of the user
    experience: Experience,
    methods: Sequence[str],
    *,
    trials: int = 0,
    curves: CurveSettings | None = None,
    seeds: int | Sequence[int],
    out: Path,
    tasks: Sequence[str] | None = None,
    tasks_limit: int | None = None,
    split: str = LEAVE_ONE_OUT,
    start: str = NONE,
    objectives: Sequence[str] | None = None,
    suite: str = "suite",
    jobs: int = 1,
    progress: Progress = SILENT,
) -> Results:
    """Let each method tune each task from its recorded configurations, and write the results.

    The records of a replayed task are never used for learning. With leave-one-out, methods learn
    from all other tasks; with folds, from the tasks of the other folds; with a named split, from
    its training and validation tasks. An interrupted replay goes on where it stopped. A finished
    one can be extended by methods, tasks and seeds. With several jobs, worker processes are
    spawned. A script must therefore guard its own start with `if __name__ == "__main__"`, and add
    its own methods to `METHODS` outside of that guard, or provide them by an entry point
    (`search.plugins`).

    Networks that are trained for several seeds at once differ a little from those trained one by
    one. Runs of such methods may therefore vary with the seeds that are played together and with
    the number of jobs.

    Arguments:
        trials: how many trials a run has, without `curves`.
        curves: play on learning curves, where the budget of a run is its cost.
        seeds: how many, or which.
        tasks: which tasks to replay. Default: all that the split holds out.
        tasks_limit: at most this number of these, drawn at random.
        split: `leave-one-out`, `5-fold` (`5-fold:7` for other folds), or a recorded name.
        start: what all runs begin with: see `Start`.
        objectives: names of metrics. Default: the experience's first.
        suite: a name for this collection of tasks in reports.
    """
    seeds = tuple(range(seeds)) if isinstance(seeds, int) else tuple(dict.fromkeys(seeds))
    _check_counts(methods=len(methods), seeds=len(seeds), jobs=jobs)
    if curves is None:
        _check_counts(trials=trials)
    if tasks_limit is not None:
        _check_counts(tasks_limit=tasks_limit)
    begin = Start.parse(start)
    # Compact, like the file that workers read: runs begin with rows of its configurations.
    names = list(objectives or [experience.metrics[0].name])
    experience = experience.with_metrics(names).compact()
    settings = _settings(experience, suite, trials, split, begin, curves)
    held = plan_held_out(experience, split, begin, tasks, tasks_limit)
    entrants = [find_entrant(name, on_curves=curves is not None) for name in dict.fromkeys(methods)]
    for entrant in entrants:
        _check_entrant(entrant, settings, held)
    if curves is not None:
        _check_curves(experience, curves, held)
    parts = Parts.beside(out)
    _earlier(out, parts, settings)  # If something is refused, not even a lock is left behind.
    with parts.alone():
        earlier = _earlier(out, parts, settings)
        groups = groups_of(
            experience,
            held.splits,
            entrants,
            seeds,
            begin,
            jobs=jobs,
            done=_done(earlier, parts),
            progress=progress,
        )
        if earlier is not None and not groups and not parts.count():
            return earlier
        parts.begin(settings)
        play_all(experience, groups, settings, parts, jobs, progress)
        results = _merge_results(experience, settings, earlier, parts, held.tasks)
        save(results, out)
        parts.remove()
        return results


def fingerprint_of_notes(experience: Experience, split: str, start: Start) -> str:
    """Return a text that is equal for equal notes beside the evaluations; empty without notes.

    Notes are a split that came with the experience, recorded initial designs, and meta-features.
    """
    used = {
        "split": experience.splits.get(split),
        "starts": experience.starts if start.kind == "recorded" else None,
        "meta_features": {
            task: sorted(features.items())
            for task, features in sorted(experience.meta_features.items())
            if features
        },
    }
    used = {name: content for name, content in used.items() if content}
    text = json.dumps(used, default=_plain)
    return hashlib.sha256(text.encode()).hexdigest() if used else ""


def _plain(content: object) -> object:
    """Return mappings and arrays of any kind as values that JSON can hold."""
    if isinstance(content, Mapping):
        return dict(content)
    return np.asarray(content).tolist()


# The work to do


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise UsageError(
                f"a replay needs {name} >= 1, but got {count}: ask for at least one",
                rule="replay-count",
                field=name,
                value=count,
            )


def _settings(
    experience: Experience,
    suite: str,
    trials: int,
    split: str,
    start: Start,
    curves: CurveSettings | None,
) -> ReplaySettings:
    if not suite or any(character in suite for character in '/\\:*?"<>|'):
        raise UsageError(
            f"a suite's name becomes part of file names, but got '{suite}': "
            "use letters, digits, spaces, '.', '-' and '_'",
            rule="suite-name",
            field="suite",
            value=suite,
        )
    return ReplaySettings(
        suite=suite,
        trials=trials if curves is None else 0,
        split=split,
        objectives=tuple(metric.name for metric in experience.metrics),
        directions=tuple(str(metric.direction) for metric in experience.metrics),
        experience=fingerprint_of_evaluations(experience),
        start=str(start),
        notes=fingerprint_of_notes(experience, split, start),
        curves=curves,
    )


def _check_curves(experience: Experience, curves: CurveSettings, held: HeldOut) -> None:
    """Refuse tasks that cannot be played on curves, before anything is written."""
    for task in (task for split in held.splits for task in split.test):
        curves.step_range(CurveStage.of(experience, task, curves).task)


def _check_entrant(entrant: Entrant, settings: ReplaySettings, held: HeldOut) -> None:
    """Refuse a method that cannot run, before anything is written."""
    name, chosen = entrant.name, entrant.method
    chosen.learner()
    if chosen.transfers and not all(s.train + s.validation for s in held.splits):
        raise MethodError(
            f"the method '{name}' learns from other tasks than the replayed one, but the split "
            f"'{settings.split}' leaves none: add tasks to the experience or leave the method out",
            rule="no-past-tasks",
            field="method",
            value=name,
        )
    has_one = entrant.step_model is not None or not chosen.several_objectives
    if len(settings.objectives) > 1 and has_one:
        raise MethodError(
            f"the method '{name}' tunes one objective, but got {', '.join(settings.objectives)}: "
            "choose one of them or another method",
            rule="one-objective",
            field="method",
            value=name,
        )


# The work that is done


def _earlier(out: Path, parts: Parts, settings: ReplaySettings) -> Results | None:
    """Return finished results that this replay extends, made with equal settings."""
    parts.check(settings)
    if out.is_dir():
        raise UsageError(
            f"--out names a file, but '{out}' is a folder: add a file name",
            rule="out-is-folder",
            field="out",
            value=out,
        )
    if not out.exists():
        return None
    earlier = read(out)
    difference = settings.difference(earlier.settings)
    if difference:
        raise UsageError(
            f"results are extended with equal settings only, but got {difference} in '{out}': "
            "choose another --out",
            rule="equal-settings",
            field="out",
            value=difference,
        )
    return earlier


def _done(earlier: Results | None, parts: Parts) -> set[tuple[str, str, int]]:
    """Return the runs that need not be done again."""
    rows = parts.rows()
    done = earlier.runs if earlier is not None else set()
    return done if rows is None else done | list_finished_runs(rows)


def _merge_results(
    experience: Experience,
    settings: ReplaySettings,
    earlier: Results | None,
    parts: Parts,
    held_out_tasks: int,
) -> Results:
    """Return all rows, and what a report must know about their tasks."""
    rows = parts.rows()
    if earlier is not None and rows is not None:
        # After a stop between writing the output and removing the parts, runs are in both.
        rows = rows[~pd.MultiIndex.from_frame(rows[RUN]).isin(earlier.runs)]
    tables = [
        table for table in (None if earlier is None else earlier.rows, rows) if table is not None
    ]
    joined = pd.concat(tables, ignore_index=True)
    extra = [column for column in joined.columns if column not in settings.columns]
    pools = {
        str(task): facts_of(pool_of(experience, str(task)), settings.trials)
        for task in joined["task"].unique()
        if settings.curves is None
    }
    return Results(settings, pools, joined[[*settings.columns, *extra]], held_out_tasks)
