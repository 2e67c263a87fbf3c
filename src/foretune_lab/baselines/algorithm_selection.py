"""Algorithms, or whole configurations, selected by rankers on meta-features (CASH paper, C.2).

AS-ML ranks the algorithms for the target's meta-features and tunes the first one by a Gaussian
process. AHS-ML ranks pairs of an algorithm and its hyperparameters and tries them from the top of
the list. Both rankers are LambdaMART, whose input is the meta-features of a dataset, and the
algorithm as a one-hot, or the configuration in the unit cube with 0.5 for what is inactive.

Meta-features are alike for all entries of a list, so at the root of a tree no split by them gains
anything; LightGBM never tries such a feature again further down. Here every algorithm has columns
of its own for them, which are missing for the entries of other algorithms.
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
"""NDCG looks at so many of the first places."""
BEST_OF_EACH = 150
"""Candidates of AHS-ML are so many of the best configurations of every past task."""
MOST_LISTED = 9000
"""LightGBM ranks lists of fewer than 10,000 entries."""
MOST_OPENING = 500
"""The ranking list is tried so far; after it comes random search."""


@dataclass(frozen=True, slots=True)
class AlgorithmRegion(Region):
    """The configurations of one algorithm."""

    space: Space
    algorithms: Algorithms
    algorithm: int

    def contains(self, x: Encoded) -> Bools:
        """Which configurations choose the algorithm."""
        return np.asarray(self.algorithms.algorithm_of(x) == self.algorithm)

    def sample(self, n: int, *, seed: int) -> Encoded:
        """Uniform ones, of as many draws as it takes on average to find n."""
        drawn = self.space.sample(2 * n * len(self.algorithms), seed=seed)
        return drawn.take(np.flatnonzero(self.contains(drawn))[:n])


@dataclass(frozen=True, slots=True)
class RankedEntries:
    """A list of n entries to be ranked."""

    which: Ints
    """(n,), their algorithms."""
    inputs: Floats
    """(n, E), what describes them beside the dataset."""
    scores: Floats
    """(n,), higher for what should come first."""


@dataclass(frozen=True, slots=True)
class AlgorithmRanking:
    """A ranker, and the meta-features that it reads."""

    space: Space
    names: tuple[str, ...]
    ranker: Ranker
    listed: Encoded
    """Configurations that a list is made of where the target has no pool; perhaps none."""

    def rank(self, described: Mapping[str, float], which: Ints, entries: Floats) -> Ints:
        """The order in which entries (n, E) of the algorithms `which` (n,) suit a dataset best."""
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
    """What `Knowledge.save` wrote."""
    meta, arrays = load_artifact(path, kind=kind, newest_version=VERSION)
    space = Space.from_json(meta["space"])
    listed = space.unpack(arrays)
    ranker = Ranker.read(arrays["ranker"].tobytes().decode())
    return AlgorithmRanking(space, tuple(meta["names"]), ranker, listed)


@dataclass(frozen=True, slots=True)
class SelectionPrior(Prior):
    """AS-ML: which algorithm to tune."""

    knowledge: AlgorithmRanking

    def region(self, target: Target) -> AlgorithmRegion:
        """The configurations of the algorithm that is ranked first."""
        check_space(self.knowledge.space, target)
        algorithms = Algorithms.of(target.space)
        every = np.arange(len(algorithms))
        order = self.knowledge.rank(target.meta_features, every, np.eye(len(algorithms)))
        return AlgorithmRegion(target.space, algorithms, int(order[0]))

    def surrogate(self, target: Target) -> Surrogate:
        """The plain Gaussian process."""
        check_space(self.knowledge.space, target)
        return GaussianProcessSurrogate.on(standardise, target)

    def save(self, path: Path) -> None:
        """Write the ranker."""
        self.knowledge.save(path, _kind("as-ml"))


@dataclass(frozen=True, slots=True)
class SelectionLearner(Learner):
    """Learns to rank the algorithms by the best that each reached on the past tasks."""

    def learn(
        self, experience: Experience | None, *, seed: int, progress: Progress
    ) -> SelectionPrior:
        """One list a past task, of the algorithms that were tried on it."""
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
    """AHS-ML: which configurations to try, in order."""

    knowledge: AlgorithmRanking

    def opening(self, target: Target) -> Encoded:
        """The ranking list: of the pool where there is one, else of past tasks' best."""
        check_space(self.knowledge.space, target)
        configs = self.knowledge.listed if target.pool is None else target.pool
        which = Algorithms.of(target.space).algorithm_of(configs)
        order = self.knowledge.rank(target.meta_features, which, configs.x)
        return configs.take(order[:MOST_OPENING])

    def surrogate(self, target: Target) -> Surrogate:
        """None: what comes after the list is random search."""
        check_space(self.knowledge.space, target)
        return NoSurrogate()

    def save(self, path: Path) -> None:
        """Write the ranker and its candidates."""
        self.knowledge.save(path, _kind("ahs-ml"))


@dataclass(frozen=True, slots=True)
class ListLearner(Learner):
    """Learns to rank configurations by their losses on the past tasks."""

    def learn(self, experience: Experience | None, *, seed: int, progress: Progress) -> ListPrior:
        """One list a past task, of the evaluations that LightGBM's limit leaves it."""
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
    """A ranker of lists, one a past task; `entries` gives what a list holds."""
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
    """(F,), NaN for what is not known."""
    return np.array([described.get(name, np.nan) for name in names], dtype=np.float64)


def _features(about: Floats, which: Ints, algorithms: int, entries: Floats) -> Floats:
    """(n, M F + E): a dataset's meta-features in the columns of each entry's algorithm."""
    blocks = np.full((len(which), algorithms, len(about)), np.nan)
    blocks[np.arange(len(which)), which] = about
    return np.column_stack([blocks.reshape(len(which), -1), entries])


def _kind(name: str) -> str:
    return f"foretune-{name}"


def as_ml() -> SelectionLearner:
    """The learner of AS-ML."""
    return SelectionLearner()


def ahs_ml() -> ListLearner:
    """The learner of AHS-ML."""
    return ListLearner()
