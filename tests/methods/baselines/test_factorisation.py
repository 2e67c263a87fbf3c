"""Low-rank tables of losses, and the two methods that search with them."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foretune._base.arrays import Floats
from foretune._base.progress import SILENT
from foretune.errors import MethodError
from foretune.experience import Direction, Experience, Metric
from foretune.methods.contracts import Observations, Prior, Target
from foretune.methods.past_data import Catalogue, PastTask
from foretune.numerics.anchored import informative_subset
from foretune.numerics.deep_kernel import DeepKernel, schedules_for
from foretune.numerics.hyper import GPHyper
from foretune.numerics.transforms import standardise
from foretune.search import METHODS, Optimizer, Told
from foretune.space import Space
from foretune_lab.baselines.factorisation import (
    RANK,
    LowRank,
    catalogue_of,
    factorise,
    loss_matrix,
    renumber_rows,
)
from foretune_lab.baselines.oboe import (
    OboeSurrogate,
    informative,
    oboe,
    usual_seconds,
    without_weak_directions,
)
from foretune_lab.baselines.pmf import PmfLearner, PmfPrior, pmf
from tests.refusals import refuses

SPACE = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0)})
CONFIGS = SPACE.sample(60, seed=0)


def low_rank_losses(n_tasks: int, *, seed: int) -> Floats:
    """(tasks, 60) of rank 2 about a mean, without any pattern in the hyperparameters."""
    about_configs = np.random.default_rng(0)
    factors, mean = about_configs.standard_normal((2, 60)), about_configs.standard_normal(60)
    return mean + np.random.default_rng(seed).standard_normal((n_tasks, 2)) @ factors


def experience_of(losses: Floats) -> Experience:
    names = [f"task-{number}" for number in range(len(losses))]
    metrics = [Metric("loss", Direction.MIN)]
    return Experience.from_matrix(SPACE, CONFIGS, names, metrics, {"loss": losses})


def observations(rows: list[int], losses: Floats) -> Observations:
    return Observations(CONFIGS.take(rows), losses[rows, None], np.zeros(len(rows), dtype=bool))


class TestLowRank:
    def test_recovers_a_complete_table(self) -> None:
        losses = low_rank_losses(30, seed=1)
        table = factorise(losses.astype(np.float32), rank=2)
        np.testing.assert_allclose(table.mean, losses.mean(axis=0), atol=1e-5)
        assert table.noise < 1e-8
        residual = losses - losses.mean(axis=0)
        tasks, *_ = np.linalg.lstsq(table.factors[:, :2], residual.T, rcond=None)
        np.testing.assert_allclose(table.factors[:, :2] @ tasks, residual.T, atol=1e-4)
        np.testing.assert_allclose(np.square(tasks).mean(axis=1), [1.0, 1.0], rtol=1e-3)

    def test_fills_in_what_is_missing(self) -> None:
        losses = low_rank_losses(30, seed=1)
        hidden = np.random.default_rng(2).random(losses.shape) < 0.2
        table = factorise(np.where(hidden, np.nan, losses).astype(np.float32), rank=2)
        residual = losses - table.mean
        tasks = np.stack(
            [
                np.linalg.lstsq(table.factors[~gone, :2], row[~gone], rcond=None)[0]
                for gone, row in zip(hidden, residual, strict=True)
            ]
        )
        error = (tasks @ table.factors[:, :2].T - residual)[hidden]
        assert np.square(error).mean() < 0.05 * np.square(residual[hidden]).mean()

    def test_noise_is_the_mean_square_of_what_the_factors_leave(self) -> None:
        """Three patterns of tasks, of which one factor takes the strongest."""
        tasks = np.array([[1.0, 1.0, 1.0], [1.0, -1.0, -1.0], [-1.0, 1.0, -1.0], [-1.0, -1.0, 1.0]])
        losses = (tasks * [3.0, 2.0, 1.0]).astype(np.float32)
        table = factorise(losses, rank=1)
        np.testing.assert_allclose(np.abs(table.factors[:, 0]), [3.0, 0.0, 0.0], atol=1e-5)
        assert table.noise == pytest.approx((4.0 + 1.0) / 3)
        # What nobody tried is no loss that the factors explain.
        unknown = np.column_stack([losses, np.full(4, np.nan, dtype=np.float32)])
        wider = factorise(unknown, rank=1)
        assert wider.noise == pytest.approx(table.noise)
        np.testing.assert_allclose(np.abs(wider.factors[:3]), np.abs(table.factors), atol=1e-5)
        assert not wider.factors[3].any()

    def test_a_single_task_has_one_factor_at_most(self) -> None:
        table = factorise(np.arange(5.0, dtype=np.float32)[None, :])
        np.testing.assert_array_equal(table.mean, np.arange(5.0))
        assert table.factors.shape == (5, RANK)
        assert not table.factors.any()

    def test_a_configuration_that_nobody_tried_has_no_pattern(self) -> None:
        matrix = loss_matrix([PastTask(np.array([0, 2]), np.array([1.0, 3.0]))], 3)
        np.testing.assert_array_equal(matrix, [[1.0, np.nan, 3.0]])
        assert factorise(matrix).mean[1] == 0.0

    def test_the_mean_is_that_of_the_tasks_that_tried_it(self) -> None:
        matrix = np.array([[1.0, np.nan], [3.0, 4.0]], dtype=np.float32)
        np.testing.assert_array_equal(factorise(matrix).mean, [2.0, 4.0])


class TestCatalogue:
    def test_a_shared_list_stays_as_it_is(self) -> None:
        tasks = [PastTask(np.arange(60), np.zeros(60))]
        catalogue = catalogue_of(tasks, CONFIGS)
        assert catalogue.configs is CONFIGS
        assert renumber_rows(tasks, CONFIGS, catalogue) is tasks

    def test_other_tasks_are_read_by_the_nearest(self) -> None:
        teaching = [PastTask(np.array([9, 4]), np.array([0.0, 1.0]))]
        catalogue = catalogue_of(teaching, CONFIGS)
        np.testing.assert_array_equal(catalogue.configs.x, CONFIGS.x[[4, 9]])
        assert renumber_rows(teaching, CONFIGS, catalogue)[0].rows.tolist() == [1, 0]
        other = [PastTask(np.array([9, 20]), np.array([0.0, 1.0]))]
        gaps = np.linalg.norm(CONFIGS.x[[4, 9]] - CONFIGS.x[20], axis=1)
        expected = [1, int(gaps.argmin())]
        assert renumber_rows(other, CONFIGS, catalogue)[0].rows.tolist() == expected


class TestDesign:
    def test_takes_the_longest_then_what_is_orthogonal(self) -> None:
        phi = np.array([[1.0, 0.0], [3.0, 0.0], [2.9, 0.1], [0.0, 2.0], [0.0, 0.1]])
        np.testing.assert_array_equal(informative(phi, 0.01, 2), [1, 3])

    def test_ends_with_the_rows(self) -> None:
        assert sorted(informative(np.ones((3, 2)), 0.1, 5)) == [0, 1, 2]


@pytest.fixture(scope="module")
def priors() -> dict[str, Prior]:
    experience = experience_of(low_rank_losses(30, seed=1))
    return {
        name: METHODS[name].learn(experience, seed=0, progress=SILENT) for name in ("oboe", "pmf")
    }


@pytest.mark.parametrize("name", ["oboe", "pmf"])
class TestMethods:
    def test_a_new_task_is_told_by_few_trials(self, name: str, priors: dict[str, Prior]) -> None:
        """A dozen of 60 losses reveal the others, though neighbours in the cube say nothing."""
        losses = low_rank_losses(1, seed=5)[0]
        surrogate = priors[name].surrogate(Target(SPACE, pool=CONFIGS))
        posterior = surrogate.condition(observations(list(range(12)), losses), seed=0)
        predicted = posterior.predict(CONFIGS.take(np.arange(12, 60))).mean
        assert np.corrcoef(predicted, losses[12:])[0, 1] > 0.8

    def test_observed_losses_have_little_uncertainty(
        self, name: str, priors: dict[str, Prior]
    ) -> None:
        losses = low_rank_losses(1, seed=5)[0]
        surrogate = priors[name].surrogate(Target(SPACE))
        few = surrogate.condition(observations([0], losses), seed=0).predict(CONFIGS)
        many = surrogate.condition(observations(list(range(20)), losses), seed=0).predict(CONFIGS)
        assert many.std[:20].mean() < 0.5 * few.std[:20].mean()

    def test_finds_the_best_of_a_pool(self, name: str, priors: dict[str, Prior]) -> None:
        losses = low_rank_losses(1, seed=6)[0]
        optimizer = Optimizer(Target(SPACE, pool=CONFIGS), METHODS[name], priors[name], seed=0)
        for _ in range(15):
            suggestion = optimizer.ask()[0]
            assert suggestion.pool_index is not None
            optimizer.tell([Told((float(losses[suggestion.pool_index]),), id=suggestion.id)])
        assert optimizer.told.losses.min() == losses.min()

    def test_the_unit_of_the_losses_does_not_matter(
        self, name: str, priors: dict[str, Prior]
    ) -> None:
        losses = low_rank_losses(1, seed=5)[0]
        surrogate = priors[name].surrogate(Target(SPACE))
        told = observations(list(range(8)), losses)
        other = observations(list(range(8)), 1e3 * losses - 7.0)
        np.testing.assert_allclose(
            surrogate.condition(told, seed=0).predict(CONFIGS).mean,
            surrogate.condition(other, seed=0).predict(CONFIGS).mean,
            rtol=1e-6,
        )

    def test_failed_trials_say_nothing_of_losses(self, name: str, priors: dict[str, Prior]) -> None:
        losses = low_rank_losses(1, seed=5)[0]
        surrogate = priors[name].surrogate(Target(SPACE))
        told = observations(list(range(8)), losses)
        losses[8:10] = np.nan
        and_failed = observations(list(range(10)), losses)
        one, other = (surrogate.condition(seen, seed=0) for seen in (told, and_failed))
        np.testing.assert_allclose(other.predict(CONFIGS).mean, one.predict(CONFIGS).mean)
        assert other.best == one.best

    def test_all_objectives_count_alike(self, name: str, priors: dict[str, Prior]) -> None:
        losses = low_rank_losses(2, seed=5).T[:8]
        surrogate = priors[name].surrogate(Target(SPACE))
        configs, told = CONFIGS.take(np.arange(8)), np.zeros(8, dtype=bool)
        one, other = (
            surrogate.condition(Observations(configs, each, told), seed=0).predict(CONFIGS).mean
            for each in (losses, 1e3 * losses[:, ::-1])
        )
        np.testing.assert_allclose(one, other, rtol=1e-6)

    def test_draws_follow_their_seed(self, name: str, priors: dict[str, Prior]) -> None:
        losses = low_rank_losses(1, seed=5)[0]
        posterior = (
            priors[name].surrogate(Target(SPACE)).condition(observations([0, 1], losses), seed=0)
        )
        one, same, other = (posterior.sample(CONFIGS, 2, seed=seed) for seed in (1, 1, 2))
        np.testing.assert_array_equal(one, same)
        assert not np.allclose(one, other)

    def test_draws_have_the_predicted_moments(self, name: str, priors: dict[str, Prior]) -> None:
        losses = low_rank_losses(1, seed=5)[0]
        posterior = (
            priors[name].surrogate(Target(SPACE)).condition(observations([0, 1], losses), seed=0)
        )
        drawn, belief = posterior.sample(CONFIGS, 4000, seed=1), posterior.predict(CONFIGS)
        np.testing.assert_allclose(drawn.mean(axis=0), belief.mean, atol=0.12)
        np.testing.assert_allclose(drawn.std(axis=0), belief.std, rtol=0.12, atol=0.01)

    def test_untried_configurations_take_the_nearest_ones_values(self, name: str) -> None:
        """The target's own configurations stand in the table of configurations, but say nothing."""
        smooth = np.stack([np.square(CONFIGS.x[:, 0] - at) for at in np.linspace(0.1, 0.4, 12)])
        own, failed = np.arange(40, 60), 7
        smooth[:, [*own, failed]] = np.nan
        prior = METHODS[name].learn(experience_of(smooth), seed=0, progress=SILENT)
        known = np.setdiff1d(np.arange(40), failed)
        surrogate = prior.surrogate(Target(SPACE, pool=CONFIGS))
        told = observations(known[:6].tolist(), np.square(CONFIGS.x[:, 0] - 0.2))
        belief = surrogate.condition(told, seed=0).predict(CONFIGS)
        asked = np.array([*own, failed])
        gaps = np.linalg.norm(CONFIGS.x[asked, None] - CONFIGS.x[known], axis=2)
        nearest = known[gaps.argmin(axis=1)]
        np.testing.assert_allclose(belief.mean[asked], belief.mean[nearest])
        np.testing.assert_allclose(belief.std[asked], belief.std[nearest])

    def test_another_space_is_refused(self, name: str, priors: dict[str, Prior]) -> None:
        with refuses("prior-of-another-space", kind=MethodError):
            priors[name].surrogate(Target(Space.of({"c": (0.0, 1.0)})))


def test_pmf_foretells_a_new_task_from_a_table_of_which_half_is_missing() -> None:
    losses = low_rank_losses(40, seed=1)
    hidden = np.random.default_rng(3).random(losses.shape) < 0.5
    experience = experience_of(np.where(hidden, np.nan, losses))
    learnt = pmf().learn(experience, seed=0, progress=SILENT)
    target = low_rank_losses(1, seed=5)[0]
    posterior = learnt.surrogate(Target(SPACE)).condition(
        observations(list(range(20)), target), seed=0
    )
    predicted = posterior.predict(CONFIGS.take(np.arange(20, 60))).mean
    assert np.corrcoef(predicted, target[20:])[0, 1] > 0.6


def test_the_process_of_pmf_by_hand() -> None:
    """Over learnt positions, with the learnt kernel; a believed trial is to be beaten."""
    positions = np.random.default_rng(4).standard_normal((60, RANK))
    hyper = GPHyper(np.full(RANK, np.log(5.0)), np.log(0.8), np.log(0.05))
    prior = PmfPrior(Catalogue(CONFIGS), positions, hyper)
    rows, losses = [4, 9, 31, 50], np.array([3.0, 1.0, 2.0, -6.0])
    told = Observations(CONFIGS.take(rows), losses[:, None], np.arange(4) == 3)
    posterior = prior.surrogate(Target(SPACE)).condition(told, seed=0)

    def covariance(a: Floats, b: Floats) -> Floats:
        t = np.sqrt(5.0 * np.square(a[:, None] - b[None, :]).sum(axis=2)) / 5.0
        return 0.8 * (1.0 + t + t**2 / 3.0) * np.exp(-t)

    z = standardise(losses)
    cross = covariance(positions[:10], positions[rows])
    inverse = np.linalg.inv(covariance(positions[rows], positions[rows]) + 0.05 * np.eye(4))
    belief = posterior.predict(CONFIGS.take(np.arange(10)))
    np.testing.assert_allclose(belief.mean, cross @ inverse @ z, atol=1e-9)
    variance = 0.8 - np.einsum("ij,jk,ik->i", cross, inverse, cross)
    np.testing.assert_allclose(belief.std, np.sqrt(variance), atol=1e-9)
    assert posterior.best == pytest.approx(z[3])


def test_pmf_keeps_the_informative_ones_of_many_trials(
    priors: dict[str, Prior],
) -> None:
    losses, prior = low_rank_losses(1, seed=5)[0], priors["pmf"]
    told = observations(list(range(30)), losses)
    surrogate = replace(prior.surrogate(Target(SPACE)), largest_gp=10)
    posterior = surrogate.condition(told, seed=0)
    keep = informative_subset(prior.positions[:30], losses[:30], 10)
    np.testing.assert_array_equal(posterior.model.x, prior.positions[keep])


def test_pmf_starts_from_means_and_principal_components() -> None:
    """Of the tasks that teach; what the others alone tried is read by the nearest of those."""
    given = []

    def recorded(features, params, curriculum, **wishes) -> DeepKernel:
        given.append((features, params, curriculum, wishes))
        kernel = params.kernel._replace(log_signal=params.kernel.log_signal + 2.0)
        return DeepKernel(params.network + 1.0, kernel)

    losses = low_rank_losses(10, seed=1)
    losses[:, 50:] = np.nan
    losses[3, 50:] = 1.0
    experience = experience_of(losses)
    # A seed that holds out the task which alone tried the last ten.
    seed = next(s for s in range(99) if 3 in np.random.default_rng(s).permutation(10)[:2])
    prior = PmfLearner(recorded).learn(experience, seed=seed, progress=SILENT)
    # Three schedules of falling rate, each from where the last one ended.
    features, params, curriculum, _ = given[0]
    assert [wishes["seed"] for *_, wishes in given] == [seed, seed + 1, seed + 2]
    assert [wishes["schedule"] for *_, wishes in given] == schedules_for(curriculum.tasks)
    assert len(prior.catalogue.configs) == 50
    held = np.random.default_rng(seed).permutation(10)[:2].tolist()
    teaching = [task for task in range(10) if task not in held]
    assert (len(curriculum.tasks), len(curriculum.validation)) == (8, 2)
    standardised = np.stack([standardise(losses[task, :50]) for task in teaching])
    table = np.asarray(features(params.network, curriculum.x))
    np.testing.assert_allclose(table[:, 0], standardised.mean(axis=0), atol=1e-5)
    centred = standardised - standardised.mean(axis=0)
    np.testing.assert_allclose(
        table[:, 1:] @ table[:, 1:].T, centred.T @ centred / len(teaching), atol=1e-4
    )
    apart = curriculum.validation[held.index(3)]
    near = Catalogue(experience.configs.take(np.arange(50))).rows(CONFIGS.take(np.arange(50, 60)))
    assert apart.rows[50:].tolist() == near.tolist()
    np.testing.assert_allclose(prior.positions, table + 3.0, rtol=1e-6)
    assert prior.hyper.log_signal == pytest.approx(float(params.kernel.log_signal) + 6.0)
    # The positions have all scales that there are: one lengthscale is for all of them.
    assert params.kernel.log_lengthscales.shape == (1,)
    usual = np.sqrt(2.0 * table.var(axis=0).sum())
    np.testing.assert_allclose(
        prior.hyper.log_lengthscales, np.full(RANK, np.log(usual)), rtol=1e-5
    )


def test_the_regression_of_oboe_by_hand() -> None:
    """Two trials on one factor, +1 and -1: in the unit of the past they are +s and -s, s² = 1.5.

    With the factor's prior N(0, 1) and noise 0.5, the posterior precision is 1 + 2 / 0.5 = 5.
    """
    table = LowRank(np.zeros(2), np.array([[1.0], [-1.0]]), noise=0.5)
    told = observations([0, 1], np.array([3.0, 1.0]))
    posterior = OboeSurrogate(table, lambda x: np.arange(len(x))).condition(told, seed=0)
    belief = posterior.predict(CONFIGS.take([0, 1]))
    np.testing.assert_allclose(belief.mean, np.sqrt(1.5) * 4 / 5 * np.array([1.0, -1.0]))
    np.testing.assert_allclose(belief.std, np.sqrt([1 / 5, 1 / 5]))
    assert posterior.best == pytest.approx(-np.sqrt(1.5))


def test_oboe_opens_with_members_of_the_pool() -> None:
    pool = CONFIGS.take(np.arange(3, 20))
    opening = oboe().learn(experience_of(low_rank_losses(9, seed=1)), seed=0, progress=SILENT)
    assert opening.opening(Target(SPACE, pool=pool)).isin(pool).all()


def test_oboe_opens_with_trials_that_tell_much_for_each_second() -> None:
    phi = np.array([[3.0, 0.0], [0.0, 2.0], [1.0, 0.0]])
    assert informative(phi, 0.01, 2, np.ones(3)).tolist() == [0, 1]
    assert informative(phi, 0.01, 2, np.array([9.0, 1.0, 0.2])).tolist() == [2, 1]


def test_seconds_are_the_geometric_mean_over_past_tasks() -> None:
    """The third configuration has none, so it takes the median of the others."""
    configs = CONFIGS.take([0, 1, 2])
    losses, seconds = np.ones((2, 3)), np.array([[1.0, 4.0, np.nan], [9.0, 4.0, np.nan]])
    past = Experience.from_matrix(
        SPACE,
        configs,
        ["a", "b"],
        [Metric("loss", Direction.MIN)],
        {"loss": losses},
        seconds=seconds,
    )
    found = usual_seconds(past, Catalogue(configs.take([2, 1, 0])))
    np.testing.assert_allclose(found, [np.sqrt(12.0), 4.0, 3.0], rtol=1e-5)
    untimed = Experience.from_matrix(
        SPACE, configs, ["a", "b"], [Metric("loss", Direction.MIN)], {"loss": losses}
    )
    assert usual_seconds(untimed, Catalogue(configs)).tolist() == [1.0, 1.0, 1.0]


def test_directions_below_a_hundredth_of_the_strongest_do_not_count() -> None:
    table = LowRank(np.zeros(2), np.array([[3.0, 0.02, 0.2], [4.0, 0.01, 0.0]]), noise=0.1)
    kept = without_weak_directions(table).factors
    np.testing.assert_array_equal(kept, [[3.0, 0.0, 0.2], [4.0, 0.0, 0.0]])


def test_a_saved_prior_is_the_same(tmp_path: Path, priors: dict[str, Prior]) -> None:
    told = observations(list(range(8)), low_rank_losses(1, seed=5)[0])
    for name, prior in priors.items():
        prior.save(tmp_path / name)
        loaded = METHODS[name].load(tmp_path / name)
        for one, other in zip(_predicted(prior, told), _predicted(loaded, told), strict=True):
            np.testing.assert_array_equal(one, other)


def _predicted(prior: Prior, told: Observations) -> tuple[Floats, Floats]:
    belief = prior.surrogate(Target(SPACE)).condition(told, seed=0).predict(CONFIGS)
    return belief.mean, belief.std
