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

KINDS = ("flat", "cash", "pipeline")
TRIALS = 8
BATCHES = (1, 1, 3, 3)
"""So many trials go wrong one after the other: trouble meets single ones and others pending."""

_SEARCHES: dict[tuple[type, str], list[Suggestion]] = {}


@cache
def _prior(method: Method, kind: str) -> Prior:
    # Not 0, which a prior that has forgotten its seed would go on with.
    return method.learn(problem(kind).experience, seed=1, progress=SILENT)


class MethodConformance:
    """Subclass it and set `method`; pytest does the rest."""

    method: ClassVar[Method]

    @pytest.fixture(params=KINDS)
    def kind(self, request: pytest.FixtureRequest) -> str:
        """The kind of space."""
        return str(request.param)

    def target(self, kind: str, *, pool: bool = False) -> Target:
        """The task to tune, with meta-features where the method cannot do without."""
        return problem(kind).target(pool=pool, described=self.method.needs_meta_features)

    def optimizer(self, kind: str, *, pool: bool = False, seed: int = 3) -> Optimizer:
        """A fresh optimiser of the method under test."""
        target = self.target(kind, pool=pool)
        return Optimizer(target, self.method, _prior(self.method, kind), seed=seed)

    def run_search(self, kind: str) -> list[Suggestion]:
        """What a fresh optimiser suggests one after the other; run once for all tests."""
        key = (type(self), kind)
        if key not in _SEARCHES:
            _SEARCHES[key] = run(self.optimizer(kind), problem(kind), trials=TRIALS)
        return _SEARCHES[key]

    def resume(self, kind: str, *, trials: int) -> Optimizer:
        """An optimiser that is told the first trials of the search, and has asked for none."""
        optimizer = self.optimizer(kind)
        history = [s.config for s in self.run_search(kind)[:trials]]
        tell_elsewhere(optimizer, problem(kind), optimizer.target.space.encode(history))
        return optimizer

    def test_suggestions_lie_in_the_space(self, kind: str) -> None:
        """What is suggested can be encoded, which checks every rule of the space."""
        suggestions = self.run_search(kind)
        encoded = self.target(kind).space.encode([s.config for s in suggestions])
        assert len(encoded) == TRIALS
        assert not _repeats(encoded)

    def test_a_pool_is_tried_without_repeats_to_its_end(self) -> None:
        """Every member of a pool is suggested once."""
        small = problem("pipeline")
        pool = small.pool.take(np.arange(10))
        target = replace(self.target("pipeline"), pool=pool)
        optimizer = Optimizer(target, self.method, _prior(self.method, "pipeline"), seed=1)
        indices = [s.pool_index for s in run(optimizer, small, trials=10)]
        assert sorted(i for i in indices if i is not None) == list(range(10))

    def test_asking_for_many_gives_different_ones(self) -> None:
        """ask(6) gives 6 different ones, pending ones are not suggested again."""
        optimizer = self.resume("cash", trials=7)
        batch = optimizer.ask(6)
        later = optimizer.ask()
        encoded = optimizer.target.space.encode([s.config for s in [*batch, *later]])
        assert not _repeats(Encoded.concat([encoded, optimizer.told.configs]))

    @pytest.mark.parametrize("trouble", ["failed", "nan", "all failed", "constant", "outlier"])
    def test_trouble_is_survived(self, trouble: str) -> None:
        """Failures, NaN, constant and absurd losses leave the optimiser able to go on."""
        optimizer = self.optimizer("pipeline")
        for size in BATCHES:
            asked = optimizer.ask(size)
            optimizer.tell(_trouble(s, trouble, s.id) for s in asked)
        assert optimizer.target.space.encode([optimizer.ask()[0].config])

    def test_failed_trials_say_nothing_of_losses(self) -> None:
        """What is believed after trials is the same with failed ones among them."""
        if self.method.design.trials is None:
            pytest.skip("its design covers every trial, so that it believes nothing")
        on, target = problem("cash"), self.target("cash")
        tried, new = on.space.sample(6, seed=4), on.space.sample(5, seed=5)
        losses = on.losses(tried)
        losses[[1, 4]] = np.nan
        seen = Observations(tried, losses, np.zeros(len(tried), dtype=bool))
        prior = _prior(self.method, "cash")
        posteriors = (
            prior.surrogate(target).condition(told, seed=2) for told in (seen, seen.successes())
        )
        beliefs = [posterior.predict(new) for posterior in posteriors]
        with_failed, without = (np.stack([belief.mean, belief.std]) for belief in beliefs)
        assert np.isfinite(with_failed).all()
        np.testing.assert_allclose(with_failed, without, rtol=1e-6, atol=1e-9)

    def test_what_is_pending_is_to_be_beaten(self) -> None:
        """An improvement is one on pending trials as well: else a batch gathers where the first of
        it is expected to be good.
        """
        if self.method.design.trials is None:
            pytest.skip("its design covers every trial, so that it looks for no improvement")
        on, target = problem("cash"), self.target("cash")
        tried = on.space.sample(6, seed=4)
        losses = on.losses(tried)
        losses[5] = losses.min() - np.ptp(losses)
        seen = Observations(tried, losses, np.arange(len(tried)) == 5)
        surrogate = _prior(self.method, "cash").surrogate(target)
        posterior = surrogate.condition(seen, seed=2)
        expected = float(posterior.predict(tried.take([5])).mean[0])
        assert posterior.best <= expected + 1e-6

    @pytest.mark.parametrize("observations", [1, 2, 500])
    def test_few_and_many_observations(self, observations: int) -> None:
        """One, two and 500 trials made elsewhere can be told at once."""
        flat = problem("flat")
        optimizer = self.optimizer("flat")
        tell_elsewhere(optimizer, flat, flat.space.sample(observations, seed=9))
        assert len(optimizer.ask(2)) == 2
        assert len(optimizer.told) == observations

    def test_a_resumed_study_goes_on_as_if_never_stopped(self, kind: str) -> None:
        """An optimiser rebuilt from the trials alone suggests what the old one would have."""
        resumed = self.resume(kind, trials=TRIALS - 1)
        assert resumed.ask()[0].config == self.run_search(kind)[-1].config

    def test_a_saved_prior_suggests_the_same(self, kind: str) -> None:
        """With the same seed, a prior and its saved and loaded copy suggest the same."""
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "prior.safetensors"
            _prior(self.method, kind).save(path)
            loaded = self.method.load(path)
        fresh = self.optimizer(kind)
        optimizer = Optimizer(fresh.target, self.method, loaded, seed=fresh.seed)
        again = run(optimizer, problem(kind), trials=TRIALS)
        assert [s.config for s in again] == [s.config for s in self.run_search(kind)]


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
    every_third = number % 3 == 0
    match trouble:
        case "failed":
            status = Status.FAILED if every_third else Status.DONE
            return Told((float(number),), id=suggestion.id, status=status)
        case "all failed":
            return Told((float("nan"),), id=suggestion.id, status=Status.TIMEOUT)
        case "nan":
            return Told((float("nan") if every_third else number / 7,), id=suggestion.id)
        case "outlier":
            return Told((1e30 if every_third else number / 7,), id=suggestion.id)
        case _:
            return Told((0.25,), id=suggestion.id)


def _repeats(configs: Encoded) -> bool:
    keys = configs.keys()
    return len(np.unique(keys)) < len(keys)
