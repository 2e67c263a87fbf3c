"""Which algorithm gets which colour, the same in all pictures of a report."""

from collections.abc import Sequence

import numpy as np

from foretune._base.arrays import Floats, Ints

COLOURS = 7
"""More cannot be told apart by all kinds of colour vision."""
OTHER = COLOURS
"""The grey that all the others share."""


def colours_of(weights: Floats) -> list[int]:
    """The colour of each algorithm: those of the largest weights get one of their own."""
    colours = np.full(len(weights), OTHER)
    order = np.argsort(-weights, kind="stable")[:COLOURS]
    colours[order] = np.arange(len(order))
    return [int(colour) for colour in colours]


def colour_key(names: Sequence[str], colours: Sequence[int], counts: Ints) -> list[tuple[str, int]]:
    """Texts with their colours, for the algorithms that occur in a picture."""
    seen = [at for at in range(len(names)) if counts[at] > 0]
    own = sorted((at for at in seen if colours[at] != OTHER), key=lambda at: colours[at])
    others = [names[at] for at in seen if colours[at] == OTHER]
    grey = others if len(others) < 2 else [f"{len(others)} others"]
    return [(names[at], colours[at]) for at in own] + [(text, OTHER) for text in grey]
