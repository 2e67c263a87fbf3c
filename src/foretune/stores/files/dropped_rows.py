"""Warnings about recorded evaluations that are no part of the experience."""

import warnings
from collections.abc import Sequence

from foretune._base.names import quote_names
from foretune.errors import ForetuneWarning

NOT_ENDED = "have not ended"
TOLD_IN_PART = "failed before all of their hyperparameters were recorded"


def say_left_out(what: str, why: str, tasks: Sequence[str], *, stacklevel: int) -> None:
    """Warn of evaluations that are left out, if there are any.

    stacklevel: which caller's line the warning names; 1 is this function.
    """
    if tasks:
        warnings.warn(left_out_warning(what, why, tasks), stacklevel=stacklevel)


def left_out_warning(what: str, why: str, tasks: Sequence[str]) -> ForetuneWarning:
    """Return the warning of evaluations that are left out.

    what: how the source calls them, such as "trials".
    why: the reason, to be read after "trials that".
    tasks: the task of each of them.
    """
    different = tuple(dict.fromkeys(tasks))
    return ForetuneWarning(
        f"{what} that {why} are left out: {len(tasks)} of {quote_names(list(different))}",
        rule="left-out",
        field=what,
        value=(why, len(tasks), different),
    )
