"""Learning on top of an earlier prior, so that a few more tasks take little time.

For each learner the cache keeps the latest prior of many tasks, with a fingerprint of every task.
If nearly all of these tasks are in the new experience, unchanged, a learner that can continue from
the prior does so. The result then depends on what was learnt before. With few tasks, and for other
learners, everything is learnt again.
"""

import contextlib
import hashlib
import json
import tempfile
from collections.abc import Mapping
from importlib.metadata import version
from pathlib import Path

import numpy as np

from foretune._base.cache import cache_path
from foretune._base.progress import Progress
from foretune.errors import ForetuneError
from foretune.experience import Experience
from foretune.methods.contracts import Learner, Prior
from foretune.numerics.artifact import load_artifact, save_artifact

ANCESTRY = "ancestry"
KIND, VERSION = "foretune-ancestry", 1
LEAST_TASKS = 200
"""With fewer tasks everything is learnt again."""
MOST_NEW = 0.05
"""The share of tasks that may be new or changed."""
ROOM_TO_GROW = 1.5
"""After the number of tasks has grown by this factor in small steps, all is learnt again."""


def learnt_on_top(
    name: str,
    learner: Learner,
    experience: Experience,
    *,
    seed: int,
    progress: Progress,
    least_tasks: int = LEAST_TASKS,
) -> Prior:
    """Learn with the learner called `name`, starting from its latest prior if that fits."""
    if not learner.can_continue or len(experience.tasks) < least_tasks:
        return learner.learn(experience, seed=seed, progress=progress)
    tasks = fingerprints_of_tasks(experience)
    metrics = [str(metric) for metric in experience.metrics]
    said = f"{name} {experience.space.fingerprint} {metrics} {seed} {version('foretune')}"
    path = cache_path(ANCESTRY, hashlib.sha256(said.encode()).hexdigest()[:40])
    earlier = _ancestor(path, learner, tasks)
    if earlier is None:
        prior, begun_with = learner.learn(experience, seed=seed, progress=progress), len(tasks)
    else:
        older, begun_with = earlier
        prior = learner.continue_from(older, experience, seed=seed, progress=progress)
    with contextlib.suppress(ForetuneError, OSError):
        path.parent.mkdir(parents=True, exist_ok=True)
        _save(path, prior, tasks, begun_with)
    return prior


def fingerprints_of_tasks(experience: Experience) -> dict[str, str]:
    """Return {task: hex}, equal for equal evaluations of a task in equal spaces."""
    found = {}
    for name in experience.tasks:
        rows = experience.rows(name)
        features = experience.meta_features.get(name, {})
        digest = hashlib.sha256(json.dumps(dict(features), sort_keys=True).encode())
        digest.update(experience.configs.values[experience.config_index[rows]].tobytes())
        for column in (experience.values, experience.status, experience.fidelity):
            if column is not None:
                digest.update(np.ascontiguousarray(column[rows]).tobytes())
        found[name] = digest.hexdigest()
    return found


def _ancestor(path: Path, learner: Learner, tasks: Mapping[str, str]) -> tuple[Prior, int] | None:
    """Return the latest prior and the number of tasks it began with; None if the tasks differ."""
    # A damaged file, or one of another version, counts as none.
    with contextlib.suppress(ForetuneError, OSError, KeyError, ValueError, TypeError):
        if not path.is_file():
            return None
        meta, arrays = load_artifact(path, kind=KIND, newest_version=VERSION)
        known: dict[str, str] = meta["tasks"]
        new = sum(known.get(name) != fingerprint for name, fingerprint in tasks.items())
        gone = sum(tasks.get(name) != fingerprint for name, fingerprint in known.items())
        few = max(new, gone) <= MOST_NEW * len(tasks)
        if few and len(tasks) <= ROOM_TO_GROW * meta["begun_with"]:
            with tempfile.TemporaryDirectory() as folder:
                place = Path(folder) / "prior"
                place.write_bytes(arrays["prior"].tobytes())
                return learner.load(place), int(meta["begun_with"])
    return None


def _save(path: Path, prior: Prior, tasks: Mapping[str, str], begun_with: int) -> None:
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder) / "prior"
        prior.save(place)
        content = np.frombuffer(place.read_bytes(), dtype=np.uint8)
    meta = {"tasks": dict(tasks), "begun_with": begun_with}
    save_artifact(path, kind=KIND, version=VERSION, meta=meta, arrays={"prior": content})
