"""What past experience gives a live build: known pairs, and the configurations to try first."""

from dataclasses import dataclass, replace

import numpy as np

from foretune.automl.live_portfolio.pairs import PairSpace
from foretune.experience import Experience
from foretune.experience.trial import TaskRecords
from foretune.methods.zero_shot.build import Recipe, build
from foretune.methods.zero_shot.live_jobs import LiveJobs
from foretune.space import Encoded
from foretune.tables import plain_name
from foretune.tables.identity import LONGEST_NAME, MARK

MOST_RECOMMENDED = 8
"""The number of configurations of past experience that a builder tries before others."""


@dataclass(frozen=True, slots=True)
class CandidateConfigs:
    """The configurations that a portfolio may hold."""

    configs: Encoded
    first: int
    """The number of configurations at the head that are tried before the others."""


def list_candidates(
    space: PairSpace, past: Experience | None, recipe: Recipe, count: int
) -> CandidateConfigs:
    """Return what past experience recommends, what it knows of the same tasks, and random others.

    The same arguments always give the same list.
    """
    drawn = space.space.sample(count, seed=recipe.seed)
    if past is None:
        return CandidateConfigs(drawn.take(drawn.first_occurrences()), 0)
    wanted = Recipe(
        MOST_RECOMMENDED,
        aggregate=recipe.aggregate,
        normalisation=recipe.normalisation,
        seed=recipe.seed,
    )
    recommended = build(past, wanted).configs
    same = [name for name in past.tasks if place_of(name, space) is not None]
    known = [past.task(name).configs for name in same]
    every = Encoded.concat([recommended, *known, drawn])
    return CandidateConfigs(every.take(every.first_occurrences()), len(recommended))


def place_of(task: str, space: PairSpace) -> int | None:
    """Return the position of a past task among those of a build; None if it is none of them."""
    name = plain_name(task)
    return space.tasks.index(name) if name in space.tasks else None


def take_in_known(jobs: LiveJobs, space: PairSpace, past: Experience | None) -> int:
    """Take in the pairs that past experience holds; they cost nothing. Return how many."""
    if past is None:
        return 0
    keys = jobs.candidates.keys().tolist()
    rows = {key: row for row, key in enumerate(keys)}
    count = 0
    for name in past.tasks:
        place = place_of(name, space)
        if place is not None:
            count += _take_in_task(jobs, place, past.task(name), rows)
    return count


def _take_in_task(jobs: LiveJobs, place: int, records: TaskRecords, rows: dict[bytes, int]) -> int:
    done = np.flatnonzero(records.is_full_fidelity)
    keys = records.configs.keys().tolist()
    # The last one counts if a measurement was repeated.
    known = {rows[keys[row]]: float(records.losses[row, 0]) for row in done.tolist()}
    candidates = np.array(list(known), dtype=np.int64)
    losses = np.array(list(known.values()))
    tasks = np.full(len(candidates), place)
    jobs.finish(tasks, candidates, losses, free=True)
    return len(candidates)


def name_for_memory(experience: Experience, fingerprints: dict[str, str]) -> Experience:
    """Return the experience with tasks named as `fit` names tables in the memory.

    fingerprints: {name of a table: its fingerprint}.
    """
    names = {name: f"{name[:LONGEST_NAME]}{MARK}{mark}" for name, mark in fingerprints.items()}
    return replace(
        experience,
        tasks=tuple(names[task] for task in experience.tasks),
        meta_features={names[t]: of for t, of in experience.meta_features.items()},
    )
