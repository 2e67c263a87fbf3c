import jax
import jax.numpy as jnp
import numpy as np
import optax
import pytest
from scipy.optimize import approx_fprime
from scipy.stats import kstest, norm

from foretune._base.progress import SILENT, Silent
from foretune.errors import MethodError
from foretune.experience import Direction, Experience, Metric
from foretune.methods.contracts import Target
from foretune.methods.copula.learn import Scores, _train, gather
from foretune.methods.copula.model import CopulaSettings
from foretune.methods.copula.prior import LEAST_SIGMA, load_networks
from foretune.methods.copula.training import draw, negative_log_likelihood, outputs, schedule
from foretune.methods.copula.variants import (
    cts,
    gcp_prior,
    gcp_prior_paper,
    gp_prior,
    ts,
)
from foretune.methods.past_data import ReadLimits
from foretune.numerics.networks import Layers, initial_layers
from foretune.numerics.scores import midrank_scores
from foretune.numerics.transforms import copula_scores, standardise
from foretune.space import Space
from tests.refusals import refuses

SPACE = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0)})


def experience(sizes: tuple[int, ...], loss) -> Experience:
    """Task t has `sizes[t]` random configurations with the losses loss(x, t).

    Up to 1,024 in all: more would be padded to another length, and compiled anew.
    """
    configs = SPACE.sample(sum(sizes), seed=0)
    task = np.repeat(np.arange(len(sizes)), sizes)
    values = loss(configs.x, task)
    names = [f"task {number}" for number in range(len(sizes))]
    index = np.arange(len(task))
    return Experience.build(
        SPACE, [Metric("loss", Direction.MIN)], names, task, configs, index, values
    )


@pytest.fixture(scope="module")
def prior():
    return gcp_prior().learn(experience((30, 30), lambda x, t: x[:, 0]), seed=0, progress=SILENT)


@pytest.mark.parametrize(
    ("variant", "scores", "settings"),
    [
        (cts, copula_scores, CopulaSettings(adapts=False)),
        (ts, standardise, CopulaSettings(adapts=False)),
        (gcp_prior_paper, copula_scores, CopulaSettings(target="copula", prior_weight=0.01)),
        (gp_prior, standardise, CopulaSettings(target="standardise", prior_weight=0.01)),
        (
            gcp_prior,
            midrank_scores,
            CopulaSettings(target="informed", prior_weight=1.0, grouped=True, random_weights=True),
        ),
    ],
)
def test_variants_are_what_they_are_called(variant, scores, settings) -> None:
    """Past tasks' scores, and what becomes of the target's trials."""
    learner = variant()
    assert learner.scores is scores
    assert learner.settings == settings


def test_the_loss_is_equation_1() -> None:
    z, mu, sigma = np.array([0.3, -1.0]), np.array([0.0, 0.5]), np.array([0.7, 2.0])
    by_scipy = -norm(mu, sigma).logpdf(z).mean() - 0.5 * np.log(2 * np.pi)
    assert float(negative_log_likelihood(*map(jnp.asarray, (mu, sigma, z)))) == pytest.approx(
        by_scipy
    )


def test_its_gradient_agrees_with_finite_differences() -> None:
    z = jnp.asarray([0.3, -1.0, 2.0])

    def loss(v: np.ndarray) -> float:
        return float(norm(v[:3], v[3:]).logpdf(np.asarray(z)).mean())

    at = np.array([0.0, 0.5, 1.0, 0.7, 2.0, 1.1])
    gradient = jax.grad(lambda v: negative_log_likelihood(v[:3], v[3:], z))(jnp.asarray(at))
    np.testing.assert_allclose(gradient, -approx_fprime(at, loss, 1e-6), rtol=1e-3, atol=1e-5)


def test_the_prior_learns_what_tasks_have_in_common() -> None:
    past = experience((250,) * 4, lambda x, t: (1.0 + t) * (x[:, 0] - 0.3) ** 2 + 10.0 * t)
    prior = cts().learn(past, seed=0, progress=SILENT)
    grid = SPACE.encode([{"a": a, "b": 0.5} for a in (0.3, 0.6, 0.9)])
    belief = prior.networks.believe(grid.x)
    assert belief.mu[0] < -0.9
    assert belief.mu[0] < belief.mu[1] < belief.mu[2]
    assert belief.mu[2] > 0.7


def test_sigma_is_where_tasks_disagree() -> None:
    def loss(x: np.ndarray, t: np.ndarray) -> np.ndarray:
        """The same where a < 1/2; beyond it tasks differ in sign."""
        return np.where(x[:, 0] < 0.5, x[:, 0] - 0.5, (x[:, 0] - 0.4) * np.where(t % 2, 1.0, -1.0))

    prior = cts().learn(experience((250,) * 4, loss), seed=0, progress=SILENT)
    sigma = prior.networks.believe(np.array([[0.2, 0.5], [0.95, 0.5]])).sigma
    assert sigma[1, 0] > 2.0 * sigma[0, 0]


def test_tasks_count_alike_however_many_rows_they_have() -> None:
    """A task with ten times the rows, of the opposite order, does not outvote the other."""
    past = experience((900, 90), lambda x, t: np.where(t == 0, x[:, 0], -x[:, 0]))
    prior = cts().learn(past, seed=0, progress=SILENT)
    mu = prior.networks.believe(np.array([[0.05, 0.5], [0.95, 0.5]])).mu
    assert np.abs(mu).max() < 0.6


def test_seeds_learnt_together_equal_seeds_learnt_alone() -> None:
    past = experience((60, 60), lambda x, t: x[:, 0])
    together = cts().learn_many(past, [3, 4], progress=SILENT)
    alone = cts().learn(past, seed=4, progress=SILENT)
    x = SPACE.sample(5, seed=1).x
    # Equal up to the order of single-precision sums, which 3,000 updates carry on.
    np.testing.assert_allclose(
        together[1].networks.believe(x).mu, alone.networks.believe(x).mu, atol=0.1
    )
    assert not np.allclose(
        together[1].networks.believe(x).mu, together[0].networks.believe(x).mu, atol=1e-3
    )


def test_numpy_and_jax_read_the_network_alike(prior) -> None:
    [layers] = prior.networks.layers
    x = SPACE.sample(7, seed=2).x
    belief = prior.networks.believe(x)
    inputs, all_kept = jnp.asarray(x, jnp.float32), jnp.ones((3, 7, 50), bool)
    mu, raw = outputs(layers, inputs, all_kept, dropout=0.0).T
    np.testing.assert_allclose(belief.mu[:, 0], mu, atol=1e-4)
    np.testing.assert_allclose(belief.sigma[:, 0], jax.nn.softplus(raw) + LEAST_SIGMA, atol=1e-4)


def test_chance_is_drawn_as_the_paper_says() -> None:
    """A tenth of the units drops out; rows and tasks are drawn evenly; networks differ."""
    draws = draw([np.random.default_rng(0), np.random.default_rng(1)])
    assert draws.kept.shape == (2, 100, 3, 64, 50)
    assert np.asarray(draws.kept).mean(axis=(1, 2, 3, 4)) == pytest.approx(0.9, abs=1e-3)
    for share in (np.asarray(draws.task), np.asarray(draws.row)):
        assert kstest(share[0].ravel(), "uniform").pvalue > 0.01
        assert not np.array_equal(share[0], share[1])
    assert not np.array_equal(draws.kept[0], draws.kept[1])


def test_the_rates_are_those_of_the_paper() -> None:
    assert schedule() == [0.01] * 10 + [0.002] * 10 + [0.0004] * 10


@jax.jit
def updated(layers: Layers, moments, rate: float, x: jax.Array, z: jax.Array, kept: jax.Array):
    def loss(layers: Layers) -> jax.Array:
        mu, raw = outputs(layers, x, kept).T
        return negative_log_likelihood(mu, jax.nn.softplus(raw) + LEAST_SIGMA, z)

    updates, moments = optax.scale_by_adam().update(jax.grad(loss)(layers), moments)
    return jax.tree.map(lambda old, update: old - rate * update, layers, updates), moments


def one_by_one(scores: Scores, seed: int, objective: int) -> Layers:
    """Four updates, two of a rate, from the same random numbers: nothing padded or stacked."""
    rng = np.random.default_rng((seed, objective))
    layers = initial_layers(rng, (scores.x.shape[1], 50, 50, 50, 2))
    moments = optax.scale_by_adam().init(layers)
    firsts = np.cumsum(scores.counts) - scores.counts
    for rate in (0.01, 0.002):
        tasks, shares = rng.random((2, 64), np.float32), rng.random((2, 64), np.float32)
        kept = rng.random((2, 3, 64, 50), np.float32) >= 0.1
        for update in range(2):
            task = np.floor(tasks[update] * len(scores.counts)).astype(int)
            row = firsts[task] + np.floor(shares[update] * scores.counts[task]).astype(int)
            z = [*scores.z, scores.z.mean(axis=0)][objective]
            batch = scores.x[row], z[row], kept[update]
            layers, moments = updated(layers, moments, rate, *batch)
    return layers


def test_networks_side_by_side_move_as_each_would_alone() -> None:
    """More columns than 16, and a task of one row; two seeds, two objectives and their average."""
    rng, counts = np.random.default_rng(0), np.array([5, 1, 30], dtype=np.int32)
    x, z = rng.random((36, 17), np.float32), rng.normal(size=(2, 36)).astype(np.float32)
    scores = Scores(x, z, counts)
    both = _train(scores, (3, 2**40), SILENT, rates=(0.01, 0.002), updates=2)
    for seed, networks in zip((3, 2**40), both, strict=True):
        for objective, layers in enumerate([*networks.layers, networks.average]):
            jax.tree.map(
                lambda ours, theirs: np.testing.assert_allclose(ours, theirs, atol=1e-4),
                layers,
                one_by_one(scores, seed, objective),
            )


def test_progress_counts_what_is_done() -> None:
    said = []

    class Noted(Silent):
        def start(self, what: str, total: int | None) -> None:
            said.append(total)

        def step(self, n: int = 1, note: str = "") -> None:
            said.append("step")

    past = gather(experience((30, 30), lambda x, t: x[:, 0]), copula_scores)
    _train(past, [0], Noted(), rates=(0.01, 0.002))
    assert said == [2, "step", "step"]


def test_units_that_drop_out_are_made_up_for_by_the_others() -> None:
    """By hand: two inputs of 1, of each two units one kept, in each layer another."""
    ones, none = jnp.ones((2, 2)), jnp.zeros(2)
    last = jnp.asarray([[1.0, 1.0], [3.0, 3.0]]), jnp.asarray([0.0, 1.0])
    kept = jnp.asarray([[[True, False]], [[False, True]]])
    found = outputs([(ones, none), (ones, none), last], jnp.ones((1, 2)), kept)
    np.testing.assert_allclose(found, [[6 / 0.81, 6 / 0.81 + 1]], rtol=1e-6)


def test_each_objective_has_its_own_network_and_the_average_one_more(tmp_path) -> None:
    configs = SPACE.sample(300, seed=0)
    metrics = [Metric("error", Direction.MIN), Metric("gain", Direction.MAX)]
    values = np.tile(configs.x[:, :1], (2, 2))
    task, index = np.repeat([0, 1], 300), np.tile(np.arange(300), 2)
    past = Experience.build(SPACE, metrics, ["a", "b"], task, configs, index, values)
    prior = cts().learn(past, seed=0, progress=SILENT)
    mu = prior.networks.believe(np.array([[0.05, 0.5], [0.95, 0.5]])).mu
    assert mu[0, 0] < -0.8 < 0.8 < mu[1, 0]
    assert mu[1, 1] < -0.8 < 0.8 < mu[0, 1]
    # What one objective gains the other loses, so the average is 0 and known for certain.
    prior.save(tmp_path / "prior")
    for networks in (prior.networks, load_networks(tmp_path / "prior", kind=prior.kind)[0]):
        mean, spread = networks.believe(configs.x).weighted_sum(np.array([0.5, 0.5]))
        assert np.abs(mean).max() < 0.1
        assert spread.max() < 0.1


def test_large_experience_is_thinned_out_evenly() -> None:
    past = experience((300, 80, 300), lambda x, t: x[:, 0])
    scores = gather(past, copula_scores, ReadLimits(most=200))
    assert scores.counts.tolist() == [66, 66, 66]


def test_scores_are_those_of_the_whole_task_also_where_it_is_thinned_out() -> None:
    past = experience((300, 80), lambda x, t: x[:, 0])
    scores = gather(past, copula_scores, ReadLimits(most=60, least=5))
    assert scores.counts.tolist() == [30, 30]
    for task, rows in zip(past.tasks, (slice(30), slice(30, 60)), strict=True):
        every = past.task(task).configs.x
        by_x = map(tuple, every.astype(np.float32))
        whole = dict(zip(by_x, copula_scores(every[:, 0]), strict=True))
        expected = [whole[tuple(x)] for x in scores.x[rows]]
        np.testing.assert_allclose(scores.z[0, rows], expected, rtol=1e-5)


def test_networks_are_saved_and_loaded(prior, tmp_path) -> None:
    prior.save(tmp_path / "prior")
    networks, space = load_networks(tmp_path / "prior", kind=prior.kind)
    assert space == SPACE
    x = SPACE.sample(4, seed=3).x
    np.testing.assert_array_equal(prior.networks.believe(x).mu, networks.believe(x).mu)
    np.testing.assert_array_equal(prior.networks.believe(x).sigma, networks.believe(x).sigma)


def test_another_space_is_refused(prior) -> None:
    with refuses("prior-of-another-space", kind=MethodError):
        prior.surrogate(Target(Space.of({"other": (0.0, 1.0)})))
