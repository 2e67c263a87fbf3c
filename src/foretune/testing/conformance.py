"""The conformance suite: every method of the registry passes it, and so should yours."""

import tempfile
from collections.abc import Iterable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from foretune._base.arrays import Floats
from foretune._base.progress import SILENT
from foretune.experience import Status
from foretune.methods.contracts import Observations, Prior, Target
from foretune.search import Method, Optimizer, Suggestion, Told
from foretune.space import Encoded
from foretune.testing.problems import Problem, problem

KINDS = ("flat", "pipeline")
"""The kinds of space. A `cash` space is a pipeline of one stage, so it would test nothing more."""
PAST_CONFIGS = 20
"""The number of configurations of each past task, small because learning takes most of the time."""
TRIALS = 8
BATCHES = (1, 1, 4)
"""The numbers of trials that are asked for at once when trials go wrong."""
SEED = 3
RESUMED_AFTER = (0, 4, 7)
"""Numbers of trials after which a search goes on with a loaded prior."""


@cache
def _prior(method: Method, kind: str) -> Prior:
    # Not 0, because a prior that has forgotten its seed would go on with 0.
    past = problem(kind, past_configs=PAST_CONFIGS).experience
    return method.learn(past, seed=1, progress=SILENT)


class MethodConformance:
    """Subclass it and set `method`; pytest does the rest."""

    method: ClassVar[Method]

    @pytest.fixture(params=KINDS)
    def kind(self, request: pytest.FixtureRequest) -> str:
        """Return the kind of space."""
        return str(request.param)

    def target(self, kind: str, *, pool: bool = False) -> Target:
        """Return the task to tune, with meta-features if the method needs them."""
        return problem(kind).target(pool=pool, described=self.method.needs_meta_features)

    def optimizer(self, kind: str, *, pool: bool = False, seed: int = SEED) -> Optimizer:
        """Return a fresh optimiser of the method under test."""
        target = self.target(kind, pool=pool)
        return Optimizer(target, self.method, _prior(self.method, kind), seed=seed)

    def resume(self, kind: str, history: list[Suggestion], prior: Prior) -> Optimizer:
        """Return an optimiser that is told these trials of a search, and has asked for none."""
        optimizer = Optimizer(self.target(kind), self.method, prior, seed=SEED)
        configs = optimizer.target.space.encode([each.config for each in history])
        tell_elsewhere(optimizer, problem(kind), configs)
        return optimizer

    def test_a_search_goes_on_as_if_never_stopped(self, kind: str) -> None:
        """Check that suggestions are legal and new, and follow from trials, seed and prior.

        An optimiser that is rebuilt from the trials and the saved prior suggests what the old one
        would have suggested.
        """
        optimizer = self.optimizer(kind)
        done = run(optimizer, problem(kind), trials=TRIALS)
        # Encoding checks every rule of the space.
        assert not _repeats(optimizer.target.space.encode([each.config for each in done]))
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "prior.safetensors"
            _prior(self.method, kind).save(path)
            loaded = self.method.load(path)
        for told in RESUMED_AFTER:
            assert self.resume(kind, done[:told], loaded).ask()[0].config == done[told].config

    def test_a_pool_is_tried_without_repeats_to_its_end(self) -> None:
        """Check that every member of a pool is suggested once, and the last ones in one batch."""
        small = problem("pipeline")
        pool = small.pool.take(np.arange(10))
        target = replace(self.target("pipeline"), pool=pool)
        optimizer = Optimizer(target, self.method, _prior(self.method, "pipeline"), seed=SEED)
        suggestions = [*run(optimizer, small, trials=5), *optimizer.ask(5)]
        assert sorted(each.pool_index or 0 for each in suggestions) == list(range(10))

    @pytest.mark.parametrize("trouble", ["mixed", "nothing at first"])
    def test_trouble_is_survived(self, trouble: str) -> None:
        """Check that failures, NaN, equal and absurd losses leave the optimiser able to go on.

        Suggestions of a batch differ from each other and from all trials before.
        """
        optimizer = self.optimizer("pipeline")
        asked: list[Suggestion] = []
        for size in BATCHES:
            batch = optimizer.ask(size)
            asked += batch
            optimizer.tell(_trouble(each, trouble, each.id) for each in batch)
        asked += optimizer.ask(2)
        assert not _repeats(optimizer.target.space.encode([each.config for each in asked]))

    def test_what_is_believed_after_failed_and_pending_trials(self) -> None:
        """Check that failed trials say nothing about losses, and pending ones must be beaten.

        If a pending trial did not have to be beaten, a batch would gather around its first member.
        """
        if self.method.design.trials is None:
            pytest.skip("its design covers every trial, so that it believes nothing")
        on, target = problem("pipeline"), self.target("pipeline")
        tried, new = on.space.sample(6, seed=4), on.space.sample(5, seed=5)
        losses = on.losses(tried)
        losses[[1, 4]] = np.nan
        seen = Observations(tried, losses, np.zeros(len(tried), dtype=bool))
        prior = _prior(self.method, "pipeline")
        surrogate = prior.surrogate(target)
        # An earlier history must leave nothing behind.
        surrogate.condition(Observations(new, on.losses(new), np.zeros(5, dtype=bool)), seed=2)
        beliefs = [
            asked.condition(told, seed=2).predict(new)
            for asked, told in ((surrogate, seen), (prior.surrogate(target), seen.successes()))
        ]
        with_failed, without = (np.stack([belief.mean, belief.std]) for belief in beliefs)
        assert np.isfinite(with_failed).all()
        np.testing.assert_allclose(with_failed, without, rtol=1e-6, atol=1e-9)

        losses = on.losses(tried)
        losses[5] = losses.min() - np.ptp(losses)
        believed = Observations(tried, losses, np.arange(len(tried)) == 5)
        posterior = prior.surrogate(target).condition(believed, seed=2)
        expected = float(posterior.predict(tried.take([5])).mean[0])
        assert posterior.best <= expected + 1e-6

    def test_few_and_many_observations(self) -> None:
        """Check that one trial, and 260 trials, made elsewhere can be told at once."""
        flat = problem("flat")
        for observations in (1, 260):
            optimizer = self.optimizer("flat")
            tell_elsewhere(optimizer, flat, flat.space.sample(observations, seed=9))
            assert len(optimizer.ask(2)) == 2
            assert len(optimizer.told) == observations


def run(optimizer: Optimizer, on: Problem, *, trials: int) -> list[Suggestion]:
    """Ask, evaluate and tell one by one; return what was suggested."""
    suggestions = []
    for _ in range(trials):
        suggestion = optimizer.ask()[0]
        loss = on.losses(optimizer.target.space.encode([suggestion.config]))[0]
        optimizer.tell([Told(tuple(loss), id=suggestion.id)])
        suggestions.append(suggestion)
    return suggestions


def tell_elsewhere(optimizer: Optimizer, on: Problem, configs: Encoded) -> None:
    """Tell trials that were not asked for."""
    rows: Iterable[Floats] = on.losses(configs)
    optimizer.tell(
        Told(tuple(row), config=config) for row, config in zip(rows, configs.dicts(), strict=True)
    )


def _trouble(suggestion: Suggestion, trouble: str, number: int) -> Told:
    """Return a trial in one of four kinds of trouble, or a late success with equal losses."""
    if trouble == "nothing at first":
        return Told((float("nan") if number < 2 else 0.25,), id=suggestion.id)
    match number % 4:
        case 0:
            return Told((float(number),), id=suggestion.id, status=Status.FAILED)
        case 1:
            return Told((float("nan"),), id=suggestion.id)
        case 2:
            return Told((1e30,), id=suggestion.id)
        case _:
            return Told((number / 7,), id=suggestion.id)


def _repeats(configs: Encoded) -> bool:
    keys = configs.keys()
    return len(np.unique(keys)) < len(keys)
