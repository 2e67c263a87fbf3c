import numpy as np
import pytest

from foretune.methods.contracts import Observations, Target
from foretune.methods.gp.several_objectives import (
    LEAST_HOPE,
    MARGIN,
    MOST_BOXES,
    FrontSurrogate,
    _front_first,
    _hopes,
    _most_points,
    _thin_front,
)
from foretune.numerics.hypervolume import improving_boxes
from foretune.numerics.objectives import pareto_front
from foretune.numerics.scores import front_scores
from foretune.numerics.trend import Trend
from foretune.search.optimizer import Optimizer
from foretune.search.suggestions import Told
from foretune.space import Space
from foretune_lab.bench.metrics import hypervolume

SPACE = {"x": (0.0, 1.0), "y": (0.0, 1.0)}
BOTH = ("first", "second")
ALONG = Space.of(SPACE).names.index("x")


def hollow(config):
    """A front in the shape of a quarter of a circle, at y = 0.5."""
    radius = 1 + (config["y"] - 0.5) ** 2
    angle = config["x"] * np.pi / 2
    return radius * np.cos(angle), radius * np.sin(angle)


def searched(method, losses, trials, batch=1, objectives=BOTH):
    optimizer = Optimizer.of(SPACE, method=method, objectives=objectives, seed=0)
    for _ in range(trials // batch):
        asked = optimizer.ask(batch)
        optimizer.tell([Told(losses(each.config), id=each.id) for each in asked])
    return optimizer.told


@pytest.mark.parametrize(("method", "batch"), [("gcp-smooth", 1), ("auto", 4)])
def test_trials_spread_over_a_hollow_front(method, batch):
    told = searched(method, hollow, 24, batch)
    along = told.configs.x[:, ALONG][8:]
    # Each quarter of the front is met. A weighted sum would only find its ends.
    assert {*np.minimum(along * 4, 3).astype(int)} == {0, 1, 2, 3}


def test_three_objectives_are_searched_alike():
    def corners(config):
        x, y = config["x"], config["y"]
        return x**2 + y**2, (x - 1) ** 2 + y**2, x**2 + (y - 1) ** 2

    def covered(method):
        told = searched(method, corners, 16, objectives=("a", "b", "c"))
        return hypervolume(told.losses, np.full(3, 1.0))

    assert covered("gcp-smooth") > 1.1 * covered("random")


def test_the_average_is_what_it_predicts_and_each_is_told_apart():
    space = Space.of(SPACE)
    configs = space.sample(12, seed=0)
    losses = np.array([hollow(config) for config in configs.dicts()])
    seen = Observations(configs, losses, np.zeros(12, dtype=bool))
    surrogate = FrontSurrogate.of(Target(space, BOTH))
    posterior = surrogate.condition(seen, seed=0)
    each = posterior.predict_each(configs)
    np.testing.assert_allclose(posterior.predict(configs).mean, each.mean(axis=1))
    for column in range(2):
        order = np.corrcoef(each[:, column], front_scores(losses)[:, column])[0, 1]
        assert order > 0.95
    draws = posterior.sample(configs, 2_000, seed=1)
    predicted = posterior.predict(configs)
    np.testing.assert_allclose(draws.mean(axis=0), predicted.mean, atol=0.1)
    np.testing.assert_allclose(draws.std(axis=0), predicted.std, atol=0.1)


def conditioned(losses, believed=0):
    n = len(losses)
    configs = Space.of(SPACE).sample(n, seed=0)
    seen = Observations(configs, losses, np.arange(n) >= n - believed)
    return FrontSurrogate.of(Target(Space.of(SPACE), BOTH)).condition(seen, seed=0)


def test_what_would_be_gained_by_hand():
    """The front is the last and the second, the worst the third; no best is of the later half.

    The losses have the means 0.75 and 0.875, and the variances 0.6875 and 0.546875.
    """
    posterior = conditioned(np.array([[0.0, 1.0], [1.0, 0.0], [2.0, 2.0], [0.0, 0.5]]))
    scores = np.array([[0.0, 0.5], [1.0, 0.0], [2.0, 2.0]])
    scores = (scores - [0.75, 0.875]) / np.sqrt([0.6875, 0.546875])
    front, worst = scores[:2], scores[2]
    reference = 0.5 * (worst + front.max(axis=0)) + MARGIN
    np.testing.assert_allclose(posterior.boxes.upper.max(axis=0), reference)
    np.testing.assert_allclose(posterior.boxes.lower.min(axis=0), front.min(axis=0) - 0.1)
    # Of two objectives one extent is left: the geometric mean of both.
    extents = reference - front.min(axis=0)
    assert np.exp(posterior.log_unit) == pytest.approx(np.sqrt(extents.prod()))
    assert posterior.best == pytest.approx(front[0].mean())


def test_an_objective_may_gain_as_much_as_it_has_lately():
    scores = np.array([[2.0, 0.0], [1.5, 1.0], [0.9, 1.0], [1.2, 0.5]])
    np.testing.assert_allclose(_hopes(scores), [0.6, LEAST_HOPE])
    np.testing.assert_allclose(_hopes(scores[:1]), [LEAST_HOPE, LEAST_HOPE])


def test_expected_losses_of_pending_trials_are_no_observations():
    """It counts as a point of the front, but neither for trends and hyperparameters nor as best."""
    losses = np.random.default_rng(0).random((9, 2))
    losses[8] = 0.0
    posterior, alone = conditioned(losses, believed=1), conditioned(losses[:8])
    for model, same in zip(posterior.models, alone.models, strict=True):
        told, others = model.process.hyper.to_vector(), same.process.hyper.to_vector()
        np.testing.assert_array_equal(told, others)
        assert len(model.process.x) == 9
    scores = front_scores(losses)
    for place, model in enumerate(posterior.models):
        x = model.process.x
        np.testing.assert_allclose(model.trend(x), Trend.fit(x[:8], scores[:8, place])(x))
    assert posterior.best == pytest.approx(scores[:8].mean(axis=1).min())
    hopes = _hopes(scores[:8])
    np.testing.assert_allclose(posterior.boxes.lower.min(axis=0), scores[8] - hopes)


def test_many_trials_at_one_end_do_not_hide_the_other():
    """Thirty trials have all but the same losses; the other end of the front is no outlier."""
    rng = np.random.default_rng(0)
    end = np.column_stack([1 + 0.01 * rng.random(30), 1e-6 * rng.random(30), np.zeros(30)])
    others = np.array([[0.0, 1.0, 0.0], [0.0, 0.0, 1.0], [0.5, 0.6, 0.7], [9.0, 9.0, 9.0]])
    scores = front_scores(np.concatenate([end, others]))
    assert (np.ptp(scores[:30], axis=0) < 0.1).all()
    assert scores[30, 1] - scores[32, 1] == pytest.approx(
        0.4 / 0.6 * (scores[32, 1] - scores[31, 1])
    )
    assert scores[33, 1] == scores[30, 1]


def test_quick_failures_with_a_penalty_are_no_end_of_a_front():
    """It is the quickest, and no other trial has as little of the second loss."""
    rng = np.random.default_rng(0)
    losses = rng.random((12, 2)) + np.array([0.0, 1.0])
    failed = np.array([[1e9, 0.0], [1e6, 0.01]])
    scores, alone = front_scores(np.concatenate([losses, failed])), front_scores(losses)
    assert np.corrcoef(scores[:12, 0], alone[:, 0])[0, 1] == pytest.approx(1.0)
    assert np.ptp(scores[:12, 0]) > 1.0


def test_no_corner_of_a_front_is_tried_again_and_again():
    """DTLZ2 of three objectives: a trend tells what a whole side of the space has in common."""

    def sphere(config):
        x = np.array([config[f"x{i}"] for i in range(6)])
        radius = 1 + np.square(x[2:] - 0.5).sum()
        cos, sin = np.cos(x[:2] * np.pi / 2), np.sin(x[:2] * np.pi / 2)
        return radius * np.array([cos.prod(), cos[0] * sin[1], sin[0]])

    space = {f"x{i}": (0.0, 1.0) for i in range(6)}
    optimizer = Optimizer.of(space, method="gcp-smooth", objectives=("a", "b", "c"), seed=0)
    for _ in range(20):
        [suggestion] = optimizer.ask()
        optimizer.tell([Told(sphere(suggestion.config), id=suggestion.id)])
    # Of the whole box the front has 0.84. Without the trend it is 0.44 here.
    assert hypervolume(optimizer.told.losses, np.full(3, 1.5)) / 1.5**3 > 0.65


def test_the_unit_of_an_objective_does_not_matter():
    told = searched("gcp-smooth", hollow, 8)
    scaled = searched("gcp-smooth", lambda c: np.array(hollow(c)) * [1.0, 1000.0], 8)
    np.testing.assert_allclose(told.configs.x, scaled.configs.x)


def test_a_long_front_is_thinned_to_the_most_balanced_point_and_points_far_from_it():
    t = np.linspace(0, 1, 60)
    scores = np.column_stack([t, 1 - t, -t * (1 - t)])  # all of them are on the front
    front = _thin_front(scores[pareto_front(scores)])
    assert len(front) == _most_points(3) < 60
    np.testing.assert_array_equal(front[0], scores[scores.mean(axis=1).argmin()])
    np.testing.assert_array_equal(front.min(axis=0), scores.min(axis=0))


@pytest.mark.parametrize("objectives", [2, 3, 4, 5, 8, 12])
def test_however_many_objectives_there_are_boxes_stay_few(objectives):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(300, objectives))
    front = _thin_front(scores[pareto_front(scores)])
    boxes = improving_boxes(front, scores.max(axis=0) + 0.1, front.min(axis=0) - 0.1)
    assert len(boxes.lower) <= MOST_BOXES


def test_the_front_is_better_than_all_others():
    scores = np.array([[0.0, 9.0], [4.0, 5.0], [9.0, 0.0], [4.2, 5.2]])
    assert _front_first(scores, pareto_front(scores)).argmax() == 3


def test_auto_says_that_the_front_was_widened():
    optimizer = Optimizer.of(SPACE, objectives=BOTH, seed=0)
    for suggestion in optimizer.ask(5):
        optimizer.tell([Told(hollow(suggestion.config), id=suggestion.id)])
    assert "one for each objective, chose trials that widen the front." in optimizer.explain()
