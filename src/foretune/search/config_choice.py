"""The choice of one configuration: from the start list, by the design, or by the model."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from foretune._base.arrays import Floats
from foretune.errors import UsageError
from foretune.methods.contracts import Observations, Posterior, Prior, Region, Surrogate, Target
from foretune.methods.curve_contracts import CurvePosterior, CurveSurrogate, SeenCurves
from foretune.search.acquisition import ACQUISITIONS
from foretune.search.candidates import Candidates, ChosenConfig, Pool, WholeSpace
from foretune.search.method_entry import Design, Method
from foretune.search.outlook import Outlook, learn_outlook
from foretune.search.pending_values import with_beliefs
from foretune.search.registry import METHODS
from foretune.search.seeds import derive_seed
from foretune.search.stages import SearchStage, Stages, reserve
from foretune.space import Encoded

EXPLORE_EVERY = 2
"""Each trial of this number is drawn at random if a model of curves has no past to trust. Paused
trials cost little, and where most configurations learn nothing the model sees no direction."""


@dataclass(frozen=True, slots=True)
class TrialsSoFar:
    """The trials that the next choice takes into account."""

    told: Observations
    pending: tuple[Encoded, ...] = ()
    """Batches of one."""
    reported: Floats | None = None
    """(pending, objectives), the last losses that each pending trial has reported, or NaN."""
    curves: SeenCurves | None = None
    """What all trials have reported, if a model of curves chooses."""

    def with_curves(self, curves: SeenCurves) -> "TrialsSoFar":
        """Return the same trials with what they have reported."""
        return replace(self, curves=curves)

    def configs(self) -> Encoded:
        """Return the configurations that were told or are pending."""
        return (
            Encoded.concat([self.told.configs, *self.pending])
            if self.pending
            else self.told.configs
        )


class ConfigChooser:
    """Chooses the next configuration. The same trials so far always give the same choice."""

    def __init__(
        self, target: Target, method: Method, prior: Prior, *, seed: int, start: Encoded | None
    ) -> None:
        self.target = target
        self.method = method
        self.seed = seed
        design, self._prior = _design_and_prior(method, prior, target)
        self._stages = Stages.plan(design, self._prior, target, start)
        self._outlook: tuple[int, Outlook] | None = None
        self._last_belief: tuple[int, Posterior] | None = None
        self._last_curves: tuple[object, CurvePosterior] | None = None
        if self._prior.has_learnt:
            self.finish_learning()

    def finish_learning(self) -> None:
        """Learn what the model needs, if that has not been done yet."""
        _ = self._surrogate, self._candidates

    def must_learn(self, trials: TrialsSoFar) -> bool:
        """Return whether the next choice waits until everything is learnt."""
        if self._prior.has_learnt:
            return False
        return self._stages.after(trials.configs(), starting=True) is not SearchStage.START

    def explain(self, told: Observations) -> str:
        """Return a sentence about what the method relied on; it may be empty."""
        if not self._prior.has_learnt or not told.is_success.any():
            return ""
        return self._surrogate.explain(told)

    def strike_start(self, configs: Encoded) -> None:
        """Take configurations off the start list."""
        self._stages = self._stages.without(configs)

    @property
    def usual_last_step(self) -> float | None:
        """The last step of past trials, if the method knows one."""
        if not self._prior.has_learnt:
            return None
        surrogate = self._surrogate
        return surrogate.usual_last_step if isinstance(surrogate, CurveSurrogate) else None

    def curve_posterior(self, trials: TrialsSoFar) -> CurvePosterior:
        """Condition the model on curves, once for all questions until the next report."""
        surrogate, curves = self._surrogate, trials.curves
        assert isinstance(surrogate, CurveSurrogate)
        assert curves is not None
        key = (len(trials.told), curves.key())
        if self._last_curves is None or self._last_curves[0] != key:
            seed = derive_seed(self.seed, len(trials.told), 0)
            elsewhere = _told_elsewhere(trials.told, curves)
            found = surrogate.condition_on_curves(curves, elsewhere, seed=seed)
            self._last_curves = (key, found)
        return self._last_curves[1]

    def score(
        self, posterior: Posterior, trials: TrialsSoFar, configs: Sequence[Encoded]
    ) -> Floats:
        """Return the acquisition function at configurations, each a batch of one."""
        x, outlook = Encoded.concat(list(configs)), self._outlook_after(trials.told)
        acquisition, seed = ACQUISITIONS[self.method.acquisition], self.seed
        return acquisition.score(posterior, x, outlook.discount(x), outlook.seen, seed=seed)

    def choose(self, trials: TrialsSoFar, among: Pool | None) -> tuple[ChosenConfig, str]:
        """Choose the next configuration, and say what chose it.

        among: choose only from these, and never from the start list.
        """
        return self._choose(trials, among, explore=True)

    def choose_best(self, trials: TrialsSoFar) -> ChosenConfig:
        """Choose a configuration without exploring by chance, to compare it with paused trials."""
        return self._choose(trials, None, explore=False)[0]

    def _choose(
        self, trials: TrialsSoFar, among: Pool | None, *, explore: bool
    ) -> tuple[ChosenConfig, str]:
        seed = derive_seed(self.seed, len(trials.told), len(trials.pending))
        tried = trials.configs()
        stage = self._stages.after(tried, starting=among is None)
        if stage is SearchStage.START:
            choice, reason = self._from_start(tried), "start"
        elif stage is SearchStage.DESIGN:
            candidates = self._candidates if among is None else among
            choice, reason = self._from_design(candidates, trials, tried, seed)
        else:
            candidates = self._candidates if among is None else among
            choice, reason = self._from_model(candidates, trials, tried, seed, explore)
        if among is None:
            return choice, reason
        # The choice names a row of `among`, but a suggestion names a row of the target's pool.
        return ChosenConfig(choice.config, self._row_in_pool(choice.config)), reason

    @cached_property
    def _surrogate(self) -> Surrogate:
        return self._prior.surrogate(self.target)

    @cached_property
    def _region(self) -> Region | None:
        """The part of the space that the prior restricts the search to."""
        return self._prior.region(self.target)

    @cached_property
    def _everywhere(self) -> Candidates:
        target = self.target
        if target.pool is not None:
            return Pool(target.pool, self._region)
        return WholeSpace(target.space, self._region, effect=target.effect)

    @cached_property
    def _candidates(self) -> Candidates:
        """All candidates, and which of them the prior knows to be good."""
        target = self.target
        if target.pool is not None:
            return self._everywhere
        known = self._prior.known_good(target)
        if not len(known):
            return self._everywhere
        return WholeSpace(target.space, self._region, known, target.effect)

    @cached_property
    def _reserve(self) -> Encoded:
        return reserve(self._prior, self.target)

    def _from_start(self, tried: Encoded) -> ChosenConfig:
        config = self._stages.waiting(tried).take([0])
        return ChosenConfig(config, self._row_in_pool(config))

    def _row_in_pool(self, config: Encoded) -> int | None:
        """Return the row of a configuration in the target's pool; None if there is no pool."""
        if self.target.pool is None:
            return None
        members = np.flatnonzero(self.target.pool.isin(config))
        if len(members) == 0:
            raise UsageError(
                "a configuration to start with, or to choose among, must be a member of the pool, "
                f"but {config.dicts()[0]} is not: leave it out or use the whole space",
                rule="config-in-pool",
                field="config",
                value=config.dicts()[0],
            )
        return int(members[0])

    def _from_design(
        self, candidates: Candidates, trials: TrialsSoFar, tried: Encoded, seed: int
    ) -> tuple[ChosenConfig, str]:
        how = self._stages.design.how
        if how == "prior":
            belief = self._surrogate.condition(self._no_trials(), seed=seed)
            return self._maximise(belief, "thompson", candidates, trials.told, tried, seed)
        return self._draw(candidates, tried, seed), how

    def _from_model(
        self, candidates: Candidates, trials: TrialsSoFar, tried: Encoded, seed: int, explore: bool
    ) -> tuple[ChosenConfig, str]:
        by_curves = trials.curves is not None and any(map(len, trials.curves.steps))
        if not by_curves and not trials.told.is_success.any():
            return self._from_reserve(candidates, tried, seed)
        every = self.method.random_every
        if every is not None and len(tried) % every == every - 1:
            return self._draw(candidates, tried, seed), "random"
        posterior: Posterior = (
            self.curve_posterior(trials) if by_curves else self._belief(trials, seed)
        )
        if not posterior.trusts_past and candidates is self._candidates:
            candidates = self._everywhere
        explore = explore and by_curves and len(self.target.objectives) == 1
        if explore and not posterior.trusts_past and len(tried) % EXPLORE_EVERY == 1:
            return self._draw(candidates, tried, seed), "random"
        name = self.method.acquisition
        return self._maximise(posterior, name, candidates, trials.told, tried, seed)

    def _from_reserve(
        self, candidates: Candidates, tried: Encoded, seed: int
    ) -> tuple[ChosenConfig, str]:
        """While every trial fails: try what past tasks suggest next, then random configurations."""
        if candidates is self._candidates:
            left = np.flatnonzero(~self._reserve.isin(tried))
            if len(left):
                config = self._reserve.take(left[:1])
                return ChosenConfig(config, self._row_in_pool(config)), "start"
        return self._draw(candidates, tried, seed), "random"

    def _draw(self, candidates: Candidates, tried: Encoded, seed: int) -> ChosenConfig:
        how = self._stages.design.how
        if how == "sobol":
            # It is one sequence, so its scrambling must not change from ask to ask.
            return candidates.draw(tried, seed=self.seed, how="sobol", index=len(tried))
        how = how if how == "per-algorithm" else "random"
        return candidates.draw(tried, seed=seed, how=how, index=0)

    def _maximise(
        self,
        posterior: Posterior,
        name: str,
        candidates: Candidates,
        told: Observations,
        tried: Encoded,
        seed: int,
    ) -> tuple[ChosenConfig, str]:
        outlook = self._outlook_after(told)
        acquisition = ACQUISITIONS[name]

        def score(x: Encoded) -> Floats:
            return acquisition.score(posterior, x, outlook.discount(x), outlook.seen, seed=seed)

        if acquisition.drawn:
            return candidates.best_of_one_list(score, tried, seed=seed), name
        return candidates.best(score, tried, outlook.around, seed=seed), name

    def _outlook_after(self, told: Observations) -> Outlook:
        """Return what trials say about failures, and in a whole space about plateaus.

        It is learnt again after a trial was told, but not for each member of a batch.
        """
        n = len(told)
        if self._outlook is None or self._outlook[0] != n:
            self._outlook = (n, learn_outlook(told, plateaus=self.target.pool is None))
        return self._outlook[1]

    def _no_trials(self) -> Observations:
        width = len(self.target.objectives)
        no_configs = self.target.space.encode([])
        return Observations(no_configs, np.empty((0, width)), np.empty(0, dtype=bool))

    def _belief(self, trials: TrialsSoFar, seed: int) -> Posterior:
        """Condition the surrogate on the told trials, and on the pending ones as it expects them
        to end.
        """
        posterior = self._belief_after(trials.told)
        if not trials.pending:
            return posterior
        pending = Encoded.concat(trials.pending)
        seen = with_beliefs(trials.told, pending, posterior, trials.reported)
        return self._surrogate.condition(seen, seed=seed)

    def _belief_after(self, told: Observations) -> Posterior:
        """Condition the surrogate on the told trials, once for all suggestions until the next."""
        n = len(told)
        if self._last_belief is None or self._last_belief[0] != n:
            seed = derive_seed(self.seed, n, 0)
            self._last_belief = (n, self._surrogate.condition(told, seed=seed))
        return self._last_belief[1]


def _told_elsewhere(told: Observations, curves: SeenCurves) -> Observations:
    """Return the told trials that have no curve."""
    with_curve = np.array([len(steps) > 0 for steps in curves.steps], dtype=np.bool_)
    rows = np.flatnonzero(~told.configs.isin(curves.configs.take(np.flatnonzero(with_curve))))
    return Observations(told.configs.take(rows), told.losses[rows], told.believed[rows])


def _design_and_prior(method: Method, prior: Prior, target: Target) -> tuple[Design, Prior]:
    """Return the design and the prior to go on with.

    If all hyperparameters are constant, there is one configuration to draw, and a model has
    nothing to tell apart.
    """
    if target.space.width:
        return method.design, prior
    random = METHODS["random"]
    return random.design, random.learn(None, seed=0)
