from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from foretune._base.progress import SILENT
from foretune.errors import ForetuneWarning, MethodError
from foretune.experience import Direction, Experience, Metric, Status
from foretune.methods.contracts import Observations, Target
from foretune.methods.past_data import PastTask
from foretune.methods.pipeline.growth import extend_network
from foretune.methods.pipeline.layout import NetworkLayout, Sizes
from foretune.methods.pipeline.learn import DeepPipeLearner, DeepPipePrior, parts
from foretune.methods.pipeline.model import Choices, DeepPipe, DeepPipeSurrogate, FixedNetwork
from foretune.methods.pipeline.network import PipelineEmbedding
from foretune.methods.pipeline.random_network import RandomNetworkPrior
from foretune.methods.pipeline.training import (
    TunedNetwork,
    _deep_kernel,
    _model,
    initial_network,
    last_due,
    schedules_for,
    train_on_past_tasks,
)
from foretune.methods.pipeline.variants import deeppipe, deeppipe_paper, deeppipe_ri
from foretune.numerics.anchored import informative_subset
from foretune.numerics.deep_kernel import DeepKernel
from foretune.numerics.gp import fit_hyper
from foretune.numerics.scores import midrank_scores, midrank_shares, scores_from_past
from foretune.numerics.transforms import standardise
from foretune.space import Encoded, Space
from tests.methods.pipeline.spaces import PIPELINE
from tests.refusals import refuses

SMALL = Sizes(latent=4, learns_mean=True)
MODELS = {"svm": {"C": (0.0, 1.0)}, "tree": {"depth": (0.0, 1.0)}}
FOREST = {"forest": {"trees": (0.0, 1.0)}}


def seen(configs: Encoded, losses: np.ndarray) -> Observations:
    return Observations(configs, losses[:, None], np.zeros(len(losses), dtype=bool))


def random_model(space: Space, sizes: Sizes = SMALL) -> DeepPipe:
    return initial_network(NetworkLayout.of(space, sizes), space.sample(100, seed=0), seed=0)


def with_a_mean(model: DeepPipe) -> DeepPipe:
    """The network with random weights of the mean and another signal, which begin at 0."""
    weights, biases = (array.copy() for array in model.layers[-1])
    weights[:, -1] = 0.3 * np.random.default_rng(3).standard_normal(len(weights))
    return replace(model, layers=(*model.layers[:-1], (weights, biases)), log_signal=-0.8)


def past(space: Space, tasks: int = 8) -> Experience:
    """The best depth, C or number of trees is 0.2 on even tasks and 0.8 on odd ones."""
    configs = space.sample(32, seed=0)
    number = np.nan_to_num(configs.values[:, 1:]).sum(axis=1)
    matrix = np.stack([np.square(number - (0.8 if t % 2 else 0.2)) for t in range(tasks)])
    names = [f"task {t}" for t in range(tasks)]
    return Experience.from_matrix(
        space, configs, names, [Metric("loss", Direction.MIN)], {"loss": matrix}
    )


def test_the_variants_are_those_of_the_notes_on_the_paper() -> None:
    """Published, the network has no mean and learns standardised losses; alone, two encoders."""
    assert deeppipe() == DeepPipeLearner(Sizes(8, 1, 4, 20, learns_mean=True), midrank_scores)
    paper = DeepPipeLearner(Sizes(8, 1, 4, 20), standardise, "foretune-deeppipe-paper")
    assert deeppipe_paper() == paper
    assert not paper.sizes.learns_mean
    assert deeppipe_ri().sizes == Sizes(8, 2, 4, 20)


class TestScale:
    def test_the_learnt_lengthscale_is_the_most_probable_one(self) -> None:
        model = random_model(PIPELINE)
        configs = PIPELINE.sample(5, seed=1)
        phi, _ = PipelineEmbedding(model.layout).embed(model.layers, configs)
        learnt = phi / np.exp(model.log_lengthscale)
        scaled = model.place(configs).u / np.exp(model.start.log_lengthscales)
        np.testing.assert_allclose(scaled, learnt, rtol=1e-6)


class TestSurrogate:
    def test_a_change_of_the_losses_unit_changes_nothing(self) -> None:
        surrogate = DeepPipeSurrogate(FixedNetwork.on(random_model(PIPELINE), None))
        configs, new = PIPELINE.sample(10, seed=1), PIPELINE.sample(7, seed=2)
        losses = np.random.default_rng(0).random(10)
        one = surrogate.condition(seen(configs, losses), seed=0)
        other = surrogate.condition(seen(configs, 100.0 + 50.0 * losses), seed=0)
        np.testing.assert_allclose(one.predict(new).mean, other.predict(new).mean, rtol=1e-5)
        assert one.best == pytest.approx(other.best)

    @pytest.mark.parametrize("enormous", [1e9, 1e20, 1.7e308])
    def test_beside_an_enormous_loss_the_others_keep_their_scores(self, enormous: float) -> None:
        model = random_model(PIPELINE)
        at = model.place(PIPELINE.sample(8, seed=1))
        losses = np.arange(8.0)[:, None]
        losses[3] = 1e6
        expected = model.scores(losses, at)
        losses[3] = enormous
        np.testing.assert_allclose(model.scores(losses, at), expected, atol=1e-6)
        assert len(np.unique(expected)) == 8

    def test_several_losses_are_averaged_by_their_scores(self) -> None:
        model = random_model(PIPELINE)
        at = model.place(PIPELINE.sample(8, seed=1))
        losses = np.random.default_rng(2).random((8, 2)) * [1.0, 1000.0]
        mean = 0.5 * (midrank_scores(losses[:, 0]) + midrank_scores(losses[:, 1]))
        expected = scores_from_past(mean, at.mean, np.ones(8))
        np.testing.assert_allclose(model.scores(losses, at), expected)
        # However large, the worst value of one objective erases no difference between others.
        losses[np.argmax(losses[:, 0]), 0] = 1e9
        np.testing.assert_allclose(model.scores(losses, at), expected)

    def test_believed_rows_leave_the_kernel_alone(self) -> None:
        model = random_model(PIPELINE, Sizes(factor=2, latent=4))
        surrogate = DeepPipeSurrogate(FixedNetwork.on(model, None))
        configs = PIPELINE.sample(10, seed=1)
        losses = np.random.default_rng(0).random((10, 1))
        told = surrogate.condition(
            Observations(configs.take(range(8)), losses[:8], np.zeros(8, dtype=bool)), seed=0
        )
        both = surrogate.condition(Observations(configs, losses, np.arange(10) >= 8), seed=0)
        assert both.model.hyper.log_signal == pytest.approx(told.model.hyper.log_signal, abs=1e-6)
        assert len(both.model.x) == 10

    def test_without_a_mean_the_kernel_is_fitted_from_the_learnt_one(self) -> None:
        """FineTune of Algorithm 2: one lengthscale, signal and noise; the network stays."""
        model = replace(
            random_model(PIPELINE, Sizes(factor=2, latent=4)), log_signal=-1, log_noise=-2
        )
        configs = PIPELINE.sample(10, seed=1)
        losses = np.random.default_rng(0).random(10)
        posterior = DeepPipeSurrogate(FixedNetwork.on(model, None)).condition(
            seen(configs, losses), seed=0
        )
        start = model.start
        assert (start.log_signal, start.log_noise) == (-1, -2)
        found = posterior.model.hyper
        expected = fit_hyper(
            model.place(configs).u,
            standardise(losses),
            starts=(model.start,),
            groups=np.zeros(4, int),
        )
        np.testing.assert_allclose(found.to_vector(), expected.to_vector())
        assert len(np.unique(found.log_lengthscales)) == 1
        assert np.abs(found.to_vector() - start.to_vector()).max() > 0.1

    def test_a_believed_row_is_to_be_beaten(self) -> None:
        for model in (random_model(PIPELINE), random_model(PIPELINE, Sizes(factor=2, latent=4))):
            surrogate = DeepPipeSurrogate(FixedNetwork.on(model, None))
            configs = PIPELINE.sample(6, seed=1)
            losses = np.array([[3.0], [1.0], [4.0], [2.0], [5.0], [-9.0]])
            posterior = surrogate.condition(
                Observations(configs, losses, np.arange(6) == 5), seed=0
            )
            scores = model.scores(losses, model.place(configs))
            assert posterior.best == pytest.approx(scores[5])
            assert scores[5] < scores[1]

    def test_draws_agree_with_the_prediction(self) -> None:
        surrogate = DeepPipeSurrogate(FixedNetwork.on(random_model(PIPELINE), None))
        configs, new = PIPELINE.sample(10, seed=1), PIPELINE.sample(3, seed=2)
        losses = np.random.default_rng(0).random(10)
        posterior = surrogate.condition(seen(configs, losses), seed=0)
        draws, belief = posterior.sample(new, 4000, seed=0), posterior.predict(new)
        np.testing.assert_allclose(draws.mean(axis=0), belief.mean, atol=0.1)
        np.testing.assert_allclose(draws.std(axis=0), belief.std, atol=0.1)

    def test_with_a_learnt_mean_the_process_models_what_it_leaves_over(self) -> None:
        """Informed scores minus the mean, under the kernel as learnt, added to the mean again."""
        model = with_a_mean(random_model(PIPELINE))
        configs, new = PIPELINE.sample(9, seed=1), PIPELINE.sample(6, seed=2)
        losses = np.random.default_rng(0).random(9)
        told = Observations(configs, losses[:, None], np.arange(9) >= 7)
        posterior = DeepPipeSurrogate(FixedNetwork.on(model, None)).condition(told, seed=0)

        embedding = PipelineEmbedding(model.layout)
        (phi, mean), (new_phi, new_mean) = (
            embedding.embed(model.layers, each) for each in (configs, new)
        )
        signal, noise = np.exp(model.log_signal), np.exp(model.log_noise)
        z = scores_from_past(standardise(losses), mean, np.full(9, np.sqrt(signal)))

        def covariance(a: np.ndarray, b: np.ndarray) -> np.ndarray:
            distance = np.sqrt(np.square(a[:, None] - b[None, :]).sum(axis=2))
            t = np.sqrt(5.0) * distance / np.exp(model.log_lengthscale)
            return signal * (1.0 + t + t**2 / 3.0) * np.exp(-t)

        cross = covariance(new_phi, phi)
        inverse = np.linalg.inv(covariance(phi, phi) + noise * np.eye(9))
        belief = posterior.predict(new)
        assert np.ptp(mean) > 0.1
        np.testing.assert_allclose(belief.mean, new_mean + cross @ inverse @ (z - mean), rtol=1e-5)
        variance = signal - np.einsum("ij,jk,ik->i", cross, inverse, cross)
        np.testing.assert_allclose(belief.std, np.sqrt(variance), rtol=1e-4)
        assert posterior.best == pytest.approx(z[:7].min())

    def test_the_pool_is_embedded_once(self) -> None:
        pool = PIPELINE.sample(20, seed=0)
        learnt = FixedNetwork.on(random_model(PIPELINE), pool)
        _, places = learnt.after(pool, np.zeros((20, 1)))
        assert places(pool) is places(pool)


class TestChoices:
    def test_who_uses_them(self) -> None:
        space = Space.of({"model": {**MODELS, **FOREST}})
        configs = space.encode(
            [
                {"model": "svm", "model:svm:C": 0.1},
                {"model": "tree", "model:tree:depth": 0.1},
                {"model": "svm", "model:svm:C": 0.2},
            ]
        )
        svm, forest = (0, 0), (0, 2)
        assert Choices((svm, forest)).uses_any(configs).tolist() == [True, False, True]
        assert Choices().uses_any(configs).tolist() == [False, False, False]


class TestApart:
    @pytest.mark.parametrize(("sizes", "distance"), [(SMALL, 1.0), (Sizes(latent=4), 2.0)])
    def test_a_new_algorithm_has_dimensions_of_its_own(self, sizes: Sizes, distance: float) -> None:
        """In lengthscales: its distance, and its hyperparameters in halves of their diagonal."""
        forest = {"forest": {"share": (0.0, 1.0), "trees": (0.0, 1.0)}}
        space = Space.of({"model": {**MODELS, **forest}})
        model = extend_network(random_model(Space.of({"model": MODELS}), sizes), space).model
        configs = space.encode(
            [
                {"model": "svm", "model:svm:C": 0.1},
                {"model": "forest", "model:forest:share": 0.25, "model:forest:trees": 0.9},
            ]
        )
        placed = model.place(configs).u / np.exp(model.start.log_lengthscales)
        half = 0.5 * np.sqrt(2.0)
        expected = [[0.0, 0.0, 0.0], [distance, -0.25 / half, 0.4 / half]]
        np.testing.assert_allclose(placed[:, 4:], expected, atol=1e-6)
        assert len(model.groups) == 4 + 3


class RecordedTuning:
    """Keeps what it is given, and changes nothing."""

    def __init__(self) -> None:
        self.calls: list[tuple[np.ndarray, np.ndarray, np.ndarray, dict]] = []

    def __call__(self, features, params, x, z, mask, **wishes) -> DeepKernel:
        self.calls.append((x, z, mask, wishes))
        return params


class TestTuning:
    @pytest.mark.parametrize(
        ("n", "growth", "due"),
        [(1, 1.0, 1), (7, 1.0, 7), (9, 2.0, 8), (5, 1.25, 5), (11, 1.25, 10)],
    )
    def test_when_it_is_due(self, n: int, growth: float, due: int) -> None:
        assert last_due(n, growth) == due

    def test_a_trained_model_is_restored_exactly(self) -> None:
        model = replace(random_model(PIPELINE), log_lengthscale=0.7, log_signal=-0.2, log_noise=-3)
        again = _model(model.layout, _deep_kernel(model))
        assert again.log_lengthscale == pytest.approx(0.7)
        assert again.log_signal == pytest.approx(-0.2)
        assert again.log_noise == pytest.approx(-3.0)
        for (weights, biases), (w, b) in zip(model.layers, again.layers, strict=True):
            np.testing.assert_array_equal(weights, w)
            np.testing.assert_array_equal(biases, b)

    @pytest.mark.parametrize(
        ("tasks", "rows", "batch", "effort"),
        [(3, 20, (4, 32), 0.2), (50, 7, (16, 8), 0.5), (300, 900, (16, 64), 1.0)],
    )
    def test_few_tasks_are_learnt_for_less_long(
        self, tasks: int, rows: int, batch: tuple[int, int], effort: float
    ) -> None:
        past_task = PastTask(np.arange(rows), np.zeros(rows))
        found = schedules_for([past_task] * tasks)
        assert [(each.tasks, each.observations) for each in found] == [batch] * 3
        assert [each.chunk for each in found] == [round(100 * effort)] * 3
        assert [each.most_chunks for each in found] == [round(n * effort) for n in (90, 40, 20)]
        assert [each.rate for each in found] == [3e-3, 1e-3, 3e-4]
        assert [each.patience for each in found] == [12, 6, 4]

    def test_a_batch_is_as_large_as_the_largest_task_allows(self) -> None:
        tasks = [PastTask(np.arange(rows), np.zeros(rows)) for rows in (5, 30, 9)]
        assert {each.observations for each in schedules_for(tasks)} == {32}

    def test_three_rates_follow_each_other(self) -> None:
        """Each goes on from what the one before has found, with draws of its own."""
        given = []

        def louder(features, params, curriculum, *, seed, schedule, progress) -> DeepKernel:
            given.append((curriculum, seed, schedule))
            kernel = params.kernel
            return params._replace(kernel=kernel._replace(log_signal=kernel.log_signal + 1.0))

        start, configs = random_model(PIPELINE), PIPELINE.sample(12, seed=1)
        train, validation = (
            [PastTask(rows, np.zeros(6))] for rows in (np.arange(6), np.arange(6, 12))
        )
        trained = train_on_past_tasks(
            start, configs, train, validation, seed=7, progress=SILENT, train_network=louder
        )
        assert trained.log_signal == pytest.approx(start.log_signal + 3.0)
        assert [seed for _, seed, _ in given] == [7, 8, 9]
        assert [schedule for _, _, schedule in given] == schedules_for(train)
        for curriculum, _, _ in given:
            np.testing.assert_array_equal(curriculum.x, start.layout.read(configs))
            assert (curriculum.tasks, curriculum.validation) == (train, validation)

    def test_random_networks_follow_the_seed(self) -> None:
        layout, configs = NetworkLayout.of(PIPELINE, SMALL), PIPELINE.sample(100, seed=0)
        one, other = (initial_network(layout, configs, seed) for seed in (0, 1))
        assert not np.allclose(one.layers[0][0], other.layers[0][0])
        phi, _ = PipelineEmbedding(layout).embed(other.layers, configs)
        usual = np.sqrt(2.0 * phi.var(axis=0).sum())
        assert other.log_lengthscale == pytest.approx(np.log(usual), abs=1e-4)

    def test_a_random_network_is_saved_as_its_seed(self, tmp_path: Path) -> None:
        prior = deeppipe_ri().learn(None, seed=5, progress=SILENT)
        prior.save(tmp_path / "prior")
        assert deeppipe_ri().load(tmp_path / "prior") == prior

    def test_the_network_is_tuned_to_the_prefix_that_is_due(self) -> None:
        """To the first 8 of 9 trials that double; again where any of these differs."""
        tune = RecordedTuning()
        start = with_a_mean(random_model(PIPELINE))
        configs, losses = PIPELINE.sample(9, seed=1), np.random.default_rng(0).random((9, 1))
        source = TunedNetwork(start, configs, steps=7, growth=2.0, fine_tune=tune)
        _, places = source.after(configs, losses)
        assert places(configs) is places(configs)
        [(x, z, mask, wishes)] = tune.calls
        due = configs.take(np.arange(8))
        assert mask.tolist() == [True] * 8 + [False] * 8
        np.testing.assert_array_equal(x[:8], start.layout.read(due))
        np.testing.assert_allclose(z[:8], start.scores(losses[:8], start.place(due)), rtol=1e-6)
        assert (wishes["steps"], wishes["trainable"]) == (7, None)
        source.after(due, losses[:8])
        assert len(tune.calls) == 1
        source.after(due, losses[:8] + np.eye(8)[:, :1])
        source.after(PIPELINE.sample(8, seed=2), losses[:8])
        assert len(tune.calls) == 3

    def test_the_network_is_tuned_to_the_informative_trials_of_many(self) -> None:
        tune = RecordedTuning()
        start, configs = random_model(PIPELINE), PIPELINE.sample(30, seed=1)
        losses = np.random.default_rng(0).random((30, 1))
        TunedNetwork(start, None, most_trials=10, fine_tune=tune).after(configs, losses)
        [(x, z, mask, _)] = tune.calls
        read = start.layout.read(configs).astype(np.float64)
        scores = start.scores(losses, start.place(configs))
        keep = informative_subset(read, scores, 10)
        np.testing.assert_array_equal(x[mask], read[keep])
        np.testing.assert_allclose(z[mask], scores[keep], rtol=1e-6)

    def test_training_fits_the_trials_better_than_random_weights(self) -> None:
        prior = RandomNetworkPrior(Sizes(factor=4), seed=0)
        surrogate = prior.surrogate(Target(PIPELINE))
        configs = PIPELINE.sample(48, seed=1)
        losses = np.sin(5.0 * np.nan_to_num(configs.x).sum(axis=1))
        trained = surrogate.condition(seen(configs, losses), seed=0)
        plain = DeepPipeSurrogate(FixedNetwork.on(surrogate.source.start, None))
        untrained_posterior = plain.condition(seen(configs, losses), seed=0)
        likelihoods = [
            posterior.model.log_marginal_likelihood for posterior in (trained, untrained_posterior)
        ]
        assert likelihoods[0] > likelihoods[1] + 5.0

    def test_two_more_networks_learn_one_half_each(self) -> None:
        """They say how well a network places trials that it has not learnt."""
        tune = RecordedTuning()
        start, configs = random_model(PIPELINE), PIPELINE.sample(9, seed=1)
        losses = np.random.default_rng(0).random((9, 1))
        source = TunedNetwork(start, None, growth=2.0, fine_tune=tune)
        halves = source.halves(configs, losses)
        assert [half.learnt.tolist() for half in halves] == [[0, 2, 4, 6], [1, 3, 5, 7]]
        for half, (x, _, mask, _) in zip(halves, tune.calls, strict=True):
            own = start.layout.read(configs.take(half.learnt))
            np.testing.assert_array_equal(x[mask], own)
            u, learnt = half.part(configs)
            assert (u.shape[0], np.flatnonzero(learnt).tolist()) == (9, half.learnt.tolist())
        assert source.halves(configs, losses) is halves
        assert source.halves(configs.take([0, 1, 2]), losses[:3]) == ()

    def test_a_network_that_has_learnt_the_trials_is_not_too_certain(self) -> None:
        """The squared errors on other pipelines have the size that the process expects."""
        surrogate = RandomNetworkPrior(Sizes(encoder_layers=2), seed=0).surrogate(Target(PIPELINE))
        configs, new = PIPELINE.sample(32, seed=1), PIPELINE.sample(300, seed=2)
        squared = []
        for seed in range(4):
            weights = np.random.default_rng(seed).standard_normal((configs.x.shape[1], 3))
            truth = [np.sin(3.0 * np.nan_to_num(c.x) @ weights).sum(axis=1) for c in (configs, new)]
            belief = surrogate.condition(seen(configs, truth[0]), seed=0).predict(new)
            error = (truth[1] - truth[0].mean()) / truth[0].std() - belief.mean
            squared.append(np.square(error / belief.std).mean())
        assert 0.7 < np.mean(squared) < 1.5


@pytest.fixture(scope="module")
def prior() -> DeepPipePrior:
    learner = DeepPipeLearner(SMALL, midrank_scores)
    return learner.learn(past(Space.of({"model": MODELS})), seed=0, progress=SILENT)


class TestNewAlgorithms:
    def test_only_the_new_encoder_learns(self, prior: DeepPipePrior) -> None:
        larger = Space.of({"model": {**MODELS, **FOREST}})
        with pytest.warns(ForetuneWarning, match="algorithm 'forest' of stage 'model'"):
            surrogate = prior.surrogate(Target(larger))
        assert surrogate.notes == ("algorithm 'forest' of stage 'model'",)
        configs = larger.sample(30, seed=0)
        tuned, places = surrogate.source.after(configs, np.arange(30.0)[:, None])
        start = surrogate.source.start
        is_forest = configs.values[:, 0] == 2
        moved = np.abs(tuned.place(configs).u - start.place(configs).u).max(axis=1)
        assert (moved[is_forest] > 1e-3).all()
        np.testing.assert_allclose(moved[~is_forest], 0.0, atol=1e-6)
        for part in (0, 1):  # of its encoder, weights and biases
            assert np.abs(tuned.layers[0][part] - start.layers[0][part]).max() > 1e-3
        np.testing.assert_array_equal(places(configs).u, tuned.place(configs).u)
        assert tuned.start.to_vector() == pytest.approx(start.start.to_vector(), abs=1e-5)
        assert tuned.log_lengthscale == pytest.approx(start.log_lengthscale, abs=1e-5)

    def test_scores_of_trials_stay_those_of_the_target(self, prior: DeepPipePrior) -> None:
        """On a described task they are ranks, also while a new encoder is trained."""
        larger = Space.of({"model": {**MODELS, **FOREST}})
        with pytest.warns(ForetuneWarning, match="forest"):
            surrogate = prior.surrogate(Target(larger, meta_features={"rows": 10.0}))
        tuned, _ = surrogate.source.after(larger.sample(6, seed=0), np.arange(6.0)[:, None])
        assert tuned.shares is midrank_shares

    def test_trials_of_a_new_algorithm_tell_of_itself(self, prior: DeepPipePrior) -> None:
        """Nothing is known of it before; one trial tells of its neighbours more than of others."""
        larger = Space.of({"model": {**MODELS, **FOREST}})
        with pytest.warns(ForetuneWarning, match="forest"):
            surrogate = prior.surrogate(Target(larger))
        svm = larger.encode([{"model": "svm", "model:svm:C": c} for c in (0.1, 0.5, 0.9)])
        forest = larger.encode(
            [{"model": "forest", "model:forest:trees": n} for n in (0.1, 0.2, 0.9)]
        )
        before = surrogate.condition(seen(svm, np.array([0.3, 0.1, 0.6])), seed=0)
        told = Encoded.concat([svm, forest.take([0])])
        after = surrogate.condition(seen(told, np.array([0.3, 0.1, 0.6, 0.9])), seed=0)
        assert before.predict(forest).std.min() > before.predict(svm).std.max()
        tried, near, far = after.predict(forest).std
        assert tried < near < far
        assert after.predict(forest).mean[0] > before.predict(forest).mean[0]

    def test_without_encoders_the_whole_network_learns(self) -> None:
        space, larger = (Space.of({"model": m}) for m in (MODELS, {**MODELS, **FOREST}))
        plain = DeepPipePrior(random_model(space, Sizes(2, 0, latent=4)), space.sample(5, seed=0))
        with pytest.warns(ForetuneWarning, match="forest"):
            surrogate = plain.surrogate(Target(larger))
        assert isinstance(surrogate.source, TunedNetwork)
        assert surrogate.source.trainable is None
        assert surrogate.source.rate == 1e-4  # that of the paper

    def test_the_opening_keeps_what_the_target_can_express(self, prior: DeepPipePrior) -> None:
        larger = Space.of({"model": {**MODELS, **FOREST}})
        assert prior.opening(Target(larger)).dicts() == prior.first.dicts()
        fewer = Space.of({"model": {"svm": {"C": (0.0, 1.0)}, "dummy": {}}})
        kept = prior.opening(Target(fewer)).dicts()
        assert kept == [config for config in prior.first.dicts() if config["model"] == "svm"]


class TestLearning:
    def test_past_tasks_tell_which_pipelines_are_alike(self, prior: DeepPipePrior) -> None:
        """Three trials tell that the task is an odd one, where large numbers are good."""
        space = Space.of({"model": MODELS})
        trials = space.encode([{"model": "svm", "model:svm:C": c} for c in (0.1, 0.5, 0.9)])
        odd = np.square(np.array([0.1, 0.5, 0.9]) - 0.8)
        belief = prior.surrogate(Target(space)).condition(seen(trials, odd), seed=0)
        trees = space.encode([{"model": "tree", "model:tree:depth": d} for d in (0.2, 0.8)])
        small, large = belief.predict(trees).mean
        assert large < small

    def test_the_seed_of_a_prior_decides_its_first_network(self) -> None:
        experience = past(Space.of({"model": MODELS}))
        learner = DeepPipeLearner(SMALL, midrank_scores)
        looked_at = experience.configs.take(np.random.default_rng(5).permutation(32))
        expected = initial_network(NetworkLayout.of(experience.space, SMALL), looked_at, 5)
        found = learner.first_network(experience, seed=5)
        assert found.log_lengthscale == pytest.approx(expected.log_lengthscale)
        for ours, theirs in zip(found.layers, expected.layers, strict=True):
            np.testing.assert_array_equal(ours[0], theirs[0])

    def test_named_validation_tasks_do_not_train(self) -> None:
        """Neither those that the experience names, nor those that are held out by the seed."""
        experience = past(Space.of({"model": MODELS}))
        named = {"train": experience.tasks[:6], "validation": experience.tasks[6:]}
        train, validation = parts(experience.with_splits({"learning": named}), midrank_scores, 0)
        assert (len(train), len(validation)) == (6, 2)
        train, validation = parts(experience, midrank_scores, 0)
        assert (len(train), len(validation)) == (7, 1)

    @pytest.mark.parametrize("seed", range(4))
    def test_tasks_without_a_success_are_not_held_out(self, seed: int) -> None:
        whole = past(Space.of({"model": MODELS}), tasks=4)
        status = whole.status.copy()
        status[whole.rows(whole.tasks[2])] = Status.FAILED
        experience = replace(whole, status=status)
        train, validation = parts(experience, midrank_scores, seed)
        assert (len(train), len(validation)) == (2, 1)

    def test_one_task_alone_trains_and_validates(self) -> None:
        experience = past(Space.of({"model": MODELS}), tasks=1)
        train, validation = parts(experience, midrank_scores, 0)
        assert (len(train), len(validation)) == (1, 1)

    def test_validation_tasks_replace_missing_training_tasks(self) -> None:
        whole = past(Space.of({"model": MODELS}), tasks=4)
        named = {"train": whole.tasks[:2], "validation": whole.tasks[2:]}
        experience = whole.with_splits({"learning": named}).without(whole.tasks[:2])
        train, validation = parts(experience, midrank_scores, 0)
        assert (len(train), len(validation)) == (2, 2)

    def test_without_any_success_the_error_says_so(self) -> None:
        whole = past(Space.of({"model": MODELS}), tasks=3)
        named = {"train": whole.tasks[:1], "validation": whole.tasks[1:2], "test": whole.tasks[2:]}
        experience = whole.with_splits({"learning": named}).without(whole.tasks[:1])
        status = np.full(len(experience.status), Status.FAILED, dtype=np.int8)
        with refuses("no-success", value=1, kind=MethodError):
            parts(replace(experience, status=status), midrank_scores, 0)
