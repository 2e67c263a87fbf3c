"""Where trials run: in processes of this machine, or on a Ray cluster."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from foretune.errors import UsageError
from foretune.run.executor import Job, Limits, Result
from foretune.run.pool import ProcessPool

if TYPE_CHECKING:
    from foretune.run.ray_pool import RayPool


@dataclass(frozen=True, slots=True)
class Site:
    """A kind of executor, before it is known what it evaluates."""

    kind: Literal["processes", "ray"] = "processes"
    address: str | None = None
    """Of a running Ray cluster."""

    def __post_init__(self) -> None:
        if self.address is not None and self.kind != "ray":
            raise UsageError(
                "an address is that of a Ray cluster, but trials are to run in processes here: "
                "ask for the executor 'ray', or leave the address out"
            )

    @property
    def is_here(self) -> bool:
        """True if trials see the files of this machine."""
        return self.kind == "processes"

    def pool(
        self, function: Callable[[Job], Result], *, workers: int, limits: Limits
    ) -> "ProcessPool[Job, Result] | RayPool[Job, Result]":
        """An executor for a function."""
        if self.is_here:
            return ProcessPool(function, workers=workers, limits=limits)
        from foretune.run.ray_pool import RayPool

        return RayPool(function, workers=workers, limits=limits, address=self.address)


HERE = Site()
