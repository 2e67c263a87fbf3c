from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foretune._base.arrays import Floats
from foretune._base.progress import SILENT
from foretune.errors import MethodError
from foretune.methods.contracts import Observations, Prior, Target
from foretune.methods.latent.embedding import AlgorithmEmbedding, random_stack
from foretune.methods.latent.learn import LatentPrior, _draw_sources, pretrain, steps_for
from foretune.methods.latent.model import ChoosingSurrogate, LatentSurrogate, latent_surrogate
from foretune.methods.latent.sources import MetaFeatures
from foretune.methods.latent.variants import (
    latent_cash,
    latent_cash_first,
    latent_cash_random,
    latent_cash_ri,
)
from foretune.search import Optimizer, Told, method
from foretune.space import Encoded, Space
from foretune.space.algorithms import Algorithms
from tests.methods.latent.examples import ALGORITHMS, SPACE, experience, losses
from tests.refusals import refuses


@pytest.fixture(scope="module")
def prior() -> LatentPrior:
    learnt = method("latent-cash").learn(experience([0.2, 0.3, 0.7, 0.8]), seed=0, progress=SILENT)
    assert isinstance(learnt, LatentPrior)
    return learnt


def test_pre_training_makes_a_bowl_of_the_losses(prior: LatentPrior) -> None:
    """Configurations nearer to the origin are better, across algorithms (Equation 10)."""
    past = experience([0.2])
    placed = prior.embeddings[0].place(past.configs)
    bowl = np.square(placed).sum(axis=1)
    ranks = [np.argsort(np.argsort(v)) for v in (bowl, losses(past.configs, 0.2))]
    assert np.corrcoef(ranks)[0, 1] > 0.9
    assert bowl.mean() == pytest.approx(1.0)


def test_the_ranking_model_has_preferences_where_meta_features_are_known(
    prior: LatentPrior,
) -> None:
    near = prior.preferences(Target(SPACE, meta_features={"optimum": 0.75}))
    assert near[2] > near[0]
    assert not prior.preferences(Target(SPACE)).any()
    assert not prior.preferences(Target(SPACE, meta_features={"another": 1.0})).any()


def test_the_first_trials_choose_and_later_ones_do_not(prior: LatentPrior) -> None:
    """Ten trials are heard: the losses of later ones change the belief, not the source."""
    surrogate = prior.surrogate(Target(SPACE))
    assert isinstance(surrogate, ChoosingSurrogate)
    configs = SPACE.sample(30, seed=2)
    y = np.where(np.arange(30) < 10, losses(configs, 0.2), losses(configs, 0.8))
    for n in (10, 30):
        seen = Observations(configs.take(np.arange(n)), y[:n, None], np.zeros(n, dtype=np.bool_))
        surrogate.condition(seen, seed=0)
    assert list(surrogate._made) == [(0,)]


def test_the_bowls_of_others_move_the_prior_mean(prior: LatentPrior) -> None:
    """Beside a source that is best at 0.8, one that is best at 0.2 looks better at 0.8."""
    configs = SPACE.sample(200, seed=3)
    good = losses(configs, 0.8) < 0.01
    first, other = prior.embeddings[0], prior.embeddings[3]
    seen = Observations(configs.take(np.arange(2)), np.zeros((2, 1)), np.zeros(2, dtype=np.bool_))

    def gap(surrogate: LatentSurrogate) -> float:
        mean = surrogate.condition(seen, seed=0).predict(configs).mean
        return float(mean[good].mean() - mean.mean())

    target = Target(SPACE)
    assert gap(latent_surrogate(first, target, beside=[other])) < gap(
        latent_surrogate(first, target)
    )


def test_a_saved_prior_still_ranks_its_sources(prior: LatentPrior, tmp_path: Path) -> None:
    """With unknown meta-features, which are not 0, and several of them in their order."""
    table = np.column_stack([prior.meta_features.table, [np.nan, 1.0, 2.0, np.nan]])
    known = replace(prior, meta_features=MetaFeatures(("optimum", "rows"), table))
    known.save(tmp_path / "prior")
    loaded = latent_cash().load(tmp_path / "prior")
    assert loaded.meta_features.names == ("optimum", "rows")
    np.testing.assert_array_equal(loaded.meta_features.table, table)
    learnt = replace(loaded, meta_features=prior.meta_features)
    target = Target(SPACE, meta_features={"optimum": 0.75})
    assert learnt.preferences(target).any()
    np.testing.assert_array_equal(learnt.preferences(target), prior.preferences(target))


def test_preferences_are_shares_of_the_sources(prior: LatentPrior) -> None:
    """1 for what is ranked first, whatever the unit of the ranking model's scores."""

    class Scores:
        def scores(self, distances: np.ndarray) -> np.ndarray:
            return np.array([-3.0, 100.0, -3.0, 7.0])

    ranked = replace(prior, ranker=Scores())
    found = ranked.preferences(Target(SPACE, meta_features={"optimum": 0.75}))
    assert found.tolist() == [0.375, 1.0, 0.375, 0.75]


def test_as_published_the_ranking_model_alone_chooses(prior: LatentPrior, tmp_path: Path) -> None:
    """Its first source gives the embedding, and no other lends a bowl, whatever trials say."""
    alone = replace(prior, kind=latent_cash_first().kind, one_source=True)
    described = Target(SPACE, meta_features={"optimum": 0.75})
    surrogate = alone.surrogate(described)
    assert isinstance(surrogate, LatentSurrogate)
    first = int(np.argmax(prior.preferences(described)))
    assert surrogate.embedding is prior.embeddings[first]
    assert surrogate.beside(SPACE.sample(3, seed=0)).shape == (3, 0)
    alone.save(tmp_path / "prior")
    assert latent_cash_first().load(tmp_path / "prior").one_source


def test_another_space_is_refused(prior: LatentPrior) -> None:
    with refuses("prior-of-another-space", kind=MethodError):
        prior.surrogate(Target(Space.of({"a": (0.0, 1.0)})))


def test_an_ablation_pre_trains_one_source_at_random() -> None:
    past = experience([0.2, 0.3, 0.7, 0.8])
    learnt = method("latent-cash-random").learn(past, seed=1, progress=SILENT)
    assert isinstance(learnt, LatentPrior)
    assert len(learnt.embeddings) == 1
    assert learnt.ranker is None


def test_the_shared_latent_space_helps(prior: LatentPrior) -> None:
    """After the initial design it is nearer to the best than processes that share nothing."""
    pool = SPACE.sample(300, seed=7)
    pool = pool.take(pool.first_occurrences())
    y = losses(pool, 0.25)

    def regret(name: str, learnt: Prior, seed: int) -> float:
        optimizer = Optimizer(Target(SPACE, pool=pool), method(name), learnt, seed=seed)
        for _ in range(12):
            suggestion = optimizer.ask()[0]
            optimizer.tell([Told((float(y[suggestion.pool_index]),), id=suggestion.id)])
        reached = np.minimum.accumulate(optimizer.told.losses[:, 0])
        return float(reached[6:].mean() - y.min())

    independent = method("bandit-bo").learn(None, seed=0)
    ours = np.mean([regret("latent-cash", prior, seed) for seed in range(3)])
    theirs = np.mean([regret("bandit-bo", independent, seed) for seed in range(3)])
    assert ours < 0.75 * theirs


def test_the_adversary_makes_algorithms_overlap() -> None:
    """Nearest neighbours in the latent space are more mixed with the regulariser than without."""
    past = experience([0.5])
    gaps = np.argsort(np.argsort(losses(past.configs, 0.5))) / len(past.configs)
    which = ALGORITHMS.algorithm_of(past.configs)
    kept = which < 2
    mixed = []
    for beta in (0.0, 0.1):
        embedding = pretrain(ALGORITHMS, past.configs, gaps, seed=0, beta=beta)
        u, own = embedding.place(past.configs)[kept], which[kept]
        distances = np.square(u[:, None] - u[None, :]).sum(axis=2) + 1e9 * np.eye(len(u))
        mixed.append(float((own[distances.argmin(axis=1)] != own).mean()))
    assert mixed[1] > mixed[0]


def test_sources_of_different_seeds_begin_with_different_networks() -> None:
    past = experience([0.3, 0.3])
    one, other = (
        method("latent-cash").learn(past, seed=seed, progress=SILENT).embeddings for seed in (0, 1)
    )
    for first in one:
        for second in other:
            assert np.abs(first.stack[0][0] - second.stack[0][0]).max() > 0.1
    assert np.abs(one[0].stack[0][0] - one[1].stack[0][0]).max() > 0.1


def untrained(
    algorithms: Algorithms, configs: Encoded, gaps: Floats, *, seed: int
) -> AlgorithmEmbedding:
    """Return an embedding of random weights."""
    return AlgorithmEmbedding(algorithms, random_stack(algorithms, seed))


@pytest.mark.parametrize(("sources", "ranked"), [(2, False), (3, True)])
def test_a_ranking_model_needs_three_sources(sources: int, ranked: bool) -> None:
    learner = replace(latent_cash(), pretrain=untrained)
    past = experience([0.2, 0.5, 0.8][:sources])
    learnt = learner.learn(past, seed=0, progress=SILENT)
    assert (learnt.ranker is not None) == ranked
    nothing_known = learner.learn(replace(past, meta_features={}), seed=0, progress=SILENT)
    assert nothing_known.ranker is None


def test_sources_are_drawn_with_their_meta_features() -> None:
    """The seed says which one."""
    learner = replace(latent_cash_random(), pretrain=untrained)
    past = experience([0.2, 0.4, 0.6, 0.8])
    drawn = []
    for seed in range(5):
        learnt = learner.learn(past, seed=seed, progress=SILENT)
        [name], _ = _draw_sources(past, 1, seed)
        assert learnt.meta_features.table.tolist() == [[past.meta_features[name]["optimum"]]]
        drawn.append(name)
    assert len(set(drawn)) > 1


def test_large_sources_are_trained_for_longer() -> None:
    assert (steps_for(5000), steps_for(5001)) == (1000, 4000)


def test_without_pre_training_all_layers_follow_the_seed_and_move(tmp_path: Path) -> None:
    for seed in (1, 2):
        prior = latent_cash_ri().learn(None, seed=seed, progress=SILENT)
        prior.save(tmp_path / "prior")
        expected = random_stack(ALGORITHMS, seed)
        for each in (prior, latent_cash_ri().load(tmp_path / "prior")):
            found = each.surrogate(Target(SPACE)).fit.start
            assert len(found) == len(expected)
            for layer, random in zip(found, expected, strict=True):
                np.testing.assert_array_equal(layer[0], random[0])
