"""Replaying optimisers on recorded tables, resumable at every run."""

import hashlib
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd

from foretune.bench.parts import Parts
from foretune.bench.pools import facts_of, pool_of
from foretune.bench.results import COLUMNS, Results, Settings, finished_runs, read, save
from foretune.bench.run import Group
from foretune.bench.workers import play_all
from foretune.errors import ExperienceError, MethodError, UsageError
from foretune.experience import Experience, Split, leave_one_out, named_split
from foretune.progress import SILENT, Progress
from foretune.search import method

LEAVE_ONE_OUT = "leave-one-out"


def replay(  # noqa: PLR0913 - one argument a choice of the user
    experience: Experience,
    methods: Sequence[str],
    *,
    trials: int,
    seeds: int | Sequence[int],
    out: Path,
    tasks: Sequence[str] | None = None,
    split: str = LEAVE_ONE_OUT,
    objectives: Sequence[str] | None = None,
    suite: str = "suite",
    jobs: int = 1,
    progress: Progress = SILENT,
) -> Results:
    """Let each method tune each task from its recorded configurations, and write the results.

    The records of a replayed task never reach what learns: with leave-one-out, methods learn from
    all other tasks; with a named split, from its training and validation tasks. A replay that was
    interrupted goes on where it stopped, and one that is finished can be extended by methods,
    tasks and seeds. With several jobs, worker processes are spawned, so a script must guard its
    own start with `if __name__ == "__main__"`.

    Arguments:
        seeds: how many, or which.
        tasks: which tasks to replay; all that the split holds out where None.
        objectives: names of metrics; the experience's first where None.
        suite: a name for this collection of tasks in reports.
    """
    seeds = tuple(range(seeds)) if isinstance(seeds, int) else tuple(dict.fromkeys(seeds))
    _check_counts(methods=len(methods), trials=trials, seeds=len(seeds), jobs=jobs)
    experience = experience.with_metrics(list(objectives or [experience.metrics[0].name]))
    settings = _settings(experience, suite, trials, split)
    splits = _splits(experience, split, tasks)
    for name in methods:
        _check_method(name, settings, splits)
    parts = Parts.beside(out)
    earlier = _earlier(out, parts, settings)
    groups = _groups(splits, tuple(dict.fromkeys(methods)), seeds, jobs, _done(earlier, parts))
    if earlier is not None and not groups and not parts.count():
        return earlier
    parts.begin(settings)
    play_all(experience, groups, settings, parts, jobs, progress)
    results = _merged(experience, settings, earlier, parts)
    save(results, out)
    parts.remove()
    return results


def fingerprint(experience: Experience) -> str:
    """Equal for equal evaluations in equal spaces."""
    digest = hashlib.sha256()
    names = [experience.space.fingerprint, *experience.tasks, *map(str, experience.metrics)]
    digest.update("\n".join(names).encode())
    columns = [experience.task_index, experience.config_index, experience.values, experience.status]
    for column in [*columns, experience.configs.values, experience.fidelity]:
        if column is not None:
            digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()


# What is to be done


def _check_counts(**counts: int) -> None:
    for name, count in counts.items():
        if count < 1:
            raise UsageError(f"a replay needs {name} >= 1, but got {count}: ask for at least one")


def _settings(experience: Experience, suite: str, trials: int, split: str) -> Settings:
    if not suite or any(character in suite for character in '/\\:*?"<>|'):
        raise UsageError(
            f"a suite's name becomes part of file names, but got '{suite}': "
            "use letters, digits, spaces, '.', '-' and '_'"
        )
    return Settings(
        suite=suite,
        trials=trials,
        split=split,
        objectives=tuple(metric.name for metric in experience.metrics),
        directions=tuple(str(metric.direction) for metric in experience.metrics),
        experience=fingerprint(experience),
    )


def _check_method(name: str, settings: Settings, splits: Sequence[Split]) -> None:
    """Refuse a method that cannot run, before anything is written."""
    chosen = method(name)
    chosen.learner()
    if chosen.needs_experience and not all(part.train for part in splits):
        raise MethodError(
            f"the method '{name}' learns from other tasks than the replayed one, but the split "
            f"'{settings.split}' leaves none: add tasks to the experience or leave the method out"
        )
    if len(settings.objectives) > 1 and not chosen.several_objectives:
        raise MethodError(
            f"the method '{name}' tunes one objective, but got {', '.join(settings.objectives)}: "
            "choose one of them or another method"
        )


def _splits(experience: Experience, split: str, tasks: Sequence[str] | None) -> list[Split]:
    """What is held out together, as far as it is to be replayed."""
    splits = (
        list(leave_one_out(experience))
        if split == LEAVE_ONE_OUT
        else [named_split(experience, split)]
    )
    held_out = [task for part in splits for task in part.test]
    alive = _with_success(experience)
    wanted = set(tasks) if tasks is not None else alive.intersection(held_out)
    for task in sorted(wanted):
        if task not in held_out:
            raise UsageError(
                f"a task to replay must be held out by the split '{split}', but '{task}' is not: "
                f"choose among {', '.join(held_out[:5])}{' ...' if len(held_out) > 5 else ''}"
            )
        if task not in alive:
            raise ExperienceError(
                f"a task to replay must have a successful evaluation, but '{task}' has none: "
                "leave it out"
            )
    if not wanted:
        raise UsageError(
            f"a replay needs at least one task, but the split '{split}' holds out none with a "
            "successful evaluation: choose another split"
        )
    kept = [replace(part, test=tuple(t for t in part.test if t in wanted)) for part in splits]
    return [part for part in kept if part.test]


def _with_success(experience: Experience) -> set[str]:
    succeeded = np.isfinite(experience.losses).all(axis=1)
    return {experience.tasks[place] for place in np.unique(experience.task_index[succeeded])}


def _groups(
    splits: Sequence[Split],
    methods: Sequence[str],
    seeds: Sequence[int],
    jobs: int,
    done: set[tuple[str, str, int]],
) -> list[Group]:
    """Runs that learn alike stand together, in as many groups as keep all jobs busy."""
    shares = _shares(seeds, math.ceil(jobs / len(splits)))
    groups = []
    for name in methods:
        units: list[tuple[tuple[str, ...] | None, tuple[str, ...], tuple[int, ...]]]
        if method(name).needs_experience:
            units = [(s.train + s.validation, s.test, share) for s in splits for share in shares]
        else:
            units = [(None, (task,), tuple(seeds)) for s in splits for task in s.test]
        for train, test, share in units:
            runs = tuple((t, s) for t in test for s in share if (t, name, s) not in done)
            if runs:
                groups.append(Group(name, train, runs))
    return groups


def _shares(seeds: Sequence[int], parts: int) -> list[tuple[int, ...]]:
    return [tuple(seeds[start::parts]) for start in range(min(parts, len(seeds)))]


# What has been done


def _earlier(out: Path, parts: Parts, settings: Settings) -> Results | None:
    """Finished results that this replay extends, made with equal settings."""
    parts.check(settings)
    if out.is_dir():
        raise UsageError(f"--out names a file, but '{out}' is a folder: add a file name")
    if not out.exists():
        return None
    earlier = read(out)
    difference = settings.difference(earlier.settings)
    if difference:
        raise UsageError(
            f"results are extended with equal settings only, but got {difference} in '{out}': "
            "choose another --out"
        )
    return earlier


def _done(earlier: Results | None, parts: Parts) -> set[tuple[str, str, int]]:
    """The runs that need not be done again."""
    rows = parts.rows()
    done = earlier.runs if earlier is not None else set()
    return done if rows is None else done | finished_runs(rows)


def _merged(
    experience: Experience, settings: Settings, earlier: Results | None, parts: Parts
) -> Results:
    """All rows, and what a report must know about the tasks they are of."""
    tables = [earlier.rows if earlier is not None else None, parts.rows()]
    rows = pd.concat([table for table in tables if table is not None], ignore_index=True)
    extra = [column for column in rows.columns if column not in COLUMNS]
    pools = {
        str(task): facts_of(pool_of(experience, str(task)), settings.trials)
        for task in rows["task"].unique()
    }
    return Results(settings, pools, rows[[*COLUMNS, *extra]])
