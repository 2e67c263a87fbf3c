"""Where trials run: in processes of this machine, or on a Ray cluster."""

from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING

from foretune.errors import EXTRAS, MissingExtraError, UsageError
from foretune.run.call import Job, Result
from foretune.run.executor import Limits
from foretune.run.pool import ProcessPool
from foretune.run.running_trial import TrialFunction

if TYPE_CHECKING:
    from foretune.run.ray_pool import RayPool

KINDS = ("processes", "ray")


@dataclass(frozen=True, slots=True)
class ExecutorChoice:
    """A kind of executor, without the function that it evaluates."""

    kind: str = "processes"
    """`processes` of this machine, or `ray`."""
    address: str | None = None
    """The address of a running Ray cluster."""

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise UsageError(
                f"an executor must be one of {', '.join(KINDS)}, but got '{self.kind}': choose one",
                rule="unknown-executor",
                field="executor",
                value=self.kind,
            )
        if self.kind == "ray" and find_spec("ray") is None:
            raise MissingExtraError("ray", EXTRAS["ray"], "running trials on Ray")
        if self.address is not None and self.kind != "ray":
            raise UsageError(
                "an address is that of a Ray cluster, but trials are to run in processes here: "
                "ask for the executor 'ray', or leave the address out",
                rule="address-without-ray",
                field="address",
                value=self.address,
            )

    @property
    def is_here(self) -> bool:
        """True if trials see the files of this machine."""
        return self.kind == "processes"

    def pool(
        self, function: TrialFunction[Job, Result], *, workers: int, limits: Limits
    ) -> "ProcessPool[Job, Result] | RayPool[Job, Result]":
        """Return an executor for a function."""
        if self.is_here:
            return ProcessPool(function, workers=workers, limits=limits)
        from foretune.run.ray_pool import RayPool

        return RayPool(function, workers=workers, limits=limits, address=self.address)


HERE = ExecutorChoice()
