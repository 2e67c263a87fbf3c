"""The settings of a search whose model of curves decides which trials go on."""

from dataclasses import dataclass, replace

from foretune.methods.stopping.learnt_steps import find_first_step, find_last_step
from foretune.methods.stopping.policy import StepRange, StoppingPolicy
from foretune.methods.stopping.race import Race, RaceEntry

GROWTH = 2.0
"""Each visit to a trial multiplies its steps by this number."""
FIRST_SHARE = 1.0 / 27.0
"""The first decision about a trial comes after this share of its steps, if it is not given."""


@dataclass(frozen=True)
class ModelSteps(StoppingPolicy):
    """Where the model of a method decides. The optimiser combines this with its model.

    The method must have a model of curves, as `freeze-thaw` and `auto` do.
    """

    first: float | None = None
    last: float | None = None
    sign: float = 1.0
    """-1 if values grow: reasons show values, not losses."""
    pauses: bool = True
    trials: int | None = None
    """How many trials the search has. When all have begun, paused ones go on that may become the
    best."""

    def without_pauses(self) -> "ModelSteps":
        """Return the settings for programs that cannot resume a trial."""
        return replace(self, pauses=False)

    def range_of(self, race: Race, usual_last: float | None) -> StepRange | None:
        """Return the first and the last step; None while the last one is not known."""
        last = next(
            (step for step in (self.last, find_last_step(race), usual_last) if step is not None),
            None,
        )
        if last is None:
            return None
        first = self.first
        if first is None:
            first = max(find_first_step(race) or 0.0, last * FIRST_SHARE)
        return StepRange(min(first, last), last, GROWTH)


def arrives_at_level(entry: RaceEntry, steps: StepRange) -> bool:
    """Return whether the last report of a trial is the first one at or after a level."""
    before = entry.steps[-2] if len(entry.steps) > 1 else 0.0
    near = 1.0 - 1e-9
    return any(before < level * near <= entry.last_step for level in steps.levels)


def next_level(last_step: float, steps: StepRange) -> float:
    """Return the step at which a trial is decided about next."""
    near = 1.0 - 1e-9
    return next((level for level in steps.levels if level * near > last_step), steps.last)
