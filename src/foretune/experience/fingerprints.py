"""Fingerprints of experiences: of the evaluations alone, or of all that a method learns from.

Results and priors are stored under a fingerprint, and are used again only for the same experience.
So everything that can change them counts, also directions and fidelities.
"""

import hashlib
import json

import numpy as np

from foretune.experience.data import ExperienceData
from foretune.experience.selection import compact
from foretune.experience.splits import learning_split


def fingerprint_of_evaluations(experience: ExperienceData) -> str:
    """Return a hash (hex), equal for equal evaluations in equal spaces; durations do not count.

    Files of results hold this hash, so its input and its order must never change. Configurations
    without an evaluation or an initial design do not count, because files do not hold them.
    """
    experience = compact(experience)
    digest = hashlib.sha256()
    names = [experience.space.fingerprint, *experience.tasks, *map(str, experience.metrics)]
    # A name may contain a line break.
    plain = not any("\n" in name for name in names)
    digest.update(("\n".join(names) if plain else json.dumps(names)).encode())
    columns = [experience.task_index, experience.config_index, experience.values, experience.status]
    curves = experience.curves
    points = [] if curves is None else [curves.offsets, curves.steps, curves.values]
    for column in [*columns, experience.configs.values, experience.fidelity, *points]:
        if column is not None:
            digest.update(np.ascontiguousarray(column).data)
    return digest.hexdigest()


def fingerprint_of_lessons(experience: ExperienceData) -> str:
    """Return a hash (hex), equal if a method learns the same.

    It covers durations, meta-features and the tasks for validation. Priors are stored under this
    hash, and must be found again. So the training tasks are part of it only if they are not all the
    other tasks.
    """
    split = learning_split(experience)
    said = [fingerprint_of_evaluations(experience), experience.meta_features, split.validation]
    if len(split.train) + len(split.validation) < len(experience.tasks):
        said.append(split.train)
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    digest.update(np.ascontiguousarray(experience.seconds).data)
    return digest.hexdigest()
