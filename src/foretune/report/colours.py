"""The colours of algorithms, which are the same in all pictures of a report."""

from collections.abc import Sequence

import numpy as np

from foretune._base.arrays import Floats, Ints

COLOURS = 7
"""Readers with a colour vision deficiency cannot tell more colours apart."""
OTHER = COLOURS
"""The grey of all other algorithms."""


def colours_of(weights: Floats) -> list[int]:
    """Return the colour of each algorithm. Those with the largest weights get their own."""
    colours = np.full(len(weights), OTHER)
    order = np.argsort(-weights, kind="stable")[:COLOURS]
    colours[order] = np.arange(len(order))
    return [int(colour) for colour in colours]


def colour_key(names: Sequence[str], colours: Sequence[int], counts: Ints) -> list[tuple[str, int]]:
    """Return texts and their colours, for the algorithms in a picture."""
    seen = [at for at in range(len(names)) if counts[at] > 0]
    own = sorted((at for at in seen if colours[at] != OTHER), key=lambda at: colours[at])
    others = [names[at] for at in seen if colours[at] == OTHER]
    grey = others if len(others) < 2 else [f"{len(others)} others"]
    return [(names[at], colours[at]) for at in own] + [(text, OTHER) for text in grey]
