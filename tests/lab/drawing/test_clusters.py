import numpy as np
import pytest

from foretune_lab.drawing.clusters import cluster_metric


def test_clusters_that_lie_apart() -> None:
    phi = np.array([[0.0, 0.0], [0.0, 1.0], [10.0, 0.0], [10.0, 1.0]])
    assert cluster_metric(phi, np.array([0, 0, 1, 1]), seed=0) == 1.0
    # Each one's own kind is 10 away; of the others, one is 1 away and one is further.
    metric = cluster_metric(phi, np.array([0, 1, 0, 1]), seed=0, triples=200_000)
    assert metric == pytest.approx(0.5, abs=0.01)


def test_a_line_by_hand() -> None:
    """Kinds a a b at 0, 1, 3: (l, m, n) = (0, 1, 2) has 1 < 2 and (1, 0, 2) has 1 < 3."""
    assert cluster_metric(np.array([[0.0], [1.0], [3.0]]), np.array([0, 0, 1]), seed=0) == 1.0
    # At 0, 2, 3: 2 < 1 is false, 2 < 3 is true.
    metric = cluster_metric(np.array([[0.0], [2.0], [3.0]]), np.array([0, 0, 1]), seed=0)
    assert metric == pytest.approx(0.5, abs=0.02)
    # At 0, 1, 2: what is as far is not nearer.
    metric = cluster_metric(np.array([[0.0], [1.0], [2.0]]), np.array([0, 0, 1]), seed=0)
    assert metric == pytest.approx(0.5, abs=0.02)


def test_distances_are_euclidean() -> None:
    """The mate is sqrt(8) away; from one of the two the other kind is 3 away, else sqrt(5)."""
    phi = np.array([[0.0, 0.0], [2.0, 2.0], [3.0, 0.0]])
    metric = cluster_metric(phi, np.array([0, 0, 1]), seed=0)
    assert metric == pytest.approx(0.5, abs=0.02)


def test_triples_are_drawn_by_the_seed() -> None:
    phi, kinds = np.random.default_rng(0).standard_normal((20, 2)), np.arange(20) % 3
    one, same, other = (cluster_metric(phi, kinds, seed=seed, triples=500) for seed in (0, 0, 1))
    assert one == same != other
