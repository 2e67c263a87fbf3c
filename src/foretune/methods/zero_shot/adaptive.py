"""The adaptive portfolio assumes that the target is like one of the past tasks.

The greedy portfolio (section 4 of the paper) picks the configuration that improves most on its
earlier picks, on average over past tasks. Here the average is weighted: a past task counts by how
well it ranks the target's own trials. Before the first trial all tasks count the same, so the first
picks are those of the portfolio. Every trial moves the weight to tasks like the target.

Losses are Gaussian scores within each task, so an improvement has the unit of other copula methods.
All configurations that equal the best of a task score as the best, because a portfolio that reaches
one of them can do no better there (decision 014).
"""

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.special import softmax

from foretune._base.arrays import Floats, Ints
from foretune._base.progress import SILENT, Progress
from foretune.experience import Experience
from foretune.methods.contracts import (
    Learner,
    Observations,
    Posterior,
    Prediction,
    Prior,
    Surrogate,
    Target,
)
from foretune.methods.past_data import (
    CachedOnPool,
    Catalogue,
    check_space,
    draw_by_name,
    require_experience,
)
from foretune.methods.zero_shot.jobs import look_up_jobs
from foretune.methods.zero_shot.quick_opening import early_portfolio
from foretune.methods.zero_shot.surrogate import (
    MOST_FORESTS,
    complete_losses,
    quick_forest,
    random_forest,
)
from foretune.methods.zero_shot.table import loss_table, shares_configurations
from foretune.numerics.acquisition import log_of_improvement
from foretune.numerics.artifact import load_artifact, save_artifact
from foretune.numerics.greedy import Losses, greedy, mean
from foretune.numerics.objectives import scalarise
from foretune.numerics.order import order_score
from foretune.numerics.scores import midrank_scores
from foretune.space import Encoded, Space

KIND = "foretune-adaptive-portfolio"
VERSION = 1
BEST_OF_EACH = 20
"""The number of best configurations of each past task that may be picked."""
MOST_CONFIGS = 4_000
MOST_TASKS = 500
"""The most tasks to read. If each needs a forest, `MOST_FORESTS` holds instead."""
NOISE = 0.5
"""The spread, in Gaussian scores, of the target's losses around those of a similar task."""
TASKS_PER_ODDS, MOST_ODDS = 25, 3.0
"""This number of past tasks is as good a guide as a network that learnt from them, and three times
as many are three times as good: one of many tasks is like the target, but perhaps none of a few."""
LEAST_ODDS = 1e-6
RESERVE = 64
"""The number of configurations to try while no trial has succeeded."""
LATEST = 100
ANYTHING = 1e-6
"""The worth of a configuration that improves on no task, but is good on average."""


@dataclass(frozen=True, slots=True)
class AdaptivePrior(Prior):
    """The scores of good configurations on past tasks."""

    configs: Encoded
    scores: Floats
    """(tasks, configs), Gaussian scores of each task's losses."""

    def odds(self, target: Target) -> float:
        """Return the weight before any trial; a network has the weight 1.

        In a pool of other configurations this prior can only guess from the nearest of its own. It
        does not read meta-features, so others know more about a task that has some.
        """
        if target.meta_features:
            return LEAST_ODDS
        at_home = 1.0 if target.pool is None else self.configs.isin(target.pool).mean()
        return max(min(len(self.scores) / TASKS_PER_ODDS, MOST_ODDS) * float(at_home), LEAST_ODDS)

    def opening(self, target: Target) -> Encoded:
        """Return the configuration that is best on average. Trials decide what follows."""
        check_space(self.configs.space, target)
        return self.portfolio(1)

    def known_good(self, target: Target) -> Encoded:
        """Return all configurations of the prior, because it knows no others."""
        check_space(self.configs.space, target)
        return self.configs

    def reserve(self, target: Target) -> Encoded:
        """Return the portfolio that continues the opening."""
        check_space(self.configs.space, target)
        return self.portfolio(RESERVE)

    def portfolio(self, k: int) -> Encoded:
        """Return the greedy portfolio, in which all tasks count the same."""
        return self.configs.take(greedy(self.scores, k, mean).chosen)

    def surrogate(self, target: Target) -> "AdaptiveSurrogate":
        """Return a surrogate that treats past tasks as hypotheses about the target."""
        check_space(self.configs.space, target)
        nearest = CachedOnPool(Catalogue(self.configs).rows, target.pool)
        return AdaptiveSurrogate(self.scores, nearest)

    def save(self, path: Path) -> None:
        """Write configurations and scores."""
        arrays = {**self.configs.pack(), "scores": self.scores.astype(np.float32)}
        meta = {"space": self.configs.space.to_json()}
        save_artifact(path, kind=KIND, version=VERSION, meta=meta, arrays=arrays)


@dataclass(frozen=True, slots=True)
class AdaptiveSurrogate(Surrogate):
    """Weighs past tasks by the order of the target's trials."""

    scores: Floats
    """(tasks, configs)"""
    nearest: CachedOnPool[Ints]
    """Finds the row of each configuration, or of the nearest known one."""
    latest: int = LATEST
    """The number of latest trials that weigh the past tasks."""

    def condition(self, seen: Observations, *, seed: int) -> "AdaptivePosterior":
        """Weigh the past tasks by how likely each makes the order of the trials."""
        del seed
        good = seen.successes()
        tried = self.scores[:, self.nearest(good.configs)]
        real = np.flatnonzero(~good.believed)[-self.latest :]
        losses = scalarise(good.losses, midrank_scores)
        noise = np.full((1, len(real)), NOISE)
        weights = softmax(order_score(tried[:, real], noise, losses[real], first=1))
        best = tried.min(axis=1, initial=np.inf)
        return AdaptivePosterior(self.scores, self.nearest, weights, best)


@dataclass(frozen=True, slots=True)
class AdaptivePosterior(Posterior):
    """The target's losses as a weighted mixture of past tasks."""

    scores: Floats
    nearest: CachedOnPool[Ints]
    weights: Floats
    """(tasks,), adding up to 1."""
    bests: Floats
    """(tasks,), the score that the best trial so far has on each task."""

    @property
    def best(self) -> float:
        """The expected score of the best trial."""
        return float(self.weights @ self.bests)

    def predict(self, x: Encoded) -> Prediction:
        """Return mean and standard deviation over tasks, with the noise between similar tasks."""
        each = self.scores[:, self.nearest(x)]
        middle = self.weights @ each
        variance = self.weights @ np.square(each - middle)
        return Prediction(middle, np.sqrt(variance + NOISE**2))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Draw a task for each row, and its scores with noise."""
        rng = np.random.default_rng(seed)
        tasks = rng.choice(len(self.weights), size=n, p=self.weights)
        each = self.scores[np.ix_(tasks, self.nearest(x))]
        return each + NOISE * rng.standard_normal(each.shape)

    def log_utility(self, x: Encoded) -> Floats:
        """Return (len(x),), the log of the expected improvement on all trials so far."""
        gains = self.weights @ np.maximum(self.bests[:, None] - self.scores, 0.0)
        known: Floats = gains + ANYTHING * np.exp(-(self.weights @ self.scores))
        return log_of_improvement(known[self.nearest(x)])


@dataclass(frozen=True, slots=True)
class AdaptiveLearner(Learner):
    """Reads the table of past tasks."""

    most_tasks: int = MOST_TASKS
    """The most tasks to read if they share their configurations."""
    most_forests: int = MOST_FORESTS
    """The most tasks to read if each needs a forest."""

    def learn(
        self, experience: Experience | None, *, seed: int, progress: Progress
    ) -> AdaptivePrior:
        """Read the recorded losses. Forests predict those that tasks do not share."""
        experience = require_experience(experience)
        few = standing_for_all(experience, self.most_forests, seed=seed)
        return self._learn(few or self._some_of(experience, seed), few is not None, seed, progress)

    def _some_of(self, experience: Experience, seed: int) -> Experience:
        """Return as many tasks as can be read, if they share their configurations."""
        if len(experience.tasks) <= self.most_tasks or not shares_configurations(experience):
            return experience
        names = _names_of_taught(experience)
        drawn = draw_by_name(names, self.most_tasks, seed)
        return experience.only(names[place] for place in drawn.tolist())

    def _learn(
        self, experience: Experience, are_drawn: bool, seed: int, progress: Progress
    ) -> AdaptivePrior:
        """Learn from tasks that are few enough.

        are_drawn: the tasks represent others, so quick forests are good enough.
        """
        table = loss_table(experience, "normal")
        if not table.has_common_configs:
            # Tasks that were drawn may share fewer configurations than all tasks do.
            table = table.some_tasks(self.most_forests, seed=seed)
        jobs = look_up_jobs(table, progress=progress)
        progress.start("reading past tasks", jobs.budget)
        try:
            jobs.run(*np.nonzero(jobs.possible))
        finally:
            progress.stop()
        columns = best_of_each(jobs.losses)
        every, rng = np.arange(len(jobs.possible)), np.random.default_rng(seed)
        scores: Losses
        if jobs.possible.all():
            scores = jobs.results(every, columns)
        else:
            forest = quick_forest if are_drawn else random_forest
            scores = complete_losses(jobs, columns, rng, regression=forest, progress=progress)
        return AdaptivePrior(jobs.candidates.take(columns), scores.astype(np.float64))

    def reads(self, experience: Experience, *, seed: int) -> Experience:
        """Return the tasks that `learn` reads."""
        return standing_for_all(experience, self.most_forests, seed=seed) or experience

    def early_reserve(self, experience: Experience, k: int, *, seed: int) -> Encoded | None:
        """Return a first portfolio of many past tasks within a fraction of a second.

        None if there are few tasks, because the learnt portfolio is ready soon then.
        """
        if len(experience.tasks) <= self.most_forests:
            return None
        few = standing_for_all(experience, self.most_forests, seed=seed)
        if few is not None:
            return early_portfolio(few, k)
        # If tasks share their configurations, no forest is needed.
        prior = self._learn(self._some_of(experience, seed), False, seed, SILENT)
        return prior.portfolio(k)

    def load(self, path: Path) -> AdaptivePrior:
        """Read a saved prior."""
        meta, arrays = load_artifact(path, kind=KIND, newest_version=VERSION)
        configs = Space.from_json(meta["space"]).unpack(arrays)
        return AdaptivePrior(configs, arrays["scores"].astype(np.float64))


def standing_for_all(experience: Experience, most: int, *, seed: int) -> Experience | None:
    """Draw `most` tasks to represent all, if each needs a forest; None if all can be read."""
    if len(experience.tasks) <= most or shares_configurations(experience):
        return None
    names = _names_of_taught(experience)
    if len(names) <= most:
        return None
    drawn = draw_by_name(names, most, seed)
    return experience.only(names[place] for place in drawn.tolist())


def _names_of_taught(experience: Experience) -> list[str]:
    """Return the tasks that have a success."""
    rows = experience.task_index[np.isfinite(experience.losses).all(axis=1)]
    return [experience.tasks[position] for position in np.flatnonzero(np.bincount(rows)).tolist()]


def best_of_each(losses: Losses, best: int = BEST_OF_EACH, most: int = MOST_CONFIGS) -> Ints:
    """Return at most `most` columns that are among the `best` of a row.

    The best of any row come before the second best of any, and so on.
    """
    order = np.argsort(losses, axis=1, kind="stable")[:, :best]
    recorded = ~np.isnan(np.take_along_axis(losses, order, axis=1))
    places = np.broadcast_to(np.arange(order.shape[1]), order.shape)
    by_place = np.argsort(places[recorded], kind="stable")
    columns, first = np.unique(order[recorded][by_place], return_index=True)
    return np.sort(columns[np.argsort(first, kind="stable")[:most]])


def adaptive_portfolio() -> AdaptiveLearner:
    """Return the learner of the method `adaptive-portfolio`."""
    return AdaptiveLearner()
