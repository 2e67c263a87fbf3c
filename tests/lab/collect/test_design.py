from collections import Counter

import pytest

from foretune.automl.spaces import SPACES, load_shipped_space
from foretune_lab.collect.designs import draw_shared_configs
from foretune_lab.collect.grids import CASH_GRIDS, points, size
from tests.refusals import refuses

TABLE_5 = {
    "adaboost": 100,
    "bagging": 350,
    "decision_tree": 8100,
    "extra_trees": 6250,
    "gaussian_nb": 50,
    "gradient_boosting": 8750,
    "knn": 200,
    "logistic": 50,
    "mlp": 5184,
    "qda": 50,
    "rf": 6250,
}


def test_the_grids_have_the_sizes_of_table_5():
    sizes = {name: size(grid) for name, grid in CASH_GRIDS.items()}
    assert sizes == {**TABLE_5, "svc": 325}


def test_points_of_a_grid_are_different_and_a_longer_list_begins_with_the_shorter():
    grid = CASH_GRIDS["knn"]
    every = points(grid, 1000, seed=5)
    assert len({tuple(point.items()) for point in every}) == 200
    assert points(grid, 7, seed=5) == every[:7]
    assert points(grid, 7, seed=6) != every[:7]


@pytest.mark.parametrize("name", list(SPACES))
def test_every_algorithm_gets_its_turn(name):
    chosen = load_shipped_space(name)
    algorithms = list(chosen.algorithms())
    configs = draw_shared_configs(chosen, 3 * len(algorithms), seed=0)
    picked = [config[chosen.choice] for config in configs.dicts()]
    assert picked == algorithms * 3
    assert configs.space == chosen.build()
    assert len(set(configs.keys().tolist())) == len(configs)


@pytest.mark.parametrize("name", ["cash", "pipeline-regression"])
def test_a_longer_list_begins_with_the_shorter(name):
    chosen, only = load_shipped_space(name), ("rf", "knn")
    short = draw_shared_configs(chosen, 5, seed=0, only=only).dicts()
    assert draw_shared_configs(chosen, 30, seed=0, only=only).dicts()[:5] == short


def test_pipelines_begin_with_the_defaults():
    chosen = load_shipped_space("pipeline-regression")
    first = draw_shared_configs(chosen, 1, seed=0, only=("rf",)).dicts()
    assert first == chosen.build(["rf"]).defaults().dicts()


def test_a_grid_that_is_used_up_is_followed_by_a_sequence():
    configs = draw_shared_configs(load_shipped_space("cash"), 120, seed=0, only=("logistic", "qda"))
    counts = Counter(config["algorithm"] for config in configs.dicts())
    assert counts == {"logistic": 60, "qda": 60}


def test_as_the_space_samples_them():
    configs = draw_shared_configs(load_shipped_space("cash"), 30, seed=0, even=False)
    assert len(set(configs.keys().tolist())) == 30


def test_mistakes():
    with refuses("no-evaluations"):
        draw_shared_configs(load_shipped_space("cash"), 0, seed=0)
