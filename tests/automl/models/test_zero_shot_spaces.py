"""The spaces of the zero-shot paper, and the pipelines of their configurations."""

import importlib.util

import numpy as np
import pytest

from foretune.automl.estimators.pipelines import build_pipeline
from foretune.automl.estimators.zero_shot_models import layer_sizes
from foretune.automl.space_names import ZERO_SHOT_SPACES
from foretune.automl.spaces import ZERO_SHOT, load_shipped_space
from foretune.methods.zero_shot.shipped import portfolio
from foretune.tables import Task


def test_the_names_are_those_of_the_shipped_portfolios() -> None:
    assert tuple(ZERO_SHOT) == ZERO_SHOT_SPACES
    for name in ("xgboost", "lightgbm", "catboost"):
        space = load_shipped_space(name).build()
        configs = [
            {"model": name, **{f"model:{name}:{key}": value for key, value in each.items()}}
            for each in portfolio(name).configs
        ]
        assert len(space.encode(configs)) == 5


@pytest.mark.parametrize("name", ["mlp", "zaml"])
@pytest.mark.filterwarnings("ignore")
def test_a_configuration_becomes_a_pipeline_that_learns(name: str) -> None:
    rng = np.random.default_rng(0)
    x = np.hstack([rng.normal(size=(60, 2)), rng.integers(0, 3, (60, 1))])
    y = (x[:, 0] > 0).astype(float)
    space = load_shipped_space(name).build(["mlp"] if name == "zaml" else [])
    for config in space.sample(3, seed=1).dicts():
        pipeline = build_pipeline(
            config, np.array([False, False, True]), Task.CLASSIFICATION, seed=0
        )
        assert pipeline.fit(x, y).predict(x).shape == (60,)


@pytest.mark.skipif(importlib.util.find_spec("lightgbm") is None, reason="lightgbm is optional")
def test_lightgbm_takes_every_boosting_type() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(80, 2))
    y = (x[:, 0] > 0).astype(float)
    start = load_shipped_space("lightgbm").build().defaults().dicts()[0]
    for kind in ("gbdt", "dart", "goss"):
        config = {**start, "model:lightgbm:boosting_type": kind}
        pipeline = build_pipeline(config, np.zeros(2, dtype=bool), Task.CLASSIFICATION, seed=0)
        assert pipeline.fit(x, y).predict(x).shape == (80,)


def test_layers_become_narrower() -> None:
    assert layer_sizes(64, 3) == (64, 32, 16)
    assert layer_sizes(8, 4) == (8, 4, 4, 4)
