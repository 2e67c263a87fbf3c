"""Learning to rank by boosted trees."""

import numpy as np

from foretune.errors import ArtifactError
from foretune.numerics.lambdamart import Ranker, relevances
from tests.refusals import refuses


def test_relevances_by_hand() -> None:
    """The best of five counts 3, the next 2 and 1, the others nothing; of ties the first."""
    assert relevances(np.array([0.1, 0.9, 0.4, 0.4, -1.0]), 3).tolist() == [0, 3, 2, 1, 0]
    assert relevances(np.array([0.1, 0.9]), 3).tolist() == [2, 3]
    assert relevances(np.empty(0), 3).tolist() == []


def test_the_gain_is_the_square_of_the_relevance() -> None:
    """(k - r + 1)² at the place r (the CASH paper, section 3.3), and NDCG looks at k places."""
    rng = np.random.default_rng(0)
    features = rng.random((60, 2))
    labels = np.concatenate([relevances(-part[:, 0], 3) for part in np.split(features, 6)])
    ranker = Ranker.fit(features, labels, [10] * 6, k=3, seed=0)
    assert "[label_gain: 0,1,4,9]" in ranker.text
    assert "[lambdarank_truncation_level: 3]" in ranker.text
    scores = ranker.scores(np.array([[0.05, 0.5], [0.5, 0.5], [0.95, 0.5]]))
    assert scores[0] > scores[1] >= scores[2]


def test_only_sound_descriptions_are_read() -> None:
    rng = np.random.default_rng(0)
    ranker = Ranker.fit(rng.random((30, 2)), rng.integers(0, 4, 30), [15, 15], k=3, seed=0)
    assert Ranker.read(ranker.text) == ranker
    for old, new in (
        ("split_feature=", "split_feature=99999999 "),
        ("max_feature_idx=1", "max_feature_idx=400000000"),
        ("left_child=", "left_child=12345 "),
    ):
        with refuses("damaged-ranker", kind=ArtifactError):
            Ranker.read(ranker.text.replace(old, new, 1))
