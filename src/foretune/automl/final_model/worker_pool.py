"""Pipelines that learn from all rows in processes of their own: several at once, within limits, and
if one dies, the others and the command live on.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from foretune._base.files import hold_lock, try_lock
from foretune.automl.estimators.fitted_pipeline import FitPipeline, Member, refit
from foretune.automl.worker_tables import load_libraries, open_table
from foretune.run import stopping
from foretune.run.executor import Limits
from foretune.run.limit_watch import OVER_MEMORY
from foretune.run.memory import free_bytes
from foretune.run.pool import NO_LIMITS, ProcessPool
from foretune.tables.table import Table

Config: TypeAlias = Mapping[str, Any]
OUT_OF_LIMITS = ("out of memory", "the worker process was killed")
"""How the reasons begin of what more memory may save."""
SHARE_OF_FREE = 0.9
"""Of the memory that is free, what all processes may take: where there is none left, the system may
end the command with them.
"""
WORKPLACE = "fitting-"
ALIVE = "alive"
"""How the name of a folder begins in which a crew works, and the file there that it has locked."""
MOST_BYTES_AT_ONCE = 400 * 2**20
"""Of the tables that processes hold at once: a pipeline takes about four times its table."""
LOOK_SECONDS = 0.5
"""How often to ask whether the rest is still wanted."""


@dataclass(frozen=True, slots=True)
class TableFileFit:
    """Fits configurations to a table in a file, which each worker process opens once."""

    table: Path
    seed: int
    fit: FitPipeline = refit

    def prepare(self) -> None:
        """Load the libraries while the worker starts; a table may be too large for it."""
        load_libraries()

    def __call__(self, config: Config) -> Member:
        """The pipeline that has learnt from all rows."""
        return self.fit(config, open_table(self.table), seed=self.seed)


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class FitWorkers:
    """Processes that may fit the pipelines of a model."""

    workers: int
    folder: Path
    """Where the table lies meanwhile."""
    memory_bytes: int | None = None
    """Of a process that fits as many rows as a trial does; None is without a limit."""
    fit: FitPipeline = refit
    """How a pipeline is fitted; it is sent to the processes."""

    def fit_each(
        self,
        configs: Sequence[Config],
        table: Table,
        *,
        seed: int,
        limits: Limits = NO_LIMITS,
        is_enough: Callable[[], bool] = _never,
    ) -> Generator[tuple[int, Member | str]]:
        """Each pipeline as it gets ready, by the place of its configuration, or why there is none.

        limits: of one pipeline. is_enough: says whether the rest may be left out.
        """
        with _workplace(self.folder) as place:
            file = place / "table.npz"
            table.save(file)
            jobs = dict(enumerate(configs))
            workers = max(1, min(self.workers, MOST_BYTES_AT_ONCE // max(1, table.x.nbytes)))
            yield from _fit_in_processes(
                TableFileFit(file, seed, self.fit), jobs, workers, limits, is_enough
            )


@contextmanager
def _workplace(folder: Path) -> Iterator[Path]:
    """A folder for what workers read; the one of a crew that was killed is removed before."""
    for alive in folder.glob(f"{WORKPLACE}*/{ALIVE}"):
        # Another crew may remove it at the same time.
        with suppress(FileNotFoundError):
            if (lock := try_lock(alive)) is not None:
                with lock:
                    rmtree(alive.parent, ignore_errors=True)
    with (
        TemporaryDirectory(dir=folder, prefix=WORKPLACE, ignore_cleanup_errors=True) as made,
        hold_lock(Path(made) / ALIVE),
    ):
        yield Path(made)


def _fit_in_processes(
    fit: TableFileFit,
    configs: Mapping[int, Config],
    workers: int,
    limits: Limits = NO_LIMITS,
    is_enough: Callable[[], bool] = _never,
    free: Callable[[], int | None] = free_bytes,
) -> Generator[tuple[int, Member | str]]:
    together = min(workers, len(configs))
    # What it returns is a fitted model, which may be as large as its memory.
    shared = replace(_within_free(limits, together, free()), result_bytes=None)
    again: dict[int, Config] = {}
    with ProcessPool(fit, workers=together, limits=shared) as pool:
        waiting = {pool.submit(config): place for place, config in configs.items()}
        while waiting and not is_enough():
            stopping.check()
            for outcome in pool.results(LOOK_SECONDS):
                place = waiting.pop(outcome.key)
                if together > 1 and _may_pass_alone(outcome.reason, shared, limits):
                    again[place] = configs[place]
                else:
                    yield place, outcome.reason if outcome.result is None else outcome.result
    if again and not is_enough():
        # One after the other: together they may have taken more memory than there is.
        yield from _fit_in_processes(fit, again, 1, limits, is_enough, free)


def _may_pass_alone(reason: str, shared: Limits, limits: Limits) -> bool:
    """Whether more memory may save what ended for this reason, and it can have more alone."""
    if reason.startswith(OVER_MEMORY):
        return shared.memory_bytes != limits.memory_bytes
    return reason.startswith(OUT_OF_LIMITS)


def _within_free(limits: Limits, processes: int, free: int | None) -> Limits:
    """The limits, and no more memory than all these processes can have at once."""
    if free is None:
        return limits
    share = max(1, int(SHARE_OF_FREE * free / processes))  # a limit of nothing is none
    return replace(limits, memory_bytes=min(share, limits.memory_bytes or share))
