"""What `foretune portfolio` says about a portfolio."""

import textwrap
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from foretune.methods.zero_shot.portfolio import Portfolio

NORMALISATION_WORDS = {
    "red": "relative error difference to the mean of a task's 10 best; below 0 is better",
    "rank": "share of the task's configurations that are better",
    "none": "as measured",
    "stddev": "standard deviations from a task's mean",
    "min-max": "from a task's best, 0, to its worst, 1",
    "normal": "Gaussian score of the rank",
}
"""Explanations of how losses were normalised. A test compares them."""


def describe_portfolio(found: "Portfolio") -> str:
    """Describe a portfolio in Python comments."""
    lines = [f"{len(found)} configurations from {found.source}, chosen by '{found.builder}'"]
    if found.jobs is not None:
        lines[0] += f" from {found.jobs:,} evaluations"
    if found.losses:
        after = ", ".join(f"{loss:.4g}" for loss in found.losses)
        unit = NORMALISATION_WORDS.get(found.normalisation, found.normalisation)
        lines.append(f"Expected {found.aggregate} loss ({unit}) after each: {after}")
    if found.note:
        lines.append(found.note)
    return "\n".join(
        textwrap.fill(line, 100, initial_indent="# ", subsequent_indent="# ") for line in lines
    )
