"""The past tasks' best configurations, which some baselines open with or stay near."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

import numpy as np

from foretune.experience import Experience
from foretune.methods import Learner, PastTask, Prior, past_tasks, require_experience
from foretune.numerics import Floats, Ints, keep_losses, load_artifact, save_artifact, standardise
from foretune.plugins import Progress
from foretune.space import Encoded, Space

VERSION = 1
MadeOf = TypeVar("MadeOf", bound=Prior)


@dataclass(frozen=True, slots=True)
class BestOfEachLearner(Learner, Generic[MadeOf]):
    """Finds the best configuration of each past task, and makes a prior of them."""

    kind: str
    """The kind of the artifact that keeps them."""
    prior: Callable[[Encoded], MadeOf]

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> MadeOf:
        """Find the best configurations; nothing here is random."""
        del seed, progress
        experience = require_experience(experience)
        rows = best_of_each(order_tasks(experience))
        return self.prior(experience.configs.take(rows))

    def load(self, path: Path) -> MadeOf:
        """Read saved configurations."""
        return self.prior(load_configs(path, self.kind))


def order_tasks(experience: Experience) -> list[PastTask]:
    """Return past tasks with z that orders evaluations: one loss unchanged, several standardised.

    If one loss were standardised, all losses beside an enormous one would be equal.
    """
    return past_tasks(experience, keep_losses if len(experience.metrics) == 1 else standardise)


def best_of_each(tasks: Sequence[PastTask]) -> Ints:
    """Return the best configuration of each task without repeats, first those good on most tasks.

    A configuration's order is its mean rank over all tasks: the share of a task's evaluations that
    were better, or 0.5 if it was not evaluated.
    """
    best = np.unique([task.best for task in tasks])
    shares = [_share_of_better(task, best) for task in tasks]
    return np.asarray(best[np.argsort(np.mean(shares, axis=0), kind="stable")])


def _share_of_better(task: PastTask, rows: Ints) -> Floats:
    """Return (len(rows),) for ascending `rows` of the experience's configurations."""
    shares = np.full(len(rows), 0.5)
    own = np.flatnonzero(np.isin(task.rows, rows))
    better = np.searchsorted(np.sort(task.z), task.z[own]) / len(task.z)
    shares[np.searchsorted(rows, task.rows[own])] = better
    return shares


def save_configs(path: Path, kind: str, configs: Encoded) -> None:
    """Write configurations and their space as an artifact of this kind."""
    meta = {"space": configs.space.to_json()}
    save_artifact(path, kind=kind, version=VERSION, meta=meta, arrays=configs.pack())


def load_configs(path: Path, kind: str) -> Encoded:
    """Load what `save_configs` wrote."""
    meta, arrays = load_artifact(path, kind=kind, newest_version=VERSION)
    return Space.from_json(meta["space"]).unpack(arrays)
