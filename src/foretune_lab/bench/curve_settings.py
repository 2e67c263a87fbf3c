"""The settings of a replay on learning curves: costs, and the levels of stopping policies."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from foretune.methods import StepRange
from foretune_lab.bench.curve_replay import CurveCosts, CurveTask


@dataclass(frozen=True, slots=True)
class CurveSettings:
    """The budget of a run, and the steps at which policies compare trials."""

    costs: CurveCosts
    first_step: float | None = None
    """None means the largest step of a task divided by eta to the power of 3, at least its first
    step."""
    eta: float = 3.0

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> "CurveSettings":
        """Read what `dataclasses.asdict` gave and JSON has stored."""
        return cls(**{**plain, "costs": CurveCosts(**plain["costs"])})

    def flat(self) -> dict[str, Any]:
        """Return all settings by name."""
        plain = asdict(self)
        return {**plain.pop("costs"), **plain}

    def step_range(self, task: CurveTask) -> StepRange:
        """Return the steps between which a policy decides on a task."""
        first = self.first_step
        if first is None:
            first = max(task.last_step / self.eta**3, task.first_step)
        return StepRange(first, task.last_step, self.eta)
