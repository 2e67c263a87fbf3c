"""Past tasks as the transfer baselines read them, and the spaces that their priors hold for."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from foretune.arrays import Floats, Ints
from foretune.contracts import Target
from foretune.errors import MethodError
from foretune.experience import Experience
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.numerics.objectives import scalarise
from foretune.space import Encoded, Space

VERSION = 1


@dataclass(frozen=True, slots=True)
class PastTask:
    """The n successful evaluations of one past task, at least one of them."""

    rows: Ints
    """(n,), the evaluated rows of the experience's configurations."""
    z: Floats
    """(n,), all objectives in one, in the unit of the method's output transform."""

    @property
    def best(self) -> int:
        """The configuration of the lowest loss, as a row of the experience's; the first of ties."""
        return int(self.rows[np.argmin(self.z)])

    def subsample(self, size: int, rng: np.random.Generator) -> "PastTask":
        """At most `size` of the evaluations, drawn at random."""
        if len(self.rows) <= size:
            return self
        drawn = np.sort(rng.choice(len(self.rows), size, replace=False))
        return PastTask(self.rows[drawn], self.z[drawn])


def past_tasks(experience: Experience, output: Callable[[Floats], Floats]) -> list[PastTask]:
    """Every task that has a success; `output` transforms the losses of each task on their own."""
    tasks = []
    for name in experience.tasks:
        records = experience.task(name)
        done = np.flatnonzero(records.succeeded)
        if len(done):
            rows = records.config_index[done].astype(np.int64)
            tasks.append(PastTask(rows, scalarise(records.losses[done], output)))
    if not tasks:
        raise MethodError(
            "a method that transfers needs a past task with a successful evaluation, but none of "
            f"the {len(experience.tasks)} tasks has one: give other experience"
        )
    return tasks


def given(experience: Experience | None) -> Experience:
    """The experience, which a method that transfers cannot do without."""
    if experience is None:
        raise MethodError(
            "a method that transfers learns from past tasks, but got no experience: give one"
        )
    return experience


def best_of_each(tasks: Sequence[PastTask]) -> Ints:
    """The best configuration of each task, each once; those come first that are good on most.

    A configuration's order is its mean rank over all tasks: the share of a task's evaluations
    that were better, and a half where it was not evaluated.
    """
    best = np.unique([task.best for task in tasks])
    shares = [_share_of_better(task, best) for task in tasks]
    return np.asarray(best[np.argsort(np.mean(shares, axis=0), kind="stable")])


def _share_of_better(task: PastTask, rows: Ints) -> Floats:
    """(len(rows),) for ascending `rows` of the experience's configurations."""
    shares = np.full(len(rows), 0.5)
    own = np.flatnonzero(np.isin(task.rows, rows))
    better = np.searchsorted(np.sort(task.z), task.z[own]) / len(task.z)
    shares[np.searchsorted(rows, task.rows[own])] = better
    return shares


def check_space(learnt_on: Space, target: Target) -> None:
    """Refuse a target whose space is not the one that a prior was learnt on."""
    if target.space != learnt_on:
        raise MethodError(
            "a prior holds for the space it was learnt on, but it was learnt on "
            f"{_described(learnt_on)} and the target has {_described(target.space)}: learn from "
            "experience in the target's space"
        )


def _described(space: Space) -> str:
    return f"{space!r} with fingerprint {space.fingerprint[:8]}"


def save_configs(path: Path, kind: str, configs: Encoded) -> None:
    """Write configurations and their space as an artifact of this kind."""
    # Artifacts hold no NaN, so what is inactive is marked apart.
    arrays = {"values": np.nan_to_num(configs.values), "active": configs.active}
    meta = {"space": configs.space.to_json()}
    save_artifact(path, kind=kind, version=VERSION, meta=meta, arrays=arrays)


def load_configs(path: Path, kind: str) -> Encoded:
    """What `save_configs` wrote."""
    meta, arrays = load_artifact(path, kind=kind, newest_version=VERSION)
    values = np.where(arrays["active"], arrays["values"], np.nan)
    return Space.from_json(meta["space"]).from_values(values)
