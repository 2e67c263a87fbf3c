"""Pipelines that learn from all rows in processes of their own: several at once, and if one dies,
the others and the command live on.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, TypeAlias

from foretune.automl.collection.trial import load_libraries, opened
from foretune.automl.models.members import Member, refit
from foretune.automl.tables.datasets import Table
from foretune.run.executor import Outcome
from foretune.run.pool import ProcessPool

Config: TypeAlias = Mapping[str, Any]
OUT_OF_LIMITS = ("out of memory", "the worker process was killed")
"""How the reasons begin of what more memory may save."""


@dataclass(frozen=True, slots=True)
class FiledFit:
    """Fits configurations to a table in a file, which each worker process opens once."""

    table: Path
    seed: int

    def prepare(self) -> None:
        """Load the libraries while the worker starts; a table may be too large for it."""
        load_libraries()

    def __call__(self, config: Config) -> Member:
        """The pipeline that has learnt from all rows."""
        return refit(config, opened(self.table), seed=self.seed)


@dataclass(frozen=True, slots=True)
class Crew:
    """Processes that may fit the pipelines of a model."""

    workers: int
    folder: Path
    """Where the table lies meanwhile."""

    def fitted(
        self, configs: Sequence[Config], table: Table, *, seed: int
    ) -> Iterator[Member | str]:
        """Each pipeline, in the order of the configurations, or why there is none."""
        with TemporaryDirectory(dir=self.folder, prefix="fitting-") as folder:
            file = Path(folder) / "table.npz"
            table.save(file)
            yield from _fitted(FiledFit(file, seed), configs, self.workers)


def _fitted(fit: FiledFit, configs: Sequence[Config], workers: int) -> Iterator[Member | str]:
    together = min(workers, len(configs))
    with ProcessPool(fit, workers=together) as pool:
        places = {pool.submit(config): place for place, config in enumerate(configs)}
        arrived: dict[int, Outcome[Member]] = {}
        for place, config in enumerate(configs):
            while place not in arrived:
                arrived |= {places[each.key]: each for each in pool.results()}
            outcome = arrived.pop(place)
            if together > 1 and outcome.reason.startswith(OUT_OF_LIMITS):
                while place + 1 + len(arrived) < len(configs):
                    arrived |= {places[each.key]: each for each in pool.results()}
                pool.close()
                yield from _fitted(fit, [config], workers=1)
            else:
                yield outcome.reason if outcome.result is None else outcome.result
