"""The adaptive portfolio: the target is taken for one of the past tasks, nobody knows which.

The greedy portfolio (section 4 of the paper) picks what improves on its earlier picks by most, on
average over past tasks. Here the average is weighted: a past task counts as far as it puts the
target's own trials in order. Before the first trial all count the same, so the first picks are
those of the portfolio; with every trial the list turns to what complements it on tasks like this.

Losses are Gaussian scores of each task's own, so an improvement has the unit of other copula
methods, ties apart: what equals the best of a task scores as the best, however many do, for a
portfolio that reaches it can do no better there (decision 014).
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
from foretune.methods.zero_shot.table import LossTable, loss_table, shares_configurations
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
"""So many of the best configurations of each past task may be picked."""
MOST_CONFIGS = 4_000
MOST_TASKS = 500
"""So many tasks stand for more of them; fewer where each needs a forest to complete it."""
NOISE = 0.5
"""How far, in Gaussian scores, the target's losses may lie from those of the task it resembles."""
TASKS_PER_ODDS, MOST_ODDS = 25, 3.0
"""So many past tasks are as good a guide as a network that learnt from them, three times as many
three times as good: what a new task is like, one of many is like, and of a few perhaps none."""
LEAST_ODDS = 1e-6
RESERVE = 64
"""So many are named while no trial has told anything."""
LATEST = 100
"""So many trials say which past tasks the target is like."""
ANYTHING = 1e-6
"""What a configuration is worth that improves on no task, where it is good on average."""


@dataclass(frozen=True, slots=True)
class AdaptivePrior(Prior):
    """What good configurations gave on past tasks."""

    configs: Encoded
    scores: Floats
    """(tasks, configs), Gaussian scores of each task's losses."""

    def odds(self, target: Target) -> float:
        """How far it is to be believed before any trial, beside 1 for a network.

        In a pool of other configurations it could only guess by the nearest of its own. Of a
        task that is described others know more, for it does not read descriptions.
        """
        if target.meta_features:
            return LEAST_ODDS
        at_home = 1.0 if target.pool is None else self.configs.isin(target.pool).mean()
        return max(min(len(self.scores) / TASKS_PER_ODDS, MOST_ODDS) * float(at_home), LEAST_ODDS)

    def opening(self, target: Target) -> Encoded:
        """What is best on average; trials say what follows."""
        check_space(self.configs.space, target)
        return self.portfolio(1)

    def known_good(self, target: Target) -> Encoded:
        """All of them: nothing is known beyond."""
        check_space(self.configs.space, target)
        return self.configs

    def reserve(self, target: Target) -> Encoded:
        """What complements the opening."""
        check_space(self.configs.space, target)
        return self.portfolio(RESERVE)

    def portfolio(self, k: int) -> Encoded:
        """The greedy portfolio, in which all tasks count the same."""
        return self.configs.take(greedy(self.scores, k, mean).chosen)

    def surrogate(self, target: Target) -> "AdaptiveSurrogate":
        """The tasks as hypotheses about one target."""
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
    """The row of the known configuration that stands for each one: itself, or the nearest."""

    def condition(self, seen: Observations, *, seed: int) -> "AdaptivePosterior":
        """The past tasks, each as likely as it makes the order of the trials."""
        del seed
        good = seen.successes()
        tried = self.scores[:, self.nearest(good.configs)]
        real = np.flatnonzero(~good.believed)[-LATEST:]
        losses = scalarise(good.losses, midrank_scores)
        noise = np.full((1, len(real)), NOISE)
        weights = softmax(order_score(tried[:, real], noise, losses[real], first=1))
        best = tried.min(axis=1, initial=np.inf)
        return AdaptivePosterior(self.scores, self.nearest, weights, best)


@dataclass(frozen=True, slots=True)
class AdaptivePosterior(Posterior):
    """The target's losses, as past tasks have them that it may be like."""

    scores: Floats
    nearest: CachedOnPool[Ints]
    weights: Floats
    """(tasks,), adding up to 1."""
    bests: Floats
    """(tasks,), the best trial so far, had it been made on each task."""

    @property
    def best(self) -> float:
        """The best trial, expected over tasks."""
        return float(self.weights @ self.bests)

    def predict(self, x: Encoded) -> Prediction:
        """Mean and standard deviation over tasks, with the noise between like tasks."""
        each = self.scores[:, self.nearest(x)]
        middle = self.weights @ each
        variance = self.weights @ np.square(each - middle)
        return Prediction(middle, np.sqrt(variance + NOISE**2))

    def sample(self, x: Encoded, n: int, *, seed: int) -> Floats:
        """Every draw is one task's."""
        rng = np.random.default_rng(seed)
        tasks = rng.choice(len(self.weights), size=n, p=self.weights)
        each = self.scores[np.ix_(tasks, self.nearest(x))]
        return each + NOISE * rng.standard_normal(each.shape)

    def log_utility(self, x: Encoded) -> Floats:
        """(len(x),), log of the improvement on all trials so far, expected over tasks."""
        gains = self.weights @ np.maximum(self.bests[:, None] - self.scores, 0.0)
        known: Floats = gains + ANYTHING * np.exp(-(self.weights @ self.scores))
        return log_of_improvement(known[self.nearest(x)])


@dataclass(frozen=True, slots=True)
class AdaptiveLearner(Learner):
    """Reads the table of past tasks."""

    def learn(
        self, experience: Experience | None, *, seed: int, progress: Progress
    ) -> AdaptivePrior:
        """What is recorded, and what forests predict where tasks share no configurations."""
        experience = require_experience(experience)
        few = standing_for_all(experience, seed=seed)
        return self._learn(few or _few_enough(experience, seed), few is not None, seed, progress)

    def _learn(
        self, experience: Experience, are_drawn: bool, seed: int, progress: Progress
    ) -> AdaptivePrior:
        """The same from no more tasks than can be read.

        are_drawn: whether they stand for others, so that quick forests are good enough.
        """
        table = _completable(loss_table(experience, "normal"), seed)
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
        """The tasks that it learns from."""
        return standing_for_all(experience, seed=seed) or experience

    def early_reserve(self, experience: Experience, k: int, *, seed: int) -> Encoded | None:
        """What a search among many past tasks opens with, within a fraction of a second.

        None where there are so few tasks that the learnt portfolio is to be waited for.
        """
        if len(experience.tasks) <= MOST_FORESTS:
            return None
        few = standing_for_all(experience, seed=seed)
        if few is not None:
            return early_portfolio(few, k)
        # Where tasks share their configurations, the table is read and needs no forest.
        prior = self._learn(_few_enough(experience, seed), False, seed, SILENT)
        return prior.portfolio(k)

    def load(self, path: Path) -> AdaptivePrior:
        """Read what was saved."""
        meta, arrays = load_artifact(path, kind=KIND, newest_version=VERSION)
        configs = Space.from_json(meta["space"]).unpack(arrays)
        return AdaptivePrior(configs, arrays["scores"].astype(np.float64))


def standing_for_all(experience: Experience, *, seed: int) -> Experience | None:
    """The tasks that stand for all, where each needs a forest and there are too many for that."""
    if len(experience.tasks) <= MOST_FORESTS or shares_configurations(experience):
        return None
    names = _names_of_taught(experience)
    if len(names) <= MOST_FORESTS:
        return None
    drawn = draw_by_name(names, MOST_FORESTS, seed)
    return experience.only(names[place] for place in drawn.tolist())


def _names_of_taught(experience: Experience) -> list[str]:
    """The tasks that have a success."""
    rows = experience.task_index[np.isfinite(experience.losses).all(axis=1)]
    return [experience.tasks[position] for position in np.flatnonzero(np.bincount(rows)).tolist()]


def _few_enough(experience: Experience, seed: int) -> Experience:
    """As many tasks as can be read, if they share their configurations."""
    if len(experience.tasks) <= MOST_TASKS or not shares_configurations(experience):
        return experience
    names = _names_of_taught(experience)
    drawn = draw_by_name(names, MOST_TASKS, seed)
    return experience.only(names[place] for place in drawn.tolist())


def _completable(table: LossTable, seed: int) -> LossTable:
    """No more tasks than forests can complete, if a table needs forests.

    Tasks that were drawn may share fewer configurations than all tasks do.
    """
    return table if table.has_common_configs else table.some_tasks(MOST_FORESTS, seed=seed)


def best_of_each(losses: Losses) -> Ints:
    """The columns that are among the best of a row; where these are too many, the best among them.

    The best of any row come before the second best of any, and so on.
    """
    order = np.argsort(losses, axis=1, kind="stable")[:, :BEST_OF_EACH]
    recorded = ~np.isnan(np.take_along_axis(losses, order, axis=1))
    places = np.broadcast_to(np.arange(order.shape[1]), order.shape)
    by_place = np.argsort(places[recorded], kind="stable")
    columns, first = np.unique(order[recorded][by_place], return_index=True)
    return np.sort(columns[np.argsort(first, kind="stable")[:MOST_CONFIGS]])


def adaptive_portfolio() -> AdaptiveLearner:
    """The learner of the method `adaptive-portfolio`."""
    return AdaptiveLearner()
