"""A site that runs jobs in the process of the test, without limits and without waiting."""

import pickle
from dataclasses import dataclass
from typing import Any

from foretune.run.executor import Limits
from foretune.run.executor_choice import ExecutorChoice
from foretune.run.inline import InlineExecutor
from foretune.run.running_trial import TrialFunction


class PreparedExecutor(InlineExecutor[Any, Any]):
    """Prepares its function at the start, as a worker process does."""

    def start(self) -> None:
        if prepare := getattr(self._function, "prepare", None):
            prepare()


@dataclass(frozen=True, slots=True)
class InlineSite(ExecutorChoice):
    """Takes the place of a choice of worker processes, which import for seconds before a job."""

    def pool(
        self, function: TrialFunction[Any, Any], *, workers: int, limits: Limits
    ) -> PreparedExecutor:
        """Return an executor in this process."""
        # Through pickle as on the way to a worker: only what can travel passes.
        return PreparedExecutor(pickle.loads(pickle.dumps(function)))
