"""The domains of hyperparameters in Syne Tune's words, for all its adapters."""

from typing import Any

from benchmarks.peers.objective import Parameter
from syne_tune.config_space import choice, lograndint, loguniform, randint, uniform


def make_domain(parameter: Parameter) -> Any:
    """Return the domain of a hyperparameter; choices are the texts of their places."""
    if parameter.kind == "categorical":
        return choice([str(index) for index in range(parameter.choices)])
    if parameter.kind == "float":
        return (loguniform if parameter.log else uniform)(parameter.low, parameter.high)
    make = lograndint if parameter.log else randint
    return make(int(parameter.low), int(parameter.high))
