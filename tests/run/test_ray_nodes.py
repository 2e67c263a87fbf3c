"""A real Ray cluster of two machines, as far as Ray can tell, one of which is lost."""

import pytest

from foretune.experience import Status
from foretune.run.ray_pool import RayPool
from tests.run.test_ray_pool import began, note_and_wait


@pytest.fixture
def nodes():
    """The cluster, and its machine that can be taken away."""
    ray = pytest.importorskip("ray")
    from ray.cluster_utils import Cluster

    cluster = Cluster(
        initialize_head=True, head_node_args={"num_cpus": 1, "include_dashboard": False}
    )
    second = cluster.add_node(num_cpus=1)
    ray.init(cluster.address, log_to_driver=False, logging_level="error")
    yield cluster, second
    ray.shutdown()
    cluster.shutdown()


def test_a_lost_machine_loses_no_trial_and_doubles_none(nodes, tmp_path):
    cluster, second = nodes
    with RayPool(note_and_wait, workers=2) as pool:
        keys = {pool.submit((tmp_path, n, n < 2)): n for n in range(5)}
        for name in (0, 1):  # one on each machine
            began(tmp_path, name)
        cluster.remove_node(second, allow_graceful=False)
        (tmp_path / "go").touch()
        found = []
        while batch := pool.results():
            found += batch
    assert sorted(outcome.key for outcome in found) == sorted(keys)
    assert all(outcome.status is Status.DONE for outcome in found)
    assert all(outcome.result == keys[outcome.key] for outcome in found)
    assert sorted(len(began(tmp_path, name)) for name in (0, 1)) == [1, 2]
