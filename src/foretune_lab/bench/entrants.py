"""The competitors in a replay: a method, and on learning curves a stopping policy beside it."""

from collections.abc import Callable
from dataclasses import dataclass

from foretune.errors import MethodError
from foretune.methods import POLICIES
from foretune.search import METHODS, Method, StepsBy, method
from foretune_lab.baselines.step_tuner import StepModel

NO_STOP, BY_MODEL = "none", "model"


def _dyhpo(seed: int) -> StepModel:
    from foretune_lab.baselines.dyhpo import DyhpoModel

    return DyhpoModel(seed=seed)


def _power_laws(seed: int) -> StepModel:
    from foretune_lab.baselines.power_laws import PowerLawModel

    return PowerLawModel(seed=seed)


STEP_MODELS: dict[str, Callable[[int], StepModel]] = {"dyhpo": _dyhpo, "dpl": _power_laws}
"""Makers (seed) of the models of tuners that decide after every few steps, by name."""


@dataclass(frozen=True, slots=True)
class Entrant:
    """One competitor, under its name in results."""

    name: str
    method: Method
    """The method that proposes configurations."""
    policy: str = NO_STOP
    """The policy that stops or pauses trials."""
    step_model: str | None = None
    """The model that decides after every few steps, instead of the method and the policy."""


def find_entrant(name: str, *, on_curves: bool) -> Entrant:
    """Find the competitor with a name.

    On curves a name is that of a method (complete runs, unless its model of curves decides about
    steps), of a stopping policy (random
    configurations with it), METHOD+POLICY, or a model of `STEP_MODELS`. Elsewhere it is that of a
    method.
    """
    if not on_curves or name in METHODS:
        chosen = method(name)
        decides = on_curves and chosen.steps is not StepsBy.POLICY
        return Entrant(name, chosen, BY_MODEL if decides else NO_STOP)
    if name in POLICIES:
        return Entrant(name, METHODS["random"], name)
    if name in STEP_MODELS:
        return Entrant(name, METHODS["random"], step_model=name)
    proposes, _, policy = name.rpartition("+")
    if not proposes or policy not in POLICIES:
        raise MethodError(
            "a competitor on learning curves must be a method (`foretune methods` lists them), a "
            f"stopping policy ({', '.join(POLICIES)}), METHOD+POLICY or one of "
            f"{', '.join(STEP_MODELS)}, but got '{name}': choose one of them",
            rule="unknown-entrant",
            field="method",
            value=name,
        )
    return Entrant(name, method(proposes), policy)
