"""Which trials of a long search the page shows. All of them would make it slow and large."""

import numpy as np

from foretune._base.arrays import Bools, Floats, Ints
from foretune.report.curves import unbeaten
from foretune.report.story import Story

MOST_DRAWN = 5_000
"""The page shows all trials of a search that is no longer than this."""
BEST_DRAWN = 100
RANDOM_POINTS = 1_000
"""Points of the curve of random search. More points would look the same."""


def choose_drawn(story: Story, losses: Floats, *, seed: int) -> tuple[Ints, Bools]:
    """Return ascending rows of the trials to show, and which of these are a fair sample.

    losses: (n, metrics), NaN where unknown. The page also shows the best trials, all that improved
        on those before them, the front, the members of the model, and the trials on the map.
    """
    n = len(story.trials)
    if n <= MOST_DRAWN:
        return np.arange(n), np.ones(n, dtype=bool)
    sampled = np.random.default_rng(seed).choice(n, MOST_DRAWN, replace=False)
    best = np.argsort(losses[:, 0], kind="stable")[:BEST_DRAWN]
    improved = [np.flatnonzero(_improvements(column)) for column in losses.T]
    front = unbeaten(losses[:, :2]) if story.objectives > 1 else best[:0]
    drawn = np.unique(np.concatenate([sampled, best, *improved, front, _named_rows(story)]))
    return drawn, np.isin(drawn, sampled)


def _improvements(losses: Floats) -> Bools:
    """Return which losses are lower than all before them."""
    known = np.where(np.isnan(losses), np.inf, losses)
    before = np.minimum.accumulate(np.concatenate([[np.inf], known[:-1]]))
    return np.asarray(known < before)


def _named_rows(story: Story) -> Ints:
    """Return the rows of the trials that other parts of the page name."""
    named = {story.best, *(number for _, number in story.ensemble)}
    named |= {point.trial for point in story.embedding or ()}
    rows = [row for row, trial in enumerate(story.trials) if trial.number in named]
    return np.array(rows, dtype=np.int64)


def thin_curve(curve: list[float]) -> tuple[list[int], list[float]]:
    """Return at most `RANDOM_POINTS` points of a curve, with both ends, and their positions."""
    n, half = len(curve), RANDOM_POINTS // 2
    if n <= RANDOM_POINTS:
        return list(range(n)), curve
    spread = np.concatenate([np.geomspace(1, n, half) - 1, np.linspace(0, n - 1, half)])
    places: list[int] = np.unique(spread.round().astype(np.int64)).tolist()
    return places, [curve[place] for place in places]
