from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import norm

from foretune.errors import MethodError
from foretune.methods.contracts import Observations, Target
from foretune.methods.copula.model import CopulaPrior, CopulaSettings, _residuals
from foretune.methods.copula.prior import ObjectiveNetworks, ScoreBelief
from foretune.numerics.anchored import AnchoredFit, AnchorLimits
from foretune.numerics.gp import GP, fit_hyper
from foretune.numerics.hyper import GPHyper
from foretune.numerics.scores import midrank_shares, scores_from_past, smooth_shares
from foretune.numerics.transforms import Standardise, copula_scores, standardise
from foretune.search import Design, Method, Optimizer, Told
from foretune.search.seeds import derive_seed
from foretune.space import Encoded, Space
from tests.refusals import refuses

SPACE = Space.of({"a": (0.0, 1.0), "b": (0.0, 1.0)})

# A network without hidden layers: mu = 4 a - 2, and sigma = softplus(0.5) + 0.001 everywhere.
WEIGHTS = np.array([[4.0, 0.0], [0.0, 0.0]], np.float32)
PLAIN = ObjectiveNetworks((((WEIGHTS, np.array([-2.0, 0.5], np.float32)),),))
SIGMA = np.log1p(np.exp(0.5)) + 0.001


def prior(**settings: object) -> CopulaPrior:
    return CopulaPrior("test", SPACE, PLAIN, CopulaSettings(**settings))


def seen(configs: Encoded, losses: list[float]) -> Observations:
    n = len(losses)
    return Observations(configs, np.array(losses)[:, None], np.zeros(n, dtype=bool))


def told(losses: np.ndarray, weights: list[float], mu, sigma) -> np.ndarray:
    return np.column_stack([losses, np.tile(weights, (len(losses), 1)), mu, sigma])


def test_residuals_by_hand() -> None:
    """Three losses with Winsorised scores, minus mu, over sigma."""
    losses = np.array([3.0, 1.0, 2.0])
    mu, sigma = np.array([0.5, -1.0, 0.0]), np.array([1.0, 2.0, 0.5])
    cut = 1 / (4 * 3**0.25 * np.sqrt(np.pi * np.log(3)))
    z = norm.ppf(np.clip([3 / 3, 1 / 3, 2 / 3], cut, 1 - cut))
    residuals = _residuals(told(losses, [1.0], mu, sigma), CopulaSettings(), 1)
    np.testing.assert_allclose(residuals, (z - mu) / sigma)


@pytest.mark.parametrize(
    ("how", "transform"), [("copula", copula_scores), ("standardise", standardise)]
)
def test_several_objectives_are_a_weighted_sum_of_scores(how, transform) -> None:
    losses = np.array([[1.0, 9.0], [2.0, 5.0], [3.0, 7.0]])
    mean = 0.3 * transform(losses[:, 0]) + 0.7 * transform(losses[:, 1])
    residuals = _residuals(
        told(losses, [0.3, 0.7], np.zeros(3), np.ones(3)), CopulaSettings(target=how), 2
    )
    np.testing.assert_allclose(residuals, mean)


def test_the_belief_of_a_weighted_sum_by_hand() -> None:
    belief = ScoreBelief(np.array([[1.0, -2.0]]), np.array([[0.3, 0.4]]))
    mu, sigma = belief.weighted_sum(np.array([0.5, 0.5]))
    assert mu[0] == -0.5
    assert sigma[0] == pytest.approx(0.25)


def test_equal_weights_have_a_network_of_their_own() -> None:
    average = np.array([0.2]), np.array([0.1])
    belief = ScoreBelief(np.array([[1.0, -2.0]]), np.array([[0.3, 0.4]]), average)
    assert belief.weighted_sum(np.array([0.5, 0.5])) == average
    assert belief.weighted_sum(np.array([1.0, 0.0]))[0] == 1.0


def test_weights_are_alike_or_drawn_by_the_seed() -> None:
    np.testing.assert_array_equal(CopulaSettings().weights(2, seed=1), [0.5, 0.5])
    drawn = CopulaSettings(random_weights=True)
    assert drawn.weights(3, seed=1).sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(drawn.weights(3, seed=1), drawn.weights(3, seed=1))
    assert (drawn.weights(3, seed=1) != drawn.weights(3, seed=2)).any()
    np.testing.assert_array_equal(drawn.weights(1, seed=1), [1.0])


def test_without_observations_the_belief_is_the_prior() -> None:
    surrogate = prior().surrogate(Target(SPACE))
    configs = SPACE.encode([{"a": 0.0, "b": 0.3}, {"a": 1.0, "b": 0.3}])
    belief = surrogate.condition(seen(configs.take([]), []), seed=0).predict(configs)
    np.testing.assert_allclose(belief.mean, [-2.0, 2.0], atol=1e-6)
    np.testing.assert_allclose(belief.std, SIGMA, atol=1e-6)


def test_thompson_draws_have_the_priors_moments() -> None:
    surrogate = prior(adapts=False).surrogate(Target(SPACE))
    configs = SPACE.encode([{"a": 0.0, "b": 0.3}, {"a": 1.0, "b": 0.3}])
    posterior = surrogate.condition(seen(configs, [1.0, 2.0]), seed=0)
    draws = posterior.sample(configs, 20_000, seed=1)
    np.testing.assert_allclose(draws.mean(axis=0), [-2.0, 2.0], atol=0.03)
    np.testing.assert_allclose(draws.std(axis=0), SIGMA, atol=0.03)
    assert abs(np.corrcoef(draws.T)[0, 1]) < 0.03


def test_the_first_trials_are_draws_from_the_prior_whatever_they_gave() -> None:
    """Algorithm 1, and the start of Algorithm 2: the lowest of one draw for each candidate."""
    pool = SPACE.sample(40, seed=0)
    mu, opening = 4.0 * pool.x[:, 0] - 2.0, Method("test", "", lambda: None, Design("prior", 3))
    optimizer = Optimizer(Target(SPACE, pool=pool), opening, prior(), seed=5)
    tried: list[int] = []
    for number in range(3):
        draws = np.random.default_rng(derive_seed(5, number, 0)).standard_normal(40)
        expected = np.delete(np.arange(40), tried)[np.delete(mu + SIGMA * draws, tried).argmin()]
        [suggestion] = optimizer.ask()
        assert (suggestion.pool_index, suggestion.reason) == (expected, "thompson")
        tried.append(int(expected))
        optimizer.tell([Told((float(number == 0),), id=suggestion.id)])
    assert optimizer.ask()[0].reason == "ei"


def test_in_a_whole_space_too_thompson_sampling_looks_at_no_loss() -> None:
    """A local search from the best trials would."""
    sampling = Method("test", "", lambda: None, Design("prior", None), "thompson")
    tried = SPACE.sample(6, seed=2)

    def next_after(losses: list[float], seed: int) -> dict[str, float]:
        optimizer = Optimizer(Target(SPACE), sampling, prior(adapts=False), seed=seed)
        outcomes = zip(losses, tried.dicts(), strict=True)
        optimizer.tell([Told((loss,), config=config) for loss, config in outcomes])
        return optimizer.ask()[0].config

    losses = [0.1, 0.5, 0.2, 0.9, 0.4, 0.7]
    for seed in range(10):
        assert next_after(losses, seed) == next_after(losses[::-1], seed)


def test_the_posterior_maps_the_residual_process_back() -> None:
    """mu_g = mu_r sigma + mu and sigma_g = sigma_r sigma (section 4.2)."""
    surrogate = prior().surrogate(Target(SPACE))
    configs, new = SPACE.sample(8, seed=0), SPACE.sample(5, seed=1)
    losses = np.arange(8.0)
    posterior = surrogate.condition(seen(configs, list(losses)), seed=0)
    belief = PLAIN.believe(configs.x)
    rows = told(losses, [1.0], belief.mu, belief.sigma)
    hyper = surrogate.fit.hyper(configs.x, rows)
    residual = GP.condition(
        configs.x, _residuals(rows, CopulaSettings(), 1), hyper, units=Standardise(0.0, 1.0)
    )
    mean, std = residual.predict(new.x)
    belief = posterior.predict(new)
    np.testing.assert_allclose(belief.mean, mean * SIGMA + 4 * new.x[:, 0] - 2, atol=1e-5)
    np.testing.assert_allclose(belief.std, std * SIGMA, atol=1e-5)
    assert posterior.best == pytest.approx(copula_scores(losses).min(), abs=1e-6)


def test_draws_after_trials_have_the_predicted_moments() -> None:
    """With a standard deviation of 3, which must not be left out."""
    wide = ObjectiveNetworks((((WEIGHTS, np.array([-2.0, 2.95], np.float32)),),))
    surrogate = CopulaPrior("test", SPACE, wide, CopulaSettings()).surrogate(Target(SPACE))
    configs, new = SPACE.sample(8, seed=0), SPACE.sample(5, seed=1)
    posterior = surrogate.condition(seen(configs, list(np.arange(8.0))), seed=0)
    draws, belief = posterior.sample(new, 4000, seed=0), posterior.predict(new)
    np.testing.assert_allclose(draws.mean(axis=0), belief.mean, atol=0.1)
    np.testing.assert_allclose(draws.std(axis=0), belief.std, rtol=0.05)


def test_draws_follow_their_seed() -> None:
    surrogate = prior().surrogate(Target(SPACE))
    configs, new = SPACE.sample(8, seed=0), SPACE.sample(5, seed=1)
    for told in (seen(configs.take([]), []), seen(configs, list(np.arange(8.0)))):
        posterior = surrogate.condition(told, seed=0)
        first = posterior.sample(new, 2, seed=1)
        np.testing.assert_array_equal(first, posterior.sample(new, 2, seed=1))
        assert (first != posterior.sample(new, 2, seed=2)).all()


def test_expected_losses_of_pending_trials_are_no_observations() -> None:
    """It does not move the hyperparameters, but is to be beaten."""
    surrogate = prior().surrogate(Target(SPACE))
    configs, losses = SPACE.sample(9, seed=0), np.array([5.0, 3, 7, 1, 8, 6, 2, 4, 0])
    alone = surrogate.condition(seen(configs.take(np.arange(8)), list(losses[:8])), seed=0)
    pending = Observations(configs, losses[:, None], np.arange(9) == 8)
    posterior = surrogate.condition(pending, seed=0)
    np.testing.assert_array_equal(posterior.model.hyper.to_vector(), alone.model.hyper.to_vector())
    assert len(posterior.model.x) == 9
    scores = copula_scores(losses)
    assert posterior.best == pytest.approx(scores[8], abs=1e-6)
    assert scores[8] < scores[3]


@pytest.mark.parametrize(("grouped", "shared"), [(True, True), (False, False)])
def test_choices_of_one_hyperparameter_share_a_lengthscale_where_grouped(grouped, shared) -> None:
    space = Space.of({"a": (0.0, 1.0), "kind": ["p", "q", "r"]})
    networks = ObjectiveNetworks((((np.zeros((4, 2), np.float32), np.zeros(2, np.float32)),),))
    model = CopulaPrior("test", space, networks, CopulaSettings(grouped=grouped, prior_weight=1.0))
    configs = space.sample(12, seed=0)
    losses = configs.x[:, 0] + 3.0 * configs.x[:, space.column_groups == 1][:, 0]
    posterior = model.surrogate(Target(space)).condition(seen(configs, list(losses)), seed=0)
    scales = posterior.model.hyper.log_lengthscales[space.column_groups == 1]
    assert (np.ptp(scales) == 0.0) == shared


@pytest.mark.parametrize(
    ("described", "shares"), [({}, smooth_shares), ({"rows": 5.0}, midrank_shares)]
)
def test_informed_scores_are_by_rank_on_a_described_task_and_else_smoothed(described, shares):
    surrogate = prior(target="informed").surrogate(Target(SPACE, meta_features=described))
    configs, losses = SPACE.sample(6, seed=0), np.array([5.0, 3.0, 7.0, 1.0, 1.1, 6.0])
    posterior = surrogate.condition(seen(configs, list(losses)), seed=0)
    belief = PLAIN.believe(configs.x)
    scores = scores_from_past(losses, belief.mu[:, 0], belief.sigma[:, 0], shares=shares)
    assert posterior.best == pytest.approx(scores.min(), abs=1e-6)


def test_the_prior_of_hyperparameters_counts_as_the_variant_says() -> None:
    configs, losses = SPACE.sample(10, seed=0), np.sin(9.0 * np.arange(10.0))
    found = {}
    for weight in (0.01, 1.0):
        surrogate = prior(prior_weight=weight).surrogate(Target(SPACE))
        model = surrogate.condition(seen(configs, list(losses)), seed=0).model
        found[weight] = model.hyper
        refit = fit_hyper(
            configs.x, model.y, starts=[model.hyper], units=model.units, prior_weight=weight
        )
        np.testing.assert_allclose(refit.to_vector(), model.hyper.to_vector(), atol=0.05)
    assert np.abs(found[0.01].to_vector() - found[1.0].to_vector()).max() > 0.2


def test_informed_scores_rank_one_objective_by_its_losses_and_several_by_their_scores() -> None:
    """Winsorised scores of many losses make the best equal, so one loss is ranked as it is."""
    rng = np.random.default_rng(0)
    mu, sigma = rng.normal(size=40), rng.uniform(0.5, 1.0, 40)
    settings = CopulaSettings(target="informed", shares=midrank_shares, doubt=0.3)
    one = rng.random(40)
    expected = scores_from_past(one, mu, sigma, doubt=0.3, shares=midrank_shares)
    assert len(np.unique(copula_scores(one))) < len(np.unique(expected))
    found = _residuals(told(one, [1.0], mu, sigma), settings, 1)
    np.testing.assert_allclose(found * sigma + mu, expected)
    two = rng.random((40, 2))
    together = 0.2 * copula_scores(two[:, 0]) + 0.8 * copula_scores(two[:, 1])
    expected = scores_from_past(together, mu, sigma, doubt=0.3, shares=midrank_shares)
    found = _residuals(told(two, [0.2, 0.8], mu, sigma), settings, 2)
    np.testing.assert_allclose(found * sigma + mu, expected)


def test_hidden_units_are_rectified_and_the_last_layer_is_not() -> None:
    hidden = (np.array([[1.0, -1.0]], np.float32), np.array([0.0, 0.25], np.float32))
    last = (np.array([[2.0, 0.0], [-4.0, 1.0]], np.float32), np.array([-3.0, 0.5], np.float32))
    belief = ObjectiveNetworks(((hidden, last), (hidden, last))).believe(np.array([[1.0], [0.0]]))
    # At 1 the units are 1 and 0, at 0 they are 0 and 1/4.
    np.testing.assert_allclose(belief.mu, [[-1.0, -1.0], [-4.0, -4.0]])
    before = np.array([[0.5, 0.5], [0.75, 0.75]])
    np.testing.assert_allclose(belief.sigma, np.log1p(np.exp(before)) + 0.001)


def test_the_best_of_very_many_trials_are_kept() -> None:
    """A trial that is as good as the prior expects has no residual, and may be the best of all."""
    kept = []

    def record(x: np.ndarray, z: np.ndarray, **options: object) -> GPHyper:
        kept.append(x)
        return fit_hyper(x, z, **options)

    surrogate = prior().surrogate(Target(SPACE))
    limits = AnchorLimits(largest_fit=80, largest_gp=80)
    fit = AnchoredFit(
        output=surrogate.fit.output, order=surrogate.fit.order, limits=limits, fit=record
    )
    configs = SPACE.sample(200, seed=0)
    losses = 4.0 * configs.x[:, 0] + 0.1 * np.sin(20.0 * configs.x[:, 1])
    posterior = replace(surrogate, fit=fit).condition(seen(configs, list(losses)), seed=0)
    best = {tuple(row) for row in configs.x[np.argsort(losses)[:16]]}
    assert best <= {tuple(row) for row in posterior.model.x}
    assert best <= {tuple(row) for row in kept[-1]}


def test_a_wrong_prior_is_overcome_by_the_targets_own_trials() -> None:
    """The prior calls a = 0 best; the target's best is a = 0.8."""
    chosen = Method("test", "", lambda: None, design=Design("prior", 5))
    optimizer = Optimizer(Target(SPACE), chosen, prior(target="informed", prior_weight=1.0), seed=0)
    for _ in range(25):
        s = optimizer.ask()[0]
        loss = (s.config["a"] - 0.8) ** 2 + 0.1 * (s.config["b"] - 0.5) ** 2
        optimizer.tell([Told((loss,), id=s.id)])
    assert optimizer.told.losses.min() < 0.005


def test_the_pools_belief_is_computed_once() -> None:
    pool = SPACE.sample(50, seed=0)
    calls = []

    class CountingNetworks(ObjectiveNetworks):
        def believe(self, x: np.ndarray) -> ScoreBelief:
            calls.append(len(x))
            return PLAIN.believe(x)

    counting = replace(prior(), networks=CountingNetworks(PLAIN.layers))
    surrogate = counting.surrogate(Target(SPACE, pool=pool))
    for n in (2, 3, 4):
        surrogate.condition(
            seen(pool.take(np.arange(n)), list(np.arange(n) * 1.0)), seed=0
        ).predict(pool)
    assert calls.count(50) == 1


def test_a_target_with_another_number_of_objectives_is_refused() -> None:
    with refuses("prior-of-other-objectives", value=("a", "b"), kind=MethodError):
        prior().surrogate(Target(SPACE, ("a", "b")))
