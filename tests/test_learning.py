"""What learners share."""

import numpy as np

from foretune import learning
from foretune.contracts import Target
from foretune.learning import Catalogue, trial_shares
from foretune.numerics.scores import midrank_shares, smoothed_shares
from foretune.space import Encoded, Space

SPACE = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0)})


class TestCatalogue:
    def test_finds_known_configurations_and_the_nearest_of_others(self) -> None:
        known = SPACE.encode([{"a": 0.1, "b": 0.1}, {"a": 0.9, "b": 0.9}])
        asked = SPACE.encode([{"a": 0.9, "b": 0.9}, {"a": 0.2, "b": 0.3}, {"a": 0.1, "b": 0.1}])
        np.testing.assert_array_equal(Catalogue(known).rows(asked), [1, 0, 0])

    def test_many_are_compared_in_parts(self, monkeypatch) -> None:
        monkeypatch.setattr(learning, "CHUNK", 7)
        known, others = SPACE.sample(10, seed=0), SPACE.sample(40, seed=1)
        distances = np.linalg.norm(others.x[:, None] - known.x, axis=2)
        rows = Catalogue(known).rows(Encoded.concat([others, known]))
        np.testing.assert_array_equal(rows, [*distances.argmin(axis=1), *range(10)])


def test_trials_of_a_described_task_are_scored_by_rank() -> None:
    assert trial_shares(Target(SPACE)) is smoothed_shares
    assert trial_shares(Target(SPACE, meta_features={"log_rows": 2.0})) is midrank_shares
