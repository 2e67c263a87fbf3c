import numpy as np
import pytest

from foretune.methods.latent.embedding import AlgorithmEmbedding, random_stack
from foretune.methods.latent.sources import MetaFeatures, agreement, fit_ranker, panel
from foretune.methods.past_data import PastTask
from foretune.numerics.lambdamart import Ranker
from tests.methods.latent.examples import ALGORITHMS, SPACE, losses

NAN = float("nan")


def bowl_about(optimum: float) -> AlgorithmEmbedding:
    """An embedding by hand, whose |u| is the distance of the flexibility to `optimum`."""
    weights, biases = (np.array(array) for array in random_stack(ALGORITHMS, 0)[0])
    weights[:], biases[:] = 0.0, 0.0
    # Units 0 and 1 are the two sides of flexibility - optimum.
    flexibility = {0: ((0.5, -0.5), 0.5), 1: ((-1.0, 0.0), 1.0), 2: ((0.0, 0.0), optimum + 0.55)}
    for m, (slopes, offset) in flexibility.items():
        for unit, sign in enumerate((1.0, -1.0)):
            weights[m, :, unit] = sign * np.array(slopes)
            biases[m, unit] = sign * (offset - optimum)
    same = np.zeros((3, 32, 32))
    same[:, 0, 0] = same[:, 1, 1] = 1.0
    last = np.zeros((3, 32, 3))
    last[:, 0, 0], last[:, 1, 0] = 3.0, -3.0
    stack = ((weights, biases), (same, np.zeros((3, 32))), (last, np.zeros((3, 3))))
    return AlgorithmEmbedding(ALGORITHMS, stack)


def test_distances_of_meta_features_by_hand() -> None:
    """Ranks among 10, 20, 1000: each value has a share of smaller ones, half of its ties."""
    table = MetaFeatures.of([{"n": 10.0}, {"n": 20.0, "p": 3.0}, {"n": 1000.0}])
    assert table.names == ("n", "p")
    found = table.distances({"n": 20.0, "other": 1.0})
    np.testing.assert_allclose(found[:, 0], [1 / 3, 0.0, 1 / 3])
    assert np.isnan(found[:, 1]).all()


def test_agreement_is_the_correlation_of_ranks() -> None:
    """Ranks 1 2 3 4 against 1 3 2 4: 1 - 6 (1 + 1) / (4 * 15) = 0.8, whatever the values."""
    bowl, losses_ = np.array([0.0, 1.0, 50.0, 51.0]), np.array([1.0, 3.0, 2.0, 9.0])
    assert agreement(bowl, losses_) == pytest.approx(0.8)
    assert agreement(-bowl, losses_) == pytest.approx(-0.8)
    assert agreement(bowl, np.ones(4)) == 0.0


def test_the_first_trials_speak_for_the_source_that_made_them() -> None:
    embeddings = [bowl_about(optimum) for optimum in (0.1, 0.5, 0.9)]
    configs = SPACE.sample(20, seed=4)
    for source, optimum in enumerate((0.1, 0.5, 0.9)):
        assert panel(embeddings, np.zeros(3), configs, losses(configs, optimum)) == (source,)


def test_a_panel_is_the_nearest_quarter_of_the_sources() -> None:
    optima = [0.1, 0.2, 0.3, 0.4, 0.6, 0.7, 0.8, 0.9]
    configs = SPACE.sample(40, seed=4)
    y = losses(configs, 0.32)
    heard = panel([bowl_about(optimum) for optimum in optima], np.zeros(8), configs, y)
    assert set(heard) == {2, 3}


def test_the_ranking_model_decides_where_trials_do_not() -> None:
    embeddings = [bowl_about(optimum) for optimum in (0.1, 0.5, 0.9)]
    configs = SPACE.sample(20, seed=4)
    assert panel(embeddings, np.array([0.3, 1.0, 0.7]), configs, np.ones(20)) == (1,)


def test_the_ranking_model_has_a_small_say() -> None:
    """Its first place counts a tenth of full agreement more than its last."""
    embeddings = [bowl_about(optimum) for optimum in (0.1, 0.5, 0.9)]
    configs = SPACE.sample(20, seed=4)
    y = losses(configs, 0.5)
    bowls = [embedding.bowl(configs) for embedding in embeddings]
    lead = agreement(bowls[1], y) - agreement(bowls[0], y)
    assert lead > 0.2
    assert panel(embeddings, np.array([1.0, 0.0, 0.0]), configs, y) == (1,)
    assert panel(embeddings, np.array([10.1 * lead, 0.0, 0.0]), configs, y) == (0,)
    assert panel(embeddings, np.array([9.9 * lead, 0.0, 0.0]), configs, y) == (1,)


def test_no_more_than_eight_sources_are_heard() -> None:
    embeddings = [bowl_about(optimum) for optimum in np.linspace(0.1, 0.9, 40)]
    configs = SPACE.sample(20, seed=4)
    assert len(panel(embeddings, np.zeros(40), configs, losses(configs, 0.5))) == 8


def test_each_source_is_ranked_for_the_others_alone() -> None:
    """Of three sources two are ranked at a time, by relevances 2 and 1."""
    given = []

    def recorded(*lists, **wishes) -> Ranker:
        given.append((lists, wishes))
        return Ranker("")

    embeddings = [bowl_about(optimum) for optimum in (0.1, 0.3, 0.9)]
    configs = SPACE.sample(60, seed=5)
    tasks = [PastTask(np.arange(60), losses(configs, optimum)) for optimum in (0.1, 0.3, 0.9)]
    table = MetaFeatures.of([{"n": 1.0}, {"n": 2.0}, {"n": 9.0}])
    fit_ranker(embeddings, tasks, configs, table, seed=7, fit=recorded)
    [((features, labels, lists), wishes)] = given
    assert lists == [2, 2, 2]
    # For the first task the second source is nearer than the third, and so on.
    assert labels.tolist() == [2, 1, 2, 1, 1, 2]
    np.testing.assert_allclose(features[:, 0], np.array([1, 2, 1, 1, 2, 1]) / 3)
    assert wishes == {"k": 2, "seed": 7}


def test_the_ranker_learns_that_near_meta_features_mean_a_near_optimum() -> None:
    optima = np.linspace(0.05, 0.95, 24)
    embeddings = [bowl_about(optimum) for optimum in optima]
    configs = SPACE.sample(150, seed=5)
    tasks = [
        PastTask(np.arange(len(configs)), np.argsort(np.argsort(losses(configs, optimum))) / 150)
        for optimum in optima
    ]
    table = MetaFeatures.of([{"optimum": float(optimum)} for optimum in optima])
    ranker = fit_ranker(embeddings, tasks, configs, table, seed=0)
    for target in (0.12, 0.48, 0.83):
        first = int(np.argmax(ranker.scores(table.distances({"optimum": target}))))
        assert abs(optima[first] - target) < 0.2
