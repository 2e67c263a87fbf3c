"""Where a search by cross-validation was called, and the errors of a search without results."""

import sys
from collections.abc import Sequence
from types import FrameType

from foretune.errors import UsageError

NO_SPLITS = "No fits were performed"
"""How scikit-learn begins its error if `cv` gives no splits, for example a used-up generator."""
ON_THE_WAY = ("foretune", "sklearn", "joblib")
"""Packages whose functions are called between a line of the user and the search."""


def level_of_the_user() -> int:
    """Return the stack level of the user's line, for a warning of the caller.

    It depends on the version of scikit-learn, which wraps `fit`.
    """
    level, frame = 1, sys._getframe(1)
    while frame.f_back is not None and _package_of(frame) in ON_THE_WAY:
        level, frame = level + 1, frame.f_back
    return level


def _package_of(frame: FrameType) -> str:
    name: str = frame.f_globals.get("__name__", "")
    return name.partition(".")[0]


def no_splits_error() -> UsageError:
    """Return the error of a search whose `cv` gives no splits."""
    return UsageError(
        "a search needs at least one split of the rows, but cv gives none: give splits as a list, "
        "for a generator gives them to one fit only",
        rule="no-splits",
        field="cv",
    )


def no_result_error(errors: Sequence[ValueError], candidates: int) -> ValueError:
    """Return the error of a search without any result; scikit-learn counts one batch only."""
    if len(errors) == 1:
        return errors[0]
    return ValueError(
        f"None of the {candidates} candidates could be evaluated, in {len(errors)} batches. Of the "
        f"first batch scikit-learn says:\n{errors[0]}"
    )
