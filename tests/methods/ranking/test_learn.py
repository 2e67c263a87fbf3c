from operator import itemgetter

import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest

from foretune._base.progress import SILENT
from foretune.errors import MethodError
from foretune.experience import Direction, Experience, Metric
from foretune.methods.contracts import Target
from foretune.methods.past_data import ReadLimits
from foretune.methods.ranking.curvature import criterion
from foretune.methods.ranking.ensemble import (
    Ensemble,
    history_features,
    load_ensemble,
    random_ensemble,
    scores,
)
from foretune.methods.ranking.learn import (
    RankedEvaluations,
    RankingLearner,
    _pad,
    gather,
    initial_weights,
    prime_from,
    read_ensembles,
    steps_for,
)
from foretune.methods.ranking.model import RankingSettings
from foretune.methods.ranking.training import (
    QUERY,
    SUPPORT,
    Weights,
    _list_loss,
    draw_lists,
    meta_features_of,
    meta_learn,
)
from foretune.methods.ranking.training import history_features as padded_features
from foretune.methods.ranking.tuning import FineTuning
from foretune.methods.ranking.variants import dre, dre_ri
from foretune.numerics.networks import Layers
from foretune.numerics.training import jax_layers
from foretune.space import Space
from tests.refusals import refuses

SPACE = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0)})


def experience(n: int, *optima: float) -> Experience:
    """Tasks whose losses are the distance of `a` to an optimum, each in a unit of its own."""
    configs = SPACE.sample(n, seed=0)
    matrix = np.stack([10.0**t * abs(configs.x[:, 0] - best) for t, best in enumerate(optima)])
    names = [f"task {t}" for t in range(len(optima))]
    return Experience.from_matrix(
        SPACE, configs, names, [Metric("loss", Direction.MIN)], {"loss": matrix}
    )


@pytest.fixture(scope="module")
def priors():
    """Those of two seeds. One that is learnt alone would be compiled once more."""
    past = experience(60, 0.1, 0.15, 0.2, 0.85, 0.9)
    return dre().learn_many(past, [0, 1], progress=SILENT)


@pytest.fixture
def prior(priors):
    return priors[0]


def test_the_variants_are_those_of_the_notes_on_the_paper() -> None:
    assert dre() == RankingLearner(
        "foretune-dre",
        RankingSettings(FineTuning(variance=0.1, steps=3), loss="list-wise", unit="scores"),
    )
    assert dre().meta_features
    assert dre_ri().settings == RankingSettings(FineTuning(variance=0.3, steps=10))


def test_primes() -> None:
    assert [prime_from(n) for n in (0, 1, 2, 8, 97, 100)] == [2, 2, 2, 11, 97, 101]


def test_training_is_shorter_where_there_is_little_to_learn() -> None:
    assert steps_for(200) == 512
    assert steps_for(1000) == 1024
    assert steps_for(9000) == 16_384
    assert steps_for(10**6) == 20_000


every_list = jax.jit(jax.vmap(draw_lists, in_axes=(0, None, None, None)))


def drawn(count: int, times: int) -> list[tuple[np.ndarray, np.ndarray]]:
    """The rows of query and support lists of a task of `count` evaluations from row 7 on."""
    draws = np.random.default_rng(0).random((times, 3), np.float32)
    lists = every_list(draws, 7, count, prime_from(count))
    query, in_query, support, in_support = map(np.asarray, lists)
    return [(query[k][in_query[k]], support[k][in_support[k]]) for k in range(times)]


@pytest.mark.parametrize("count", [1, 2, 3, 40, 100, 5000])
def test_lists_are_disjoint_draws_without_repeats(count: int) -> None:
    for query, support in drawn(count, 50):
        both = np.concatenate([query, support])
        assert len(np.unique(both)) == len(both) <= count
        assert ((both >= 7) & (both < 7 + count)).all()
        assert len(support) <= min(max(count // 2, 1), SUPPORT)
        assert len(query) >= min(QUERY, count - len(support)) - (prime_from(count) - count)


def test_a_walk_by_hand() -> None:
    """From place int(0.3 * 7) = 2 of seven in strides of 1 + int(0.5 * 6) = 4; two of them tell."""
    draws = jnp.asarray([0.3, 0.5, 0.6], jnp.float32)
    query, in_query, support, in_support = map(np.asarray, jax.jit(draw_lists)(draws, 7, 7, 7))
    assert support[in_support].tolist() == [9, 13]
    assert query[in_query].tolist() == [10, 7, 11, 8, 12]


@pytest.mark.parametrize(
    ("count", "draw", "size"),
    [(41, 0.0, 1), (41, 0.5, 4), (41, 0.999, 20), (1009, 0.5, 7), (1009, 0.9999, 50), (1, 0.5, 0)],
)
def test_a_support_list_is_as_long_as_a_history(count: int, draw: float, size: int) -> None:
    """Log-uniformly from 1 to half of the task, 50 at most; all else is there to be ranked."""
    draws = jnp.asarray([[0.2, 0.7, draw]], jnp.float32)
    lists = every_list(draws, 7, count, prime_from(count))
    assert int(lists.in_support.sum()) == size
    assert int(lists.in_query.sum()) == min(count - size, QUERY)


def test_every_evaluation_is_drawn_about_equally_often() -> None:
    supports = np.concatenate([support for _, support in drawn(20, 1500)])
    seen = np.bincount(supports - 7, minlength=20)
    assert seen.min() > 0.7 * seen.mean()


def test_numpy_and_jax_read_a_history_alike(prior) -> None:
    rng = np.random.default_rng(0)
    # Of a dozen, an outlier lies more than three standard deviations from the mean.
    x, y = rng.random((12, 2)), np.array([3.0, 1.0, 1.0, 50.0, 2.0, 0.0, *range(6)])
    valid = np.array([True] * 12 + [False] * 2)
    padded_y = jnp.asarray(np.append(y, [9.0, -9.0]), jnp.float32)
    found = jax.jit(padded_features)(padded_y, jnp.asarray(valid))
    np.testing.assert_allclose(found[:12], history_features(y), atol=1e-5)
    assert float(found[:12, 1].max()) == 3.0
    for same in (1.0, 0.1, 0.7, 1.1, -2.3):
        constant = jax.jit(padded_features)(jnp.full(14, same), jnp.asarray(valid))
        np.testing.assert_allclose(constant[:12], 0.0, atol=1e-5)
    ensemble = prior.ensemble
    weights = Weights(*map(jax_layers, (ensemble.scorers, ensemble.each, ensemble.all)))
    padded_x = jnp.asarray(np.concatenate([2 * x - 1, rng.random((2, 2))]), jnp.float32)
    read = jax.jit(meta_features_of)
    z = read(weights, padded_x, padded_y, jnp.asarray(valid))
    np.testing.assert_allclose(z, ensemble.meta_features(x, y), atol=1e-4)
    nothing = read(weights, padded_x, padded_y, jnp.zeros(14, dtype=bool))
    np.testing.assert_allclose(
        nothing, ensemble.meta_features(np.empty((0, 2)), np.empty(0)), atol=1e-4
    )


def test_meta_features_know_no_order_and_no_unit(prior) -> None:
    rng = np.random.default_rng(1)
    x, y, order = rng.random((9, 2)), rng.random(9), rng.permutation(9)
    z = prior.ensemble.meta_features(x, y)
    np.testing.assert_allclose(
        prior.ensemble.meta_features(x[order], 5.0 * y[order] - 3.0), z, atol=1e-4
    )
    assert not np.allclose(prior.ensemble.meta_features(x, -y), z, atol=1e-2)


def test_the_history_tells_which_past_tasks_to_follow(prior) -> None:
    """Two kinds of tasks: optima near 0.15 and near 0.9. Two trials decide between them."""
    ensemble = prior.ensemble
    told, grid = np.array([[0.1, 0.5], [0.9, 0.5]]), np.array([[0.15, 0.5], [0.88, 0.5]])
    for y, better in (np.array([0.0, 1.0]), 0), (np.array([1.0, 0.0]), 1):
        found = scores(ensemble.scorers, ensemble.inputs(grid, ensemble.meta_features(told, y)))
        assert found.mean(axis=0).argmax() == better


def test_tasks_are_gathered_in_their_own_units() -> None:
    evaluations = gather(experience(30, 0.1, 0.9))
    assert evaluations.counts.tolist() == [30, 30]
    assert evaluations.y[:30].std() == pytest.approx(1.0, rel=1e-4)
    assert evaluations.y[30:].std() == pytest.approx(1.0, rel=1e-4)


def test_every_configuration_keeps_its_own_loss() -> None:
    """A share of each task is drawn, but losses are in the unit of the whole task."""
    past = experience(30, 0.1, 0.9)
    evaluations = gather(past, ReadLimits(most=24, least=5))
    assert evaluations.counts.tolist() == [12, 12]
    for task, best in enumerate((0.1, 0.9)):
        rows = slice(12 * task, 12 * task + 12)
        a = 0.5 * (evaluations.x[rows, 0] + 1.0)
        every = np.abs(past.configs.x[:, 0] - best)
        expected = (np.abs(a - best) - every.mean()) / every.std()
        np.testing.assert_allclose(evaluations.y[rows], expected, atol=1e-4)
        assert len(np.unique(a)) == 12


def test_padding_keeps_tasks_one_after_the_other() -> None:
    x, y = np.ones((8, 2), np.float32), np.arange(8, dtype=np.float32)
    tasks = _pad(RankedEvaluations(x, y, np.array([3, 5])), 16)
    assert tasks.x.shape == (1024, 16)
    assert float(tasks.x.sum()) == 16.0
    assert tasks.y[:8].tolist() == y.tolist()
    assert tasks.firsts[:2].tolist() == [0, 3]
    assert tasks.counts.tolist() == [3, 5, 0, 0, 0, 0, 0, 0]
    assert tasks.primes[:2].tolist() == [3, 5]
    assert int(tasks.number) == 2


@pytest.mark.parametrize("loss", ["list-wise", "regression"])
def test_a_list_costs_what_its_scorer_loses_on_the_query(loss: str) -> None:
    """Per evaluation, with meta-features of the support list; the deep set learns from it too."""
    evaluations = gather(experience(40, 0.1, 0.9))
    ensemble = random_ensemble(2, seed=3, meta_features=True)
    weights = Weights(*map(jax_layers, (ensemble.scorers, ensemble.each, ensemble.all)))
    tasks = _pad(evaluations, 2)
    draws = jnp.asarray([0.7, 0.3, 0.6, 0.9], jnp.float32)
    scorer = [(layer[4], biases[4]) for layer, biases in weights.scorers]
    compiled = jax.jit(jax.value_and_grad(_list_loss), static_argnames="loss")
    found, slope = compiled(weights, scorer, draws, tasks=tasks, loss=loss)
    # 0.7 chooses the second of two tasks, whose rows begin at 40.
    lists = jax.jit(draw_lists)(draws[1:], 40, 40, 41)
    query, in_query, support, in_support = map(np.asarray, lists)
    query, support = query[in_query], support[in_support]
    x = 0.5 * (evaluations.x + 1.0)
    z = ensemble.meta_features(x[support], evaluations.y[support].astype(np.float64))
    s = scores(ensemble.scorers, ensemble.inputs(x[query], z))[[4]]
    expected = criterion(loss, evaluations.y[query])(s).value[0] / len(query)
    assert len(support) > 5
    assert float(found) == pytest.approx(float(expected), rel=1e-4)
    assert all(np.abs(layer).max() > 0.0 for layer, _ in (*slope.each, *slope.all))


def test_every_step_gives_each_scorer_a_list_of_its_own() -> None:
    """Algorithm 1 by optax: all scorers learn, and the deep set learns from all of them.

    Two ensembles take two steps of 512. The rate of the others is 0: trainings of another length
    would be compiled anew.
    """
    tasks = _pad(gather(experience(40, 0.1, 0.9)), 16)
    start = initial_weights(2, [3, 4], meta_features=True)
    draws = np.random.default_rng(0).random((2, 512, 10, 4), np.float32)
    rates = jnp.zeros(512).at[:2].set(1e-3)
    learnt = meta_learn(start, jnp.asarray(draws), rates, tasks, loss="list-wise")

    def one(weights: Weights, scorer: int, draw: jax.Array) -> jax.Array:
        own = [(layer[scorer], biases[scorer]) for layer, biases in weights.scorers]
        return _list_loss(weights, own, draw, tasks=tasks, loss="list-wise")

    gradient = jax.jit(jax.grad(one))
    update = jax.jit(optax.scale_by_adam().update)
    for place in range(2):
        found, expected = (jax.tree.map(itemgetter(place), weights) for weights in (learnt, start))
        moments = optax.scale_by_adam().init(expected)
        for step in draws[place, :2]:
            each = [
                gradient(expected, scorer, jnp.asarray(draw)) for scorer, draw in enumerate(step)
            ]
            together = jax.tree.map(lambda *parts: np.sum(parts, axis=0), *each)
            updates, moments = update(together, moments)
            expected = jax.tree.map(lambda old, by: old - 1e-3 * np.asarray(by), expected, updates)
        # Where a gradient is nothing but rounding, as that of a score's last bias, Adam moves all
        # the same: nearly all weights agree, and each scorer's.
        for ours, theirs in zip(found, expected, strict=True):
            gaps = jax.tree.map(lambda a, b: np.abs(a - b).ravel(), ours, theirs)
            assert np.concatenate(jax.tree.leaves(gaps)).mean() < 1e-5


def test_seeds_are_learnt_together_and_differ(priors) -> None:
    x = np.random.default_rng(0).random((5, 2))
    z = np.zeros(16, dtype=np.float32)
    one, other = (scores(p.ensemble.scorers, p.ensemble.inputs(x, z)) for p in priors)
    assert np.abs(one - other).mean() > 0.1 * np.abs(one).mean()


@pytest.mark.parametrize("meta_features", [True, False])
def test_training_begins_with_the_random_ensemble_of_each_seed(meta_features: bool) -> None:
    """Columns that are added for the compiler are taken away again."""
    weights = initial_weights(2, [3, 4], meta_features=meta_features)
    assert weights.scorers[0][0].shape[:2] == (2, 10)
    assert weights.scorers[0][0].shape[2] == 16 + 16 * meta_features
    for ensemble, seed in zip(read_ensembles(weights, 2), (3, 4), strict=True):
        expected = random_ensemble(2, seed=seed, meta_features=meta_features)
        jax.tree.map(np.testing.assert_array_equal, _layers(ensemble), _layers(expected))


def _layers(ensemble: Ensemble) -> tuple[Layers, ...]:
    return ensemble.scorers, ensemble.each, ensemble.all


def test_random_scorers_follow_the_seed_and_read_no_history(tmp_path) -> None:
    for seed in (1, 2):
        prior = dre_ri().learn(None, seed=seed, progress=SILENT)
        prior.save(tmp_path / "prior")
        expected = _layers(random_ensemble(2, seed=seed, meta_features=False))
        for each in (prior, dre_ri().load(tmp_path / "prior")):
            found = _layers(each.surrogate(Target(SPACE)).ensemble)
            jax.tree.map(np.testing.assert_array_equal, found, expected)


def test_an_ensemble_is_saved_and_loaded(prior, tmp_path) -> None:
    prior.save(tmp_path / "prior")
    ensemble, space = load_ensemble(tmp_path / "prior", kind=prior.kind)
    assert space == SPACE
    for mine, theirs in zip(prior.ensemble.scorers, ensemble.scorers, strict=True):
        np.testing.assert_array_equal(mine[0], theirs[0])
        np.testing.assert_array_equal(mine[1], theirs[1])


def test_another_space_is_refused(prior) -> None:
    with refuses("prior-of-another-space", kind=MethodError):
        prior.surrogate(Target(Space.of({"other": (0.0, 1.0)})))
