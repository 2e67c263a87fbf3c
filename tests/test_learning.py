"""What learners share."""

import numpy as np

from foretune.experience import Experience, Metric
from foretune.methods.contracts import Target
from foretune.methods.past_data import (
    CHUNK,
    Catalogue,
    ReadLimits,
    fair_shares,
    past_tasks,
    successes,
    trial_shares,
)
from foretune.numerics.scores import midrank_shares, smooth_shares
from foretune.numerics.transforms import standardise
from foretune.space import Encoded, Space

SPACE = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0)})


class TestCatalogue:
    def test_finds_known_configurations_and_the_nearest_of_others(self) -> None:
        known = SPACE.encode([{"a": 0.1, "b": 0.1}, {"a": 0.9, "b": 0.9}])
        asked = SPACE.encode([{"a": 0.9, "b": 0.9}, {"a": 0.2, "b": 0.3}, {"a": 0.1, "b": 0.1}])
        np.testing.assert_array_equal(Catalogue(known).rows(asked), [1, 0, 0])

    def test_many_are_compared_in_parts(self) -> None:
        known, others = SPACE.sample(10, seed=0), SPACE.sample(2 * CHUNK + 40, seed=1)
        distances = np.linalg.norm(others.x[:, None] - known.x, axis=2)
        rows = Catalogue(known).rows(Encoded.concat([others, known]))
        np.testing.assert_array_equal(rows, [*distances.argmin(axis=1), *range(10)])


def test_trials_of_a_described_task_are_scored_by_rank() -> None:
    assert trial_shares(Target(SPACE)) is smooth_shares
    assert trial_shares(Target(SPACE, meta_features={"log_rows": 2.0})) is midrank_shares


def test_large_tasks_are_sampled_fairly_and_reproducibly() -> None:
    limits = ReadLimits(most=40, least=5)
    large, small = fair_shares([1000, 10], limits)
    assert len(set(large.tolist())) == 20
    assert 300 < large.mean() < 700
    assert sorted(small.tolist()) == list(range(10))
    np.testing.assert_array_equal(fair_shares([1000, 10], limits)[0], large)
    assert [len(rows) for rows in fair_shares([1000, 10], ReadLimits(4, 5))] == [5, 5]


def test_a_configuration_is_learnt_from_at_its_highest_fidelity() -> None:
    """At the low fidelity the first looks best; in truth the second is."""
    experience = Experience.build(
        SPACE,
        [Metric("error")],
        ["task"],
        task_index=np.zeros(5, dtype=int),
        configs=SPACE.encode([{"a": 0.1, "b": 0.1}, {"a": 0.9, "b": 0.9}]),
        config_index=[0, 1, 0, 1, 1],
        values=np.array([[0.01], [0.5], [0.9], [0.1], [0.3]]),
        fidelity=[0.1, 0.1, 1.0, 1.0, 1.0],
    )
    ((rows, losses),) = successes(experience)
    assert rows.tolist() == [0, 1, 1]
    assert losses[:, 0].tolist() == [0.9, 0.1, 0.3]
    assert past_tasks(experience, standardise)[0].best == 1
