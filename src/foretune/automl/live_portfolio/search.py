"""The search of a live build: a builder chooses the next pair of a task and a configuration."""

import numpy as np

from foretune._base.arrays import Floats, Ints
from foretune.automl.live_portfolio.pairs import PairSpace
from foretune.errors import ExhaustedError
from foretune.methods.contracts import Observations, Target
from foretune.methods.zero_shot.builder import Builder
from foretune.methods.zero_shot.live_jobs import LiveJobs
from foretune.search.candidates import ChosenConfig, Pool
from foretune.search.config_choice import ConfigChooser, TrialsSoFar
from foretune.search.optimizer import Optimizer
from foretune.search.registry import method
from foretune.space import Encoded


class PairChooser:
    """Lets a builder choose among pairs, by the pairs that were told and that are pending."""

    def __init__(self, space: PairSpace, jobs: LiveJobs, builder: Builder, reason: str) -> None:
        self.space, self.jobs, self.builder, self.reason = space, jobs, builder, reason
        keys = jobs.candidates.keys().tolist()
        self._rows = {key: row for row, key in enumerate(keys)}
        self._told = 0

    def choose(self, trials: TrialsSoFar) -> tuple[Encoded, str]:
        """Choose the next pair, and say what chose it."""
        self.take_in(trials.told, trials.pending)
        job = self.builder.next_job() if self.jobs.remaining > 0 else None
        if job is None:
            raise ExhaustedError(
                "a builder must have a job left, but all of its jobs were run or are running: "
                "wait for them, or raise the budget or the number of candidates",
                rule="no-job-left",
            )
        config = self.jobs.candidates.take([job.candidate]).dicts()[0]
        pair = self.space.pairs.encode([self.space.join(job.task, config)])
        return pair, self.reason

    def take_in(self, told: Observations, pending: tuple[Encoded, ...] = ()) -> None:
        """Take in what was told since the last look, and what is pending now."""
        if len(told) > self._told:
            new = np.arange(self._told, len(told))
            self._finish(told.configs.take(new), told.losses[new, 0])
            self._told = len(told)
        running = self._find(Encoded.concat(list(pending))) if pending else set()
        before = {(int(t), int(c)) for t, c in np.argwhere(self.jobs.pending)}
        for task, candidate in before - running:
            self.jobs.withdraw(task, candidate)
        for task, candidate in running - before:
            self.jobs.begin(task, candidate)

    def _finish(self, pairs: Encoded, losses: Floats) -> None:
        """Take in the ends of jobs. A pair of no candidate is experience only."""
        tasks, candidates = self._places(pairs)
        for task, candidate, loss in zip(tasks, candidates, losses, strict=True):
            if candidate >= 0 and not self.jobs.ran[task, candidate]:
                one = np.array([loss])
                self.jobs.finish(np.array([task]), np.array([candidate]), one)

    def _find(self, pairs: Encoded) -> set[tuple[int, int]]:
        tasks, candidates = self._places(pairs)
        found = zip(tasks.tolist(), candidates.tolist(), strict=True)
        return {pair for pair in found if pair[1] >= 0}

    def _places(self, pairs: Encoded) -> tuple[Ints, Ints]:
        """Return the positions of tasks and candidates; -1 for a configuration that is none."""
        tasks, configs = self.space.read(pairs)
        rows = [self._rows.get(key, -1) for key in configs.keys().tolist()]
        return tasks, np.array(rows, dtype=np.int64)


class PairOptimizer(Optimizer):
    """The optimiser of the one loop that tunes, with a builder that chooses."""

    def __init__(self, chooser: PairChooser, objective: str, *, seed: int) -> None:
        target, random = Target(chooser.space.pairs, (objective,)), method("random")
        prior = random.learn(None, seed=seed)
        super().__init__(target, random, prior, seed=seed)
        self._chooser = _ChooserOfPairs(target, random, prior, seed=seed, start=None)
        self._chooser.pairs = chooser


class _ChooserOfPairs(ConfigChooser):
    """Leaves the choice to a builder, and the rest to the random method."""

    pairs: PairChooser

    def choose(self, trials: TrialsSoFar, among: Pool | None) -> tuple[ChosenConfig, str]:
        """Choose the next pair. A builder chooses among its own candidates only."""
        del among
        pair, reason = self.pairs.choose(trials)
        return ChosenConfig(pair), reason
