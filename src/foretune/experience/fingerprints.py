"""What two experiences have in common, as a number: of their evaluations, or of all that teaches.

What is kept under such a number (results, priors) is only used again for what it was made from. So
everything counts that can change it: also directions and fidelities.
"""

import hashlib
import json

import numpy as np

from foretune.experience.data import ExperienceData
from foretune.experience.selection import compact
from foretune.experience.splits import learning_split


def fingerprint_of_evaluations(experience: ExperienceData) -> str:
    """Equal (hex) for equal evaluations in equal spaces; how long they took does not count.

    Files of results hold it: what goes in, and in which order, must stay as it is. A file of the
    experience has no configurations that neither an evaluation nor an initial design has, so they
    do not count.
    """
    experience = compact(experience)
    digest = hashlib.sha256()
    names = [experience.space.fingerprint, *experience.tasks, *map(str, experience.metrics)]
    # A name may hold a line break itself.
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
    """Equal (hex) where a method learns the same: also times, meta-features, what validates.

    Priors are kept under it, so those that exist must be found again: which tasks train is said
    only where not all the others do.
    """
    split = learning_split(experience)
    said = [fingerprint_of_evaluations(experience), experience.meta_features, split.validation]
    if len(split.train) + len(split.validation) < len(experience.tasks):
        said.append(split.train)
    digest = hashlib.sha256(json.dumps(said, sort_keys=True).encode())
    digest.update(np.ascontiguousarray(experience.seconds).data)
    return digest.hexdigest()
