"""Building experience: the same configurations on many tables, in worker processes, resumable.

There are three files and a folder beside the output `NAME.parquet`. `NAME.collect.json` says how
it was made. A run holds `NAME.lock`. Until all is done, the folder `NAME.parts` has the prepared
tables and the journal of trials.
"""

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, TypeAlias

from foretune.automl import load_shipped_space
from foretune.errors import UsageError
from foretune.experience import (
    FINAL_STATUSES,
    Evaluation,
    Experience,
    Journal,
    Status,
    build_experience,
    list_evaluations,
)
from foretune.plugins import SILENT, Progress, check_folder_of
from foretune.run import Executor
from foretune.space import Encoded, Space
from foretune_lab.collect.families import choose_holdout_families
from foretune_lab.collect.prepared_tables import PreparedTable, prepare
from foretune_lab.collect.recipe import CollectionRecipe, Folder
from foretune_lab.collect.refinement import propose_refinements
from foretune_lab.collect.table_sources import TableSource
from foretune_lab.collect.table_trial import TableJob, TableTrial

CHECKPOINT_SECONDS = 300.0
"""The seconds between two updates of the output while trials are running."""
MOST_REASONS = 50
SPLIT = "families"
"""The name of the split that keeps variants of one dataset on one side."""

Start: TypeAlias = Callable[[TableTrial], Executor[TableJob, dict[str, float]]]
"""Makes an executor for the trials: processes here, or anything else that runs them."""


def collect(
    recipe: CollectionRecipe,
    sources: Sequence[TableSource],
    out: Path,
    *,
    start: Start,
    progress: Progress = SILENT,
) -> Experience:
    """Evaluate the recipe's configurations on every source and save the experience to `out`.

    Evaluations that `out` or an interrupted run already holds are not repeated.
    """
    check_folder_of(out)
    folder = Folder.beside(out)
    with folder.alone():
        return _gather_experience(recipe, sources, folder, start, progress)


def _gather_experience(
    recipe: CollectionRecipe,
    sources: Sequence[TableSource],
    folder: Folder,
    start: Start,
    progress: Progress,
) -> Experience:
    folder.begin(recipe)
    try:
        tables = prepare(
            sources, folder.tables, most_rows=recipe.most_rows, seed=recipe.seed, progress=progress
        )
    except UsageError:
        if not (folder.out.exists() or folder.journal.exists()):
            # Nothing was evaluated, so the next call need not be like this one.
            folder.clear()
            folder.about.unlink()
        raise
    folder.recognise({table.task: table.fingerprint for table in tables})
    collection = Collection(recipe, tables, folder.out, Journal(folder.journal))
    try:
        with start(TableTrial(folder.tables, recipe.protocol)) as executor:
            for configs in collection.rounds():
                todo = collection.todo(configs)
                progress.start("collecting", len(todo))
                _run(executor, todo, collection, progress)
    finally:
        # Also after Ctrl-C: finished evaluations can be used, and the same command goes on.
        progress.stop()
        collection.save()
    made = collection.experience()
    folder.note(recipe, collection.summary())
    folder.clear()
    return made


def _run(
    executor: Executor[TableJob, dict[str, float]],
    todo: Sequence[TableJob],
    collection: "Collection",
    progress: Progress,
) -> None:
    """Keep the workers busy and write down their results."""
    waiting = iter(todo)
    running = {executor.submit(trial): trial for trial in islice(waiting, 2 * executor.workers)}
    saved = time.monotonic()
    while outcomes := executor.results():
        for outcome in outcomes:
            task, config = running.pop(outcome.key)
            values, status, seconds = outcome.result or {}, outcome.status, outcome.seconds
            collection.journal.add(
                Evaluation(task, config, values, status, seconds, reason=outcome.reason)
            )
            progress.step(note=task)
            running |= {executor.submit(trial): trial for trial in islice(waiting, 1)}
        if time.monotonic() - saved > CHECKPOINT_SECONDS:
            collection.save()
            saved = time.monotonic()


class Collection:
    """The evaluations of a recipe so far: those of the output, and those of the journal."""

    def __init__(
        self, recipe: CollectionRecipe, tables: Sequence[PreparedTable], out: Path, journal: Journal
    ) -> None:
        self.recipe, self.tables, self.out, self.journal = recipe, tables, out, journal
        self.space: Space = load_shipped_space(recipe.space).build(recipe.only)
        self._earlier = Experience.open(out) if out.exists() else None
        self._before = [] if self._earlier is None else list_evaluations(self._earlier)

    def rounds(self) -> Iterator[Encoded]:
        """Return the list for every table, then the configurations that its results suggest."""
        shared = self.recipe.configs()
        yield shared
        if self.recipe.refined:
            # Only these tables and the shared list count, so a resumed run finds the same.
            keys, names = set(shared.keys().tolist()), {table.task for table in self.tables}
            rows = {at: line for at, line in self._rows().items() if at[0] in names}
            known = self._table([line for (_, key), line in rows.items() if key in keys])
            yield propose_refinements(known, self.recipe.refined, seed=self.recipe.seed)

    def todo(self, configs: Encoded) -> list[TableJob]:
        """Return the remaining work: one configuration on all tables, then the next.

        A file that is not finished then has the same configurations on every table.
        """
        keys = configs.keys().tolist()
        done = set(self._rows())
        return [
            (table.task, config)
            for key, config in zip(keys, configs.dicts(), strict=True)
            for table in self.tables
            if (table.task, key) not in done
        ]

    def experience(self) -> Experience:
        """Return all evaluations as a table."""
        return self._table(list(self._rows().values()))

    def _table(self, lines: Sequence[Evaluation]) -> Experience:
        if not any(line.status is Status.DONE for line in lines):
            said = lines[0].reason if lines else "there was nothing to evaluate"
            raise UsageError(
                f"an experience needs an evaluation that succeeded, but none of {len(lines)} did "
                f"({said}): raise the limits or choose other datasets",
                rule="no-success",
                field="datasets",
                value=len(lines),
            )
        names = [table.task for table in self.tables]
        tasks = list(dict.fromkeys([*names, *(line.task for line in lines)]))
        earlier = {} if self._earlier is None else self._earlier.meta_features
        described = {**earlier, **{table.task: table.meta_features for table in self.tables}}
        return build_experience(
            self.space,
            self.recipe.metrics,
            lines,
            tasks=tasks,
            meta_features={task: described[task] for task in tasks if task in described},
            splits={SPLIT: self._split(tasks)},
        )

    def save(self) -> None:
        """Update the output in one step."""
        if any(line.status is Status.DONE for line in self.journal.evaluations):
            self.experience().save(self.out)

    def summary(self) -> dict[str, Any]:
        """Return facts about the tables and the outcomes of the trials, for JSON."""
        lines = list(self._rows().values())
        reasons = Counter(line.reason for line in lines if line.reason)
        return {
            "tables": [
                {
                    "task": table.task,
                    "family": table.family,
                    "rows": table.rows,
                    "columns": table.columns,
                }
                for table in self.tables
            ],
            "evaluations": len(lines),
            "ended": {s.name: sum(line.status is s for line in lines) for s in FINAL_STATUSES},
            "cpu_seconds": round(sum(line.seconds or 0.0 for line in lines)),
            "reasons": dict(reasons.most_common(MOST_REASONS)),
        }

    def _rows(self) -> dict[tuple[str, bytes], Evaluation]:
        """Return every trial once, by task and configuration."""
        lines = [*self._before, *self.journal.evaluations]
        if not lines:
            return {}
        keys = self.space.encode([line.config for line in lines]).keys().tolist()
        return {(line.task, key): line for line, key in zip(lines, keys, strict=True)}

    def _split(self, tasks: Sequence[str]) -> dict[str, list[str]]:
        """Set a fifth of the families apart, to test what is learnt from the others."""
        family = {table.task: table.family for table in self.tables}
        held = choose_holdout_families({family.get(task, task) for task in tasks})
        test = [task for task in tasks if family.get(task, task) in held]
        return {"train": [task for task in tasks if task not in test], "test": test}
