"""Which algorithm gets which colour, the same in all pictures of a report."""

from collections.abc import Sequence

import numpy as np

from foretune.arrays import Floats

COLOURS = 7
"""More cannot be told apart by all kinds of colour vision."""
OTHER = COLOURS
"""The grey that all the others share."""


def coloured(names: Sequence[str], counts: Floats) -> tuple[list[int], list[tuple[str, int]]]:
    """The colour of each algorithm, and the key: texts with their colours.

    The most frequent algorithms get colours of their own. Those that never occur have no place in
    the key.
    """
    order = [int(at) for at in np.argsort(-counts, kind="stable") if counts[at] > 0]
    # A single one left over is named in the key instead of being called 'other'.
    own = order if len(order) == COLOURS + 1 else order[:COLOURS]
    colours = [OTHER] * len(names)
    for colour, at in enumerate(own):
        colours[at] = min(colour, OTHER)
    key = [(names[at], colours[at]) for at in own]
    rest = len(order) - len(own)
    return colours, key + [(f"{rest} others", OTHER)] * (rest > 0)
