import numpy as np
import pytest
from scipy.integrate import quad
from scipy.stats import norm

from foretune.errors import ArtifactError, MethodError
from foretune.methods.contracts import Observations, Prediction, Target
from foretune.search import Method, method
from foretune.space import Space
from foretune.testing import problem
from foretune_lab.baselines.sgpt import TransferPosterior, sgpt, sgpt_copula
from tests.methods.baselines.examples import SPACE, mean_regret, small_experience
from tests.refusals import refuses

SGPT = Method("sgpt", "past processes vote", sgpt, acquisition="own", needs_experience=True)
SGPT_COPULA = Method("sgpt-copula", "scores", sgpt_copula, acquisition="own", needs_experience=True)


class Fixed:
    """A posterior whose belief is the same everywhere."""

    best = 0.5

    def predict(self, x):
        return Prediction(np.zeros(len(x)), np.full(len(x), 2.0))

    def sample(self, x, n, *, seed):
        return np.zeros((n, len(x)))


def test_the_utility_is_the_weighted_mean_of_improvements():
    improvement = quad(lambda f: (0.5 - f) * norm(0.0, 2.0).pdf(f), -30.0, 0.5)[0]
    posterior = TransferPosterior(
        own=Fixed(),
        past_means=(lambda x: np.array([0.0, 3.0]), lambda x: np.array([1.0, -1.0])),
        weights=np.array([0.75, 0.25]),
        past_best=np.array([1.0, 1.0]),
    )
    x = SPACE.sample(2, seed=0)
    first = (0.75 * improvement + 0.75 * 1.0) / 1.75
    second = (0.75 * improvement + 0.25 * 2.0) / 1.75
    np.testing.assert_allclose(np.exp(posterior.log_utility(x)), [first, second], rtol=1e-7)


def test_past_tasks_that_rank_the_trials_otherwise_are_ignored():
    flat = problem("flat")
    configs = flat.space.sample(12, seed=8)
    prior = SGPT.learn(flat.experience, seed=0)
    surrogate = prior.surrogate(flat.target())

    def weights(losses):
        seen = Observations(configs, losses[:, None], np.zeros(12, dtype=bool))
        return surrogate.condition(seen, seed=0).weights

    as_the_third = prior.sources.processes[2].mean(configs.x)
    assert weights(as_the_third)[2] == pytest.approx(0.75)
    assert not weights(-as_the_third).any()


def test_believed_trials_move_the_incumbents_of_the_past_but_no_weight():
    flat = problem("flat")
    prior = SGPT.learn(flat.experience, seed=0)
    surrogate = prior.surrogate(flat.target())
    configs = flat.space.sample(6, seed=8)
    losses = prior.sources.processes[2].mean(configs.x)
    order = np.argsort(-losses)  # the best comes last and is only believed
    configs, losses = configs.take(order), losses[order]
    losses[-1] = 99.0
    believed = np.arange(6) == 5
    with_belief = surrogate.condition(Observations(configs, losses[:, None], believed), seed=0)
    five = Observations(configs.take(np.arange(5)), losses[:5, None], believed[:5])
    without = surrogate.condition(five, seed=0)
    np.testing.assert_array_equal(with_belief.weights, without.weights)
    assert with_belief.past_best[2] < without.past_best[2]


def test_the_pool_gets_the_same_utility_as_any_other_configurations():
    flat = problem("flat")
    prior = SGPT.learn(flat.experience, seed=0)
    seen = Observations(flat.pool.take([0]), np.array([[1.0]]), np.zeros(1, dtype=bool))
    posterior = prior.surrogate(flat.target(pool=True)).condition(seen, seed=0)
    for _ in range(2):
        copied = posterior.log_utility(flat.pool.take(np.arange(len(flat.pool))))
        np.testing.assert_array_equal(posterior.log_utility(flat.pool), copied)


def test_another_space_and_the_other_output_are_refused(tmp_path):
    prior = SGPT.learn(small_experience(), seed=0)
    with refuses("prior-of-another-space", kind=MethodError):
        prior.surrogate(Target(Space.of({"width": (0.0, 10.0)})))
    prior.save(tmp_path / "prior")
    with pytest.raises(ArtifactError, match="sgpt-copula"):
        SGPT_COPULA.load(tmp_path / "prior")


@pytest.mark.parametrize("entry", [SGPT, SGPT_COPULA], ids=lambda entry: entry.name)
def test_it_beats_random_search_on_related_tasks(entry):
    prior = entry.learn(problem("flat").experience, seed=0)
    random = method("random")
    ours = mean_regret(entry, prior, trials=10, seeds=3)
    assert ours < 0.7 * mean_regret(random, random.learn(None, seed=0), trials=10, seeds=3)
