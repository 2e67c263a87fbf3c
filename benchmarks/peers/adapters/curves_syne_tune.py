"""Syne Tune 0.14.2, the last one with MOBSTER and DyHPO: both and ASHA, on a flat space.

ASHA and MOBSTER pause and resume trials (`type="promotion"`). All else are defaults: MOBSTER and
DyHPO model the configuration and the step with one Gaussian process.
"""

import datetime
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from benchmarks.peers.adapters.syne_tune_space import make_domain
from benchmarks.peers.curve_play import Work
from benchmarks.peers.curve_problem import ETA, CurveProblem
from syne_tune.backend.trial_status import Trial
from syne_tune.optimizer.legacy_baselines import ASHA, MOBSTER, DyHPO

METRIC, STEP = "loss", "epoch"


class SyneTuneScheduler:
    """A scheduler that is asked for trials and hears of each step, as Syne Tune's `Tuner` does."""

    def __init__(self, setting: CurveProblem, seed: int, make: Callable[..., Any]) -> None:
        self._problem = setting.problem
        first, last = setting.ticks
        self._scheduler = make(
            {p.name: make_domain(p) for p in setting.problem.parameters},
            metric=METRIC,
            mode="min",
            resource_attr=STEP,
            max_t=last,
            grace_period=first,
            random_seed=seed % 2**31,
        )
        self._trials: dict[int, Trial] = {}

    def ask(self) -> Work:
        """Begin a trial, or continue a paused one."""
        new = len(self._trials)
        suggestion = self._scheduler.suggest(trial_id=new)
        if suggestion.spawn_new_trial_id:
            self._trials[new] = Trial(new, suggestion.config, datetime.datetime.now())
            self._scheduler.on_trial_add(self._trials[new])
            number = new
        else:
            number = int(suggestion.checkpoint_trial_id)
        config = self._trials[number].config
        row = np.array([float(config[p.name]) for p in self._problem.parameters])
        return Work(number, row)

    def report(self, work: Work, tick: int, loss: float) -> bool:
        """Ask the scheduler whether the trial goes on."""
        trial = self._trials[work.key]
        decision = self._scheduler.on_trial_result(trial, {METRIC: loss, STEP: tick})
        if decision != "CONTINUE":
            self._scheduler.on_trial_remove(trial)
            return False
        return True

    def end(self, work: Work, tick: int, loss: float, complete: bool) -> None:
        """Do nothing, because the scheduler has stopped the trial at its last step."""


PEERS = {
    "syne-tune-asha": partial(
        SyneTuneScheduler, make=partial(ASHA, type="promotion", reduction_factor=ETA)
    ),
    "syne-tune-mobster": partial(
        SyneTuneScheduler, make=partial(MOBSTER, type="promotion", reduction_factor=ETA)
    ),
    "syne-tune-dyhpo": partial(SyneTuneScheduler, make=DyHPO),
}
