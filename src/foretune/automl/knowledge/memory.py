"""The memory: the user's own experience, made by every `fit` for later fits.

    HOME/experience/SPACE.parquet         all evaluations of a space, each pipeline and table once
    HOME/experience/SPACE.lock            locked by the program that changes that file
    HOME/experience/SPACE.journals/ID.*   a description of each fit, and one line for each trial
    HOME/experience/SPACE.before-ID       an older file that cannot be merged with newer ones
    HOME/experience/SPACE.broken-ID       a damaged file

Each fit writes its own journal, so several can run at once, and a line is on disk before the next
trial begins. When a fit has ended for any reason, the next program that uses the memory merges its
journal. The memory holds names of tables, fingerprints of their content, configurations, scores,
times and meta-features, but never rows, columns or labels.
"""

import os
import secrets
import warnings
from collections.abc import Iterable, Iterator, Sequence, Set
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foretune._base.files import hold_lock, try_lock, write_text
from foretune._base.names import quote_names
from foretune.automl.knowledge.experience_update import DirectionError, common_first, merge_newest
from foretune.automl.knowledge.fit_journal import (
    BROKEN,
    READ_ERRORS,
    FitDescription,
    FitJournal,
    read_journal,
    remove_journal,
)
from foretune.errors import (
    DamagedError,
    ExperienceError,
    ForetuneError,
    ForetuneWarning,
    SpaceError,
    UsageError,
)
from foretune.experience import Evaluation, Experience, Status
from foretune.experience.alignment.restriction import restrict_experience
from foretune.experience.evaluation_rows import list_evaluations
from foretune.space import Space
from foretune.tables import plain_name, task_identity

HOME_VARIABLE = "FORETUNE_HOME"
ASIDE = ".before-"
"""Part of the names of files that were set aside."""


def home() -> Path:
    """Return the folder of the user's experience and of the knowledge learnt from it."""
    chosen = os.environ.get(HOME_VARIABLE)
    if chosen:
        return Path(chosen).expanduser()
    from platformdirs import user_data_path

    return user_data_path("foretune")


@dataclass(frozen=True, slots=True)
class Memory:
    """The user's own experience in one folder."""

    folder: Path

    @classmethod
    def of_user(cls) -> "Memory":
        """Return the memory of the current user, or of the folder in FORETUNE_HOME."""
        return cls(home() / "experience")

    def spaces(self) -> list[str]:
        """Return the names of the spaces that are in the memory."""
        for journals in sorted(self.folder.glob("*.journals")):
            self.settle(journals.stem)
        return sorted(file.stem for file in self.folder.glob("*.parquet"))

    def space_names(self) -> list[str]:
        """Return the names of all spaces with files, even if none of the files can be read."""
        ways = ("[!.]*.parquet", f"[!.]*{ASIDE}*", f"[!.]*{BROKEN}-*")
        files = [file for way in ways for file in self.folder.glob(way)]
        journals = [each for each in self.folder.glob("*.journals") if any(each.iterdir())]
        return sorted({path.stem for path in (*files, *journals)})

    # Writing

    def begin(self, fit: FitDescription) -> FitJournal:
        """Begin the journal of a fit."""
        with self._changing(fit.space_name):
            folder = self._journals(fit.space_name)
            folder.mkdir(exist_ok=True)
            number = 1 + max((_place(head)[0] for head in folder.glob("*.json")), default=0)
            head = folder / f"{number:08d}-{secrets.token_hex(8)}.json"
            write_text(head, fit.to_json())
            alive = try_lock(head.with_suffix(".alive"))
        if alive is None:
            raise RuntimeError("a new lock is held by somebody else")
        return FitJournal(fit, head, alive, settle=self.settle)

    def remember(self, fit: FitDescription, evaluations: Sequence[Evaluation]) -> None:
        """Add all trials of a fit at once."""
        journal = self.begin(fit)
        try:
            for each in evaluations:
                journal.add(each)
        finally:
            journal.close()

    def add(self, space_name: str, experience: Experience) -> None:
        """Add experience that was collected elsewhere."""
        with self._changing(space_name):
            self._grow(space_name, [experience], apart=(SpaceError,))

    def settle(self, space_name: str) -> None:
        """Merge the journals of fits that have ended."""
        if not self._journals(space_name).is_dir():
            return
        with self._changing(space_name):
            ended = [*self._read_ended_journals(space_name)]
            found = [experience for _, experience in ended if experience is not None]
            # The directions in a journal are right; a contradiction was added from outside.
            self._grow(space_name, found, apart=(SpaceError, DirectionError))
            # Journals are removed last: merging one twice changes nothing, losing one loses trials.
            for head, _ in ended:
                remove_journal(head)

    def forget(self, space_name: str, task: str | None = None) -> int:
        """Remove a task, or all; return how many evaluations were removed.

        The name of a task is enough if no other task has it. Files that were set aside are
        included, because nothing of the task may be left.
        """
        if task is None:
            return self._forget_all(space_name)
        self.settle(space_name)
        with self._changing(space_name):
            self._whole(space_name)
            known = {file: Experience.open(file) for file in self._files(space_name)}
            chosen = _tasks_with_name(known.values(), task)
            if known and not chosen:
                raise UsageError(
                    f"a task to forget must be a remembered one, but there is no '{task}' in "
                    f"'{space_name}': see  foretune experience show",
                    rule="unknown-task",
                    value=task,
                )
            return sum(_forget(file, each, chosen) for file, each in known.items())

    # Reading

    def recall(self, space_name: str) -> Experience | None:
        """Return all evaluations of a space, including those of fits that have ended."""
        self.settle(space_name)
        try:
            return self._open(space_name)
        except DamagedError:
            with self._changing(space_name):
                return self._whole(space_name)

    def holding(self, task: str) -> list[str]:
        """Return the names of the spaces with a task of this name, also in files set aside."""
        return [
            name
            for name in self.space_names()
            if any(task in (each, plain_name(each)) for each in self._tasks(name))
        ]

    def _tasks(self, space_name: str) -> set[str]:
        self.recall(space_name)  # This merges the fits that have ended.
        found: set[str] = set()
        for file in self._files(space_name):
            with suppress(ExperienceError):
                found.update(Experience.open(file).tasks)
        return found

    def earlier(
        self, space_name: str, task: str, *, space: Space | None = None
    ) -> list[Evaluation]:
        """Return the evaluations on this very table.

        space: a part of the space; configurations outside of it are left out.
        """
        known = self.recall(space_name)
        if known is None:
            return []
        if space is not None:
            try:
                known = restrict_experience(known, space, drop_unknown=True)
            except ExperienceError:
                return []  # None of the configurations is in that part.
        same = [name for name in known.tasks if task_identity(name) == task_identity(task)]
        return list_evaluations(known.only(same)) if same else []

    def export(self, space_name: str, path: Path) -> Experience:
        """Write the memory of a space to an experience file."""
        known = self.recall(space_name)
        if known is None:
            raise UsageError(
                f"only remembered tasks can be exported, but there are none of '{space_name}': "
                "see  foretune experience show",
                rule="nothing-remembered",
                value=space_name,
            )
        known.save(path)
        return known

    # Files

    def _file(self, space_name: str) -> Path:
        return self.folder / f"{space_name}.parquet"

    def _files(self, space_name: str) -> list[Path]:
        """Return the file of a space, and the older files that were set aside."""
        aside = sorted(self.folder.glob(f"{space_name}{ASIDE}*"))
        return [file for file in (self._file(space_name), *aside) if file.exists()]

    def _journals(self, space_name: str) -> Path:
        return self.folder / f"{space_name}.journals"

    def _open(self, space_name: str) -> Experience | None:
        file = self._file(space_name)
        return common_first(Experience.open(file)) if file.exists() else None

    def _whole(self, space_name: str) -> Experience | None:
        """Read the file of a space, and set it aside if it is damaged.

        Call this only under the lock, because another program may have replaced the file.
        """
        try:
            return self._open(space_name)
        except DamagedError:
            aside = self.folder / f"{space_name}{BROKEN}-{secrets.token_hex(4)}"
            self._file(space_name).rename(aside)
            warnings.warn(
                ForetuneWarning(
                    f"the memory of '{space_name}' is damaged and was set aside as "
                    f"'{aside}': searches go on without it, and  foretune experience forget --all  "
                    "removes it",
                    rule="damaged-memory",
                    value=space_name,
                ),
                stacklevel=3,
            )
            return None

    @contextmanager
    def _changing(self, space_name: str) -> Iterator[None]:
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            with hold_lock(self.folder / f"{space_name}.lock"):
                yield
        except OSError as error:
            raise UsageError(
                f"the memory must be in a folder that can be written to, but "
                f"'{self.folder}' gave '{error.strerror or error}': set {HOME_VARIABLE} to "
                "another one, or use --no-remember",
                rule="memory-not-writable",
                field=HOME_VARIABLE,
            ) from error

    def _read_ended_journals(self, space_name: str) -> Iterator[tuple[Path, Experience | None]]:
        """Yield the heads of journals whose fit has ended, and their experience if there is any."""
        # The oldest comes first, because the newer evaluation counts if two are different.
        heads = self._journals(space_name).glob("*.json")
        for head in sorted(heads, key=_place):
            alive = try_lock(head.with_suffix(".alive"))
            if alive is None:
                continue
            with alive:
                try:
                    yield head, read_journal(head)
                except READ_ERRORS:
                    # It is set aside, so that it does not stop every later fit.
                    head.rename(head.with_suffix(BROKEN))

    def _forget_all(self, space_name: str) -> int:
        """Remove every file of a space, readable or not."""
        with self._changing(space_name):
            ended = [*self._read_ended_journals(space_name)]
            count = sum(len(each) for _, each in ended if each is not None)
            broken = self._journals(space_name).glob(f"*{BROKEN}")
            for head in (*(head for head, _ in ended), *broken):
                remove_journal(head)
            for file in (
                *self._files(space_name),
                *self.folder.glob(f"{space_name}{BROKEN}-*"),
            ):
                with suppress(ExperienceError):
                    count += len(Experience.open(file))
                file.unlink()
            return count

    def _grow(
        self,
        space_name: str,
        added: Sequence[Experience],
        *,
        apart: tuple[type[ForetuneError], ...],
    ) -> None:
        """Merge new experience into the file of a space.

        apart: if merging raises one of these errors, the old experience is set aside, and the file
        begins with the new one. Other errors leave everything as it was.
        """
        if not added:
            return
        known = self._whole(space_name)
        for each in added:
            try:
                known = merge_newest(known, each) if known is not None else each
            except apart:
                # For example, a hyperparameter has changed its kind. The old experience may come
                # from journals that were just merged, so it is saved and not only renamed.
                if known is not None:
                    known.save(self.folder / f"{space_name}{ASIDE}{secrets.token_hex(4)}")
                known = each
        if known is not None:
            known.save(self._file(space_name))


def _place(head: Path) -> tuple[int, int, str]:
    """Return the sort key of a journal, by the order in which fits began.

    The number in its name counts, because clocks may be set back. Journals of earlier versions
    have no number; they come first, by the time of their file.
    """
    number, _, token = head.stem.partition("-")
    if token and number.isdecimal():
        return int(number), 0, token
    return 0, head.stat().st_mtime_ns, head.stem


def _tasks_with_name(known: Iterable[Experience], task: str) -> set[str]:
    """Return the task of this name; the fingerprint may be missing if no other has the name."""
    names = {each for experience in known for each in experience.tasks}
    if task in names:
        return {task}
    found = {each for each in names if plain_name(each) == task}
    if len(found) > 1:
        raise UsageError(
            f"the task to forget must be unambiguous, but {len(found)} tables are called "
            f"'{task}': name one as  foretune experience show  does, {quote_names(sorted(found))}",
            rule="ambiguous-task",
            value=task,
        )
    return found


def _forget(file: Path, known: Experience, chosen: Set[str]) -> int:
    """Remove tasks from a file, or the file if none is left; return how many evaluations went."""
    tasks = [task for task in known.tasks if task in chosen]
    if not tasks:
        return 0
    left = _without(known, tasks)
    if left is None:
        file.unlink()
    else:
        left.save(file)
    return sum(len(known.task(task)) for task in tasks)


def _without(known: Experience, tasks: Sequence[str]) -> Experience | None:
    """Return the other tasks with the metrics that they have; None if no value is left."""
    if len(tasks) == len(known.tasks):
        return None
    left = known.without(tasks)
    measured = np.isfinite(left.values[left.status == Status.DONE]).any(axis=0)
    names = [metric.name for metric, some in zip(left.metrics, measured, strict=True) if some]
    return left.with_metrics(names) if names else None
