"""The pre-trained embeddings of several sources, and which of them suits a target (section 3.3)."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import rankdata

from foretune._base.arrays import Floats, Ints
from foretune.methods.latent.embedding import AlgorithmEmbedding, Bowls
from foretune.methods.past_data import PastTask
from foretune.numerics.lambdamart import Ranker, relevances
from foretune.space import Encoded

TOP = 10
"""The number of first places that NDCG uses."""
PANEL, ONE_IN = 8, 4
"""The most sources for a target, but at most a quarter of all."""
RANKING_WEIGHT = 0.1
"""The weight of the ranking model's first place, in units of rank correlation."""


@dataclass(frozen=True, slots=True)
class MetaFeatures:
    """Descriptions of S datasets."""

    names: tuple[str, ...]
    table: Floats
    """(S, F), NaN where unknown."""

    @classmethod
    def of(cls, described: Sequence[Mapping[str, float]]) -> "MetaFeatures":
        """Return all meta-features that any of the datasets has."""
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


def agreement(bowl: Floats, losses: Floats) -> float:
    """Return Spearman's correlation of a bowl (n,) with losses (n,), or 0 if one is constant."""
    ranks = [rankdata(values) - 0.5 * (len(values) + 1) for values in (bowl, losses)]
    lengths = [float(np.linalg.norm(each)) for each in ranks]
    if min(lengths) == 0.0:
        return 0.0
    return float(ranks[0] @ ranks[1]) / (lengths[0] * lengths[1])


def fit_ranker(
    embeddings: Sequence[AlgorithmEmbedding],
    tasks: Sequence[PastTask],
    configs: Encoded,
    meta_features: MetaFeatures,
    *,
    seed: int,
    score: Callable[[Floats, Floats], float] = agreement,
    fit: Callable[..., Ranker] = Ranker.fit,
) -> Ranker:
    """Learn to rank sources (Algorithm 2). Each source is the target once; the others are ranked.

    score: Score_tau(s) of the bowl (n,) of s at the evaluations of tau, whose losses are (n,).
    """
    n = len(tasks)
    bowls = Bowls.of(embeddings)(configs)
    k = min(TOP, n - 1)
    features, labels = [], []
    for target, task in enumerate(tasks):
        others = np.flatnonzero(np.arange(n) != target)
        scores = np.array([score(bowls[task.rows, source], task.z) for source in others])
        described = dict(
            zip(meta_features.names, meta_features.table[target].tolist(), strict=True)
        )
        features.append(meta_features.distances(described)[others])
        labels.append(relevances(scores, k))
    stacked, lists = np.concatenate(features), [n - 1] * n
    return fit(stacked, np.concatenate(labels), lists, k=k, seed=seed)


def panel(
    embeddings: Sequence[AlgorithmEmbedding], preferences: Floats, configs: Encoded, losses: Floats
) -> tuple[int, ...]:
    """Return the sources that order a target's trials most as their losses (n,) do, best first.

    preferences: (S,), from 0 to 1 for the source that the ranking model puts first.
    """
    votes = RANKING_WEIGHT * preferences + np.array(
        [agreement(bowl, losses) for bowl in Bowls.of(embeddings)(configs).T]
    )
    size = max(min(PANEL, len(embeddings) // ONE_IN), 1)
    chosen: Ints = np.argsort(-votes, kind="stable")[:size]
    return tuple(chosen.tolist())
