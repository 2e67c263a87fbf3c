"""What competes in a replay: a method, and on learning curves a stopping policy beside it."""

from dataclasses import dataclass

from foretune.errors import MethodError
from foretune.methods import POLICIES
from foretune.search import METHODS, Method, method

NO_STOP = "none"


@dataclass(frozen=True, slots=True)
class Entrant:
    """One competitor, under the name that stands in results."""

    name: str
    method: Method
    """It proposes configurations."""
    policy: str = NO_STOP
    """It stops or pauses trials."""


def find_entrant(name: str, *, on_curves: bool) -> Entrant:
    """Find the competitor of a name.

    On curves a name is that of a method (complete runs), of a stopping policy (random
    configurations with it), or METHOD+POLICY. Elsewhere it is that of a method.
    """
    if not on_curves or name in METHODS:
        return Entrant(name, method(name))
    if name in POLICIES:
        return Entrant(name, METHODS["random"], name)
    proposes, _, policy = name.rpartition("+")
    if not proposes or policy not in POLICIES:
        raise MethodError(
            "a competitor on learning curves must be a method (`foretune methods` lists them), a "
            f"stopping policy ({', '.join(POLICIES)}) or METHOD+POLICY, but got '{name}': choose "
            "one of them",
            rule="unknown-entrant",
            field="method",
            value=name,
        )
    return Entrant(name, method(proposes), policy)
