"""What a process passes on to those it starts: variables, limits, cores.

A process that is forked from a fork server takes these from the server, as they were when the
server started. So it is told what they are in the process that wants it.
"""

import os
import resource
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

AT_START = (
    *("PYTHON", "LD_", "LC_", "LANG", "MALLOC_", "GLIBC_", "JE_", "FORETUNE"),
    *("OMP_", "GOMP_", "KMP_", "MKL_", "OPENBLAS_", "BLIS_", "VECLIB_", "NUMEXPR_"),
    *("NPY_", "NUMPY_", "SCIPY_", "SKLEARN_", "PANDAS_", "ARROW_", "JOBLIB_", "LOKY_", "XGB"),
)
"""Variables whose names begin like this are read when a process or a library starts."""


@dataclass(frozen=True)
class Surroundings:
    """What a process takes from the one that starts it."""

    variables: dict[str, str]
    umask: int
    limits: dict[str, tuple[int, int]]
    """The soft and the hard limit of each resource, by its number."""
    cores: tuple[int, ...]
    priority: int

    @classmethod
    def capture(cls, changes: Mapping[str, str]) -> "Surroundings":
        """Return those of this process, with some variables changed."""
        numbers = [getattr(resource, name) for name in dir(resource) if name.startswith("RLIMIT_")]
        return cls(
            {**os.environ, **changes},
            _umask(),
            {str(number): resource.getrlimit(number) for number in numbers},
            tuple(sorted(os.sched_getaffinity(0))),
            os.getpriority(os.PRIO_PROCESS, 0),
        )

    @classmethod
    def from_json(cls, found: dict[str, Any]) -> "Surroundings":
        """Return those that another process has sent."""
        return cls(**found)

    def to_json(self) -> dict[str, Any]:
        """Return them as JSON has them."""
        return asdict(self)

    def apply(self) -> None:
        """Give this process what another one has, as far as that is allowed."""
        os.environ.clear()
        os.environ.update(self.variables)
        time.tzset()
        os.umask(self.umask)
        for number, (soft, hard) in self.limits.items():
            with suppress(OSError, ValueError):
                resource.setrlimit(int(number), (soft, hard))
        with suppress(OSError):
            os.sched_setaffinity(0, self.cores)
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, 0, self.priority)


def starting_point() -> tuple[object, ...]:
    """Return what cannot be changed after the start: a server that differs in it is of no use."""
    variables = {name: os.environ[name] for name in os.environ if name.startswith(AT_START)}
    return os.getresuid(), os.getresgid(), tuple(os.getgroups()), variables


def _umask() -> int:
    """Return the mask without changing it for other threads."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    raise OSError("the kernel does not tell the umask")
