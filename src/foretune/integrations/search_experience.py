"""The experience that a search by cross-validation leaves, and that it can use."""

import warnings
from collections.abc import Mapping
from typing import Any

import numpy as np

from foretune.errors import ExperienceError, ForetuneWarning
from foretune.experience import Direction, Experience, Metric, Status
from foretune.experience.alignment.restriction import in_other_space
from foretune.experience.curves import build_curves
from foretune.integrations.estimator_space import SearchSpace
from foretune.integrations.search_loop import scores_of
from foretune.integrations.search_resource import FOLDS


def make_experience(
    search: Any, task: str, meta_features: dict[str, float], metrics: Mapping[str, str]
) -> Experience:
    """Return the trials of a fitted search.

    metrics: {name in `cv_results_`: name in the experience}.
    """
    results, names = search.cv_results_, list(metrics)
    # The score of a failed fit is `error_score`, which is no result.
    scores = np.where(search.failed_[:, None], np.nan, scores_of(results, names))
    seconds = results["mean_fit_time"] + results["mean_score_time"]
    seconds = seconds * (1 if search.resource == FOLDS else search.n_splits_)
    steps = np.asarray(results.get("n_resources", np.zeros(len(scores))))
    rows = _rows_of_candidates(search)
    if search.resource == FOLDS:
        # Each iteration adds folds, and keeps the earlier ones.
        seconds = (
            seconds
            * np.concatenate([np.diff(steps[own], prepend=0) for own in rows])[
                np.argsort(np.concatenate(rows))
            ]
        )
    last = [own[-1] for own in rows]
    done = np.isfinite(scores[last]).any(axis=1)
    status = np.where(done, Status.DONE, Status.FAILED)
    curves = None
    if "n_resources" in results:
        status[done & (steps[last] < search.max_resources_)] = Status.STOPPED
        places = [place for own in rows for place in own]
        spent = [np.cumsum(seconds[own]) for own in rows]
        lengths = [len(own) for own in rows]
        curves = build_curves(lengths, steps[places], scores[places], np.concatenate(spent))
    return Experience.build(
        search.space_,
        [Metric(metrics[name], Direction.MAX) for name in names],
        [task],
        np.zeros(len(rows), dtype=np.int64),
        search.space_.encode([search.configs_[place] for place in last]),
        np.arange(len(rows)),
        scores[last],
        status=status,
        seconds=[seconds[own].sum() for own in rows],
        meta_features={task: meta_features} if meta_features else None,
        curves=curves,
    )


def _rows_of_candidates(search: Any) -> list[list[int]]:
    """Return the rows of `cv_results_` of each candidate, in the order of the iterations."""
    keys = search.space_.encode(search.configs_).keys().tolist()
    rows: dict[Any, list[int]] = {}
    for place, key in enumerate(keys):
        rows.setdefault(key, []).append(place)
    return list(rows.values())


def drop_ambiguous_counts(
    past: Experience, space: SearchSpace, estimator: Any, *, stacklevel: int
) -> Experience:
    """Return past runs without those that have a count for a share, or a share for a count."""
    confused = space.find_ambiguous_counts(past.configs, estimator)
    runs = {name: int(which[past.config_index].sum()) for name, which in confused.items()}
    if not any(runs.values()):
        return past
    kept = np.flatnonzero(~np.any(list(confused.values()), axis=0))
    known = in_other_space(past, past.configs.take(kept), kept)
    which = ", ".join(f"{n:,} of {len(past):,} by '{name}'" for name, n in runs.items() if n)
    if known is None:
        raise ExperienceError(
            "an experience must hold counts (1) where the space has counts, and shares (1.0) where "
            f"it has shares, but it holds no such run ({which}): search what it holds, or leave "
            "the experience out",
            rule="counts-and-shares",
            field="experience",
            value=runs,
        )
    said = (
        "past runs are left out that have a count (1) where the space has shares (1.0), or the "
        f"other way round: {which}"
    )
    warnings.warn(
        ForetuneWarning(said, rule="counts-and-shares", value=runs), stacklevel=stacklevel
    )
    return known
