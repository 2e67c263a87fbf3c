"""The deep kernel against the exact process in double precision, and its training."""

from dataclasses import dataclass
from functools import partial
from itertools import groupby

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from foretune._base.arrays import Floats, Ints
from foretune._base.progress import Silent
from foretune.numerics.deep_kernel import (
    LEAST_NOISE,
    NOISE,
    Curriculum,
    DeepKernel,
    Kernel,
    Schedule,
    draw,
    fine_tune,
    initial_kernel,
    matern52,
    mean_loss,
    meta_train,
    negative_log_likelihood,
    negative_log_posterior,
    schedules_for,
    standardise_labels,
)
from foretune.numerics.gp import GP
from foretune.numerics.transforms import Standardise

AS_GIVEN = Standardise(0.0, 1.0)
likelihood = jax.jit(negative_log_likelihood, static_argnums=0)
posterior_and_gradient = jax.jit(
    jax.value_and_grad(negative_log_posterior, argnums=1), static_argnums=0
)


def linear(network: jax.Array, x: jax.Array) -> jax.Array:
    return x @ network


def linear_with_mean(network: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return x @ network, 3.0 * x[:, 0]


def mean_alone(network: jax.Array, x: jax.Array) -> tuple[jax.Array, jax.Array]:
    return x, x @ network


def params_of(network: Floats, *, scales: list[float], signal: float, noise: float) -> DeepKernel:
    kernel = Kernel(jnp.log(jnp.asarray(scales)), jnp.log(signal), jnp.log(noise))
    return DeepKernel(jnp.asarray(network, dtype=jnp.float32), kernel)


def as_they_are(network: jax.Array, x: jax.Array) -> jax.Array:
    del network
    return x


@dataclass(frozen=True)
class Task:
    rows: Ints
    z: Floats


@dataclass(frozen=True)
class WatchedTask:
    name: str
    task: Task
    log: list[str]

    @property
    def rows(self) -> Ints:
        self.log.append(self.name)
        return self.task.rows

    @property
    def z(self) -> Floats:
        return self.task.z


def related_tasks(n: int, x: Floats, *, seed: int) -> list[Task]:
    """Losses that vary along one direction of the cube only: what there is to learn."""
    rng = np.random.default_rng(seed)
    along = x @ np.array([1.0, -1.0, 0.0])
    shifts = rng.uniform(-0.5, 0.5, size=n)
    return [Task(np.arange(len(x)), np.sin(6.0 * (along - shift))) for shift in shifts]


@pytest.fixture
def data() -> tuple[Floats, Floats]:
    rng = np.random.default_rng(0)
    return rng.random((12, 3)), rng.standard_normal(12)


class TestLikelihood:
    @pytest.mark.parametrize("scales", [[0.7], [0.5, 1.5]])
    @pytest.mark.parametrize("noise", [0.1, 1e-5])
    def test_agrees_with_the_exact_process(
        self, data: tuple[Floats, Floats], scales: list[float], noise: float
    ) -> None:
        x, y = data
        network = np.array([[1.0, 0.5], [-0.5, 1.0], [0.2, 0.0]])
        params = params_of(network, scales=scales, signal=1.3, noise=noise)
        reference = GP.condition(x @ network, y, params.hyper(2), units=AS_GIVEN)
        got = likelihood(linear, params, x, y, np.ones(12, dtype=bool))
        assert float(got) == pytest.approx(-reference.log_marginal_likelihood / 12, rel=1e-3)

    def test_a_learnt_mean_is_what_losses_are_compared_with(
        self, data: tuple[Floats, Floats]
    ) -> None:
        x, y = data
        network = np.array([[1.0, 0.5], [-0.5, 1.0], [0.2, 0.0]])
        params = params_of(network, scales=[0.7], signal=1.3, noise=0.1)
        got = likelihood(linear_with_mean, params, x, y, np.ones(12, dtype=bool))
        plain = likelihood(linear, params, x, y - 3.0 * x[:, 0], np.ones(12, dtype=bool))
        assert float(got) == pytest.approx(float(plain), rel=1e-4)

    def test_one_observation_by_hand(self) -> None:
        params = params_of(np.eye(1), scales=[1.0], signal=2.0, noise=1.0 - LEAST_NOISE)
        got = likelihood(linear, params, np.ones((1, 1)), np.array([3.0]), np.ones(1, dtype=bool))
        assert float(got) == pytest.approx(0.5 * (9.0 / 3.0 + np.log(3.0) + np.log(2.0 * np.pi)))

    def test_masked_rows_do_not_matter(self, data: tuple[Floats, Floats]) -> None:
        """Eight rows of twelve count, whatever the others hold."""
        x, y = data
        params = params_of(np.eye(3), scales=[0.5], signal=1.0, noise=0.01)
        mask = np.arange(12) < 8
        reference = GP.condition(x[:8], y[:8], params.hyper(3), units=AS_GIVEN)
        found = likelihood(linear, params, x, y, mask)
        assert float(found) == pytest.approx(-reference.log_marginal_likelihood / 8, rel=1e-3)
        value, gradient = posterior_and_gradient(linear, params, x, y, mask)
        other_x, other_y = np.where(mask[:, None], x, 50.0), np.where(mask, y, -50.0)
        same_value, same = posterior_and_gradient(linear, params, other_x, other_y, mask)
        assert float(same_value) == pytest.approx(float(value), rel=1e-5)
        for one, other in zip(jax.tree.leaves(gradient), jax.tree.leaves(same), strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-3, atol=1e-4)

    def test_gradient_by_finite_differences(self, data: tuple[Floats, Floats]) -> None:
        x, y = data
        network = np.array([[1.0, 0.5], [-0.5, 1.0], [0.2, 0.0]])
        mask = np.ones(12, dtype=bool)
        with jax.enable_x64(True):
            params = jax.tree.map(
                lambda p: jnp.asarray(p, dtype=jnp.float64),
                params_of(network, scales=[0.5, 1.5], signal=1.3, noise=0.05),
            )
            flat, unflatten = jax.flatten_util.ravel_pytree(params)

            @jax.jit
            def loss(vector: jax.Array) -> jax.Array:
                return negative_log_posterior(linear, unflatten(vector), x, y, mask)

            gradient = np.asarray(jax.grad(loss)(flat))
            for place in range(len(flat)):
                step = np.zeros(len(flat))
                step[place] = 1e-6
                numeric = (loss(flat + step) - loss(flat - step)) / 2e-6
                assert gradient[place] == pytest.approx(float(numeric), rel=1e-5, abs=1e-7)

    def test_single_precision_has_a_gradient_where_jax_computes_in_double(
        self, data: tuple[Floats, Floats]
    ) -> None:
        """As in a program whose own work asks JAX for 64 bits."""
        x, y = (part.astype(np.float32) for part in data)
        network = np.array([[1.0, 0.5], [-0.5, 1.0], [0.2, 0.0]])
        params = params_of(network, scales=[0.5, 1.5], signal=1.3, noise=0.05)
        mask = np.ones(12, dtype=bool)
        slope = jax.grad(partial(negative_log_posterior, linear))
        with jax.enable_x64(True):
            found = jax.eval_shape(slope, params, x, y, mask)
        assert {leaf.dtype for leaf in jax.tree.leaves(found)} == {np.dtype(np.float32)}

    def test_gradient_of_a_learnt_mean_by_hand(self, data: tuple[Floats, Floats]) -> None:
        """-X' K^-1 (y - X v) per observation, where the mean is X v."""
        x, y = data
        params = params_of(np.array([0.3, -0.2, 0.5]), scales=[0.7], signal=1.3, noise=0.1)
        _, gradient = posterior_and_gradient(mean_alone, params, x, y, np.ones(12, dtype=bool))
        t = np.sqrt(5.0 * np.square(x[:, None] - x[None, :]).sum(axis=2)) / 0.7
        covariance = 1.3 * (1.0 + t + t**2 / 3.0) * np.exp(-t)
        covariance += (0.1 + LEAST_NOISE) * np.eye(12)
        residual = y - x @ np.array([0.3, -0.2, 0.5])
        expected = -x.T @ np.linalg.solve(covariance, residual) / 12
        np.testing.assert_allclose(gradient.network, expected, rtol=1e-3)

    def test_the_prior_over_variances_by_hand(self, data: tuple[Floats, Floats]) -> None:
        """Of five observations each bears a fifth of it."""
        x, y = data
        mask = np.arange(12) < 5
        params = params_of(np.eye(3), scales=[0.5], signal=3.0, noise=0.2)
        value, _ = posterior_and_gradient(linear, params, x, y, mask)
        deviations = [np.log(3.0), (np.log(0.2) + 4.0) / 1.5]
        expected = 0.5 * np.sum(np.square(deviations)) / 5
        plain = likelihood(linear, params, x, y, mask)
        assert float(value) - float(plain) == pytest.approx(expected, rel=1e-4)

    def test_equal_configurations_keep_value_and_gradient_finite(self) -> None:
        params = params_of(np.eye(3), scales=[10.0], signal=50.0, noise=1e-8)
        x, y = np.full((12, 3), 0.3), np.linspace(-1.0, 1.0, 12)
        mask = np.ones(12, dtype=bool)
        value, gradient = posterior_and_gradient(linear, params, x, y, mask)
        assert np.isfinite(float(value))
        assert all(np.isfinite(leaf).all() for leaf in jax.tree.leaves(gradient))

    def test_the_slope_at_distance_zero(self) -> None:
        assert float(jax.jit(jax.grad(matern52))(0.0)) == pytest.approx(-5.0 / 6.0)
        assert float(matern52(jnp.asarray(0.2))) == pytest.approx((1 + 1 + 1 / 3) * np.exp(-1.0))


class TestKernel:
    def test_starts_at_the_usual_distance(self) -> None:
        phi = np.array([[0.0, 0.0], [2.0, 4.0]], dtype=np.float32)
        kernel = initial_kernel(phi)
        assert np.exp(kernel.log_lengthscales) == pytest.approx([np.sqrt(10.0)])
        assert (float(kernel.log_signal), float(kernel.log_noise)) == (0.0, -4.0)

    def test_of_constant_features(self) -> None:
        assert initial_kernel(np.ones((5, 2), dtype=np.float32)).log_lengthscales == 0.0

    def test_hyperparameters_of_the_exact_process(self) -> None:
        params = params_of(np.eye(3), scales=[0.5], signal=2.0, noise=0.1)
        hyper = params.hyper(3)
        np.testing.assert_allclose(hyper.log_lengthscales, np.log([0.5, 0.5, 0.5]), rtol=1e-6)
        assert hyper.log_signal == pytest.approx(np.log(2.0))
        assert hyper.log_noise == pytest.approx(np.log(0.1 + LEAST_NOISE))


class TestDraws:
    def test_are_different_evaluations_of_each_task(self) -> None:
        tasks = [Task(np.arange(30, 40), np.arange(10.0)), Task(np.arange(3), np.arange(3.0))]
        batch = draw(tasks, 6, standardise_labels, np.random.default_rng(0))
        np.testing.assert_array_equal(batch.mask.sum(axis=1), [6, 3])
        assert len(set(batch.rows[0].tolist())) == 6
        assert set(batch.rows[0].tolist()) <= set(range(30, 40))
        assert batch.y[1, :3].mean() == pytest.approx(0.0, abs=1e-6)
        assert batch.y[1, :3].std() == pytest.approx(1.0)

    def test_every_row_keeps_its_own_loss(self) -> None:
        tasks = [Task(np.arange(30, 40), np.arange(10.0) ** 2)]
        batch = draw(tasks, 6, lambda z, _: z + 1.0, np.random.default_rng(0))
        expected = (np.asarray(batch.rows[0]) - 30.0) ** 2 + 1.0
        np.testing.assert_allclose(batch.y[0], expected)

    @pytest.mark.parametrize(("tasks", "chunks"), [(2, 18), (20, 18), (50, 45), (400, 90)])
    def test_few_tasks_get_fewer_chunks(self, tasks: int, chunks: int) -> None:
        first, *_ = schedules_for([Task(np.arange(5), np.arange(5.0))] * tasks)
        assert first.most_chunks == chunks

    def test_a_batch_loses_what_its_tasks_lose_on_average(
        self, data: tuple[Floats, Floats]
    ) -> None:
        x, y = data
        params = params_of(np.eye(3), scales=[0.5], signal=1.0, noise=0.1)
        tasks = [Task(np.arange(7), y[:7]), Task(np.arange(4, 11), y[4:11])]
        batch = draw(tasks, 7, standardise_labels, np.random.default_rng(0))
        each = [
            float(likelihood(linear, params, x[rows], z, mask))
            for rows, z, mask in zip(*map(np.asarray, batch), strict=True)
        ]
        found = mean_loss(linear, params, jnp.asarray(x), batch)
        assert float(found) == pytest.approx(np.mean(each), rel=1e-4)


class TestTraining:
    x = np.random.default_rng(3).random((60, 3))
    start = params_of(
        np.random.default_rng(4).standard_normal((3, 2)), scales=[1.0], signal=1.0, noise=0.02
    )
    schedule = Schedule(tasks=4, observations=16, rate=0.02, chunk=20, most_chunks=15)

    def trained(self, trainable: DeepKernel | None = None) -> DeepKernel:
        return meta_train(
            linear,
            self.start,
            Curriculum(
                self.x.astype(np.float32),
                related_tasks(6, self.x, seed=0),
                related_tasks(3, self.x, seed=1),
            ),
            seed=0,
            schedule=self.schedule,
            trainable=trainable,
        )

    def test_progress_ends_also_where_training_breaks_off(self) -> None:
        class Interrupted(Silent):
            stopped = False

            def step(self, n: int = 1, note: str = "") -> None:
                raise KeyboardInterrupt

            def stop(self) -> None:
                self.stopped = True

        progress, tasks = Interrupted(), related_tasks(2, self.x, seed=0)
        curriculum = Curriculum(self.x.astype(np.float32), tasks, tasks)
        with pytest.raises(KeyboardInterrupt):
            meta_train(
                linear,
                self.start,
                curriculum,
                seed=0,
                schedule=self.schedule,
                progress=progress,
            )
        assert progress.stopped

    def test_makes_unseen_tasks_more_probable(self) -> None:
        batch = draw(
            related_tasks(8, self.x, seed=2), 16, standardise_labels, np.random.default_rng(0)
        )
        before = mean_loss(linear, self.start, self.x, batch)
        assert mean_loss(linear, self.trained(), self.x, batch) < before - 0.3

    def test_finds_the_direction_along_which_losses_vary(self) -> None:
        network = np.asarray(self.trained().network)
        moved = np.linalg.norm(np.array([1.0, -1.0, 0.0]) @ network)
        still = [np.linalg.norm(np.array(v) @ network) for v in ([1.0, 1.0, 0.0], [0.0, 0.0, 1.0])]
        assert max(still) < 0.3 * moved

    def test_rows_for_early_stopping_are_not_learnt_from(self) -> None:
        """The validation tasks are read once, before the others, and never again."""
        one, other = related_tasks(2, self.x, seed=0)
        log: list[str] = []
        curriculum = Curriculum(
            self.x.astype(np.float32),
            [WatchedTask("teaching", one, log)],
            [WatchedTask("validation", other, log)],
        )
        meta_train(linear, self.start, curriculum, seed=0, schedule=self.schedule)
        assert [name for name, _ in groupby(log)] == ["validation", "teaching"]

    def test_the_seed_decides(self) -> None:
        for one, other in zip(
            jax.tree.leaves(self.trained()), jax.tree.leaves(self.trained()), strict=True
        ):
            np.testing.assert_array_equal(one, other)

    def test_moves_only_what_is_trainable(self) -> None:
        rows = np.repeat([[True], [False], [False]], 2, axis=1)
        only_signal = DeepKernel(rows, Kernel(np.array([False]), np.array(True), np.array(False)))
        trained = self.trained(only_signal)
        moved = np.asarray(trained.network) != np.asarray(self.start.network)
        np.testing.assert_array_equal(moved.all(axis=1), [True, False, False])
        assert not moved[1:].any()
        assert trained.kernel.log_signal != self.start.kernel.log_signal
        assert trained.kernel.log_noise == self.start.kernel.log_noise

    def test_stops_when_nothing_improves_any_more(self) -> None:
        held = jax.tree.map(lambda p: np.zeros_like(p, dtype=bool), self.start)
        assert len(self.held_out_losses(rate=0.1, trainable=held)[0]) == 1 + 2

    def test_returns_the_best_that_was_seen(self) -> None:
        losses, found = self.held_out_losses(rate=0.1)
        looks = [*related_tasks(3, self.x, seed=1) * 10, *related_tasks(3, self.x, seed=1)[:2]]
        seen = draw(looks, 16, standardise_labels, np.random.default_rng(0))
        assert losses[-1] > min(losses)
        assert mean_loss(linear, found, self.x, seen) == pytest.approx(min(losses), abs=0.001)

    def held_out_losses(
        self, *, rate: float, trainable: DeepKernel | None = None
    ) -> tuple[list[float], DeepKernel]:
        notes: list[str] = []

        class Listener:
            def start(self, what: str, total: int | None) -> None: ...

            def step(self, n: int = 1, note: str = "") -> None:
                notes.append(note)

            def stop(self) -> None: ...

        tasks = related_tasks(3, self.x, seed=1)
        found = meta_train(
            linear,
            self.start,
            Curriculum(self.x.astype(np.float32), tasks, tasks),
            seed=0,
            schedule=Schedule(tasks=4, observations=16, rate=rate, chunk=20, patience=2),
            trainable=trainable,
            progress=Listener(),
        )
        return [float(note.split()[-1]) for note in notes], found


class TestFineTuning:
    def test_makes_the_observations_more_probable(self, data: tuple[Floats, Floats]) -> None:
        x, _ = data
        y, mask = np.sin(4.0 * x[:, 0]), np.ones(12, dtype=bool)
        start = params_of(np.eye(3), scales=[1.0], signal=1.0, noise=0.1)
        tuned = fine_tune(linear, start, x, y, mask, steps=300, rate=0.05)
        assert likelihood(linear, tuned, x, y, mask) < (likelihood(linear, start, x, y, mask) - 0.3)

    def test_pure_noise_is_left_to_the_prior(self) -> None:
        """One observation says nothing about the noise, which stays near its prior's mode."""
        start = params_of(np.eye(3), scales=[1.0], signal=1.0, noise=float(np.exp(NOISE[0])))
        one = np.ones((12, 3)), np.zeros(12), np.arange(12) == 0
        tuned = fine_tune(linear, start, *one, steps=300, rate=0.05)
        assert float(tuned.kernel.log_noise) == pytest.approx(NOISE[0], abs=0.5)


def test_distances_are_exact_where_products_are_coarse_by_default() -> None:
    params = params_of(np.eye(2), scales=[1.0], signal=1.0, noise=0.1)
    x, y, mask = jnp.ones((4, 2)), jnp.arange(4.0), jnp.ones(4, dtype=bool)

    # This device cannot multiply coarsely and says so: what does not ask for more fails.
    with jax.default_matmul_precision("TF32_TF32_F32"):
        with pytest.raises(ValueError, match="not supported"):
            likelihood(linear, params, x, y, mask)
        exact = likelihood(as_they_are, params, x, y, mask)

    assert float(exact) == pytest.approx(float(likelihood(as_they_are, params, x, y, mask)))
