"""The cluster metric of DeepPipe, Experiment 5: how often a pipeline of the same kind is nearer."""

import numpy as np

from foretune.numerics import Floats, Ints

TRIPLES = 100_000


def cluster_metric(phi: Floats, kinds: Ints, *, seed: int, triples: int = TRIPLES) -> float:
    """Return the probability that |phi_l - phi_m| < |phi_m - phi_n|, from random triples.

    l and m are two different pipelines of one kind, n is one of another kind. phi (n, latent) are
    the embeddings, kinds (n,) the algorithms of one stage.
    """
    rng = np.random.default_rng(seed)
    one, mate, other = (rng.integers(len(phi), size=triples) for _ in range(3))
    fits = (kinds[one] == kinds[mate]) & (one != mate) & (kinds[mate] != kinds[other])
    near = np.linalg.norm(phi[one[fits]] - phi[mate[fits]], axis=1)
    far = np.linalg.norm(phi[mate[fits]] - phi[other[fits]], axis=1)
    return float((near < far).mean())
