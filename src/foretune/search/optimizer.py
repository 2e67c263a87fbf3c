"""Ask/tell: one optimiser for every method, every space and every recorded pool.

`ask` changes nothing that was learnt: what it returns follows from the seed, from what was told
and from what is pending. So a study can be rebuilt from its trials alone and goes on exactly as
if it had never stopped.
"""

from collections.abc import Iterable, Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from foretune._base.arrays import Floats
from foretune._base.progress import Progress, beating
from foretune.errors import ExhaustedError, UsageError
from foretune.experience import Experience
from foretune.methods.contracts import (
    Observations,
    Posterior,
    Prior,
    Region,
    Surrogate,
    Target,
    check_encoding,
)
from foretune.methods.stopping.policy import StepDecision, StoppingPolicy
from foretune.numerics.objectives import pareto_front
from foretune.search.acquisition import ACQUISITIONS
from foretune.search.arguments import (
    all_losses_told,
    check_meta_features,
    check_parts,
    load_experience,
    outcomes_of,
    resolve_space,
    suggestions_of,
)
from foretune.search.candidates import Candidates, ChosenConfig, Pool, WholeSpace
from foretune.search.method_entry import Design, Method
from foretune.search.outlook import Outlook, learn_outlook
from foretune.search.pending import Pending
from foretune.search.pending_values import with_beliefs
from foretune.search.prior_cache import default_progress, prior_of
from foretune.search.racing import Racing, end_of
from foretune.search.registry import METHODS
from foretune.search.registry import method as registered
from foretune.search.seeds import derive_seed
from foretune.search.stages import SearchStage, Stages, reserve
from foretune.search.suggestions import Suggestion, Told
from foretune.search.trial_buffer import ToldTrials
from foretune.space import Encoded


class Optimizer:
    """Suggests configurations for one target task.

    Arguments:
        target: the task: its space, its objectives, its pool if it is a recorded table.
        method: an entry of the registry.
        prior: what the method has learnt; `method.learn` or `method.load` gives it.
        seed: all randomness follows from it.
        start: configurations to try before anything else, in order. They stand in for the
            method's own first trials: for what the prior opens with, and for a design of so many
            trials. Where none are given, the method begins in its own way.
        policy: decides by the reports of trials which of them go on; all do if it is None.

    `Optimizer.of` makes one in a line.

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
        policy: StoppingPolicy | None = None,
    ) -> None:
        self.target = target
        self.method = method
        self.seed = seed
        check_parts(method)
        check_meta_features(method, target)
        if start is not None:
            check_encoding(start, target.space, "start")
        design, prior = _usable(method, prior, target)
        self._stages = Stages.plan(design, prior, target, start)
        self._prior = prior
        if prior.has_learnt:
            self.finish_learning()
        self._trials = ToldTrials(target.space, len(target.objectives))
        self._told = self._trials.observations()
        self._pending = Pending(target.space)
        self._racing = Racing(policy or StoppingPolicy(), len(target.objectives))
        self._outlook: tuple[int, Outlook] | None = None
        self._last_belief: tuple[int, Posterior] | None = None

    @classmethod
    def of(  # noqa: PLR0913 - one argument a choice of the user
        cls,
        space: Any = None,
        experience: Experience | str | Path | None = None,
        *,
        method: str | Method = "auto",
        objectives: tuple[str, ...] | None = None,
        pool: Encoded | None = None,
        meta_features: Mapping[str, float] | None = None,
        policy: StoppingPolicy | None = None,
        seed: int = 0,
        progress: Progress | None = None,
    ) -> "Optimizer":
        """An optimiser whose method has learnt from the experience, where there is one.

        What a method of the registry learnt is kept in the user's cache: the next one from the same
        begins at once. With more than a hundred past tasks learning takes minutes, and `auto` makes
        its first suggestions before it: it learns when the next one needs it, or when
        `finish_learning` is called.

        Arguments:
            space: what may be tried, as `Space.of` takes it; the experience's if left out.
            experience: past tasks, or the path of their file. Where the space has changed since, a
                warning says what of them is used; see `Experience.in_space`.
            method: the name of an entry of the registry.
            objectives: what each trial is told about. Where there is experience, these are metrics
                of it, its first one if left out. Tell what should grow with a minus sign.
            pool: all configurations that can be chosen, where they are a recorded list.
            meta_features: what describes the task, by name.
            policy: decides by the reports of trials which of them go on, such as
                `make_policy("asha", StepRange(1, 50))`.
            seed: all randomness follows from it, that of learning too.
            progress: told how far learning is. If left out, a terminal shows a bar, and the logger
                `foretune` says it elsewhere.

        Example:
            >>> optimizer = Optimizer.of({"lr": (1e-4, 1e-1, "log")}, "runs.parquet")
            >>> suggestion = optimizer.ask()[0]
            >>> optimizer.tell([Told(loss_of(suggestion.config), id=suggestion.id)])
        """
        chosen = method if isinstance(method, Method) else registered(method)
        shown = default_progress() if progress is None else progress
        with beating(shown, "reading past tasks", mostly_quick=True):
            given = load_experience(experience)
        space, past = resolve_space(space, given)
        if objectives is None:
            objectives = ("loss",) if past is None else (past.metrics[0].name,)
        target = Target(space, objectives, pool, meta_features or {})
        known = None if past is None else past.with_metrics(target.objectives)
        prior = prior_of(chosen, known, seed=seed, progress=shown)
        return cls(target, chosen, prior, seed=seed, policy=policy)

    def finish_learning(self) -> None:
        """Learn now what the model needs, instead of when the first suggestion needs it.

        With many past tasks the first suggestions are made before everything is learnt. Whoever has
        time until the first results, while the first trials run, can use it for this.
        """
        _ = self._surrogate, self._candidates

    @property
    def must_learn(self) -> bool:
        """Whether the next suggestion waits until everything is learnt, which may take minutes."""
        if self._prior.has_learnt:
            return False
        return self._stages.after(self._tried(), starting=True) is not SearchStage.START

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
        """Everywhere, and what the prior knows as good."""
        target = self.target
        if target.pool is not None:
            return self._everywhere
        known = self._prior.known_good(target)
        if not len(known):
            return self._everywhere
        return WholeSpace(target.space, self._region, known, target.effect)

    @property
    def told(self) -> Observations:
        """Every trial told so far, in order; failed ones with NaN."""
        return self._told

    @property
    def pending(self) -> Mapping[int, dict[str, Any]]:
        """Suggestions that were asked for and not told yet, by id."""
        return self._pending.dicts()

    @property
    def best(self) -> Told:
        """The told trial of the least loss, the first of equals: its `config`, its `losses`."""
        if len(self.target.objectives) > 1:
            raise UsageError(
                "the best trial is that of the least loss, of one objective, but there are "
                f"{len(self.target.objectives)}: choose among those of the `front`"
            )
        front = self.front
        if not front:
            raise UsageError(
                "the best trial is one of those that succeeded, but got none among the "
                f"{len(self._told)} told so far: tell others first"
            )
        return front[0]

    @property
    def front(self) -> list[Told]:
        """The told trials that no other betters, in their order: none is as good in every
        objective and better in one. Where there is one objective, those of the least loss.
        """
        rows = np.flatnonzero(pareto_front(self._told.losses)).tolist()
        configs = self._told.configs.take(rows).dicts()
        losses = self._told.losses[rows].tolist()
        return [Told(tuple(of), config=config) for of, config in zip(losses, configs, strict=True)]

    def ask(self, n: int = 1, *, among: Encoded | None = None) -> list[Suggestion]:
        """`n` different configurations that were neither told nor are pending.

        All of them or none: where not so many can be given, nothing is pending that nobody got.

        among: choose only from these, where part of the configuration is already decided.
        """
        if not isinstance(n, int | np.integer) or isinstance(n, bool) or n < 1:
            raise UsageError(
                f"ask(n) needs a whole number n >= 1, but got n={n!r}: ask for at least one "
                "suggestion"
            )
        if among is not None:
            check_encoding(among, self.target.space, "among")
        chosen_among = None if among is None else Pool(among)
        suggestions: list[Suggestion] = []
        try:
            # That tiny numbers become 0 is no fault, whatever the caller has NumPy do about it.
            with np.errstate(under="ignore"):
                for _ in range(n):
                    suggestions.append(self._ask_one(chosen_among))
        except BaseException as error:
            for suggestion in reversed(suggestions):
                self._take_back(suggestion)
            if isinstance(error, ExhaustedError) and suggestions:
                raise ExhaustedError(
                    f"ask(n) needs n untried configurations, but got n={n} where only "
                    f"{len(suggestions)} could be found: ask for so many"
                ) from error
            raise
        return suggestions

    def tell(self, outcomes: Iterable[Told]) -> None:
        """Take in outcomes, of suggestions by id or of configurations tried elsewhere.

        A suggestion may be told by its configuration as well: it is pending no longer.
        """
        outcomes = outcomes_of(outcomes)
        configs = self._pending.configs_of(outcomes)
        losses = all_losses_told(outcomes, self.target.objectives)
        if not outcomes:
            return
        self._racing.end({o.id: end_of(o.status) for o in outcomes if o.id is not None})
        self._pending.settle(outcomes, configs)
        self._trials.add(configs, losses)
        self._told = self._trials.observations()

    def tell_step(self, id_: int, step: float, losses: tuple[float, ...] | float) -> StepDecision:
        """Take in what a running trial reported at a step, and decide what becomes of it.

        A paused trial may be suggested again by `ask`, with `resumed_from` and under its id. A
        trial that is stopped is told as any other, with `Status.STOPPED` and its last losses.

        Example:
            >>> decided = optimizer.tell_step(suggestion.id, epoch, loss)
            >>> if decided.decision is Decision.STOP:
            ...     optimizer.tell([Told(loss, id=suggestion.id, status=Status.STOPPED)])
        """
        return self._racing.report(id_, step, losses)

    def should_stop(self, id_: int) -> bool:
        """Whether a trial is to end now, because the policy has paused or stopped it."""
        return self._racing.should_stop(id_)

    def hopeless(self) -> set[int]:
        """Ids of the paused trials that will never be resumed: their checkpoints can go."""
        return self._racing.hopeless()

    def explain(self) -> str:
        """What the method relied on, in a sentence; empty where it has nothing to say."""
        if not self._prior.has_learnt or not self._told.is_success.any():
            return ""
        with np.errstate(under="ignore"):
            return self._surrogate.explain(self._told)

    def assume_pending(self, suggestions: Iterable[Suggestion]) -> None:
        """Take suggestions that another process (or an earlier life) is still running.

        An id stands for one configuration: whoever takes those of several optimisers, each of
        which counts from 0, gives them other ids, such as negative ones.
        """
        taken = suggestions_of(suggestions)
        self._pending.assume(taken)
        self._racing.start_all(taken)

    def strike_start(self, configs: Iterable[Mapping[str, Any]]) -> None:
        """Take configurations off the start list, where others were tried instead of them.

        Those that were told stay on it: no design is to count them as its own.
        """
        unwanted = self.target.space.encode([dict(config) for config in configs])
        if len(unwanted):
            untold = np.flatnonzero(~unwanted.isin(self._told.configs))
            self._stages = self._stages.without(unwanted.take(untold))

    def withdraw(self, ids: Iterable[int]) -> None:
        """Forget pending suggestions that nobody will tell about."""
        unwanted = list(ids)
        self._pending.withdraw(unwanted)
        self._racing.forget(sorted(unwanted, reverse=True))

    def _take_back(self, suggestion: Suggestion) -> None:
        """Undo a suggestion that nobody got."""
        if suggestion.resumed_from is None:
            self.withdraw([suggestion.id])
        else:
            self._racing.pause(suggestion.id)

    def _ask_one(self, among: Pool | None) -> Suggestion:
        resumed = self._racing.resume() if among is None else None
        if resumed is not None:
            config = self._pending.dicts()[resumed]
            return Suggestion(resumed, config, "resumed", None, self._racing.last_step(resumed))
        choice, reason = self._choose(among)
        # A choice among given ones counts these; the suggestion names a row of the target's pool.
        row = choice.pool_index if among is None else self._row_in_pool(choice.config)
        id_ = self._pending.add(choice.config)
        self._racing.start(id_)
        return Suggestion(id_, choice.config.dicts()[0], reason, pool_index=row)

    def _choose(self, among: Pool | None) -> tuple[ChosenConfig, str]:
        """The next configuration and what chose it: the start list, the design, or the model."""
        seed = derive_seed(self.seed, len(self._told), len(self._pending))
        tried = self._tried()
        stage = self._stages.after(tried, starting=among is None)
        if stage is SearchStage.START:
            return self._from_start(tried), "start"
        candidates: Candidates = self._candidates if among is None else among
        if stage is SearchStage.DESIGN:
            return self._from_design(candidates, tried, seed)
        return self._from_model(candidates, tried, seed)

    def _tried(self) -> Encoded:
        """All that was told, and what is pending."""
        if not self._pending:
            return self._told.configs
        return Encoded.concat([self._told.configs, *self._pending.configs])

    def _from_start(self, tried: Encoded) -> ChosenConfig:
        config = self._stages.waiting(tried).take([0])
        return ChosenConfig(config, self._row_in_pool(config))

    def _row_in_pool(self, config: Encoded) -> int | None:
        """Where a configuration stands in the target's pool; None where there is no pool."""
        if self.target.pool is None:
            return None
        members = np.flatnonzero(self.target.pool.isin(config))
        if len(members) == 0:
            raise UsageError(
                "a configuration to start with, or to choose among, must be a member of the pool, "
                f"but {config.dicts()[0]} is not: leave it out or use the whole space"
            )
        return int(members[0])

    def _from_design(
        self, candidates: Candidates, tried: Encoded, seed: int
    ) -> tuple[ChosenConfig, str]:
        how = self._stages.design.how
        if how == "prior":
            belief = self._surrogate.condition(self._nothing(), seed=seed)
            return self._maximise(belief, "thompson", candidates, tried, seed)
        return self._draw(candidates, tried, seed), how

    def _from_model(
        self, candidates: Candidates, tried: Encoded, seed: int
    ) -> tuple[ChosenConfig, str]:
        if not self._told.is_success.any():
            return self._from_reserve(candidates, tried, seed)
        posterior = self._belief(seed)
        if not posterior.trusts_past and candidates is self._candidates:
            candidates = self._everywhere
        return self._maximise(posterior, self.method.acquisition, candidates, tried, seed)

    def _from_reserve(
        self, candidates: Candidates, tried: Encoded, seed: int
    ) -> tuple[ChosenConfig, str]:
        """While no trial tells anything: what past tasks would go on with, then random draws."""
        if candidates is self._candidates:
            left = np.flatnonzero(~self._reserve.isin(tried))
            if len(left):
                config = self._reserve.take(left[:1])
                return ChosenConfig(config, self._row_in_pool(config)), "start"
        return self._draw(candidates, tried, seed), "random"

    @cached_property
    def _reserve(self) -> Encoded:
        return reserve(self._prior, self.target)

    def _draw(self, candidates: Candidates, tried: Encoded, seed: int) -> ChosenConfig:
        how = self._stages.design.how
        if how == "sobol":
            # One sequence, so its scrambling must not change from ask to ask.
            return candidates.draw(tried, seed=self.seed, how="sobol", index=len(tried))
        how = how if how == "per-algorithm" else "random"
        return candidates.draw(tried, seed=seed, how=how, index=0)

    def _maximise(
        self, posterior: Posterior, name: str, candidates: Candidates, tried: Encoded, seed: int
    ) -> tuple[ChosenConfig, str]:
        outlook = self._outlook_of_told()
        acquisition = ACQUISITIONS[name]

        def score(x: Encoded) -> Floats:
            return acquisition.score(posterior, x, outlook.discount(x), outlook.seen, seed=seed)

        if acquisition.drawn:
            return candidates.best_of_one_list(score, tried, seed=seed), name
        return candidates.best(score, tried, outlook.around, seed=seed), name

    def _outlook_of_told(self) -> Outlook:
        """What trials say about failures, and in a whole space about plateaus.

        Learnt anew when something was told, not for each member of a batch.
        """
        n = len(self._told)
        if self._outlook is None or self._outlook[0] != n:
            self._outlook = (n, learn_outlook(self._told, plateaus=self.target.pool is None))
        return self._outlook[1]

    def _nothing(self) -> Observations:
        width = len(self.target.objectives)
        nothing = self.target.space.encode([])
        return Observations(nothing, np.empty((0, width)), np.empty(0, dtype=bool))

    def _belief(self, seed: int) -> Posterior:
        """The surrogate after the told trials and, as it expects them to end, the pending ones."""
        posterior = self._belief_of_told()
        if not self._pending:
            return posterior
        pending = Encoded.concat(self._pending.configs)
        reported = self._racing.reported_losses(self._pending.ids)
        seen = with_beliefs(self._told, pending, posterior, reported)
        return self._surrogate.condition(seen, seed=seed)

    def _belief_of_told(self) -> Posterior:
        """The surrogate after the told trials: formed once, whatever is asked before the next."""
        n = len(self._told)
        if self._last_belief is None or self._last_belief[0] != n:
            seed = derive_seed(self.seed, n, 0)
            self._last_belief = (n, self._surrogate.condition(self._told, seed=seed))
        return self._last_belief[1]


def _usable(method: Method, prior: Prior, target: Target) -> tuple[Design, Prior]:
    """How to begin, and the prior to go on with.

    Where all hyperparameters are constant there is one configuration to draw, and nothing that a
    model could tell apart.
    """
    if target.space.width:
        return method.design, prior
    random = METHODS["random"]
    return random.design, random.learn(None, seed=0)
