"""Ask/tell: one optimiser for every method, every space and every recorded pool.

`ask` changes nothing that was learnt: what it returns follows from the seed, from what was told
and from what is pending. So a study can be rebuilt from its trials alone and goes on exactly as
if it had never stopped.
"""

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from foretune.arrays import Floats
from foretune.contracts import Observations, Posterior, Prior, Target
from foretune.errors import UsageError
from foretune.experience import Status
from foretune.search.candidates import Candidates, Choice, Pool, WholeSpace
from foretune.search.feasibility import Feasibility, learn_feasibility
from foretune.search.registry import Method
from foretune.search.scoring import ACQUISITIONS
from foretune.search.seeds import derived_seed
from foretune.search.trials import Suggestion, Told
from foretune.space import Encoded

GOOD_STARTS = 5
"""How many of the best trials so far start a local search of their own."""


class Optimizer:
    """Suggests configurations for one target task.

    Arguments:
        target: the task: its space, its objectives, its pool if it is a recorded table.
        method: an entry of the registry.
        prior: what the method has learnt; `method.learn` or `method.load` gives it.
        seed: all randomness follows from it.
        start: configurations to try before anything else, in order.

    Example:
        >>> optimizer = Optimizer(Target(space), method("gp"), method("gp").learn(None, seed=0))
        >>> suggestion = optimizer.ask()[0]
        >>> optimizer.tell([Told((loss_of(suggestion.config),), id=suggestion.id)])
    """

    def __init__(
        self,
        target: Target,
        method: Method,
        prior: Prior,
        *,
        seed: int = 0,
        start: Encoded | None = None,
    ) -> None:
        self.target = target
        self.method = method
        self.seed = seed
        self._start = start if start is not None else _none_of(target)
        self._surrogate = prior.surrogate(target)
        self._candidates: Candidates = (
            Pool(target.pool) if target.pool is not None else WholeSpace(target.space)
        )
        self._score = ACQUISITIONS[method.acquisition]
        self._told = Observations(
            _none_of(target), np.empty((0, len(target.objectives))), np.empty(0, dtype=bool)
        )
        self._pending: dict[int, Encoded] = {}
        self._next_id = 0

    @property
    def told(self) -> Observations:
        """Every trial told so far, in order; failed ones with NaN."""
        return self._told

    @property
    def pending(self) -> Mapping[int, dict[str, Any]]:
        """Suggestions that were asked for and not told yet, by id."""
        return {id_: config.dicts()[0] for id_, config in self._pending.items()}

    def ask(self, n: int = 1) -> list[Suggestion]:
        """`n` different configurations that were neither told nor are pending."""
        if n < 1:
            raise UsageError(f"ask(n) needs n >= 1, but got n={n}: ask for at least one suggestion")
        return [self._ask_one() for _ in range(n)]

    def tell(self, outcomes: Iterable[Told]) -> None:
        """Take in outcomes, of suggestions by id or of configurations tried elsewhere."""
        outcomes = list(outcomes)
        configs = [self._config_of(outcome) for outcome in outcomes]
        losses = [self._losses_of(outcome) for outcome in outcomes]
        for outcome, config, loss in zip(outcomes, configs, losses, strict=True):
            if outcome.id is not None:
                del self._pending[outcome.id]
            self._told = _with_row(self._told, config, loss, believed=False)

    def assume_pending(self, suggestions: Iterable[Suggestion]) -> None:
        """Take suggestions that another process (or an earlier life) is still running."""
        for suggestion in suggestions:
            self._pending[suggestion.id] = self.target.space.encode([suggestion.config])
            self._next_id = max(self._next_id, suggestion.id + 1)

    def _ask_one(self) -> Suggestion:
        choice, reason = self._choose()
        suggestion = Suggestion(
            self._next_id, choice.config.dicts()[0], reason, pool_index=choice.pool_index
        )
        self._pending[suggestion.id] = choice.config
        self._next_id += 1
        return suggestion

    def _choose(self) -> tuple[Choice, str]:
        position = len(self._told) + len(self._pending)
        seed = derived_seed(self.seed, len(self._told), len(self._pending))
        tried = Encoded.concat([self._told.configs, *self._pending.values()])
        waiting = np.flatnonzero(~self._start.isin(tried))
        if len(waiting):
            return self._from_start(int(waiting[0])), "start"
        design = self.method.design
        in_design = design.trials is None or position - len(self._start) < design.trials
        if design.how == "prior" and in_design:
            return self._maximise(self._surrogate_on_nothing(seed), "thompson", tried, seed)
        if in_design or not self._told.succeeded.any():
            how = "random" if design.how == "prior" else design.how
            return self._candidates.draw(tried, seed=self._draw_seed(seed), how=how, index=position), how
        posterior = self._surrogate.condition(self._with_beliefs(seed), seed=seed)
        return self._maximise(posterior, self.method.acquisition, tried, seed)

    def _draw_seed(self, seed: int) -> int:
        # A Sobol sequence is one sequence: its scrambling must not change from ask to ask.
        return self.seed if self.method.design.how == "sobol" else seed

    def _surrogate_on_nothing(self, seed: int) -> Posterior:
        nothing = self._told.configs.take([])
        empty = Observations(nothing, np.empty((0, self._told.losses.shape[1])), np.empty(0, bool))
        return self._surrogate.condition(empty, seed=seed)

    def _from_start(self, row: int) -> Choice:
        config = self._start.take([row])
        if self.target.pool is None:
            return Choice(config)
        members = np.flatnonzero(self.target.pool.isin(config))
        if len(members) == 0:
            raise UsageError(
                "a start configuration must be a member of the pool, but "
                f"{config.dicts()[0]} is not: leave it out or use the whole space"
            )
        return Choice(config, int(members[0]))

    def _maximise(
        self, posterior: Posterior, acquisition: str, tried: Encoded, seed: int
    ) -> tuple[Choice, str]:
        feasible: Feasibility = learn_feasibility(self._told)
        function = ACQUISITIONS[acquisition]

        def score(x: Encoded) -> Floats:
            return function(posterior, x, seed) + feasible.log_probability(x)

        choice = self._candidates.best(score, tried, self._best_told(), seed=seed)
        return choice, acquisition

    def _best_told(self) -> Encoded:
        good = self._told.successes()
        order = np.argsort(good.losses.sum(axis=1), kind="stable")
        return good.configs.take(order[:GOOD_STARTS])

    def _with_beliefs(self, seed: int) -> Observations:
        """The told trials, and the pending ones as if they had come back as predicted.

        A pending trial is believed to end like the observation whose prediction is nearest to
        its own, which works in whatever unit the surrogate predicts.
        """
        if not self._pending:
            return self._told
        pending = Encoded.concat(list(self._pending.values()))
        good = self._told.successes()
        posterior = self._surrogate.condition(self._told, seed=seed)
        predicted = posterior.predict(pending).mean[:, None]
        alike = np.abs(posterior.predict(good.configs).mean[None, :] - predicted).argmin(axis=1)
        return Observations(
            Encoded.concat([self._told.configs, pending]),
            np.concatenate([self._told.losses, good.losses[alike]]),
            np.concatenate([self._told.believed, np.ones(len(pending), dtype=bool)]),
        )

    def _config_of(self, outcome: Told) -> Encoded:
        if outcome.id is not None:
            if outcome.id not in self._pending:
                raise UsageError(
                    f"an outcome's id must be one of the pending suggestions, but got {outcome.id} "
                    f"(pending: {sorted(self._pending) or 'none'}): tell each suggestion once, or "
                    "give the configuration instead of the id"
                )
            return self._pending[outcome.id]
        if outcome.config is None:
            raise UsageError("an outcome needs an id or a configuration, but got neither: give one")
        return self.target.space.encode([outcome.config])

    def _losses_of(self, outcome: Told) -> Floats:
        width = len(self.target.objectives)
        losses = np.asarray(outcome.losses, dtype=float)
        if outcome.status is not Status.DONE or not np.isfinite(losses).all():
            return np.full(width, np.nan)
        if losses.shape != (width,):
            raise UsageError(
                f"an outcome needs one loss for each of {list(self.target.objectives)}, but got "
                f"{len(outcome.losses)}: tell {width} number(s)"
            )
        return losses


def _none_of(target: Target) -> Encoded:
    return target.space.from_values(np.empty((0, len(target.space.parameters))))


def _with_row(seen: Observations, config: Encoded, losses: Floats, *, believed: bool) -> Observations:
    return Observations(
        Encoded.concat([seen.configs, config]),
        np.concatenate([seen.losses, losses[None, :]]),
        np.append(seen.believed, believed),
    )
