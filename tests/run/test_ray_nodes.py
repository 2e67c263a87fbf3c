"""A real Ray cluster of two machines, as far as Ray can tell, one of which is lost."""

import pytest

from foretune.experience import Status
from foretune.run.ray_pool import RayPool
from foretune.run.reports import TrialStart
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


def count_up(folder, trial):
    """Report steps from where the checkpoint is, and write one after each."""
    checkpoint = trial.folder / "step"
    first = int(checkpoint.read_text()) + 1 if checkpoint.exists() else 1
    for step in range(first, 9):
        checkpoint.write_text(str(step))
        trial.report(step, float(step))
        if trial.should_stop():
            break
    return first


def test_a_paused_trial_outlives_the_machine_on_which_it_ran(nodes, tmp_path):
    cluster, second = nodes
    steps = []

    def hear(key, reports):
        steps.extend(report.step for report in reports)
        return 3 <= steps[-1] < 8

    with RayPool(count_up, workers=1) as pool:
        pool.listen(hear)
        pool.submit(None, TrialStart(0, str(tmp_path / "0")))
        (paused,) = pool.results()
        assert paused.facts.saw_stop
        last = steps[-1]
        cluster.remove_node(second, allow_graceful=False)
        steps_before, steps[:] = list(steps), [8.0]  # the answer is to go on
        pool.submit(None, TrialStart(0, str(tmp_path / "0"), last))
        (ended,) = pool.results()
    assert (ended.result, ended.facts.repeated_reports) == (last + 1, 0)
    assert steps_before + steps[1:] == [float(n) for n in range(1, 9)]


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
