"""Optuna's own suite for samplers."""

from collections.abc import Callable

import optuna
import pytest
from optuna.samplers import BaseSampler

from foretune.integrations.optuna import ForetuneSampler

suite = pytest.importorskip("optuna.testing.pytest_samplers")

optuna.logging.set_verbosity(optuna.logging.WARNING)


class TestCheapMethod(
    suite.BasicSamplerTestCase, suite.RelativeSamplerTestCase, suite.MultiObjectiveSamplerTestCase
):
    """The sampler itself, with a method that costs nothing."""

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: ForetuneSampler("random", seed=0)


class TestDefaultMethod(suite.BasicSamplerTestCase):
    """The model of the default method with every kind of distribution."""

    @pytest.fixture
    def sampler(self) -> Callable[[], BaseSampler]:
        return lambda: ForetuneSampler(seed=0)
