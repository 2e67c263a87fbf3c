"""The pre-trained embeddings of several sources, and which of them suits a target (section 3.3)."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from foretune.arrays import Floats, Ints
from foretune.learning import PastTask
from foretune.methods.latent.embedding import Embedding
from foretune.numerics.coregion import HyperPrior, surprise
from foretune.numerics.lambdamart import Ranker, relevances
from foretune.space import Encoded

BOWL = (0.7, 0.5)
"""Mode and spread of the prior over the bowl's slope, for losses of standard deviation 1."""
PICKS = 20
"""A source is judged by the best of a pseudo target's evaluations among its first picks."""
TOP = 10
"""NDCG looks at so many of the first places."""


@dataclass(frozen=True, slots=True)
class MetaFeatures:
    """Descriptions of S datasets."""

    names: tuple[str, ...]
    table: Floats
    """(S, F), NaN where unknown."""

    @classmethod
    def of(cls, described: Sequence[Mapping[str, float]]) -> "MetaFeatures":
        """All that is known of any of the datasets."""
        names = tuple(sorted({name for each in described for name in each}))
        rows = [[each.get(name, np.nan) for name in names] for each in described]
        return cls(names, np.array(rows, dtype=np.float64).reshape(len(rows), len(names)))

    def distances(self, described: Mapping[str, float]) -> Floats:
        """(S, F): |x_meta(target) - x_meta(source)|, NaN where either is unknown.

        Each meta-feature counts by its rank among the sources, so that neither its unit nor a few
        huge datasets decide how near two of them are.
        """
        target = np.array([described.get(name, np.nan) for name in self.names])
        return np.abs(self._ranks(self.table) - self._ranks(target[None, :]))

    def _ranks(self, table: Floats) -> Floats:
        """The share of sources with a smaller value, ties by half."""
        ranks = np.full(table.shape, np.nan)
        for column, known in enumerate(self.table.T):
            ordered = np.sort(known[~np.isnan(known)])
            sides = [np.searchsorted(ordered, table[:, column], side=s) for s in ("left", "right")]
            ranks[:, column] = np.mean(sides, axis=0) / max(len(ordered), 1)
        return np.where(np.isnan(table), np.nan, ranks)


def early_success(order: Floats, task: PastTask) -> float:
    """How good the task's evaluations are that `order` (n,), lower first, puts first.

    The mean over the first picks of the best rank so far, negated: what Score_tau(s) of section
    3.3 is for an optimiser that trusts the source's bowl and never learns.
    """
    picks = np.argsort(order, kind="stable")[:PICKS]
    return -float(np.minimum.accumulate(task.z[picks]).mean())


def fit_ranker(
    embeddings: Sequence[Embedding],
    tasks: Sequence[PastTask],
    configs: Encoded,
    meta_features: MetaFeatures,
    *,
    seed: int,
) -> Ranker:
    """Algorithm 2: every source is a pseudo target once, for which the others are ranked."""
    n = len(tasks)
    bowls = np.stack([np.square(each.place(configs)).sum(axis=1) for each in embeddings])
    k = min(TOP, n - 1)
    features, labels = [], []
    for target, task in enumerate(tasks):
        others = np.flatnonzero(np.arange(n) != target)
        scores = np.array([early_success(bowls[source, task.rows], task) for source in others])
        described = dict(
            zip(meta_features.names, meta_features.table[target].tolist(), strict=True)
        )
        features.append(meta_features.distances(described)[others])
        labels.append(relevances(scores, k))
    stacked, lists = np.concatenate(features), [n - 1] * n
    return Ranker.fit(stacked, np.concatenate(labels), lists, k=k, seed=seed)


def most_likely(embeddings: Sequence[Embedding], configs: Encoded, z: Floats) -> int:
    """The embedding with which the process, not yet fitted, least wonders at z (n,)."""
    algorithms = embeddings[0].algorithms
    which: Ints = algorithms.chosen(configs)
    mode = HyperPrior.of(len(algorithms), BOWL).mode
    surprises = [surprise(mode, each.place(configs), which, z).value for each in embeddings]
    return int(np.argmin(surprises))
