import numpy as np
import pytest

from foretune.bench.metrics import hypervolume
from foretune.contracts import Observations, SideBySide, Target
from foretune.methods.baselines.front import (
    MARGIN,
    MOST_BOXES,
    FrontSurrogate,
    _front,
    _front_first,
    _most_points,
)
from foretune.numerics.hypervolume import improving_boxes
from foretune.numerics.scores import drawn_in_scores
from foretune.search.optimizer import Optimizer
from foretune.search.trials import Told
from foretune.space import Space

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


@pytest.mark.parametrize("method", ["gcp-smooth", "auto"])
@pytest.mark.parametrize("batch", [1, 4])
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
        told = searched(method, corners, 25, objectives=("a", "b", "c"))
        return hypervolume(told.losses, np.full(3, 1.0))

    assert covered("gcp-smooth") > 1.1 * covered("random")


def test_the_average_is_what_it_predicts_and_each_is_told_apart():
    space = Space.of(SPACE)
    configs = space.sample(12, seed=0)
    losses = np.array([hollow(config) for config in configs.dicts()])
    seen = Observations(configs, losses, np.zeros(12, dtype=bool))
    surrogate = FrontSurrogate.on(drawn_in_scores, Target(space, BOTH))
    posterior = surrogate.condition(seen, seed=0)
    assert isinstance(posterior, SideBySide)
    each = posterior.predict_each(configs)
    np.testing.assert_allclose(posterior.predict(configs).mean, each.mean(axis=1))
    for column in range(2):
        order = np.corrcoef(each[:, column], drawn_in_scores(losses[:, column]))[0, 1]
        assert order > 0.95
    draws = posterior.sample(configs, 2_000, seed=1)
    predicted = posterior.predict(configs)
    np.testing.assert_allclose(draws.mean(axis=0), predicted.mean, atol=0.1)
    np.testing.assert_allclose(draws.std(axis=0), predicted.std, atol=0.1)


def conditioned(losses, believed=0):
    n = len(losses)
    configs = Space.of(SPACE).sample(n, seed=0)
    seen = Observations(configs, losses, np.arange(n) >= n - believed)
    surrogate = FrontSurrogate.on(lambda y: y, Target(Space.of(SPACE), BOTH))
    return surrogate.condition(seen, seed=0)


def test_what_would_be_gained_by_hand():
    """The front (0, 2), (1, 0), beside it (3, 5): halfway to the worst, and 0.1 below the best."""
    posterior = conditioned(np.array([[0.0, 2.0], [1.0, 0.0], [3.0, 5.0]]))
    reference = np.array([0.5 * (3 + 1), 0.5 * (5 + 2)]) + MARGIN
    np.testing.assert_allclose(posterior.boxes.upper.max(axis=0), reference)
    np.testing.assert_allclose(posterior.boxes.lower.min(axis=0), [-0.1, -0.1])
    # Of two objectives one extent is left: the geometric mean of both.
    assert np.exp(posterior.log_unit) == pytest.approx(np.sqrt(reference.prod()))
    assert posterior.best == 0.5


def test_what_is_believed_of_pending_trials_is_no_observation():
    """It counts as a point of the front, but neither for hyperparameters nor as the best."""
    losses = np.random.default_rng(0).random((9, 2))
    losses[8] = -1.0
    posterior, alone = conditioned(losses, believed=1), conditioned(losses[:8])
    for model, same in zip(posterior.models, alone.models, strict=True):
        np.testing.assert_array_equal(model.hyper.to_vector(), same.hyper.to_vector())
        assert len(model.x) == 9
    assert posterior.best == pytest.approx(losses[:8].mean(axis=1).min())
    np.testing.assert_allclose(posterior.boxes.lower.min(axis=0), [-1.1, -1.1])


def test_the_unit_of_an_objective_does_not_matter():
    told = searched("gcp-smooth", hollow, 12)
    scaled = searched("gcp-smooth", lambda c: np.array(hollow(c)) * [1.0, 1000.0], 12)
    np.testing.assert_allclose(told.configs.x, scaled.configs.x)


def test_of_a_long_front_the_most_balanced_and_others_far_from_it_count():
    t = np.linspace(0, 1, 60)
    scores = np.column_stack([t, 1 - t, -t * (1 - t)])  # all of them are on the front
    front = _front(scores)
    assert len(front) == _most_points(3) < 60
    np.testing.assert_array_equal(front[0], scores[scores.mean(axis=1).argmin()])
    np.testing.assert_array_equal(front.min(axis=0), scores.min(axis=0))


@pytest.mark.parametrize("objectives", [2, 3, 4, 5, 8, 12])
def test_however_many_objectives_there_are_boxes_stay_few(objectives):
    rng = np.random.default_rng(0)
    scores = rng.normal(size=(300, objectives))
    front = _front(scores)
    boxes = improving_boxes(front, scores.max(axis=0) + 0.1, front.min(axis=0) - 0.1)
    assert len(boxes.lower) <= MOST_BOXES


def test_the_front_is_better_than_all_others():
    scores = np.array([[0.0, 9.0], [4.0, 5.0], [9.0, 0.0], [4.2, 5.2]])
    assert _front_first(scores).argmax() == 3


def test_auto_says_that_the_front_was_widened():
    optimizer = Optimizer.of(SPACE, objectives=BOTH, seed=0)
    for suggestion in optimizer.ask(5):
        optimizer.tell([Told(hollow(suggestion.config), id=suggestion.id)])
    assert "one for each objective, chose what widens the front." in optimizer.explained()
