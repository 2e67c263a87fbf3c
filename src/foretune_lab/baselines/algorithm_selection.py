"""Algorithms, or whole configurations, selected by rankers on meta-features (CASH paper, C.2).

AS-ML ranks the algorithms for the target's meta-features, and tunes the first one by a Gaussian
process. AHS-ML ranks pairs of an algorithm and its hyperparameters, and tries them from the top of
the list. Both rankers are LambdaMART. Their input is the meta-features of a dataset, and either
the algorithm as a one-hot, or the configuration in the unit cube with 0.5 for inactive values.

Meta-features are equal for all entries of a list, so a split by them at the root of a tree gains
nothing, and LightGBM never tries such a feature again further down. Here every algorithm has its
own columns for them, which are missing for the entries of other algorithms.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from foretune.experience import Experience
from foretune.methods import (
    GaussianProcessSurrogate,
    Learner,
    NoSurrogate,
    PastTask,
    Prior,
    Region,
    Surrogate,
    Target,
    check_space,
    past_tasks,
    require_experience,
)
from foretune.numerics import (
    Bools,
    Floats,
    Ints,
    Ranker,
    load_artifact,
    relevances,
    save_artifact,
    share_of_better,
    standardise,
)
from foretune.plugins import Progress
from foretune.space import Algorithms, Encoded, Space

VERSION = 1
TOP = 10
"""NDCG looks at this number of first places."""
BEST_OF_EACH = 150
"""AHS-ML ranks this number of the best configurations of every past task."""
MOST_LISTED = 9000
"""LightGBM ranks lists of fewer than 10,000 entries."""
MOST_OPENING = 500
"""The number of entries of the ranking list that are tried; random search follows."""


@dataclass(frozen=True, slots=True)
class AlgorithmRegion(Region):
    """The configurations of one algorithm."""

    space: Space
    algorithms: Algorithms
    algorithm: int

    def contains(self, x: Encoded) -> Bools:
        """Return which configurations choose the algorithm."""
        return np.asarray(self.algorithms.algorithm_of(x) == self.algorithm)

    def sample(self, n: int, *, seed: int) -> Encoded:
        """Draw n uniform configurations; the number of draws is the one that gives n on average."""
        drawn = self.space.sample(2 * n * len(self.algorithms), seed=seed)
        return drawn.take(np.flatnonzero(self.contains(drawn))[:n])


@dataclass(frozen=True, slots=True)
class RankedEntries:
    """A list of n entries to be ranked."""

    which: Ints
    """(n,), the algorithms of the entries."""
    inputs: Floats
    """(n, E), the description of the entries beside the dataset."""
    scores: Floats
    """(n,), higher for entries that should come first."""


@dataclass(frozen=True, slots=True)
class AlgorithmRanking:
    """A ranker, and the meta-features that it reads."""

    space: Space
    names: tuple[str, ...]
    ranker: Ranker
    listed: Encoded
    """The configurations to rank if the target has no pool; there may be none."""

    def rank(self, described: Mapping[str, float], which: Ints, entries: Floats) -> Ints:
        """Order entries (n, E) of the algorithms `which` (n,) by how well they suit a dataset."""
        algorithms = len(Algorithms.of(self.space))
        about = _row(described, self.names)
        scores = self.ranker.scores(_features(about, which, algorithms, entries))
        return np.argsort(-scores, kind="stable")

    def save(self, path: Path, kind: str) -> None:
        """Write one safetensors file."""
        arrays: dict[str, NDArray[Any]] = {
            "ranker": np.frombuffer(self.ranker.text.encode(), np.uint8),
            **self.listed.pack(),
        }
        meta = {"space": self.space.to_json(), "names": list(self.names)}
        save_artifact(path, kind=kind, version=VERSION, meta=meta, arrays=arrays)


def load_knowledge(path: Path, kind: str) -> AlgorithmRanking:
    """Load what `Knowledge.save` wrote."""
    meta, arrays = load_artifact(path, kind=kind, newest_version=VERSION)
    space = Space.from_json(meta["space"])
    listed = space.unpack(arrays)
    ranker = Ranker.read(arrays["ranker"].tobytes().decode())
    return AlgorithmRanking(space, tuple(meta["names"]), ranker, listed)


@dataclass(frozen=True, slots=True)
class SelectionPrior(Prior):
    """The prior of AS-ML: which algorithm to tune."""

    knowledge: AlgorithmRanking

    def region(self, target: Target) -> AlgorithmRegion:
        """Return the configurations of the algorithm that is ranked first."""
        check_space(self.knowledge.space, target)
        algorithms = Algorithms.of(target.space)
        every = np.arange(len(algorithms))
        order = self.knowledge.rank(target.meta_features, every, np.eye(len(algorithms)))
        return AlgorithmRegion(target.space, algorithms, int(order[0]))

    def surrogate(self, target: Target) -> Surrogate:
        """Return the plain Gaussian process."""
        check_space(self.knowledge.space, target)
        return GaussianProcessSurrogate.on(standardise, target)

    def save(self, path: Path) -> None:
        """Write the ranker."""
        self.knowledge.save(path, _kind("as-ml"))


@dataclass(frozen=True, slots=True)
class SelectionLearner(Learner):
    """Learns to rank the algorithms by the best loss that each reached on the past tasks."""

    def learn(
        self, experience: Experience | None, *, seed: int, progress: Progress
    ) -> SelectionPrior:
        """Learn from one list for each past task: the algorithms that were tried on it."""
        del progress
        experience = require_experience(experience)
        algorithms = Algorithms.of(experience.space)
        which = algorithms.algorithm_of(experience.configs)

        def entries(task: PastTask) -> RankedEntries:
            tried = np.unique(which[task.rows])
            bests = np.array([task.z[which[task.rows] == m].min() for m in tried])
            return RankedEntries(tried, np.eye(len(algorithms))[tried], -bests)

        nothing = experience.configs.take([])
        return SelectionPrior(_learnt(experience, entries, nothing, seed))

    def load(self, path: Path) -> SelectionPrior:
        """Read a saved ranker."""
        return SelectionPrior(load_knowledge(path, _kind("as-ml")))


@dataclass(frozen=True, slots=True)
class ListPrior(Prior):
    """The prior of AHS-ML: which configurations to try, in order."""

    knowledge: AlgorithmRanking

    def opening(self, target: Target) -> Encoded:
        """Return the ranking list: the pool's, or that of the best of past tasks."""
        check_space(self.knowledge.space, target)
        configs = self.knowledge.listed if target.pool is None else target.pool
        which = Algorithms.of(target.space).algorithm_of(configs)
        order = self.knowledge.rank(target.meta_features, which, configs.x)
        return configs.take(order[:MOST_OPENING])

    def surrogate(self, target: Target) -> Surrogate:
        """Return None, because random search follows the list."""
        check_space(self.knowledge.space, target)
        return NoSurrogate()

    def save(self, path: Path) -> None:
        """Write the ranker and its candidates."""
        self.knowledge.save(path, _kind("ahs-ml"))


@dataclass(frozen=True, slots=True)
class ListLearner(Learner):
    """Learns to rank configurations by their losses on the past tasks."""

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> ListPrior:
        """Learn from one list for each past task, as long as LightGBM allows."""
        del progress
        experience = require_experience(experience)
        rng = np.random.default_rng(seed)

        which = Algorithms.of(experience.space).algorithm_of(experience.configs)

        def entries(task: PastTask) -> RankedEntries:
            part = task.subsample(MOST_LISTED, rng)
            return RankedEntries(which[part.rows], experience.configs.take(part.rows).x, -part.z)

        best = [
            task.rows[np.argsort(task.z, kind="stable")[:BEST_OF_EACH]]
            for task in past_tasks(experience, share_of_better)
        ]
        listed = experience.configs.take(np.unique(np.concatenate(best)))
        return ListPrior(_learnt(experience, entries, listed, seed))

    def load(self, path: Path) -> ListPrior:
        """Read a saved ranker."""
        return ListPrior(load_knowledge(path, _kind("ahs-ml")))


def _learnt(
    experience: Experience,
    entries: Callable[[PastTask], RankedEntries],
    listed: Encoded,
    seed: int,
) -> AlgorithmRanking:
    """Learn a ranker from one list for each past task; `entries` makes a list."""
    algorithms = len(Algorithms.of(experience.space))
    named = [name for name in experience.tasks if experience.task(name).is_success.any()]
    described = [experience.meta_features.get(name, {}) for name in named]
    names = tuple(sorted({name for each in described for name in each}))
    features, labels, lengths = [], [], []
    for about, task in zip(described, past_tasks(experience, share_of_better), strict=True):
        listed_here = entries(task)
        which, inputs = listed_here.which, listed_here.inputs
        features.append(_features(_row(about, names), which, algorithms, inputs))
        labels.append(relevances(listed_here.scores, TOP))
        lengths.append(len(which))
    ranker = Ranker.fit(np.concatenate(features), np.concatenate(labels), lengths, k=TOP, seed=seed)
    return AlgorithmRanking(experience.space, names, ranker, listed)


def _row(described: Mapping[str, float], names: Sequence[str]) -> Floats:
    """Return (F,), with NaN for unknown meta-features."""
    return np.array([described.get(name, np.nan) for name in names], dtype=np.float64)


def _features(about: Floats, which: Ints, algorithms: int, entries: Floats) -> Floats:
    """Return (n, M F + E): a dataset's meta-features in the columns of each entry's algorithm."""
    blocks = np.full((len(which), algorithms, len(about)), np.nan)
    blocks[np.arange(len(which)), which] = about
    return np.column_stack([blocks.reshape(len(which), -1), entries])


def _kind(name: str) -> str:
    return f"foretune-{name}"


def as_ml() -> SelectionLearner:
    """Make the learner of AS-ML."""
    return SelectionLearner()


def ahs_ml() -> ListLearner:
    """Make the learner of AHS-ML."""
    return ListLearner()
