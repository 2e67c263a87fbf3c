"""The recipe of an experience: what is evaluated on each table, and the files beside the output."""

import json
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from foretune.automl import Protocol, load_shipped_space, scorer
from foretune.errors import UsageError
from foretune.experience import Experience, Metric
from foretune.plugins import quote_names, try_lock, write_text
from foretune.run import Limits
from foretune.space import Encoded
from foretune_lab.collect.designs import draw_shared_configs

WALL_PER_CPU = 20.0
"""A trial may take this many times its CPU limit on the clock, because machines are shared."""
LEAST_WALL_SECONDS = 60.0
"""The limit of the time on the clock is at least this."""
FINGERPRINTS = "fingerprints"
"""The part of the file about an output that describes the table of each of its tasks."""


@dataclass(frozen=True, slots=True)
class CollectionRecipe:
    """The configurations to evaluate, and how to evaluate them."""

    space: str
    protocol: Protocol
    evaluations: int
    """The number of configurations for each dataset, from a list that every dataset gets."""
    like: Path | None = None
    """An experience whose configurations replace that list."""
    refined: int = 0
    """The number of configurations after these that their results suggest, the same for every
    dataset."""
    only: tuple[str, ...] = ()
    """The estimators that the space is narrowed to."""
    even: bool = True
    """Whether each estimator has the same number of configurations."""
    most_rows: int = 20_000
    """The number of rows that are drawn from larger tables."""
    cpu_seconds: float = 60.0
    """The limit of CPU time of one evaluation."""
    memory_bytes: int | None = None
    seed: int = 0

    def __post_init__(self) -> None:
        # A mistake shows before anything is written.
        chosen = load_shipped_space(self.space)
        chosen.check(self.only)
        for name in self.protocol.metrics:
            scorer(name, chosen.task)
        if self.like is not None:
            self.configs()

    @property
    def metrics(self) -> list[Metric]:
        """The metrics that are measured."""
        task = load_shipped_space(self.space).task
        return [scorer(name, task).metric for name in self.protocol.metrics]

    @property
    def limits(self) -> Limits:
        """The limits of a worker."""
        wall = max(LEAST_WALL_SECONDS, WALL_PER_CPU * self.cpu_seconds)
        return Limits(wall, self.cpu_seconds, self.memory_bytes)

    def configs(self) -> Encoded:
        """Return the list that every table gets."""
        if self.like is not None:
            whole = load_shipped_space(self.space).build(self.only)
            return whole.encode(Experience.open(self.like).configs.dicts())
        return draw_shared_configs(
            load_shipped_space(self.space),
            self.evaluations,
            seed=self.seed,
            only=self.only,
            even=self.even,
        )

    def describe(self) -> dict[str, Any]:
        """Return the common part of all files of this recipe, for JSON."""
        return {
            "space": self.space,
            "only": list(self.only),
            "even": self.even,
            "metrics": list(self.protocol.metrics),
            "folds": self.protocol.folds,
            "cross_validated_below": self.protocol.cross_validated_below,
            "split_seed": self.protocol.seed,
            "most_rows": self.most_rows,
            "cpu_seconds": self.cpu_seconds,
            "memory_bytes": self.memory_bytes,
            "seed": self.seed,
        }


@dataclass(frozen=True, slots=True)
class Folder:
    """The files beside an output."""

    out: Path
    parts: Path
    """The folder that only an unfinished collection needs."""
    about: Path
    """The file that says how the output was made."""

    @classmethod
    def beside(cls, out: Path) -> "Folder":
        """Return the files that belong to this output."""
        return cls(out, out.with_suffix(".parts"), out.with_suffix(".collect.json"))

    @property
    def lock(self) -> Path:
        """The lock, which is held by the run that adds to the output."""
        return self.out.with_suffix(".lock")

    @property
    def tables(self) -> Path:
        """The folder of prepared tables."""
        return self.parts / "tables"

    @property
    def journal(self) -> Path:
        """The trials that the output may not hold yet."""
        return self.parts / "trials.jsonl"

    @contextmanager
    def alone(self) -> Iterator[None]:
        """Let one run in at a time, because two would delete each other's trials and tables."""
        lock = try_lock(self.lock)
        if lock is None:
            raise UsageError(
                "one collection at a time adds to an output, but another one is adding to "
                f"'{self.out}': wait until it has ended, or choose another output",
                rule="one-collection-at-a-time",
                field="out",
                value=self.out,
            )
        with lock:
            yield

    def begin(self, recipe: CollectionRecipe) -> None:
        """Make the folders; refuse to go on with a file that was made in another way."""
        if self.out.exists() and not self.about.exists():
            raise UsageError(
                f"a collection adds to what it has made itself, but '{self.out}' was made in "
                "another way: choose another output, and merge them afterwards",
                rule="foreign-output",
                field="out",
                value=self.out,
            )
        if self.about.exists():
            earlier = json.loads(self.about.read_text(encoding="utf-8"))["recipe"]
            now = recipe.describe()
            other = [name for name in now if earlier.get(name) != now[name]]
            if other:
                raise UsageError(
                    "a collection goes on with equal settings only, but got "
                    f"{other[0]}={now[other[0]]} after {other[0]}={earlier.get(other[0])} in "
                    f"'{self.about}': choose another output",
                    rule="equal-settings",
                    field=other[0],
                    value=now[other[0]],
                )
        self.tables.mkdir(parents=True, exist_ok=True)
        if not self.about.exists():
            self.note(recipe, {})

    def recognise(self, fingerprints: Mapping[str, str]) -> None:
        """Note the table of each task before its first trial; refuse another one under its name.

        Collections of earlier versions have no fingerprints yet, and go on.
        """
        about = json.loads(self.about.read_text(encoding="utf-8"))
        begun = self.out.exists() or self.journal.exists()
        earlier = about.get(FINGERPRINTS, {}) if begun else {}
        changed = [task for task, now in fingerprints.items() if earlier.get(task, now) != now]
        if changed:
            if not self.journal.exists():
                self.clear()
            raise UsageError(
                "a collection goes on with equal tables and targets only, but got others than "
                f"those of '{self.out}' for {quote_names(changed)}: choose another output",
                rule="equal-tables",
                field="datasets",
                value=tuple(changed),
            )
        about[FINGERPRINTS] = {**earlier, **fingerprints}
        write_text(self.about, json.dumps(about, indent=1))

    def note(self, recipe: CollectionRecipe, summary: Mapping[str, Any]) -> None:
        """Write down how the output was made and what became of it."""
        about = {"recipe": recipe.describe(), **summary}
        if self.about.exists():
            earlier = json.loads(self.about.read_text(encoding="utf-8"))
            about[FINGERPRINTS] = earlier.get(FINGERPRINTS, {})
        write_text(self.about, json.dumps(about, indent=1))

    def clear(self) -> None:
        """Remove everything that is not needed any more."""
        shutil.rmtree(self.parts, ignore_errors=True)
