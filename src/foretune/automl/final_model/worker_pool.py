"""Fits pipelines to all rows in worker processes: several at once, and within limits.

If one process dies, the others and the command go on.
"""

from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import IO, Any, ClassVar, TypeAlias, TypeVar

from foretune._base.files import hold_lock, try_lock
from foretune.automl.estimators.fitted_pipeline import FitPipeline, Member, refit
from foretune.automl.worker_libraries import WORKER_MODULES
from foretune.automl.worker_tables import load_libraries, open_table
from foretune.run import stopping
from foretune.run.executor import Limits
from foretune.run.executor_choice import HERE, ExecutorChoice
from foretune.run.limit_watch import OVER_MEMORY
from foretune.run.memory import free_bytes
from foretune.run.pool import NO_LIMITS
from foretune.tables import Table

Config: TypeAlias = Mapping[str, Any]
Job = TypeVar("Job")
Result = TypeVar("Result")
OUT_OF_LIMITS = ("out of memory", "the worker process was killed")
"""If the reason of a failure begins like this, more memory may prevent it."""
SHARE_OF_FREE = 0.9
"""The share of the free memory that all processes may take together. Without free memory, the
system may end the command too."""
FOLDER_PREFIX = "fitting-"
LOCK_FILE = "alive"
"""The file that a running command keeps locked in its folder for the workers."""
MOST_BYTES_AT_ONCE = 400 * 2**20
"""The most bytes of tables that all processes load; a pipeline takes about four times its table."""
LOOK_SECONDS = 0.5
"""The seconds between two checks whether the remaining pipelines are still needed."""


@dataclass(frozen=True, slots=True)
class TableFileFit:
    """Fits configurations to a table in a file, which each worker process opens once."""

    libraries: ClassVar = WORKER_MODULES
    table: Path
    seed: int
    fit: FitPipeline = refit

    def prepare(self) -> None:
        """Load the libraries while the worker starts; the table may be too large to load yet."""
        load_libraries()

    def __call__(self, config: Config) -> Member:
        """Fit a configuration to all rows."""
        return self.fit(config, open_table(self.table), seed=self.seed)


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class FitWorkers:
    """Worker processes that can fit the pipelines of a model."""

    workers: int
    folder: Path
    """The folder where the workers read the table."""
    memory_bytes: int | None = None
    """The limit of a process that fits as many rows as a trial does; None means no limit."""
    fit: FitPipeline = refit
    """The function that fits a pipeline; it is sent to the workers."""

    def fit_each(
        self,
        configs: Sequence[Config],
        table: Table,
        *,
        seed: int,
        limits: Limits = NO_LIMITS,
        is_enough: Callable[[], bool] = _never,
    ) -> Generator[tuple[int, Member | str]]:
        """Yield the index of each configuration with its pipeline, or with the reason for none.

        limits: those of one pipeline. is_enough: returns whether the rest may be left out.
        """
        with open_worker_folder(self.folder) as place:
            file = place / "table.npz"
            table.save(file)
            jobs = dict(enumerate(configs))
            workers = max(1, min(self.workers, MOST_BYTES_AT_ONCE // max(1, table.x.nbytes)))
            yield from fit_in_processes(
                TableFileFit(file, seed, self.fit), jobs, workers, limits, is_enough
            )


@contextmanager
def open_worker_folder(
    folder: Path, lock_file: Callable[[Path], IO[bytes] | None] = try_lock
) -> Iterator[Path]:
    """Make a folder for the files that workers read; first remove those of killed commands."""
    for path in folder.glob(f"{FOLDER_PREFIX}*/{LOCK_FILE}"):
        # Another command may remove it at the same time.
        with suppress(FileNotFoundError):
            if (lock := lock_file(path)) is not None:
                with lock:
                    rmtree(path.parent, ignore_errors=True)
    with (
        TemporaryDirectory(dir=folder, prefix=FOLDER_PREFIX, ignore_cleanup_errors=True) as made,
        hold_lock(Path(made) / LOCK_FILE),
    ):
        yield Path(made)


def fit_in_processes(
    fit: Callable[[Job], Result],
    configs: Mapping[int, Job],
    workers: int,
    limits: Limits = NO_LIMITS,
    is_enough: Callable[[], bool] = _never,
    free: Callable[[], int | None] = free_bytes,
    site: ExecutorChoice = HERE,
) -> Generator[tuple[int, Result | str]]:
    """Run a function on configurations in processes; yield each result, or why there is none.

    If one fails for lack of memory beside others, it is tried again alone.
    """
    processes = min(workers, len(configs))
    # A result is a fitted pipeline, which may be as large as the memory of its process.
    shared = replace(share_memory(limits, processes, free()), result_bytes=None)
    again: dict[int, Job] = {}
    with site.pool(fit, workers=processes, limits=shared) as pool:
        waiting = {pool.submit(config): place for place, config in configs.items()}
        while waiting and not is_enough():
            stopping.check()
            for outcome in pool.results(LOOK_SECONDS):
                place = waiting.pop(outcome.key)
                if processes > 1 and _may_pass_alone(outcome.reason, shared, limits):
                    again[place] = configs[place]
                else:
                    yield place, outcome.reason if outcome.result is None else outcome.result
    if again and not is_enough():
        # They run one after the other, because together they may need too much memory.
        yield from fit_in_processes(fit, again, 1, limits, is_enough, free, site)


def _may_pass_alone(reason: str, shared: Limits, limits: Limits) -> bool:
    """Return whether more memory may prevent this failure, and one process alone has more."""
    if reason.startswith(OVER_MEMORY):
        return shared.memory_bytes != limits.memory_bytes
    return reason.startswith(OUT_OF_LIMITS)


def share_memory(limits: Limits, processes: int, free: int | None) -> Limits:
    """Return the limits with at most the memory that all these processes can have at once."""
    if free is None:
        return limits
    share = max(1, int(SHARE_OF_FREE * free / processes))  # A limit of 0 would mean no limit.
    return replace(limits, memory_bytes=min(share, limits.memory_bytes or share))
