"""Deep kernels as methods: with past tasks (FSBO) and without (DKGP)."""

from functools import cache

import jax.numpy as jnp
import numpy as np
import pytest

from foretune._base.progress import SILENT
from foretune.errors import MethodError
from foretune.methods.contracts import Observations, Target
from foretune.methods.past_data import PastTask, split_tasks
from foretune.numerics.deep_kernel import negative_log_likelihood
from foretune.numerics.gp import GP
from foretune.numerics.training import as_arrays
from foretune.numerics.transforms import AS_THEY_ARE
from foretune.search import METHODS
from foretune.space import Encoded, Space
from foretune.testing import problem
from foretune_lab.baselines.fsbo import (
    FEATURES,
    AdaptationSettings,
    DeepKernelPosterior,
    FsboPrior,
    embed,
    features,
    fsbo,
    inputs,
    random_start,
)
from tests.methods.baselines.examples import mean_regret
from tests.refusals import refuses

FLAT = problem("flat")


@cache
def learnt() -> FsboPrior:
    return fsbo().learn(FLAT.experience, seed=0, progress=SILENT)


def told(configs: Encoded, *, believed: int = 0) -> Observations:
    pending = np.arange(len(configs)) >= len(configs) - believed
    return Observations(configs, FLAT.losses(configs), pending)


class TestFeatures:
    def test_are_the_same_in_numpy(self) -> None:
        x = inputs(FLAT.space.sample(7, seed=0))
        params = random_start(x, 3)
        phi = embed(as_arrays(params.network), x)
        assert phi.shape == (7, FEATURES)
        np.testing.assert_allclose(phi, features(params.network, jnp.asarray(x)), atol=1e-5)

    def test_inputs_are_centred_and_padded_with_zeros(self) -> None:
        x = FLAT.space.sample(3, seed=0)
        padded = inputs(x)
        assert padded.shape == (3, 16)
        np.testing.assert_allclose(padded[:, : FLAT.space.width], 2.0 * x.x - 1.0, atol=1e-6)
        assert not padded[:, FLAT.space.width :].any()


class TestTuning:
    def test_makes_the_trials_more_probable(self) -> None:
        x = inputs(FLAT.space.sample(9, seed=0))
        z = np.linspace(-1.0, 1.0, 9)
        start = random_start(x, 0)
        tuned = AdaptationSettings(steps=5, rate=1e-3)(start, x, z)
        mask = np.ones(9, dtype=bool)
        losses = [
            float(negative_log_likelihood(features, params, jnp.asarray(x), jnp.asarray(z), mask))
            for params in (start, tuned)
        ]
        assert losses[1] < losses[0]


class TestPosterior:
    def test_is_the_exact_process_on_features(self) -> None:
        seen = told(FLAT.space.sample(10, seed=1))
        posterior = learnt().surrogate(FLAT.target()).condition(seen, seed=0)
        assert isinstance(posterior, DeepKernelPosterior)
        again = GP.condition(
            embed(posterior.layers, inputs(seen.configs)),
            posterior.model.y,
            posterior.model.hyper,
            units=AS_THEY_ARE,
        )
        some = FLAT.space.sample(5, seed=2)
        mean, std = again.predict(embed(posterior.layers, inputs(some)))
        np.testing.assert_allclose(posterior.predict(some).mean, mean)
        np.testing.assert_allclose(posterior.predict(some).std, std)
        assert posterior.best == pytest.approx(posterior.model.y.min())

    def test_believed_rows_move_no_parameter(self) -> None:
        configs = FLAT.space.sample(12, seed=1)
        surrogate = learnt().surrogate(FLAT.target())
        without = surrogate.condition(told(configs.take(np.arange(10))), seed=0)
        with_believed = surrogate.condition(told(configs, believed=2), seed=0)
        assert isinstance(without, DeepKernelPosterior)
        assert isinstance(with_believed, DeepKernelPosterior)
        assert len(with_believed.model.y) == 12
        for (one, _), (other, _) in zip(without.layers, with_believed.layers, strict=True):
            np.testing.assert_array_equal(one, other)


class TestTransfer:
    def test_past_tasks_teach_what_matters(self) -> None:
        """Ten trials predict the rest better with the learnt kernel than with a random one."""
        some, rest = FLAT.space.sample(10, seed=1), FLAT.space.sample(200, seed=2)
        truth = FLAT.losses(rest)[:, 0]
        priors = {"fsbo": learnt(), "dkgp": METHODS["dkgp"].learn(None, seed=0)}
        agreement = {
            name: np.corrcoef(
                prior.surrogate(FLAT.target()).condition(told(some), seed=0).predict(rest).mean,
                truth,
            )[0, 1]
            for name, prior in priors.items()
        }
        assert agreement["fsbo"] > max(agreement["dkgp"], 0.85)

    def test_beats_random_search(self) -> None:
        random = METHODS["random"]
        by_chance = mean_regret(random, random.learn(None, seed=0), trials=10, seeds=2)
        assert mean_regret(METHODS["fsbo"], learnt(), trials=10, seeds=2) < 0.5 * by_chance

    def test_another_space_is_refused(self) -> None:
        with refuses("prior-of-another-space", kind=MethodError):
            learnt().surrogate(Target(Space.of({"c": (0.0, 1.0)})))


def test_dkgp_beats_random_search() -> None:
    random, dkgp = METHODS["random"], METHODS["dkgp"]
    by_chance = mean_regret(random, random.learn(None, seed=0), trials=15, seeds=3)
    assert mean_regret(dkgp, dkgp.learn(None, seed=0), trials=15, seeds=3) < by_chance


class TestDivision:
    @pytest.mark.parametrize(("tasks", "held_out"), [(2, 1), (10, 2), (100, 15)])
    def test_holds_out_a_share(self, tasks: int, held_out: int) -> None:
        every = [PastTask(np.array([n]), np.array([0.0])) for n in range(tasks)]
        teaching, held = split_tasks(every, np.random.default_rng(0))
        assert len(held) == held_out
        rows = [int(task.rows[0]) for task in [*teaching, *held]]
        assert sorted(rows) == list(range(tasks))

    def test_one_task_does_both(self) -> None:
        only = [PastTask(np.array([0]), np.array([0.0]))]
        assert split_tasks(only, np.random.default_rng(0)) == (only, only)
