"""One live build, described, and carried out by the loop that tunes."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from foretune.automl.live_portfolio.evaluators import PairFunction, TablePairEvaluator
from foretune.automl.live_portfolio.knowledge import list_candidates, take_in_known
from foretune.automl.live_portfolio.pairs import PairSpace
from foretune.automl.live_portfolio.saved_experience import SavedExperience
from foretune.automl.live_portfolio.search import PairChooser, PairOptimizer
from foretune.experience import Direction, Experience, Metric
from foretune.experience.trial import Trial
from foretune.methods.zero_shot.build import BUILDERS, Recipe
from foretune.methods.zero_shot.builder import Builder
from foretune.methods.zero_shot.live_jobs import LiveJobs
from foretune.methods.zero_shot.portfolio import Portfolio
from foretune.numerics.greedy import find_aggregate
from foretune.run.budget import Budget, Ending
from foretune.run.commands import Command
from foretune.run.executor import Limits
from foretune.run.executor_choice import HERE, ExecutorChoice
from foretune.run.tuning_loop import tune
from foretune.run.watch import SILENT_WATCH, Watch
from foretune.stores.studies import open_study

CANDIDATES = 2_000
"""The number of random configurations that a builder chooses among, if nobody asks for another."""
USUAL_BUILDER = "obo"


@dataclass(frozen=True, kw_only=True)
class LiveBuild:
    """What is run on which tasks, how it is chosen, where it runs, and what is kept."""

    space: PairSpace
    metric: Metric
    evaluator: TablePairEvaluator | PairFunction | Command
    recipe: Recipe
    """The builder; its budget is a number of evaluations, those of earlier runs included."""
    seconds: float | None = None
    """How long this run may take."""
    candidates: int = CANDIDATES
    past: Experience | None = None
    """Past runs in the same space, with this metric alone."""
    source: str = ""
    """What the evaluations are of, in words for the portfolio."""
    store: str | None = None
    """None for memory."""
    study: str = "portfolio"
    settings: Mapping[str, Any] = field(default_factory=dict)
    """What all who join must agree on."""
    workers: int = 1
    site: ExecutorChoice = HERE
    limits: Limits = field(default_factory=Limits)
    experience: Path | None = None
    """Where the experience is saved."""
    meta_features: Mapping[str, Mapping[str, float]] = field(default_factory=dict)

    def run(self, watch: Watch = SILENT_WATCH) -> "FinishedBuild":
        """Run pairs until the budget is used up or somebody stops it, and pick a portfolio."""
        jobs, builder = self._prepare()
        free = take_in_known(jobs, self.space, self.past)
        name = self.recipe.builder or USUAL_BUILDER
        chooser = PairChooser(self.space, jobs, builder, name)
        optimizer = PairOptimizer(chooser, self.metric.name, seed=self.recipe.seed)
        kept = SavedExperience(
            self.space, [self.metric], self.experience, self.meta_features, watch
        )
        budget = Budget(self.recipe.budget, self.seconds)
        ending: Ending | None = None
        study = open_study(
            self.store,
            self.study,
            space=self.space.pairs,
            metrics=[self.metric],
            settings=self.settings,
        )
        pool = self.site.pool(self.evaluator, workers=self.workers, limits=self.limits)
        with study, pool:
            try:
                with suppress(KeyboardInterrupt):
                    ending = tune(study, optimizer, pool, budget, watch=kept)
            finally:
                # Also after an error: every pair that has ended can be used.
                kept.save()
            trials = study.trials()
        chooser.take_in(optimizer.told)
        return FinishedBuild(
            self._portfolio(jobs, builder), trials, kept.experience(), ending, free
        )

    def _prepare(self) -> tuple[LiveJobs, Builder]:
        found = list_candidates(self.space, self.past, self.recipe, self.candidates)
        jobs = LiveJobs(
            len(self.space.tasks),
            found.configs,
            budget=self.recipe.budget,
            is_maximised=self.metric.direction is Direction.MAX,
            normalisation=self.recipe.normalisation,
        )
        builder = BUILDERS[self.recipe.builder or USUAL_BUILDER](
            jobs,
            self.recipe.k,
            find_aggregate(self.recipe.aggregate),
            seed=self.recipe.seed,
            caps=self.recipe.caps,
            first=found.first,
        )
        return jobs, builder

    def _portfolio(self, jobs: LiveJobs, builder: Builder) -> Portfolio | None:
        """Return what the builder picks now; None if nothing is known."""
        if np.isnan(jobs.losses).all():
            return None
        picks = builder.picks()
        return Portfolio(
            configs=tuple(jobs.candidates.take(picks.chosen).dicts()),
            builder=self.recipe.builder or USUAL_BUILDER,
            source=self.source,
            losses=tuple(round(float(loss), 6) for loss in picks.losses),
            aggregate=self.recipe.aggregate,
            normalisation=jobs.normalisation,
            jobs=jobs.used,
            fingerprint=self.space.space.fingerprint,
        )


@dataclass(frozen=True, slots=True)
class FinishedBuild:
    """What came of a live build."""

    portfolio: Portfolio | None
    """None if no evaluation has succeeded."""
    trials: Sequence[Trial]
    experience: Experience | None
    ending: Ending | None
    """None if somebody stopped it."""
    free: int
    """The number of evaluations that past experience gave."""
